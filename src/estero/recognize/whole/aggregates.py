"""Aggregates over all complex events of an answer, exact, whatever their number.

Aggregates of events (``sum(x.amount)``) are sums over the gates of a circuit, each as often as it takes part.
The extremes of values of complex events (``max(sum(x.amount))``, ``max(duration)``) are computed from gate to
gate. All others (``avg(max(x.amount))``) are computed by listing the complex events. All of them are kept by
partition; for the whole, that is one partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.answer_schema import label_of, untaken
from estero.answers.asked_values import EVERYTHING, Asked
from estero.answers.participation import Aggregates
from estero.answers.shown_values import held_by_python
from estero.answers.wait import in_type
from estero.classify.arrays import array_of
from estero.engine.walk.circuit import GREATEST, LEAST, SUM
from estero.engine.walk.circuits import greatest
from estero.errors import DataError
from estero.language.tree.selection import END_TIME, START_TIME
from estero.recognize.set_reader import ReadableSets
from estero.recognize.whole.partitions import Partitions
from estero.recognize.whole.sets_at_hand import SMALL, SetAtHand, integers_of, sets_at_hand
from estero.recognize.whole.sums import Extremes, Sums, added, decimal_of, integers, times_of, weighted

_HOW: Final = {"sum": SUM, "count": SUM, "min": LEAST, "max": GREATEST}
_OTHER_WAY: Final = {SUM: SUM, LEAST: GREATEST, GREATEST: LEAST}


def aggregates(sets: ReadableSets, asked: Mapping[str, Asked], schema: pa.Schema) -> dict[str, Any]:
    """The values by name, None for an extreme, a sum or an average of nothing; `schema` is the answer's."""
    values = _aggregated(sets, asked, schema, Partitions(schema, apart=False))
    with held_by_python("an aggregate of this answer"):
        return {name: one.value() for name, one in values.items()}


def aggregates_by_partition(sets: ReadableSets, asked: Mapping[str, Asked], schema: pa.Schema) -> Aggregates:
    """The values of each partition; `schema` is the answer's."""
    partitions = Partitions(schema, apart=True)
    values = _aggregated(sets, asked, schema, partitions)
    order, keys = partitions.in_order()
    taken = set(asked)
    names = [untaken(name, taken) for name in keys.column_names]
    columns = {name: one.values(partitions.number) for name, one in values.items()}
    exact = [
        name for name, column in columns.items() if isinstance(column, list) and values[name].scale is None
    ]
    shown = [
        (column if isinstance(column, pa.Array) else integers(column, values[name].scale)).take(
            array_of(order)
        )
        for name, column in columns.items()
    ]
    return Aggregates(pa.table([*keys.columns, *shown], [*names, *asked]), exact)


def _aggregated(
    sets: ReadableSets, asked: Mapping[str, Asked], schema: pa.Schema, partitions: Partitions
) -> dict[str, _Aggregate]:
    """The requested aggregates of all complex events."""
    values = {name: _aggregate_of(one, schema) for name, one in asked.items()}
    for at_hand in sets_at_hand(sets, partitions):
        for one in values.values():
            if one.needs_list(at_hand):
                for part in at_hand.listed():
                    one.add(part)
            else:
                one.add(at_hand)
    return values


class _Aggregate(ABC):
    """One aggregate, to which sets are added; `kind` is the type of the values."""

    def __init__(self, asked: Asked, kind: pa.DataType | None) -> None:
        self.asked = asked
        self.kind = kind
        self.scale: int | None = kind.scale if kind is not None and pa.types.is_decimal(kind) else None
        """The number of digits after the decimal point of integers."""

    @abstractmethod
    def add(self, at_hand: SetAtHand) -> None:
        """Adds complex events."""

    @abstractmethod
    def values(self, size: int) -> pa.Array | list[int]:
        """The values of partitions 0 … size - 1: Python integers, or a column of them."""

    def value(self) -> Any:
        """The value for everything added, if that is one partition."""
        value = self.values(1)[0]
        if isinstance(value, pa.Scalar):
            return value.as_py()
        return value if value is None or self.scale is None else decimal_of(value, self.scale)

    def needs_list(self, at_hand: SetAtHand) -> bool:
        """Whether complex events have to be listed for it."""
        del at_hand
        return False


def _aggregate_of(asked: Asked, schema: pa.Schema) -> _Aggregate:
    operand = asked.operand
    if operand.whole == EVERYTHING or (operand.whole is not None and asked.outer == "count"):
        return _Number(asked, None)
    if operand.whole is not None:
        kind = schema.field(START_TIME).type
        return _Time(asked, kind) if asked.outer in ("min", "max") else _Durations(asked, kind)
    if (asked.outer, asked.inner) == ("sum", "count"):
        return _SumOfCounts(asked, None)
    kind = None
    if operand.attribute is not None and "count" not in (asked.outer, asked.inner):
        shown = [field for field in schema if label_of(field) is not None][operand.label]
        kind = shown.type.value_type.field(operand.attribute).type
    if asked.inner is not None:
        return _Extreme(asked, kind) if asked.outer in ("min", "max") else _OneByOne(asked, kind)
    return _ExtremeOfEvents(asked, kind) if asked.outer in ("min", "max") else _OfEvents(asked, kind)


