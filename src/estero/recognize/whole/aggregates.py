"""Aggregates over all complex events of an answer, exact, whatever their number.

What is asked of events (``sum(x.amount)``) is a sum over the gates of a circuit, each as often as it takes
part. The extremes of what each complex event has (``max(sum(x.amount))``, ``max(duration)``) are computed
from gate to gate. What is neither (``avg(max(x.amount))``) is asked of complex events one by one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.asked_values import EVERYTHING, Asked
from estero.answers.participation import text_of
from estero.answers.report import label_of
from estero.answers.shown_values import held_by_python
from estero.answers.wait import in_type
from estero.classify.arrays import array_of
from estero.engine.walk.circuit import GREATEST, LEAST, SUM
from estero.engine.walk.circuits import greatest
from estero.errors import DataError
from estero.language.tree.selection import END_TIME, START_TIME
from estero.recognize.set_reader import ReadableSets
from estero.recognize.whole.sets_at_hand import SMALL, SetAtHand, integers_of, sets_at_hand

_HOW: Final = {"sum": SUM, "count": SUM, "min": LEAST, "max": GREATEST}
_OTHER_WAY: Final = {SUM: SUM, LEAST: GREATEST, GREATEST: LEAST}
_MANTISSA: Final = 53


def aggregates(sets: ReadableSets, asked: Mapping[str, Asked], schema: pa.Schema) -> dict[str, Any]:
    """The values by name, None for an extreme, a sum or an average of nothing; `schema` is the answer's."""
    sums = {name: _aggregate_of(one, schema) for name, one in asked.items()}
    for at_hand in sets_at_hand(sets):
        for one in sums.values():
            if one.needs_list(at_hand):
                for part in at_hand.listed():
                    one.add(part)
            else:
                one.add(at_hand)
    with held_by_python("an aggregate of this answer"):
        return {name: one.value() for name, one in sums.items()}


class _Aggregate(ABC):
    """One aggregate, to which sets are added; `kind` is the type of the values."""

    def __init__(self, asked: Asked, kind: pa.DataType | None) -> None:
        self.asked = asked
        self.kind = kind

    @abstractmethod
    def add(self, at_hand: SetAtHand) -> None:
        """Adds complex events."""

    @abstractmethod
    def value(self) -> Any:
        """The value for all that was added."""

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
    kind = None
    if operand.attribute is not None:
        shown = [field for field in schema if label_of(field) is not None][operand.label]
        kind = shown.type.value_type.field(operand.attribute).type
    if asked.inner is not None:
        return _Extreme(asked, kind) if asked.outer in ("min", "max") else _OneByOne(asked, kind)
    return _ExtremeOfEvents(asked, kind) if asked.outer in ("min", "max") else _OfEvents(asked, kind)


class _Number(_Aggregate):
    """``count(*)``."""

    number = 0

    def add(self, at_hand: SetAtHand) -> None:
        self.number += at_hand.total

    def value(self) -> int:
        return self.number


class _OfEvents(_Aggregate):
    """``count``, ``sum`` or ``avg`` over all marked events of all complex events."""

    def __init__(self, asked: Asked, kind: pa.DataType | None) -> None:
        super().__init__(asked, kind)
        self.number = 0
        self.sum = _Sum(kind)

    def add(self, at_hand: SetAtHand) -> None:
        gates = at_hand.marked(self.asked.operand.label)
        taken = at_hand.taken[gates]
        if self.asked.operand.attribute is not None and gates.size:
            column = at_hand.attribute(self.asked.operand, gates)
            known = pc.is_valid(column).to_numpy(zero_copy_only=False)
            taken = taken[known]
            if self.asked.outer != "count":
                self.sum.add(integers_of(column)[0][known], taken)
        self.number += int(taken.sum())

    def value(self) -> Any:
        if self.asked.outer == "count":
            return self.number
        if not self.number:
            return None
        return self.sum.value() if self.asked.outer == "sum" else self.sum.average(self.number)


