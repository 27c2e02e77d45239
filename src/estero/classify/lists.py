"""Long lists after IN, in the form for looking up values of an expression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from estero.classify.columns import Tick
from estero.classify.instants import micros_of
from estero.language.tree.literals import Value
from estero.language.tree.schema import Kind


def in_form(values: Sequence[Value], kind: Kind | None, tick: Tick) -> list[int | float | str]:
    """The values of a list that a value of this kind can equal, in lookup form: instants as ticks.

    An integer equals a float if both are exactly the same number. Decimals are texts, as in
    `Dialect.text_of_decimal`.

    >>> in_form([1.0, 2.5, 3.0], Kind.INT, "us")
    [1, 3]
    """
    match kind:
        case Kind.INT:
            return list(_integers(values))
        case Kind.DECIMAL:
            numbers = (value for value in values if isinstance(value, int | float))
            return [f"{Decimal(repr(number)).normalize():f}" for number in numbers]
        case Kind.FLOAT:
            return list(_floats(values))
        case Kind.TIMESTAMP:
            scale = 1000 if tick == "ns" else 1
            return [micros_of(value) * scale for value in values if isinstance(value, datetime)]
        case _:
            return [value for value in values if isinstance(value, str)]


def _integers(values: Sequence[Value]) -> Iterator[int]:
    for value in values:
        if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
            whole = int(value)
            if -(2**63) <= whole < 2**63:
                yield whole


def _floats(values: Sequence[Value]) -> Iterator[float]:
    for value in values:
        if isinstance(value, float):
            yield value
        elif isinstance(value, int) and abs(value) < 2**1023 and int(float(value)) == value:
            yield float(value)