class _Number(_Aggregate):
    """``count(*)``."""

    numbers: NDArray[Any] = np.zeros(0, object)

    def add(self, at_hand: SetAtHand) -> None:
        one = np.ones(at_hand.gates.size, np.int64)
        more = weighted(at_hand.counts, one, at_hand.of_roots, at_hand.parts)
        self.numbers = added(self.numbers, more)

    def values(self, size: int) -> list[int]:
        return list(added(self.numbers, np.zeros(size, np.int64)))


class _Sums(_Aggregate):
    """``count``, ``sum`` or ``avg`` of values."""

    def __init__(self, asked: Asked, kind: pa.DataType | None) -> None:
        super().__init__(asked, kind)
        self.numbers: NDArray[Any] = np.zeros(0, object)
        self.sums = Sums(kind)

    def values(self, size: int) -> pa.Array | list[int]:
        numbers = added(self.numbers, np.zeros(size, np.int64))
        match self.asked.outer:
            case "count":
                return numbers.tolist()
            case "avg":
                return pa.array(self.sums.averages(numbers), pa.float64())
            case _:
                return _shown(self.sums.values(numbers), self.kind)


class _Extremes(_Aggregate):
    """``min`` or ``max`` of values."""

    def __init__(self, asked: Asked, kind: pa.DataType | None) -> None:
        super().__init__(asked, kind)
        self.extremes = Extremes(least=asked.outer == "min")


class _OfEvents(_Sums):
    """``count``, ``sum`` or ``avg`` over all marked events of all complex events."""

    def add(self, at_hand: SetAtHand) -> None:
        gates = at_hand.marked(self.asked.operand.label)
        taken, of = at_hand.taken[gates], at_hand.of_gates[gates]
        size = at_hand.parts
        if self.asked.operand.attribute is not None and gates.size:
            column = at_hand.attribute(self.asked.operand, gates)
            known = pc.is_valid(column).to_numpy(zero_copy_only=False)
            taken, of = taken[known], of[known]
            if self.asked.outer != "count":
                self.sums.add(integers_of(column)[0][known], taken, of, size)
        self.numbers = added(self.numbers, weighted(taken, np.ones(of.size, np.int64), of, size))


class _SumOfCounts(_Aggregate):
    """``sum(count(x))``: the value of ``count(x)``, but NULL without complex events."""

    def __init__(self, asked: Asked, kind: pa.DataType | None) -> None:
        super().__init__(asked, kind)
        self.complex_events = _Number(asked, kind)
        self.counts = _OfEvents(replace(asked, outer="count", inner=None), kind)

    def add(self, at_hand: SetAtHand) -> None:
        self.complex_events.add(at_hand)
        self.counts.add(at_hand)

    def values(self, size: int) -> pa.Array | list[int]:
        numbers = zip(self.complex_events.values(size), self.counts.values(size), strict=True)
        return [count if complex_events else None for complex_events, count in numbers]


class _ExtremeOfEvents(_Aggregate):
    """``min`` or ``max`` over all marked events of all complex events."""

    most: pa.Table | None = None

    def add(self, at_hand: SetAtHand) -> None:
        gates = at_hand.marked(self.asked.operand.label)
        column = at_hand.attribute(self.asked.operand, gates)
        ticks = column.cast(pa.int64()) if pa.types.is_duration(column.type) else column
        here = pa.table({"of": at_hand.of_gates[gates], "value": ticks})
        together = here if self.most is None else pa.concat_tables([self.most, here])
        grouped = together.group_by("of", use_threads=False).aggregate([("value", self.asked.outer)])
        self.most = grouped.select(["of", f"value_{self.asked.outer}"]).rename_columns(["of", "value"])

    def values(self, size: int) -> pa.Array:
        if self.most is None:
            return pa.nulls(size, self.kind)
        places = np.full(size, -1)
        places[self.most["of"].to_numpy()] = np.arange(self.most.num_rows)
        rows = pa.array(places, mask=places < 0)
        return self.most["value"].combine_chunks().take(rows).cast(self.kind)


class _Durations(_Aggregate):
    """``sum(duration)`` in ticks, or ``avg(duration)``."""

    ticks: NDArray[Any] = np.zeros(0, object)
    numbers: NDArray[Any] = np.zeros(0, object)

    def needs_list(self, at_hand: SetAtHand) -> bool:
        return not at_hand.starts_known

    def add(self, at_hand: SetAtHand) -> None:
        starts, size, of = at_hand.starts, at_hand.parts, at_hand.of_roots
        ended = weighted(at_hand.counts, at_hand.times(at_hand.ends), of, size)
        begun = at_hand.times(at_hand.circuit.event[starts])
        started = weighted(at_hand.taken[starts], begun, at_hand.of_gates[starts], size)
        self.ticks = added(self.ticks, ended.astype(object) - started)
        self.numbers = added(self.numbers, weighted(at_hand.counts, np.ones(of.size, np.int64), of, size))

    def values(self, size: int) -> pa.Array | list[int]:
        ticks, numbers = (added(known, np.zeros(size, np.int64)) for known in (self.ticks, self.numbers))
        some = [None if not number else (tick, number) for tick, number in zip(ticks, numbers, strict=True)]
        if self.asked.outer == "sum":
            return [None if one is None else one[0] for one in some]
        if pa.types.is_timestamp(self.kind):
            return times_of([None if one is None else _nearest(*one) for one in some], self.kind)
        return pa.array([None if one is None else one[0] / one[1] for one in some], pa.float64())


