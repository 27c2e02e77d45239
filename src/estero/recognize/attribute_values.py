"""A numeric attribute along the stream, for pictures: the events of the types that a query reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from estero.answers.report import key_column
from estero.automata.cea import EventPredicate
from estero.classify.column_names import BITS, POSITION, TIME, event_column
from estero.events.sources import Source
from estero.language.tree.functions import SUMMED
from estero.language.tree.names import some, suggestion
from estero.language.tree.paths import is_path
from estero.language.tree.pattern import EventType
from estero.language.tree.schema import Kind, type_names
from estero.plan.plan import Plan

_MOST_TYPES = 60
"""The most types that are distinguished: one word of bits."""


def attribute_values(plan: Plan, source: Source, attribute: str, first: int, last: int) -> pa.Table:
    """The events from position `first` to `last` of the query's types and of a partition, in order.

    The columns: ``position``, ``time`` (ticks; without a time it is NULL), ``type`` (the number of the type
    among those of the query), ``key0``, ``key1`` … (the partition columns) and ``value`` (float64).

    Raises ValueError for an attribute that no type of the query has, or that is not numeric.
    """
    atoms = dict.fromkeys(atom for atom in plan.tree.pattern.walk() if isinstance(atom, EventType))
    schema = plan.classification.schema
    known: dict[str, Kind] = {}
    for atom in atoms:
        read = schema.attributes_read(atom, plan.tree.streams) or {}
        known |= {name: kind for name, kind in read.items() if not is_path(name)}
    _check_numeric(attribute, known)
    predicates = tuple(EventPredicate(type_names(atom, plan.tree.streams)) for atom in atoms)[:_MOST_TYPES]
    keys = plan.shown_keys if plan.roles is None else ()  # an event may have several in its roles
    names = [name for alternatives in keys for name in alternatives]
    asked = replace(
        plan.classification,
        predicates=predicates,
        keep_all=False,
        payload=tuple(dict.fromkeys((attribute, *names))),
        values=(),
    )
    tables = []
    for batch in source.read(asked):
        inside = pc.and_(
            pc.greater_equal(batch.column(POSITION), first), pc.less_equal(batch.column(POSITION), last)
        )
        events = batch.filter(inside)
        if events.num_rows:
            tables.append(_columns(events, keys, attribute, len(predicates)))
        if batch.column(POSITION)[-1].as_py() >= last:
            break
    columns = ("position", "time", "type", "value")
    return (
        pa.concat_tables(tables) if tables else pa.table({name: pa.array([], pa.int64()) for name in columns})
    )


def _columns(events: pa.RecordBatch, keys: Sequence[Sequence[str]], attribute: str, types: int) -> pa.Table:
    names = events.schema.names
    bits = events.column(f"{BITS}0").cast(pa.int64())
    kinds = [pc.not_equal(pc.bit_wise_and(bits, 1 << number), 0) for number in range(types)]
    time = events.column(TIME) if TIME in names else pa.nulls(events.num_rows)
    table = {
        "position": events.column(POSITION).cast(pa.int64()),
        "time": time.cast(pa.int64()),
        "type": pc.case_when(pc.make_struct(*kinds), *(pa.scalar(number) for number in range(types))),
    }
    for number, alternatives in enumerate(keys):
        table[f"key{number}"] = key_column(events, alternatives)
    table["value"] = events.column(event_column(attribute)).cast(pa.float64(), safe=False)
    return pa.table(table)


def _check_numeric(attribute: str, known: dict[str, Kind]) -> None:
    if attribute not in known:
        near = suggestion(attribute, tuple(known)) or f"there are {some(tuple(known), word='and')}"
        raise ValueError(f"no event of the query has an attribute {attribute}: {near}")
    if known[attribute] not in SUMMED:
        numbers = [name for name, kind in known.items() if kind in SUMMED]
        advice = f"; those of numbers are {some(numbers, word='and')}" if numbers else ""
        raise ValueError(f"y is an attribute of numbers, and {attribute} is not one{advice}")
