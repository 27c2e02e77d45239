"""From sequence numbers to the public table: the columns of answers, built from the kept events.

The public form has one row per complex event with ``start``, ``end``, where there is a time ``start_time``
and ``end_time``, the partition columns, the values that SELECT computes, and one list column per selected
label. A label column holds structs of the shown attributes and, last, ``position``; `with_positions` leaves
only the positions. A name that is already taken (a label called ``start``, an attribute called ``position``)
gets an underscore at its end; the metadata of the field keeps the label, see `label_of`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.event_columns import EventColumns
from estero.answers.event_store import EventStore
from estero.answers.measures.marked import EventsAtHand, Marked
from estero.answers.wait import Wait, in_type
from estero.classify.arrays import array_of
from estero.classify.column_names import POSITION, TIME, event_column
from estero.classify.columns import common_decimal, decimal_digits
from estero.classify.remembered import Remembered
from estero.errors import DataError
from estero.events.tables.shown_types import plain, plain_type
from estero.language.tree.selection import DECIDED_TIME, END_TIME, START_TIME, Measure, Shown, key_name
from estero.language.tree.words import named

if TYPE_CHECKING:
    from estero.answers.measures.measures import Measures
    from estero.engine.walk.matches import Matches

LABEL_KEY = b"estero:label"
STAGE_KEY = b"estero:stage"
"""The metadata of the column of a label that has one event, or none if that event must be missing."""
SUPPRESSED_KEY = b"estero:suppressed"
"""The metadata of the column with the number of complex events left out before this one."""
DECIDED_KEY = b"estero:decided"
"""The metadata of the column with the time at which a complex event was decided."""
STEPS: Final = "steps"
EXPIRED_TIME: Final = "expired_time"
COMPLETE: Final = "complete"
PARTIAL_KEY = b"estero:partial"
"""The metadata of the columns with the steps of a partial match and the time at which its window passed."""
MEASURE_KEY = b"estero:measure"
_ROLES: Final = {
    LABEL_KEY: "label",
    MEASURE_KEY: "value",
    DECIDED_KEY: "decided",
    SUPPRESSED_KEY: "suppressed",
    PARTIAL_KEY: "partial",
}
"""The content of a column that has such a key in its metadata."""
MATCH_KEY = b"estero:match"
"""The metadata of the column with the complex event to which a row belongs."""


class Reporter:
    """Turns batches of matches into batches of the public table.

    `shown` are the selected labels, `keys` the alternatives of each bracket of PARTITION BY,
    `label_sets[id]` the labels of an event marked `id`, `events` the schema of the classified
    batches, `time` the type of the time column (None: no time), `measures` the values of each complex event.
    """

    marks: int

    def __init__(  # noqa: PLR0913  (one argument per kind of column)
        self,
        shown: Sequence[Shown],
        label_sets: Sequence[frozenset[str]],
        events: pa.Schema,
        *,
        keys: Sequence[Sequence[str]] = (),
        time: pa.DataType | None = None,
        positions: bool = True,
        suppressed: bool = False,
        measures: Sequence[Measure] = (),
        wait: int | None = None,
    ) -> None:
        self.schema: pa.Schema = answer_schema(
            shown,
            events,
            keys=keys,
            time=time,
            positions=positions,
            suppressed=suppressed,
            measures=measures,
            waits=wait is not None,
        )
        self._wait = None if wait is None or time is None else Wait(wait, time)
        self.shown = tuple(shown)
        self.keys = tuple(tuple(alternatives) for alternatives in keys)
        self.time = time
        self._suppressed = suppressed
        self._places = (POSITION,) if positions else ()
        self._of_ends = (*self._places, *((TIME,) if time is not None else ()))
        self.marks = sets = len(label_sets)
        lookups = [
            np.fromiter((item.label in labels for labels in label_sets), np.bool_, sets) for item in shown
        ]
        distinct: dict[tuple[bytes, tuple[str, ...]], int] = {}
        self._same = [
            distinct.setdefault((lookup.tobytes(), item.attributes), len(distinct))
            for lookup, item in zip(lookups, shown, strict=True)
        ]
        """The column of each label: a type and its variable often show the same one, which is made once."""
        self._lookup = np.array(
            [lookups[self._same.index(column)] for column in range(len(distinct))], np.bool_
        )
        self._lookup = self._lookup.reshape(len(distinct), sets)
        kinds = self.schema.types[len(self.schema) - len(shown) :]
        self._lists = [(kind, list(kind.value_type)) for kind in kinds]
        """The types of the columns of labels, and the fields of events there."""
        self._shown_columns = [(*map(event_column, item.attributes), *self._places) for item in shown]
        self._measures = _measures(measures, events, keys, time) if measures else None
        if self._measures is not None:
            asked = [[label in labels for labels in label_sets] for label in self._measures.variables]
            self._asked = np.array(asked, np.bool_).reshape(len(asked), sets)

    def label_lookup(self, place: int) -> NDArray[np.bool_]:
        """Whether each label set has the label numbered `place` among those shown; bool[marks]."""
        lookup: NDArray[np.bool_] = self._lookup[self._same[place]]
        return lookup

    def table(
        self,
        matches: Matches,
        store: EventStore,
        suppressed: NDArray[np.int64] | None = None,
        *,
        measured: bool = True,
    ) -> pa.RecordBatch:
        """One row for each of `matches`, in their order; `store` must hold all their events.

        `suppressed` is the number left out before each, if the table shows it; None for zero. Unless the
        matches are `measured`, the values that SELECT computes are NULL.
        """
        from estero.engine.walk.columns import select_labels  # here, because schemas need no kernels

        matches, events, first = with_events(matches, store)
        taking = EventColumns(events)
        ends = [taking.numbered(self._of_ends, rows, first) for rows in (matches.start, matches.end)]
        columns = [of_end[0] for of_end in ends if self._places]
        if self.time is not None:
            columns += [in_type(of_end[-1], self.time) for of_end in ends]
        end = matches.end - first if self.keys and first else matches.end
        for alternatives in self.keys:
            values = [taking.column(event_column(name), end) for name in alternatives]
            columns.append(first_known(values, alternatives))
        if self._wait is not None:
            columns.append(self._wait.over(ends[1][-1]))
        if self._suppressed:
            none = np.zeros(matches.start.size, np.int64)
            columns.append(array_of(none if suppressed is None else suppressed))
        if self._measures is not None and measured:
            columns += self._measured(self._measures, matches, events, first, columns)
        elif self._measures is not None:
            columns += [pa.nulls(matches.start.size, kind) for kind in self._measures.types]
        here = range(first, first + events.num_rows)
        selected = select_labels(matches.offsets, matches.marks, matches.event, self._lookup, here)
        lists: list[pa.Array] = []
        for names, same, (kind, fields) in zip(self._shown_columns, self._same, self._lists, strict=True):
            if same == len(lists):
                offsets, chosen = selected[same]
                values = taking.taken(names, chosen)
                items = pa.StructArray.from_arrays(values, fields=fields)
                buffers = [None, pa.py_buffer(offsets)]  # `from_arrays` would check the offsets
                lists.append(pa.Array.from_buffers(kind, offsets.size - 1, buffers, children=[items]))
            columns.append(lists[same])
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _measured(
        self,
        measures: Measures,
        matches: Matches,
        events: pa.RecordBatch,
        first: int,
        columns: Sequence[pa.Array],
    ) -> list[pa.Array]:
        """The columns of measures; `columns` are those before them, `first` the number of the first event."""
        from estero.engine.walk.columns import select_labels

        at_hand = EventsAtHand(events, matches.event - first)
        known = range(at_hand.count)
        selected = select_labels(matches.offsets, matches.marks, at_hand.rows, self._asked, known)
        of = {
            label: Marked(offsets.astype(np.int64), rows)
            for label, (offsets, rows) in zip(measures.variables, selected, strict=True)
        }
        names, shown = _named(self.keys, self.time), columns[2 * len(self._places) :]
        named = dict(zip(names, shown, strict=False))  # a query that does not wait has no decision time
        return measures.columns(of, at_hand, named, len(matches.start))


def with_events(matches: Matches, store: EventStore) -> tuple[Matches, pa.RecordBatch, int]:
    """The matches, a batch that has all their events, and the sequence number of its first event.

    If these are few and far between, they are renumbered.
    """
    starts, ends, events = matches.start, matches.end, matches.event
    if starts.size:
        asked = 2 * starts.size + events.size
        stretch = store.stretch(int(starts.min()), int(ends.max()), asked)
        if stretch is not None:
            return matches, *stretch
    batch, (starts, ends, events) = store.excerpt([starts, ends, events])
    return matches._replace(start=starts, end=ends, event=events), batch, 0


def answer_schema(
    shown: Sequence[Shown],
    events: pa.Schema,
    *,
    keys: Sequence[Sequence[str]] = (),
    time: pa.DataType | None = None,
    positions: bool = True,
    suppressed: bool = False,
    measures: Sequence[Measure] = (),
    waits: bool = False,
) -> pa.Schema:
    """The schema of the public table, known before any event is read.

    `events` gives the types of the shown attributes and of the keys: the schema of the classified batches.
    `time` is the type of the time column, or None. Without `positions`, ``start``, ``end`` and the
    ``position`` of each event are left out; with `suppressed` there is a column of that name, and one for
    ``decided_time`` if ended matches wait for deadlines (`waits`). The latest schemas are remembered.
    """
    columns = [tuple(key) for key in keys], events, time, positions
    asked = tuple(shown), *columns, suppressed, tuple(measures), waits
    return _schemas.of(asked, lambda: _schema(*asked))


_schemas: Final = Remembered[pa.Schema]()


def _schema(
    shown: Sequence[Shown],
    keys: Sequence[Sequence[str]],
    events: pa.Schema,
    time: pa.DataType | None,
    positions: bool,
    suppressed: bool,
    measures: Sequence[Measure],
    waits: bool,
) -> pa.Schema:
    """See `answer_schema`."""
    ends = ("start", "end") if positions else ()
    fields = [pa.field(name, pa.int64(), nullable=False) for name in ends]
    if time is not None:
        fields += [pa.field(name, time, nullable=False) for name in ("start_time", "end_time")]
    said = [named(key[0]) for key in keys], [labelled.label for labelled in shown]
    names = iter(column_names(*said, timed=time is not None, suppressed=suppressed, waits=waits))
    for alternatives in keys:
        key_type = common_type([_shown_type(events, name) for name in alternatives])
        fields.append(pa.field(next(names), key_type))
    if waits and time is not None:
        fields.append(pa.field(DECIDED_TIME, time, nullable=False, metadata={DECIDED_KEY: b""}))
    if suppressed:
        marked = {SUPPRESSED_KEY: b""}
        fields.append(pa.field("suppressed", pa.int64(), nullable=False, metadata=marked))
    if measures:
        types = _measures(measures, events, keys, time).types
        fields += [
            pa.field(measure.name, kind, metadata={MEASURE_KEY: measure.name.encode()})
            for measure, kind in zip(measures, types, strict=True)
        ]
    for labelled in shown:
        event = _event_type(labelled, events, positions=positions)
        column = pa.list_(pa.field("item", event, nullable=False))
        metadata = {LABEL_KEY: labelled.label.encode()} | ({STAGE_KEY: b""} if labelled.stage else {})
        fields.append(pa.field(next(names), column, nullable=False, metadata=metadata))
    return pa.schema(fields)


def _measures(
    measures: Sequence[Measure],
    events: pa.Schema,
    keys: Sequence[Sequence[str]],
    time: pa.DataType | None,
) -> Measures:
    """The computation of measures, which may name the keys and the times of complex events."""
    from estero.answers.measures.measures import Measures  # loads DuckDB

    kinds = [] if time is None else [time, time]
    kinds += [common_type([_shown_type(events, name) for name in alternatives]) for alternatives in keys]
    kinds += [] if time is None else [time]
    return Measures(measures, events, dict(zip(_named(keys, time), kinds, strict=True)))


def _named(keys: Sequence[Sequence[str]], time: pa.DataType | None) -> list[str]:
    """The names by which measures refer to the columns of times and keys, in order."""
    times, decided = ([], []) if time is None else ([START_TIME, END_TIME], [DECIDED_TIME])
    return [*times, *(key_name(place) for place in range(len(keys))), *decided]


def column_names(
    keys: Sequence[str], labels: Sequence[str], *, timed: bool, suppressed: bool = False, waits: bool = False
) -> list[str]:
    """The names of the columns of keys and labels in an answer: those already taken get underscores.

    >>> column_names(["user"], ["start", "user"], timed=False)
    ['user', 'start_', 'user_']
    """
    taken = {"start", "end", "start_time", "end_time"} if timed else {"start", "end"}
    taken |= {"suppressed"} if suppressed else set()
    taken |= {DECIDED_TIME} if waits else set()
    return [untaken(name, taken) for name in (*keys, *labels)]


def with_partial_columns(answer: pa.Schema, *, timed: bool) -> pa.Schema:
    """The columns of an answer, and those of partial matches; `timed`: the window is one of time.

    They are ``steps`` and, where times are shown, ``expired_time``, with underscores if the name is taken.
    """
    fields = [*answer, _of_partials(STEPS, pa.int64(), set(answer.names))]
    if timed and "end_time" in answer.names:
        fields.append(_of_partials(EXPIRED_TIME, answer.field("end_time").type, set(answer.names)))
    return pa.schema(fields)


def schema_with_partials(answer: pa.Schema, *, timed: bool) -> pa.Schema:
    """The columns of complex events and partial matches together; `timed`: the window is one of time."""
    shared = {"start", "end", "start_time", "end_time"}
    fields = [
        field if field.name in shared or partial_of(field) == STEPS else field.with_nullable(True)
        for field in with_partial_columns(answer, timed=timed)
    ]
    return pa.schema([*fields, _of_partials(COMPLETE, pa.bool_(), set(answer.names))])


def _of_partials(name: str, kind: pa.DataType, taken: set[str]) -> pa.Field:
    return pa.field(untaken(name, taken), kind, nullable=False, metadata={PARTIAL_KEY: name.encode()})


def partial_of(field: pa.Field) -> str | None:
    """What a column says about a partial match: ``steps``, ``expired_time`` or ``complete``; else None."""
    return _said(field, PARTIAL_KEY)


def label_of(field: pa.Field) -> str | None:
    """The label that a column of an answer shows, or None for the other columns."""
    return _said(field, LABEL_KEY)


def is_stage(field: pa.Field) -> bool:
    """Whether a column shows the event of a stage, which may be missing."""
    return STAGE_KEY in (field.metadata or {})


def measure_of(field: pa.Field) -> str | None:
    """The name of the value that a column of an answer shows, or None for the other columns."""
    return _said(field, MEASURE_KEY)


def _said(field: pa.Field, key: bytes) -> str | None:
    said: bytes | None = (field.metadata or {}).get(key)
    return None if said is None else said.decode()


def columns_alike(rows: pa.Table, schema: pa.Schema) -> dict[str, pa.ChunkedArray]:
    """The columns of some rows under the names that they have in another schema, which may have more columns.

    Keys are matched by their order, and other columns by their content: with more columns, a key or label may
    need another name. The columns of partial matches are left out.
    """
    columns = dict(zip(_roles(rows.schema), rows.columns, strict=True))
    named_so = zip(_roles(schema), schema.names, strict=True)
    return {name: columns[role] for role, name in named_so if role in columns and role[0] != "partial"}


def _roles(schema: pa.Schema) -> Iterator[tuple[str, object]]:
    """The role of each column; no two columns have the same."""
    keys = 0
    for field in schema:
        said: dict[bytes, bytes] = field.metadata or {}
        role = next((key for key in _ROLES if key in said), None)
        if role is not None:
            yield _ROLES[role], said[role]
        elif field.name in ("start", "end", START_TIME, END_TIME):
            yield "fixed", field.name
        else:
            yield "key", keys
            keys += 1


def positions_in(marked: pa.StructArray) -> pa.Array:
    """The positions of events as answers show them: the last field of the structs, under any name."""
    return marked.field(marked.type.num_fields - 1)


def positions_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of an answer whose label columns hold positions in place of events."""
    item = pa.field("item", pa.int64(), nullable=False)
    return pa.schema(
        [field if label_of(field) is None else field.with_type(pa.list_(item)) for field in schema]
    )