class _Time(_Extremes):
    """The extremes of ``duration``, ``start_time`` and ``end_time``."""

    def add(self, at_hand: SetAtHand) -> None:
        self.extremes.add(self._values(at_hand), at_hand.of_roots)

    def _values(self, at_hand: SetAtHand) -> NDArray[Any]:
        """The extreme of the complex events of each root."""
        whole, outer = self.asked.operand.whole, self.asked.outer
        ends = at_hand.times(at_hand.ends)
        if whole == END_TIME:
            return ends
        late = (outer == "max") == (whole == START_TIME)
        gates = at_hand.events
        times = at_hand.times(at_hand.circuit.event[gates])
        values = at_hand.spread(gates, times if late else -times)
        best, _ = greatest(at_hand.circuit, LEAST if late else GREATEST, values, at_hand.has(gates))
        starts = best[at_hand.gates] if late else -best[at_hand.gates]
        return starts if whole == START_TIME else ends - starts

    def values(self, size: int) -> pa.Array:
        ticks = self.extremes.values(size)
        if self.asked.operand.whole in (START_TIME, END_TIME):
            return in_type(pa.array(ticks, pa.int64()), self.kind)
        return times_of(ticks, self.kind)


def _best(asked: Asked, at_hand: SetAtHand, *, least: bool = False) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The greatest, or least, inner value of a complex event for each root that has one; its partition."""
    gates = at_hand.marked(asked.operand.label)
    values: NDArray[Any] = np.ones(gates.size, np.int64)
    known = np.ones(gates.size, np.bool_)
    if asked.operand.attribute is not None:
        column = at_hand.attribute(asked.operand, gates)
        if asked.inner == "count":
            known = pc.is_valid(column).to_numpy(zero_copy_only=False)
        else:
            values, known = checked_numbers(column, asked.text)
    values, gates = summable(values[known], at_hand.circuit.event.size), gates[known]
    has = at_hand.has(at_hand.events if asked.inner == "count" else gates)
    how = _HOW[asked.inner or "sum"]
    spread = at_hand.spread(gates, -values if least else values)
    best, some = greatest(at_hand.circuit, _OTHER_WAY[how] if least else how, spread, has)
    here = some[at_hand.gates]
    of_roots: NDArray[Any] = best[at_hand.gates][here]
    return -of_roots if least else of_roots, at_hand.of_roots[here]


class _Extreme(_Extremes):
    """``max(sum(x.a))`` and its like."""

    def add(self, at_hand: SetAtHand) -> None:
        self.extremes.add(*_best(self.asked, at_hand, least=self.asked.outer == "min"))

    def values(self, size: int) -> pa.Array | list[int]:
        return _shown(self.extremes.values(size), self.kind)


class _OneByOne(_Sums):
    """``avg(max(x.a))`` and its like, from listed complex events."""

    def needs_list(self, at_hand: SetAtHand) -> bool:
        return at_hand.roots is not None

    def add(self, at_hand: SetAtHand) -> None:
        values, of = _best(self.asked, at_hand)
        one, size = np.ones(values.size, np.int64), at_hand.parts
        self.numbers = added(self.numbers, weighted(one, one, of, size))
        if self.asked.outer != "count":
            self.sums.add(values, one, of, size)


def _shown(numbers: Sequence[Any], kind: pa.DataType | None) -> Any:
    """Floats as a column, and other numbers as Python integers; decimals by their digits."""
    if kind is not None and pa.types.is_floating(kind):
        return pa.array(numbers, pa.float64())
    return [None if number is None else int(number) for number in numbers]


def _nearest(ticks: int, number: int) -> int:
    """The average as an integer, rounding half to even."""
    return round(Fraction(ticks, number))


def checked_numbers(column: pa.Array, text: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """As `integers_of`; raises `DataError` if a value is NaN, which cannot be compared."""
    values, known = integers_of(column)
    if values.dtype == np.float64 and np.isnan(values[known]).any():
        raise DataError(f"{text}: a value is NaN, which is neither greater nor less than others")
    return values, known


def summable(values: NDArray[Any], gates: int) -> NDArray[Any]:
    """The values, as objects if a sum over a complex event of a circuit may exceed a word."""
    if values.dtype == np.int64 and values.size:
        most = max(int(values.max()), -int(values.min()))
        if most * gates >= SMALL:
            return values.astype(object)
    return values
