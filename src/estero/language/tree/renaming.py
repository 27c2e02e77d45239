"""Trees of queries with other names for the columns of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from estero.language.tree.expressions import Attribute
from estero.language.tree.paths import column_of

T = TypeVar("T")

_NAMING: Final = frozenset({"attribute", "attributes", "alternatives"})
"""The fields of nodes that hold names of attributes, in addition to the name of an `Attribute`."""


def with_columns(tree: T, names: Mapping[str, str]) -> T:
    """The tree of a query with other names for some columns, wherever it names them."""
    return _renamed(tree, names)  # type: ignore[return-value]


def _renamed(tree: Any, names: Mapping[str, str]) -> object:
    if isinstance(tree, tuple):
        return tuple(_renamed(part, names) for part in tree)
    if isinstance(tree, Mapping):
        return {key: _renamed(part, names) for key, part in tree.items()}
    if not is_dataclass(tree) or isinstance(tree, type):
        return tree
    naming = {*_NAMING, "name"} if isinstance(tree, Attribute) else _NAMING
    changed: dict[str, object] = {}
    for field in fields(tree):
        if not field.compare or not field.init:
            continue
        before = getattr(tree, field.name)
        after = _attributes(before, names) if field.name in naming else _renamed(before, names)
        if after != before:
            changed[field.name] = after
    return replace(tree, **changed) if changed else tree


def _attributes(value: object, names: Mapping[str, str]) -> object:
    if isinstance(value, tuple):
        return tuple(_attributes(name, names) for name in value)
    if not isinstance(value, str):
        return value
    column = column_of(value)
    return names.get(column, column) + value[len(column) :]
