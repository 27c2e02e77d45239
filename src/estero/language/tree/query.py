"""A whole query as a tree (docs/semantics.md, "Clauses")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from estero.errors import Span
from estero.language.tree.distances import Window
from estero.language.tree.expressions import Node
from estero.language.tree.literals import integer_text
from estero.language.tree.nodes import SyntaxNode
from estero.language.tree.pattern import Filter, Keep, PartitionBy, Pattern, as_atom
from estero.language.tree.words import quoted


class Strategy(Enum):
    """The selection among complex events with the same end position and partition."""

    ALL = "ALL"
    STRICT = "STRICT"
    MAX = "MAX"
    NEXT = "NEXT"
    LAST = "LAST"
    LONGEST = "LONGEST"
    SHORTEST = "SHORTEST"

    @property
    def one_for_each_start(self) -> bool:
        """Whether it chooses among complex events with the same start instead of the same end."""
        return self in (Strategy.LONGEST, Strategy.SHORTEST)


class Consume(Enum):
    """The events forgotten after a position with an answer."""

    NONE = "NONE"
    ANY = "ANY"
    PARTITION = "PARTITION"


@dataclass(frozen=True, slots=True)
class SelectItem(SyntaxNode):
    """A label to show, with all attributes (`attributes` is None) or some: ``X[a, b]``."""

    label: str
    attributes: tuple[str, ...] | None = None

    def __str__(self) -> str:
        if self.attributes is not None:
            return f"{quoted(self.label)}[{_names(self.attributes)}]"
        return '"' + self.label + '"' if self.label.upper() == "NONE" else quoted(self.label)


@dataclass(frozen=True, slots=True)
class EveryLabel(SyntaxNode, form="*"):
    """All labels, in addition to other items."""


@dataclass(frozen=True, slots=True)
class SelectExpression(SyntaxNode, form="{expression} AS {name}"):
    """A column with a value of each complex event.

    It may refer to the attributes of labels, to aggregates, ``start_time``, ``end_time`` and ``duration``,
    and to the partition keys by name, which are attributes without a variable.
    """

    expression: Node
    name: str


@dataclass(frozen=True, slots=True)
class Ranking(SyntaxNode):
    """The criterion for the best complex events of an answer: the most of it, or the least if `ascending`.

    `by` is ``duration``, ``start_time``, ``end_time``, ``count(x)``, ``sum(x.a)``, or the name of a column
    that SELECT computes so.
    """

    by: Node
    ascending: bool = True

    def __str__(self) -> str:
        return f"{self.by}{'' if self.ascending else ' DESC'}"


Selected = SelectItem | SelectExpression | EveryLabel


@dataclass(frozen=True, slots=True)
class KeyBracket(SyntaxNode, form="[{alternatives:, }]"):
    """One key of ``PARTITION BY``: the first of `alternatives` that an event's type has."""

    alternatives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryTree:
    """The syntax tree of a query. `select` None is ``*``, the empty tuple is ``NONE``.

    It prints as canonical text that parses back to an equal tree, with as few parentheses as that needs.
    `text` is what was parsed (empty when built without one); spans are offsets into it. `places` are
    the spans of the clauses by name (LIST, STRATEGY, DISJOINT, FROM, WHERE, PARTITION BY, WITHIN, CONSUME BY,
    ORDER BY, LIMIT, PER). `disjoint` goes only with the strategies that choose for each start, `per` only
    with a `limit`, which is at each end where it is None, or with a `ranking` of the whole answer.
    """

    pattern: Pattern
    select: tuple[Selected, ...] | None = None
    strategy: Strategy = Strategy.ALL
    disjoint: bool = False
    streams: tuple[str, ...] = ()
    partition_by: tuple[KeyBracket, ...] = ()
    window: Window | None = None
    consume: Consume = Consume.NONE
    limit: int | None = None
    per: Window | None = None
    ranking: Ranking | None = None
    text: str = field(default="", compare=False, repr=False, kw_only=True)
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return clauses_text(
            ("SELECT", select_text(self)),
            ("FROM", _names(self.streams)),
            ("WHERE", _where(self.pattern)),
            ("", clauses_behind(self)),
        )


def _where(pattern: Pattern) -> str:
    """The pattern, in parentheses where its PARTITION BY would be taken for the query's clause."""
    tail = pattern
    while isinstance(tail, Filter | Keep | PartitionBy):
        if isinstance(tail, PartitionBy) and all(key.variable is None for key in tail.keys):
            return as_atom(pattern)
        tail = tail.pattern
    return str(pattern)


def _begins_like_strategy(item: Selected) -> bool:
    """Whether the first word of an expression would be taken for a strategy: an attribute of that name."""
    first = str(item).split(maxsplit=1)[0]
    return isinstance(item, SelectExpression) and first.upper() in (*Strategy.__members__, "ANY")


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quoted, names))


def select_text(tree: QueryTree) -> str:
    """The text after SELECT: the strategy and the items shown."""
    strategy = "" if tree.strategy is Strategy.ALL else f"{tree.strategy.value} "
    strategy += "DISJOINT " if tree.disjoint else ""
    if not strategy and tree.select and _begins_like_strategy(tree.select[0]):
        strategy = "ALL "
    shown = "*" if tree.select is None else ", ".join(map(str, tree.select)) or "NONE"
    return strategy + shown


def clauses_behind(tree: QueryTree) -> str:
    """The clauses after the pattern."""
    consume = "" if tree.consume is Consume.NONE else tree.consume.value
    return clauses_text(
        ("PARTITION BY", ", ".join(map(str, tree.partition_by))),
        ("WITHIN", "" if tree.window is None else str(tree.window)),
        ("CONSUME BY", consume),
        ("ORDER BY", "" if tree.ranking is None else str(tree.ranking)),
        ("LIMIT", limit_of(tree)),
    )


def limit_of(tree: QueryTree) -> str:
    """The text after LIMIT: the number of complex events of the answer, or of a part of it."""
    if tree.ranking is not None and tree.limit is not None:
        return integer_text(tree.limit)
    return limit_text(tree.limit, tree.per)


def limit_text(limit: int | None, per: Window | None = None) -> str:
    """The text after LIMIT: the number and the interval."""
    return "" if limit is None else f"{integer_text(limit)} PER {'END' if per is None else per}"


def clauses_text(*clauses: tuple[str, str]) -> str:
    """The words and texts of clauses in a row, without those that are empty."""
    return " ".join(f"{word} {text}".lstrip() for word, text in clauses if text)
