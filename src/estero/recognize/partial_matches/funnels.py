"""From the levels that starts reach to a funnel: how many starts reach each step, and how long that takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.answer_schema import untaken
from estero.automata.cea import EventPredicate
from estero.classify.column_names import POSITION, attribute_in, event_column
from estero.events.database import lent_cursor
from estero.events.sources import Source
from estero.events.tables.shown_types import plain
from estero.language.tree.levels import levels_of, prefix_query
from estero.language.tree.names import some, suggestion
from estero.language.tree.paths import field_of, is_path
from estero.language.tree.pattern import EventType
from estero.language.tree.schema import Kind, Nested, type_names
from estero.language.tree.words import named
from estero.plan.levels import LevelsPlan
from estero.plan.plan import Classification
from estero.recognize.batch_columns import numbers_of
from estero.recognize.partial_matches.levels import START, consumed_by, level_column, levels_reached
from estero.recognize.source_run import time_type

_STEP: Final = """
    SELECT {keys} {step} AS step, count(*) FILTER ({here} IS NOT NULL) AS starts,
        median({reached} - {before}) FILTER ({reached} >= {before}) AS wait
    FROM levels {grouped}"""


def funnel_table(
    plan: LevelsPlan,
    source: Source,
    *,
    by_partition: bool,
    by: Sequence[str],
    until: int | None,
    threads: int,
) -> pa.Table:
    """The columns of `estero.answers.funnel.Funnel`, in the order of partitions, attributes and steps.

    Attributes are those of starts, including fields of structs such as ``process.name``. Raises ValueError
    for one that no event of the first step has.
    """
    asked = _starting(plan, by)
    reached = levels_reached(
        plan, source, until, consumed=consumed_by(plan.consuming, source), threads=threads
    )
    levels = [level_column(level) for level in range(1, len(plan.parts) + 1)]
    reached = reached.filter(pc.is_valid(pc.coalesce(*(reached[name] for name in levels))))
    names = [name for name in reached.column_names[2:] if name not in levels] if by_partition else []
    grouped = [reached[name] for name in names] + _attributes(asked, source, reached[START].to_numpy())
    keys = [f"k{number}" for number in range(len(grouped))]
    columns = [*keys, *(f"r{number}" for number in range(len(levels)))]
    levels_table = pa.table([*grouped, *(reached[name] for name in levels)], columns)
    with lent_cursor() as connection:
        connection.register("levels", levels_table)
        steps = connection.sql(_statement(len(levels), keys)).to_arrow_table()
    clock = time_type(source)
    taken = {"step", "part", "starts", "share", "median_wait"}
    all_names = [untaken(name, taken) for name in (*map(attribute_in, names), *map(named, asked.payload))]
    shown = {name: steps[key] for name, key in zip(all_names, keys, strict=True)}
    shown["step"] = steps["step"].cast(pa.int64())
    shown["part"] = pa.array([plan.parts[step - 1] for step in steps["step"].to_pylist()], pa.string())
    shown["starts"] = steps["starts"].cast(pa.int64())
    shown["share"] = steps["share"].cast(pa.float64())
    if clock is not None:
        shown["median_wait"] = _waits(steps["wait"], clock)
    return pa.table(shown)


def _starting(plan: LevelsPlan, by: Sequence[str]) -> Classification:
    """The attributes that are read from events that may be starts."""
    first = prefix_query(plan.tree, levels_of(plan.tree.pattern)[0])
    atoms = [node for node in first.pattern.walk() if isinstance(node, EventType)]
    classification = plan.by_level[-1].classification
    schema = classification.schema
    known: dict[str, Kind] = {}
    for atom in atoms:
        read = schema.attributes_read(atom, plan.tree.streams) or {}
        known |= {name: kind for name, kind in read.items() if not is_path(name)}
    inside = {name: attributes for name, attributes in schema.nested.items() if name in known}
    asked = [name if name in known else _path_to(name, inside) for name in by]
    for name, path in zip(by, asked, strict=True):
        if path is None:
            near = suggestion(name, tuple(known)) or f"there are {some(tuple(known), word='and')}"
            raise ValueError(f"no event of the first step has an attribute {name}: {near}")
    payload = tuple(path for path in asked if path is not None)
    types = [name for atom in atoms for name in type_names(atom, plan.tree.streams)]
    return replace(
        classification,
        schema=schema.reading(filter(is_path, payload)),
        predicates=(EventPredicate(tuple(dict.fromkeys(types))),),
        keep_all=False,
        payload=payload,
        values=(),
    )


def _path_to(name: str, fields: Mapping[str, Nested]) -> str | None:
    """The path of ``process.name`` where `fields` has a struct ``process`` with a field ``name``, else None.

    >>> _path_to("a.b", {"a": Nested(Kind.OPAQUE, {"b": Nested(Kind.INT)})}) == field_of("a", "b")
    True
    """
    for first, nested in fields.items():
        rest = name.removeprefix(f"{first}.")
        if rest != name and nested.fields is not None:
            inner = rest if rest in nested.fields else _path_to(rest, nested.fields)
            if inner is not None:
                return field_of(first, inner)
    return None


def _attributes(asked: Classification, source: Source, starts: NDArray[np.int64]) -> list[pa.ChunkedArray]:
    """The attributes of the events at these positions."""
    if not asked.payload:
        return []
    wanted, places = np.unique(starts, return_inverse=True)
    events = source.classified_schema(asked)
    tables = [events.empty_table()]
    for batch in source.read(asked):
        here = np.isin(numbers_of(batch, POSITION), wanted)
        tables.append(pa.Table.from_batches([batch.filter(pa.array(here))]))
    rows = pa.concat_tables(tables)
    columns = (rows[event_column(name)].combine_chunks() for name in asked.payload)
    return [plain(column).take(pa.array(places)) for column in columns]


def _statement(levels: int, keys: Sequence[str]) -> str:
    """One row for each step, or for each step of each partition."""
    listed = "".join(f"{key}, " for key in keys)
    steps = [
        _STEP.format(
            keys=listed,
            step=level + 1,
            here=f"coalesce({', '.join(f'r{later}' for later in range(level, levels))}, NULL)",
            reached=f"r{level}",
            before=f"r{level - 1}" if level else "NULL",
            grouped=f"GROUP BY {', '.join(keys)}" if keys else "",
        )
        for level in range(levels)
    ]
    window = f"OVER (PARTITION BY {', '.join(keys)} ORDER BY step)" if keys else "OVER (ORDER BY step)"
    share = f"starts / nullif(first_value(starts) {window}, 0) AS share"
    return f"SELECT *, {share} FROM ({' UNION ALL '.join(steps)}) ORDER BY {listed} step"


def _waits(ticks: pa.ChunkedArray, clock: pa.DataType) -> pa.ChunkedArray:
    """Durations, if times are timestamps; halves of a tick are cut off."""
    if not pa.types.is_timestamp(clock):
        return ticks.cast(pa.float64())
    return ticks.cast(pa.int64(), safe=False).cast(pa.duration(clock.unit))
