"""Names that distinguish columns whose names differ only in case, which engines ignore.

``id`` beside ``ID`` is ``__exact6964`` beside ``__exact4944`` wherever they are read and compared. A query
with ``ID`` means the latter (renaming.py), and users see the names that they gave.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_EXACT: Final = re.compile("__exact((?:[0-9a-f]{2})+)")


def exact_name(name: str) -> str:
    """The name of a column inside, which no other one has in any case.

    >>> exact_name("ID"), given_name("__exact4944")
    ('__exact4944', 'ID')
    """
    return f"__exact{name.encode('utf-8', 'surrogatepass').hex()}"


def given_name(name: str) -> str:
    """The name that a user has for a column: the inverse of `exact_name`; other names are as they are."""
    exact = _EXACT.fullmatch(name)
    return name if exact is None else bytes.fromhex(exact[1]).decode("utf-8", "surrogatepass")


def exact_names(names: Iterable[str]) -> dict[str, str]:
    """The names inside of those columns whose names differ in case only.

    >>> exact_names(["id", "v", "ID"])
    {'id': '__exact6964', 'ID': '__exact4944'}
    """
    alike: dict[str, dict[str, None]] = {}
    for name in names:
        alike.setdefault(name.lower(), {})[name] = None
    return {name: exact_name(name) for group in alike.values() if len(group) > 1 for name in group}


def exact_among(names: Iterable[str]) -> dict[str, str]:
    """The names inside that are among these, by those that users have."""
    return {given_name(name): name for name in names if _EXACT.fullmatch(name)}
