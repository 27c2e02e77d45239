"""The parts of a match that an expression reads: values, variables and aggregates, each at its address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

Rows = frozenset[str] | None
"""The rows of the match that have one of these variables (by key); None: all of them."""


@dataclass(frozen=True, slots=True)
class Address:
    """A row: the one `offset` rows after the first of `rows` or before the last, shifted by `shift` rows.

    It is searched in the match up to the current row, or in all of it if `final`. `shift` may leave the
    match.
    """

    last: bool = True
    rows: Rows = None
    offset: int = 0
    final: bool = False
    shift: int = 0

    @property
    def is_near(self) -> bool:
        """Whether it is the current row, or one at a fixed distance from it."""
        return self.last and self.rows is None and self.offset == 0 and not self.final


HERE: Final = Address()


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a column, by its number; NULL if there is no such row."""

    address: Address
    column: int


@dataclass(frozen=True, slots=True)
class Label:
    """The variable of a row as written in the pattern; NULL if there is no such row in the match."""

    address: Address


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether there is such a row."""

    address: Address


@dataclass(frozen=True, slots=True)
class Count:
    """The number of rows of the match that are of these variables."""

    rows: Rows
    final: bool


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of SQL over these rows of the match.

    In its text, columns are c0, c1, …, `label` and `number`. `ordered`: its value depends on the order of the
    rows, and it does not specify one itself.
    """

    call: str
    filter: str
    rows: Rows
    final: bool
    columns: tuple[int, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """The number of the match in its partition, from 1."""


Slot = Value | Label | Presence | Count | Aggregate | MatchNumber


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over slots, which are its columns s0, s1 and so on."""

    tree: exp.Expr
    slots: tuple[Slot, ...]


def slot_name(number: int) -> str:
    """The name of a slot in the text of an expression."""
    return f"s{number}"


def column_name(number: int) -> str:
    """The name of a column of the input."""
    return f"c{number}"
