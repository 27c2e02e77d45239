"""Conjunctive queries as trees: ``Q(x, y) <- T(x), S(x, y), R(k: x, l: y) AS r WITHIN 10 EVENTS``.

The third form of a query, beside the text and the builder of CEQL (docs/conjunctive.md). The arguments of an
atom are the attributes of its type: by place, in the order of the columns of its table without those of type
and time, or by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from estero.errors import Span
from estero.language.tree.distances import Window
from estero.language.tree.expressions import Literal
from estero.language.tree.nodes import SyntaxNode
from estero.language.tree.pattern import EventType
from estero.language.tree.query import clauses_text, limit_text
from estero.language.tree.words import quoted


@dataclass(frozen=True, slots=True)
class Variable(SyntaxNode):
    """``x``: the same value wherever it occurs."""

    name: str

    def __str__(self) -> str:
        return '"_"' if self.name == "_" else quoted(self.name)


@dataclass(frozen=True, slots=True)
class Anything(SyntaxNode, form="_"):
    """``_``: any value, or none."""


Term = Variable | Anything | Literal


@dataclass(frozen=True, slots=True)
class Argument(SyntaxNode, form="{attribute:: }{term}"):
    """A term for an attribute: the next one of the type's table, or that called `attribute`."""

    term: Term
    attribute: str | None = None


@dataclass(frozen=True, slots=True)
class Atom(SyntaxNode):
    """``S>T(x, k: 5) AS label``: one event of a type."""

    relation: EventType
    arguments: tuple[Argument, ...]
    label: str | None = None

    def __str__(self) -> str:
        named = "" if self.label is None else f" AS {quoted(self.label)}"
        return f"{self.relation}({', '.join(map(str, self.arguments))}){named}"

    def variables(self) -> tuple[str, ...]:
        """The variables of the atom, each once, in order."""
        terms = (argument.term for argument in self.arguments)
        return tuple(dict.fromkeys(term.name for term in terms if isinstance(term, Variable)))


@dataclass(frozen=True, slots=True)
class ConjunctiveTree:
    """The syntax tree of a conjunctive query.

    `text` is what was parsed (empty when built without one); spans are offsets into it. `places` are the
    spans of the clauses by name (FROM, WITHIN, LIMIT).
    """

    name: str
    head: tuple[Variable, ...]
    atoms: tuple[Atom, ...]
    streams: tuple[str, ...] = ()
    window: Window | None = None
    limit: int | None = None
    text: str = field(default="", compare=False, repr=False, kw_only=True)
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if not self.atoms:
            raise ValueError("a conjunctive query has at least one atom")

    def __str__(self) -> str:
        head = f"{quoted(self.name)}({', '.join(map(str, self.head))})"
        return clauses_text(
            (f"{head} <-", ", ".join(map(str, self.atoms))),
            ("FROM", ", ".join(map(quoted, self.streams))),
            ("WITHIN", "" if self.window is None else str(self.window)),
            ("LIMIT", limit_text(self.limit)),
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the atoms: the name, else the relation if unique, else the number.

        >>> from estero.language.syntax.parser import parse_conjunctive
        >>> parse_conjunctive("Q(x) <- T(x), R(x), T(x), T(x) AS t").labels
        ('0', 'R', '2', 't')
        """
        count = Counter(atom.relation.name for atom in self.atoms)
        return tuple(
            atom.label
            if atom.label is not None
            else atom.relation.name
            if count[atom.relation.name] == 1
            else str(number)
            for number, atom in enumerate(self.atoms)
        )

    def variables(self) -> tuple[str, ...]:
        """The variables of all atoms, each once: those of the head in its order, then the others."""
        used = dict.fromkeys(name for atom in self.atoms for name in atom.variables())
        return tuple(
            dict.fromkeys([*(variable.name for variable in self.head if variable.name in used), *used])
        )
