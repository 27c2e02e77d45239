"""Long lists behind IN, in the form in which values of an expression are looked up in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from estero.classify.columns import Tick
from estero.language.tree.literals import Value
from estero.language.tree.schema import Kind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def in_form(values: Sequence[Value], kind: Kind | None, tick: Tick) -> list[int | float | str]:
    """The values that one of a kind can equal, as it is looked up: instants as ticks since the epoch.

    An integer equals a float where both are one number exactly. Decimals are texts, as in
    `Dialect.text_of_decimal`.

    >>> in_form([1.0, 2.5, 3.0], Kind.INT, "us")
    [1, 3]
    """
    match kind:
        case Kind.INT:
            return list(_integers(values))
        case Kind.DECIMAL:
            numbers = (each for each in values if isinstance(each, int | float))
            return [f"{Decimal(repr(each)).normalize():f}" for each in numbers]
        case Kind.FLOAT:
            return list(_floats(values))
        case Kind.TIMESTAMP:
            scale = 1000 if tick == "ns" else 1
            times = [each for each in values if isinstance(each, datetime)]
            return [(each - _EPOCH) // timedelta(microseconds=1) * scale for each in times]
        case _:
            return [each for each in values if isinstance(each, str)]


def _integers(values: Sequence[Value]) -> Iterator[int]:
    for each in values:
        if isinstance(each, int) or (isinstance(each, float) and each.is_integer()):
            whole = int(each)
            if -(2**63) <= whole < 2**63:
                yield whole


def _floats(values: Sequence[Value]) -> Iterator[float]:
    for each in values:
        if isinstance(each, float):
            yield each
        elif isinstance(each, int) and abs(each) < 2**1023 and int(float(each)) == each:
            yield float(each)