class _ExtremeOfEvents(_Aggregate):
    """``min`` or ``max`` over all marked events of all complex events."""

    most: Any = None

    def add(self, at_hand: SetAtHand) -> None:
        extreme_of = pc.min if self.asked.outer == "min" else pc.max
        column = at_hand.attribute(self.asked.operand, at_hand.marked(self.asked.operand.label))
        most = extreme_of(column)
        if most.is_valid:
            pair = [most] if self.most is None else [self.most, most]
            self.most = extreme_of(pa.array(pair, column.type))

    def value(self) -> Any:
        return None if self.most is None else self.most.as_py()


class _Durations(_Aggregate):
    """``sum(duration)`` in ticks, or ``avg(duration)``."""

    ticks = 0
    number = 0

    def needs_list(self, at_hand: SetAtHand) -> bool:
        return at_hand.circuit.branches

    def add(self, at_hand: SetAtHand) -> None:
        self.number += at_hand.total
        starts = at_hand.starts
        begun = at_hand.times(at_hand.circuit.event[starts])
        self.ticks += weighted(at_hand.counts, at_hand.times(at_hand.ends)) - weighted(
            at_hand.taken[starts], begun
        )

    def value(self) -> Any:
        if not self.number:
            return None
        if self.asked.outer == "sum":
            return self.ticks
        average = Fraction(self.ticks, self.number)
        return _duration(round(average), self.kind) if pa.types.is_timestamp(self.kind) else float(average)


class _Time(_Aggregate):
    """The extremes of ``duration``, ``start_time`` and ``end_time``."""

    most: int | None = None

    def add(self, at_hand: SetAtHand) -> None:
        values = self._values(at_hand)
        most = int(values.max() if self.asked.outer == "max" else values.min())
        pair = [most] if self.most is None else [self.most, most]
        self.most = max(pair) if self.asked.outer == "max" else min(pair)

    def _values(self, at_hand: SetAtHand) -> NDArray[Any]:
        """Of each root the extreme of its complex events."""
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

    def value(self) -> Any:
        if self.most is None:
            return None
        if self.asked.operand.whole in (START_TIME, END_TIME):
            return in_type(array_of(np.array([self.most])), self.kind)[0].as_py()
        return _duration(self.most, self.kind) if pa.types.is_timestamp(self.kind) else self.most


class _Inner(_Aggregate):
    """Of what an inner aggregate is in one complex event."""

    def best(self, at_hand: SetAtHand, *, least: bool = False) -> NDArray[Any]:
        """Of each root that has one, the greatest value of a complex event, or the least."""
        gates = at_hand.marked(self.asked.operand.label)
        values: NDArray[Any] = np.ones(gates.size, np.int64)
        known = np.ones(gates.size, np.bool_)
        if self.asked.operand.attribute is not None:
            column = at_hand.attribute(self.asked.operand, gates)
            if self.asked.inner == "count":
                known = pc.is_valid(column).to_numpy(zero_copy_only=False)
            else:
                values, known = checked_numbers(column, self.asked.text)
        values, gates = summable(values[known], at_hand.circuit.event.size), gates[known]
        has = at_hand.has(at_hand.events if self.asked.inner == "count" else gates)
        how = _HOW[self.asked.inner or "sum"]
        spread = at_hand.spread(gates, -values if least else values)
        best, some = greatest(at_hand.circuit, _OTHER_WAY[how] if least else how, spread, has)
        of_roots: NDArray[Any] = best[at_hand.gates][some[at_hand.gates]]
        return -of_roots if least else of_roots


class _Extreme(_Inner):
    """``max(sum(x.a))`` and its like."""

    most: Any = None

    def add(self, at_hand: SetAtHand) -> None:
        least = self.asked.outer == "min"
        best = self.best(at_hand, least=least)
        if best.size:
            most = best.min() if least else best.max()
            pair = [most] if self.most is None else [self.most, most]
            self.most = min(pair) if least else max(pair)

    def value(self) -> Any:
        if self.most is None:
            return None
        return int(self.most) if self.asked.inner == "count" else _shown(self.most, self.kind)


