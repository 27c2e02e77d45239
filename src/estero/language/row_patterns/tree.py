"""The clause MATCH_RECOGNIZE as a tree: its parts, and their places in the text of the statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from estero.errors import NOWHERE, Span
from estero.language.row_patterns.words import Dialect


@dataclass(frozen=True, slots=True)
class Variable:
    """A row of this variable; `key` is its name as names are compared, `name` as it is written."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def key(self) -> str:
        """The name as names are compared."""
        return self.name.casefold()

    def __str__(self) -> str:
        return self.name if self.name.isidentifier() else '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Anchor:
    """The start of the partition, or its end."""

    at: Literal["start", "end"]

    def __str__(self) -> str:
        return "^" if self.at == "start" else "$"


@dataclass(frozen=True, slots=True)
class Nothing:
    """No row."""

    def __str__(self) -> str:
        return "()"


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after the other."""

    parts: tuple[RowPattern, ...]

    def __str__(self) -> str:
        return " ".join(f"({part})" if isinstance(part, Choice) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the alternatives, the first one preferred."""

    alternatives: tuple[RowPattern, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.alternatives))


@dataclass(frozen=True, slots=True)
class Repetition:
    """A part `least` to `most` times (None: without end), more preferred if `greedy`, else fewer."""

    part: RowPattern
    least: int
    most: int | None
    greedy: bool = True

    def __str__(self) -> str:
        simple = isinstance(self.part, Variable | Anchor | Nothing | Excluded | Permutation)
        part = str(self.part) if simple else f"({self.part})"
        signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
        sign = signs.get((self.least, self.most)) or (
            f"{{{self.least}}}" if self.least == self.most else f"{{{self.least},{self.most or ''}}}"
        )
        return part + sign + ("" if self.greedy else "?")


@dataclass(frozen=True, slots=True)
class Permutation:
    """The parts in any order; orders are preferred lexicographically."""

    parts: tuple[RowPattern, ...]

    def __str__(self) -> str:
        return f"PERMUTE({', '.join(map(str, self.parts))})"


@dataclass(frozen=True, slots=True)
class Excluded:
    """A part whose rows are not shown."""

    part: RowPattern

    def __str__(self) -> str:
        return f"{{- {self.part} -}}"


RowPattern = Variable | Anchor | Nothing | Sequence | Choice | Repetition | Permutation | Excluded


def parts_of(pattern: RowPattern) -> tuple[RowPattern, ...]:
    """The direct parts of a pattern."""
    match pattern:
        case Sequence(parts) | Permutation(parts) | Choice(parts):
            return parts
        case Repetition(part=part) | Excluded(part=part):
            return (part,)
    return ()


def nodes_of(pattern: RowPattern) -> Iterator[RowPattern]:
    """The pattern and all parts in it, in the order of the text."""
    yield pattern
    for part in parts_of(pattern):
        yield from nodes_of(part)


def variables_of(pattern: RowPattern) -> dict[str, Variable]:
    """The variables of a pattern by key, in the order of the text, as first written."""
    variables: dict[str, Variable] = {}
    for node in nodes_of(pattern):
        if isinstance(node, Variable):
            variables.setdefault(node.key, node)
    return variables


# --------------------------------------------------------------------------------------- the clause


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression of SQL as it is written."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Named:
    """A measure, or the condition of a variable."""

    name: str
    expression: Scalar
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Subset:
    """A union variable: a name for the rows of several variables."""

    variable: Variable
    of: tuple[Variable, ...]


RowsPerMatch = Literal["one", "all", "all nonempty", "all unmatched"]
"""ONE ROW, ALL ROWS (SHOW EMPTY MATCHES), ALL ROWS OMIT EMPTY MATCHES, ALL ROWS WITH UNMATCHED ROWS."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Where the search continues after a match: after its last row, at its next row, or at a variable's."""

    to: Literal["past last", "next", "first", "last"] = "past last"
    variable: Variable | None = None
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        if self.variable is None:
            return {"past last": "PAST LAST ROW", "next": "TO NEXT ROW"}[self.to]
        return f"TO {self.to.upper()} {self.variable}"


PAST_LAST_ROW: Final = Skip()


@dataclass(frozen=True, slots=True)
class RowPatternClause:
    """The content of the parentheses of MATCH_RECOGNIZE; `text` is the whole statement.

    `dialect` is the dialect of its SQL.
    """

    pattern: RowPattern
    define: tuple[Named, ...]
    measures: tuple[Named, ...] = ()
    partition_by: tuple[Scalar, ...] = ()
    order_by: tuple[Scalar, ...] = ()
    rows: RowsPerMatch = "one"
    skip: Skip = PAST_LAST_ROW
    subsets: tuple[Subset, ...] = ()
    within: Scalar | None = None
    dialect: Dialect = "duckdb"
    text: str = field(default="", compare=False)
    span: Span = field(default=NOWHERE, compare=False)
    pattern_span: Span = field(default=NOWHERE, compare=False)

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables of the pattern by key."""
        return variables_of(self.pattern)

    @property
    def names(self) -> dict[str, frozenset[str]]:
        """The keys of the variables whose rows each variable or subset has, by key."""
        names = {key: frozenset([key]) for key in self.variables}
        for subset in self.subsets:
            names[subset.variable.key] = frozenset(variable.key for variable in subset.of)
        return names
