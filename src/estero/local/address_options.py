"""The options after the ``?`` of an address, as far as the local engine knows them; others are mistakes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from estero.addresses import Address
from estero.errors import DataError, legible

_OF_LIBRDKAFKA: Final = "kafka."
"""What the names of settings of librdkafka begin with."""


class _Option(NamedTuple):
    """What the value of an option may be: a regular expression, and its meaning in words."""

    values: re.Pattern[str]
    meaning: str


_Known = Mapping[str, _Option]
_DELIMITER: Final = _Option(re.compile(r'[^\r\n"]'), "one character")
_OF_SOURCES: Final[Mapping[str, _Known]] = {
    "csv": {"sep": _DELIMITER, "delimiter": _DELIMITER},
    "kafka": {"startingOffsets": _Option(re.compile("earliest|latest"), "earliest or latest")},
}
_OF_SINKS: Final[Mapping[str, _Known]] = {
    "kafka": {
        "transactions": _Option(re.compile("true|false", re.IGNORECASE), "true or false"),
        "commitIntervalMs": _Option(re.compile(r"\d+"), "a number of milliseconds"),
        "key": _Option(re.compile(".+", re.DOTALL), "the name of a column"),
    },
}


def check_source_options(address: Address) -> None:
    """Raises `DataError` for an option, or its value, that a source of the local engine does not know."""
    _check(address, _OF_SOURCES.get(address.scheme, {}))


def check_sink_options(address: Address) -> None:
    """Raises `DataError` for an option that a sink does not know; those of PostgreSQL are its client's."""
    if address.scheme != "postgresql":
        _check(address, _OF_SINKS.get(address.scheme, {}))


def _check(address: Address, known: _Known) -> None:
    for name, value in address.options.items():
        if address.scheme == "kafka" and name.startswith(_OF_LIBRDKAFKA):
            continue
        if name not in known:
            raise DataError(f"{address}: there is no option {legible(name)}", hint=_hint(address, known))
        if not known[name].values.fullmatch(value):
            raise DataError(
                f"{address}: the option {name} is {known[name].meaning}, not {legible(value) or 'empty'}"
            )


def _hint(address: Address, known: _Known) -> str:
    names = [*known, *["kafka.NAME"] * (address.scheme == "kafka")]
    if not names:
        return f"{address.scheme}: has no options in the local engine; those of readers are for Spark"
    return f"the local engine knows {', '.join(names)}"