def with_positions(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """`batch` with positions in place of events; `schema` is its `positions_schema`."""
    columns = [
        column
        if label_of(field) is None
        else pa.ListArray.from_arrays(column.offsets, positions_in(column.values))
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _event_type(shown: Shown, events: pa.Schema, *, positions: bool) -> pa.DataType:
    fields = [pa.field(named(name), _shown_type(events, name)) for name in shown.attributes]
    if positions:
        fields.append(pa.field(untaken("position", set(shown.attributes)), pa.int64(), nullable=False))
    return pa.struct(fields)


def _shown_type(events: pa.Schema, name: str) -> pa.DataType:
    return plain_type(events.field(event_column(name)).type)


def untaken(name: str, taken: set[str]) -> str:
    """`name` with as many underscores as make it unique; it is `taken` from then on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The one type that can hold the values of all alternatives of a key."""
    if all(kind == types[0] for kind in types):
        return types[0]
    if all(pa.types.is_integer(kind) for kind in types):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_decimal(kind) for kind in types):
        shown = [f"DECIMAL({kind.precision},{kind.scale})" for kind in types if pa.types.is_decimal(kind)]
        integers = ["DECIMAL(19,0)"] * (len(shown) < len(types))
        common = common_decimal([*shown, *integers])
        return pa.string() if common is None else pa.decimal128(*decimal_digits(common))
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types):
        return pa.float64()
    if all(pa.types.is_timestamp(kind) for kind in types):
        zones = {kind.tz for kind in types}
        unit = "ns" if any(kind.unit == "ns" for kind in types) else "us"
        return pa.timestamp(unit, zones.pop() if len(zones) == 1 else "UTC")
    return pa.string()


def key_column(events: pa.RecordBatch, alternatives: Sequence[str]) -> pa.Array:
    """The first non-NULL alternative of each event."""
    return first_known([plain(events.column(event_column(name))) for name in alternatives], alternatives)


def first_known(values: Sequence[pa.Array], alternatives: Sequence[str]) -> pa.Array:
    """The first non-NULL value among `alternatives`; an event without one is in no partition."""
    wanted = common_type([value.type for value in values])
    if len(values) == 1:
        return values[0]
    try:
        return pc.coalesce(*(value.cast(wanted) for value in values))
    except pa.ArrowInvalid as error:
        raise DataError(
            f"a key cannot be shown exactly in its column, which is of type {wanted}: {error}",
            column=named(alternatives[0]),
            hint=f"give {' and '.join(map(named, alternatives))} the same type",
        ) from error
