"""Classified events → their rows: one for each key that an event has in some role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.answer_schema import common_type
from estero.classify.arrays import array_of
from estero.classify.column_names import (
    BITS,
    KEYS,
    PLACE,
    POSITION,
    TIME,
    WORD,
    event_column,
    numbered,
    word_names,
)
from estero.classify.columns import ColumnType
from estero.classify.list_keys import spread_keys
from estero.classify.vectors.batch_columns import BatchColumns
from estero.classify.vectors.compile import PlainColumns
from estero.classify.vectors.conditions import Condition, Constant
from estero.classify.vectors.taking import taken
from estero.errors import DataError
from estero.events.tables.shown_types import plain, plain_type
from estero.language.tree.schema import Kind
from estero.language.tree.words import named
from estero.plan.keys import KeyColumn, KeyPart
from estero.plan.plan import Plan
from estero.plan.roles import Roles
from estero.recognize.batch_columns import numbers_of

Mask = NDArray[np.bool_]
_KEPT: Final = (POSITION, TIME)


def row_schema(roles: Roles, events: pa.Schema) -> pa.Schema:
    """The columns of the rows of classified events."""
    made = dict.fromkeys(roles.flags, pa.bool_()) | dict(
        zip(roles.keys, _key_types(roles, events), strict=True)
    )
    fields = [
        *map(events.field, _KEPT),
        pa.field(PLACE, pa.int64()),
        *(pa.field(name, pa.uint64()) for name in KEYS),
        *(pa.field(name, pa.int64()) for name in word_names(len(roles.rows.predicates))),
    ]
    for name in roles.rows.payload:
        column = event_column(name)
        fields.append(pa.field(column, made[name]) if name in made else events.field(column))
    return pa.schema(fields)


def recognized_schema(plan: Plan, events: pa.Schema) -> pa.Schema:
    """The columns of what a plan recognizes: those of classified events, or of their rows."""
    return events if plan.roles is None else row_schema(plan.roles, events)


def _key_types(roles: Roles, events: pa.Schema) -> list[pa.DataType]:
    """The types in which the values of keys are shown."""
    types = [
        [plain_type(events.field(event_column(name)).type) for name in names]
        for names in zip(*roles.attributes, strict=True)
    ]
    return [pa.string() if text else common_type(one) for text, one in zip(roles.texts, types, strict=True)]


class RoleRows:
    """Makes rows from classified events with the columns of `events`; the columns of rows are in `schema`."""

    def __init__(self, roles: Roles, events: pa.Schema) -> None:
        self._roles = roles
        self._words = numbered(BITS, events.names)
        asked = roles.rows
        self._own_words = word_names(len(asked.predicates))
        made = {*roles.flags, *roles.keys}
        self._shown = [event_column(name) for name in asked.payload if name not in made]
        self._columns = [list(map(event_column, attributes)) for attributes in roles.attributes]
        self._flagged = pa.schema([(name, pa.bool_()) for name in roles.flags])
        kinds = dict.fromkeys(roles.flags, ColumnType(Kind.BOOL, "BOOLEAN"))
        flags = PlainColumns(kinds, self._flagged)
        self._conditions: list[Condition] = [
            Constant(holds=True) if one.condition is None else flags.condition(one.condition)
            for one in asked.predicates
        ]
        self._types = _key_types(roles, events)
        self.schema: pa.Schema = row_schema(roles, events)

    def of(self, classified: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch, in the order of its events."""
        roles, count = self._roles, len(self._roles.attributes)
        true = self._true(classified)
        values = [self._values_of(classified, role) for role in range(count)]
        keys, known = self._keys(values)
        equal = [_equal(keys, known, role) for role in range(count)]
        wanted = np.zeros((classified.num_rows, count), np.bool_)
        for role in range(count):
            own = true[:, np.array(roles.of) == role].any(axis=1) & known[:, role]
            again = (wanted[:, :role] & equal[role][:, :role]).any(axis=1)
            wanted[:, role] = own & ~again
        event, role_of = np.nonzero(wanted)
        flags = np.zeros((event.size, true.shape[1]), np.bool_)
        for role in range(count):
            here = np.flatnonzero(role_of == role)
            flags[here] = true[event[here]] & equal[role][event[here]][:, list(roles.of)]
        return self._rows(classified, values, keys[event, role_of], event, role_of, flags)

    def _true(self, classified: pa.RecordBatch) -> Mask:
        """Whether each predicate is true of each event."""
        words = [numbers_of(classified, name) for name in self._words]
        bits = [words[bit // WORD] >> (bit % WORD) & 1 for bit in range(len(self._roles.of))]
        return np.column_stack(bits).astype(np.bool_)

    def _values_of(self, classified: pa.RecordBatch, role: int) -> list[pa.Array]:
        """The values that keys have in a role, by their parts."""
        columns = (plain(classified.column(name)) for name in self._columns[role])
        return [
            _as_text(column) if as_text else column
            for column, as_text in zip(columns, self._roles.texts, strict=True)
        ]

    def _keys(self, values: Sequence[Sequence[pa.Array]]) -> tuple[NDArray[np.uint64], Mask]:
        """Both halves of the key in each role, uint64[n, roles, 2], and which are known, bool[n, roles]."""
        parts: dict[str, pa.Array] = {}
        columns = []
        for role, of_role in enumerate(values):
            names = [f"{role}.{place}" for place in range(len(of_role))]
            parts |= dict(zip(map(event_column, names), of_role, strict=True))
            columns.append(KeyColumn(tuple(KeyPart((), listed=name) for name in names), exact=False))
        keys, known, _ = spread_keys(columns, pa.record_batch(parts))
        return keys, known

    def _rows(
        self,
        classified: pa.RecordBatch,
        values: Sequence[Sequence[pa.Array]],
        keys: NDArray[np.uint64],
        event: NDArray[np.int64],
        role: NDArray[np.int64],
        flags: Mask,
    ) -> pa.RecordBatch:
        roles = self._roles
        kept = taken(classified.select([*_KEPT, *self._shown]), event)
        flagged = pa.RecordBatch.from_arrays(
            [pa.array(np.ascontiguousarray(column)) for column in flags.T], schema=self._flagged
        )
        made = dict(zip(roles.flags, flagged.columns, strict=True))
        for place, (name, kind) in enumerate(zip(roles.keys, self._types, strict=True)):
            made[name] = _chosen([of_role[place] for of_role in values], kind, event, role, name)
        numbers = numbers_of(kept, POSITION) * len(values) + role
        columns = [
            *(kept.column(name) for name in _KEPT),
            array_of(numbers),
            *(array_of(np.ascontiguousarray(half)) for half in keys.T),
            *map(array_of, self._bits(flagged)),
            *(made[name] if name in made else kept.column(event_column(name)) for name in roles.rows.payload),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _bits(self, flagged: pa.RecordBatch) -> list[NDArray[np.int64]]:
        """The words of the predicates of rows."""
        words = [np.zeros(flagged.num_rows, np.int64) for _ in self._own_words]
        columns = BatchColumns(flagged)
        for bit, condition in enumerate(self._conditions):
            words[bit // WORD] |= condition.rows(columns).astype(np.int64) << (bit % WORD)
        return words


def _equal(keys: NDArray[np.uint64], known: Mask, role: int) -> Mask:
    """Whether the key of each event in each role equals that in this role, bool[n, roles]."""
    same = (keys == keys[:, role : role + 1]).all(axis=2)
    return np.asarray(same & known & known[:, role : role + 1])


def _as_text(column: pa.Array) -> pa.Array:
    """The texts of values; a float that is an integer has the text of that."""
    texts = column.cast(pa.string())
    if not pa.types.is_floating(column.type):
        return texts
    is_whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), float(2**63)))
    return pc.if_else(is_whole, column.cast(pa.int64(), safe=False).cast(pa.string()), texts)


def _chosen(
    columns: Sequence[pa.Array],
    kind: pa.DataType,
    event: NDArray[np.int64],
    role: NDArray[np.int64],
    name: str,
) -> pa.Array:
    """The value of each row, in its role."""
    count = len(columns[0])
    try:
        together = pa.concat_arrays([column.cast(kind) for column in columns])
    except pa.ArrowInvalid as error:
        raise DataError(
            f"a key cannot be shown exactly in its column, which is of type {kind}: {error}",
            column=named(name),
            hint="give the fields of the alias the same type",
        ) from error
    return together.take(array_of(role * count + event))
