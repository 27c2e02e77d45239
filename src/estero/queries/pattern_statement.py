"""Statements in CEQL: a pattern, or an automaton in its place, and the clauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache

from estero.automata.compile.compile_pattern import Compiled, compile_pattern
from estero.errors import LimitExceeded, QueryError, warn
from estero.language.builder.queries import Built, tree_of
from estero.language.check.outlines import Outline, errors_of
from estero.language.check.queries import check_query
from estero.language.syntax.parser import parse_query
from estero.language.syntax.recover import read
from estero.language.tree.pattern import EventType
from estero.language.tree.query import Strategy
from estero.language.tree.renaming import with_columns
from estero.language.tree.schema import Schema, type_names
from estero.plan.plan import Layout, Plan
from estero.plan.rules import plan_of
from estero.queries.parameters import bound, names_of, refuse_open
from estero.queries.statement import Statement, raise_first
from estero.system.cached_property import cached_property


@dataclass(frozen=True)
class PatternStatement(Statement):
    """The statement of a query in CEQL.

    It is not whole if its pattern could not be read, and another one is in its place.
    """

    made_by = "query"
    is_whole: bool = field(default=True, compare=False)
    outline: Outline | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return str(self.tree)

    def _errors(self, schema: Schema | None, type_column: str | None) -> list[QueryError]:
        del type_column
        missing = [] if schema is None else self._refuse_open()
        return missing or errors_of(self.tree, schema, self.outline)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        if self.outline is not None and self.outline.tree is self.tree and "$" not in self.outline.text:
            return ()
        return names_of(self._whole)

    def _with_exact_names(self, exact: Mapping[str, str]) -> PatternStatement:
        return replace(self, tree=with_columns(self.tree, exact))

    def _refuse_open(self) -> list[QueryError]:
        return refuse_open(self._whole, self.tree.text) if self.parameters else []

    @property
    def _whole(self) -> object:
        """The parts that have parameters."""
        return self.tree

    def bound(self, values: Mapping[str, object]) -> PatternStatement:
        tree = bound(self.tree, values, self.tree.text)
        raise_first(check_query(tree))
        return replace(self, tree=tree)

    def _plan(self, layout: Layout) -> Plan:
        raise_first(self._refuse_open())
        return plan_of(self.tree, layout)

    def compiled(self) -> Compiled:
        """The automaton of the whole pattern, and the comparisons of several events that it cannot make.

        Raises `LimitExceeded` if it gets too large, and `QueryError` for parameters without values.
        """
        raise_first(self._refuse_open())
        interval = self.tree.strategy is Strategy.STRICT
        return compile_pattern(self.tree.pattern, self.tree.streams, interval=interval)

    def warn_if_never(self) -> None:
        """Warns if the query matches nothing, whatever the stream."""
        from estero.theory.emptiness import why_never

        if self.parameters:
            return
        with suppress(LimitExceeded):  # running the query says so, too; whether it can match is not known
            why = why_never(self.tree, self.compiled().automaton) if self.is_whole else ""
            if why:
                warn(why)

    def type_names(self) -> Sequence[tuple[str, ...]]:
        """The names of the types of events that the pattern reads, kind by kind; none if it is not whole."""
        atoms = dict.fromkeys(node for node in self.tree.pattern.walk() if isinstance(node, EventType))
        return [type_names(atom, self.tree.streams) for atom in atoms] if self.is_whole else ()


def pattern_statement(text: str | Built) -> PatternStatement:
    """The statement of a CEQL text, or of what the builder has made; raises `QueryError` as `query` does."""
    return _statement_of(text if isinstance(text, str) else str(tree_of(text)))


@lru_cache(maxsize=256)
def _statement_of(text: str) -> PatternStatement:
    """The statement of a text, remembered: it may be asked for with every few events."""
    reading = read(text)
    if reading.tree is None:
        raise_first(reading.errors)
    tree = reading.tree or parse_query(text)
    outline = None if reading.errors else Outline.of(tree)
    raise_first(reading.with_checks(errors_of(tree, None, outline)))
    return PatternStatement(tree, outline=outline)