class _OneByOne(_Inner):
    """``avg(max(x.a))`` and its like: of complex events that are listed."""

    def __init__(self, asked: Asked, kind: pa.DataType | None) -> None:
        super().__init__(asked, pa.int64() if asked.inner == "count" else kind)
        self.number = 0
        self.sum = _Sum(self.kind)

    def needs_list(self, at_hand: SetAtHand) -> bool:
        return at_hand.roots is not None

    def add(self, at_hand: SetAtHand) -> None:
        values = self.best(at_hand)
        self.number += values.size
        self.sum.add(values, np.ones(values.size, np.uint64))

    def value(self) -> Any:
        if self.asked.outer == "count":
            return self.number
        if not self.number:
            return None
        return self.sum.value() if self.asked.outer == "sum" else self.sum.average(self.number)


class _Sum:
    """An exact sum of numbers of one type, each multiplied by a count."""

    def __init__(self, kind: pa.DataType | None) -> None:
        self._kind = kind
        self._exact = Fraction(0)
        self._beyond = 0.0
        """The sum of what is infinite or no number."""

    def add(self, values: NDArray[Any], times: NDArray[Any]) -> None:
        """Adds values[i] times[i] times."""
        if values.dtype != np.float64:
            self._exact += weighted(times, values)
            return
        finite = np.isfinite(values)
        self._beyond += float(values[~finite].sum())
        mantissa, exponent = np.frexp(values[finite])
        digits = (mantissa * 2.0**_MANTISSA).astype(np.int64)
        for power in np.unique(exponent).tolist():
            here = exponent == power
            self._exact += weighted(times[finite][here], digits[here]) * Fraction(2) ** (power - _MANTISSA)

    def value(self) -> Any:
        """The sum, in Python's type for the values: an int, a Decimal, or the nearest float."""
        if self._kind is not None and pa.types.is_floating(self._kind):
            return self._rounded(self._exact)
        return _shown(int(self._exact), self._kind)

    def average(self, number: int) -> float:
        """The average of `number` values, as the nearest float."""
        exact = self._exact / number
        if self._kind is not None and pa.types.is_decimal(self._kind):
            exact /= 10**self._kind.scale
        return self._rounded(exact)

    def _rounded(self, exact: Fraction) -> float:
        if self._beyond:
            return self._beyond
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf


def weighted(times: NDArray[Any], values: NDArray[Any]) -> int:
    """The exact sum of integers, values[i] times[i] times."""
    if not values.size:
        return 0
    rough = np.dot(times.astype(np.float64), np.abs(values.astype(np.float64)))
    if object not in (times.dtype, values.dtype) and rough < SMALL:
        return int(np.dot(times.astype(np.int64), values))
    return int(np.dot(times.astype(object), values.astype(object)))


def checked_numbers(column: pa.Array, text: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """As `integers_of`; raises `DataError` where a value is NaN, which nothing can be compared with."""
    values, known = integers_of(column)
    if values.dtype == np.float64 and np.isnan(values[known]).any():
        raise DataError(f"{text}: a value is NaN, which is neither greater nor less than others")
    return values, known


def summable(values: NDArray[Any], gates: int) -> NDArray[Any]:
    """The values, as objects where a sum over a complex event of a circuit may need more than a word."""
    if values.dtype == np.int64 and values.size:
        most = max(int(values.max()), -int(values.min()))
        if most * gates >= SMALL:
            return values.astype(object)
    return values


def _shown(number: Any, kind: pa.DataType | None) -> Any:
    """A number of a type, as Python has it; of decimals its digits without the point are given."""
    if kind is not None and pa.types.is_decimal(kind):
        whole = int(number)
        return Decimal((int(whole < 0), tuple(map(int, text_of(abs(whole)))), -kind.scale))
    return float(number) if isinstance(number, float) else int(number)


def _duration(ticks: int, kind: pa.DataType) -> Any:
    """A duration as Python has it."""
    return pa.scalar(ticks, pa.duration(kind.unit)).as_py()
