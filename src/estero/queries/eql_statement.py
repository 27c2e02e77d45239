"""Statements in EQL, Elastic's Event Query Language."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from estero.errors import QueryError
from estero.language.check.kinds import KindChecker
from estero.language.check.problems import Problems
from estero.language.eql.lowering import Lowering
from estero.language.eql.tree import EqlTree, EventQuery, Item, Sample
from estero.language.tree import expressions as e
from estero.language.tree.depth import depth_of
from estero.language.tree.pattern import As, EventType, Filter, Pattern
from estero.language.tree.query import QueryTree, SelectItem
from estero.language.tree.schema import Kind, Schema
from estero.plan.eql_stages import plan_stages, tree_of_stages
from estero.plan.plan import Layout, Plan
from estero.plan.rules import plan_of
from estero.queries.candidates import UNKNOWN
from estero.queries.statement import Statement, raise_first
from estero.system.copies import copied

if TYPE_CHECKING:
    from estero.answers.answer import Answer

_READY: Final = "_ready"
"""The key under which a statement keeps its lowered form after a check, until it is planned."""
EVENT = "Event"
"""The type of all events: what their category is, is a condition."""
_ONE_EVENT: Final = QueryTree(As(EventType(EVENT), "1"), (SelectItem("1"),))


@dataclass(frozen=True)
class EqlStatement(Statement):
    """The statement of a query in EQL; `eql` is its tree.

    `tree` has the labels, which are the numbers of the stages, from 1, and no conditions: those depend on the
    columns of the events. The number of samples for a key is limited.
    """

    made_by = "eql"
    eql: EqlTree
    max_samples_per_key: int = 1

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != _READY}

    @classmethod
    def of(cls, text: str, max_samples_per_key: int = 1) -> EqlStatement:
        """The statement of a text; only its form is checked."""
        from estero.language.eql.parser import parse_eql  # which rules from the cache do not need

        return cls.of_tree(parse_eql(text), max_samples_per_key)

    @classmethod
    def of_tree(cls, eql: EqlTree, max_samples_per_key: int = 1) -> EqlStatement:
        """The statement of a parsed tree; `QueryError` for several samples if it is not a sample."""
        query = eql.query
        if max_samples_per_key > 1 and not isinstance(query, Sample):
            what = "single events" if isinstance(query, EventQuery) else "a sequence"
            raise QueryError(
                f"max_samples_per_key is for samples, and this query asks for {what}",
                text=eql.text,
                span=query.span,
                expected="sample by host.name […] […]",
                hint="leave max_samples_per_key out; run(…, size=n) gives the first n of an answer",
            )
        if isinstance(query, EventQuery):
            return cls(_ONE_EVENT, eql)
        return cls(tree_of_stages(eql, EVENT), eql, max_samples_per_key)

    def __str__(self) -> str:
        return str(self.eql)

    @property
    def further_arguments(self) -> str:  # type: ignore[override]
        most = self.max_samples_per_key
        return "" if most == 1 else f", max_samples_per_key={most}"

    def taken(self, answer: Answer) -> Answer:
        """The part of an answer that the pipes take, one after the other; ``tail`` counts it at once."""
        for pipe in self.eql.pipes:
            if pipe.name == "head":
                answer = answer.limit(pipe.count)
            else:
                total = answer.count()
                answer = answer[max(0, total - pipe.count) :]
        return answer

    def refuse_pipes(self) -> None:
        """Raises `QueryError` for a pipe, which takes a part of the whole answer."""
        for pipe in self.eql.pipes[:1]:
            raise QueryError(
                f"{pipe.name} takes a part of a whole answer, and here is none",
                text=self.eql.text,
                span=pipe.span,
                found=str(pipe),
                expected="a query without pipes",
                hint="run(…) in this process has pipes; elsewhere take a part of what comes out",
            )

    def _errors(self, schema: Schema | None, type_column: str | None) -> list[QueryError]:
        if schema is None:
            return []
        lowering = Lowering(_with_type(schema, type_column), type_column)
        problems = Problems(self.eql.text)
        errors: list[QueryError] = []
        for item in _items(self.eql):
            try:
                condition = lowering.where(item)
                for key in (*getattr(self.eql.query, "keys", ()), *getattr(item, "keys", ())):
                    lowering.key(key)
                if condition is not None:
                    depth_of(condition)
                    KindChecker(partial(_kind_of, lowering), problems).truth(condition)
            except QueryError as error:
                error.text = self.eql.text
                errors.append(error)
        errors = errors or problems.in_order()
        if not errors:
            self.__dict__[_READY] = schema, type_column, lowering
        return errors

    def _plan(self, layout: Layout) -> Plan:
        if layout is UNKNOWN:
            return self._planned(Lowering(None), copied(layout, type_column=None, only_type=EVENT))
        schema = _with_type(layout.schema, layout.type_column)
        checked, of_type, lowering = self.__dict__.pop(_READY, (None, None, None))
        if lowering is None or checked is not layout.schema or of_type != layout.type_column:
            lowering = Lowering(schema, layout.type_column)
        event = layout.only_type if layout.type_column is None else EVENT
        flat = copied(layout, schema=_LAST.flat(schema, event), type_column=None, only_type=event)
        try:
            plan = self._planned(lowering, flat)
            if schema is layout.schema:
                return plan
            return _without(plan, set(schema.column_kinds) - set(layout.schema.column_kinds))
        except QueryError as error:
            error.text = error.text or self.eql.text
            raise

    def _planned(self, lowering: Lowering, layout: Layout) -> Plan:
        query = self.eql.query
        if not isinstance(query, EventQuery):
            return plan_stages(self.eql, lowering, layout, layout.only_type, self.max_samples_per_key)
        condition = lowering.where(query)
        pattern: Pattern = As(EventType(layout.only_type), "1")
        if condition is not None:
            pattern = Filter(pattern, e.EventFilter("1", condition))
        return plan_of(copied(self.tree, pattern=pattern), layout, text=self.eql)

    def type_names(self) -> Sequence[tuple[str, ...]]:
        return ()


def _items(eql: EqlTree) -> Iterator[EventQuery | Item]:
    query = eql.query
    if isinstance(query, EventQuery):
        yield query
        return
    yield from query.items
    until = getattr(query, "until", None)
    if until is not None:
        yield until


def _without(plan: Plan, hidden: Collection[str]) -> Plan:
    """The plan without some attributes in its output."""
    if not hidden:
        return plan
    shown = (
        replace(one, attributes=tuple(name for name in one.attributes if name not in hidden))
        for one in plan.shown
    )
    return replace(plan, shown=tuple(shown))


def _kind_of(lowering: Lowering, attribute: e.Attribute) -> Kind:
    return lowering.nested(attribute.name).kind


def _with_type(schema: Schema, type_column: str | None) -> Schema:
    """The schema in which the type is an ordinary attribute."""
    if type_column is None or type_column in schema.column_kinds:
        return schema
    types = {name: {**attributes, type_column: Kind.STRING} for name, attributes in schema.types.items()}
    shared = None if schema.shared is None else {**schema.shared, type_column: Kind.STRING}
    return replace(schema, types=types, shared=shared)


def _of_one_type(schema: Schema, event: str) -> Schema:
    """The schema in which all events are of one type, with the attributes of all."""
    return replace(schema, types={event: schema.column_kinds}, shared=None, closed=True, untyped=True)


@dataclass(slots=True)
class _Last:
    """The latest schema, of one type: rules of a set are planned one after another."""

    known: tuple[Schema, str, Schema] | None = None

    def flat(self, schema: Schema, event: str) -> Schema:
        """The schema of one type, the same object for equal ones."""
        known = self.known
        if known is None or known[0] is not schema or known[1] != event:
            known = self.known = schema, event, _of_one_type(schema, event)
        return known[2]


_LAST: Final = _Last()


@lru_cache(maxsize=256)
def eql_statement(text: str, max_samples_per_key: int = 1) -> EqlStatement:
    """The statement of a text, remembered; raises `QueryError` as `eql` does."""
    statement = EqlStatement.of(text, max_samples_per_key)
    raise_first(statement.errors())
    return statement
