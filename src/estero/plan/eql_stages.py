"""Sequences and samples of EQL as stages that a plan reads."""

from __future__ import annotations

from collections.abc import Iterator

from estero.automata.cea import EventPredicate
from estero.errors import QueryError
from estero.language.eql.lowering import Lowering
from estero.language.eql.tree import EqlTree, EventQuery, Field, Item, Sample
from estero.language.tree.query import QueryTree
from estero.plan.plan import Layout, Plan
from estero.plan.samples import plan_sample
from estero.plan.sequences import plan_sequence
from estero.plan.stages import KeyField, Stage, stand_in


def plan_stages(eql: EqlTree, lowering: Lowering, layout: Layout, event: str, most: int) -> Plan:
    """The plan of a sequence, or of a sample, `most` for a key; all events are of the type `event`.

    Raises `QueryError`, with the place in the text, for what does not fit the events.
    """
    query = eql.query
    if isinstance(query, EventQuery):
        raise TypeError(f"{eql} has one stage")
    try:
        stages = [stage for item in query.items for stage in _stages(item, query.keys, lowering, event)]
        if isinstance(query, Sample):
            return plan_sample(stages, layout, most=most, text=eql)
        until = None if query.until is None else next(_stages(query.until, query.keys, lowering, event))
        return plan_sequence(stages, layout, until=until, span_ns=query.maxspan_ns, text=eql)
    except QueryError as error:
        error.text = eql.text
        raise


def tree_of_stages(eql: EqlTree, event: str) -> QueryTree:
    """A stand-in for a sequence or a sample where the tree of a query is needed (`stand_in`)."""
    query = eql.query
    if isinstance(query, EventQuery):
        raise TypeError(f"{eql} has one stage")
    span = None if isinstance(query, Sample) else query.maxspan_ns
    stages = [
        Stage(EventPredicate((event,)), missing=item.missing)
        for item in query.items
        for _ in range(item.runs)
    ]
    return stand_in(stages, [str(number) for number in range(1, len(stages) + 1)], span)


def _stages(item: Item, shared: tuple[Field, ...], lowering: Lowering, event: str) -> Iterator[Stage]:
    """The stages of an item, one for each of its runs; the keys of the whole query come first."""
    predicate = EventPredicate((event,), lowering.where(item))
    keys = tuple(_key(field, lowering) for field in (*shared, *item.keys))
    for _ in range(item.runs):
        yield Stage(predicate, keys, item.missing)


def _key(field: Field, lowering: Lowering) -> KeyField:
    attribute = lowering.key(field)
    return KeyField(None if attribute is None else attribute.name, field.optional)
