"""Random patterns whose filters join equalities and disequalities of events by AND, OR and NOT."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hypothesis import strategies as st

NUMBERS = ("{0}.k", "{0}.k", "{0}.n", "{0}.n", "{0}.x", "{0}.n + 1", "{0}.k * 2", "{0}.n / 2", "abs({0}.n)")
DISTANCES = (
    "{0}.n - {1}.n {2} 1",
    "3 >= {1}.n - {0}.k",
    "-({0}.n - {1}.n) {2} {0}.k",
    "{1}.time - {0}.time {2} 2 SECONDS",
    "{1}.time <= {0}.time + 3 SECONDS",
    "{1}.time - {0}.time < 2500 MILLISECONDS",
    "{1}.time - {0}.time BETWEEN 1 SECOND AND 2 * 2 SECONDS",
    "{1}.time - {0}.time IN {{1 SECOND, 500 MILLISECONDS}}",
)
KEYS = ("k", "k", "n", "s", "x")


@st.composite
def correlated(draw: st.DrawFn) -> str:
    """Sequences with such filters, and PARTITION BY, inside of ``;``, ``OR``, ``+`` and one another."""
    names = iter("uvwxyz")
    text = _pattern(draw, names, draw(st.integers(1, 3)))
    return draw(st.sampled_from(["{0}", "{0}", "({0})+", "({0}) PARTITION BY [k]"])).format(text)


def _pattern(draw: st.DrawFn, names: Iterator[str], depth: int) -> str:
    if depth == 0:
        return draw(st.sampled_from(["A", "B", "A+", "(A OR B)", "C"]))
    match draw(st.integers(0, 5)):
        case 0 | 1:
            return _sequence(draw, names)
        case 2:
            return f"({_pattern(draw, names, depth - 1)}) OR ({_pattern(draw, names, depth - 1)})"
        case 3:
            return f"({_pattern(draw, names, depth - 1)}) ; ({_pattern(draw, names, depth - 1)})"
        case _:
            inner = f"({_pattern(draw, names, depth - 1)}){draw(st.sampled_from(['+', '', '']))}"
            return f"({inner} PARTITION BY [{draw(st.sampled_from(KEYS))}])"


def _sequence(draw: st.DrawFn, names: Iterator[str]) -> str:
    length = draw(st.sampled_from([2, 2, 3]))
    own = list(islice(names, length))
    if len(own) < 2:
        return "A ; B"
    shapes = st.sampled_from(["{0} AS {1}"] * 5 + ["{0}+ AS {1}", "(A OR B) AS {1}"])
    parts = [draw(shapes).format(draw(st.sampled_from("ABC")), name) for name in own]
    place = draw(st.integers(0, len(own) - 2))
    condition = _condition(draw, own[place], own[place + 1], draw(st.integers(0, 2)))
    if len(own) > 2 and draw(st.booleans()):
        condition = f"({condition}) AND ({_condition(draw, own[1], own[2] if place == 0 else own[0], 1)})"
    return f"({' ; '.join(parts)} FILTER {condition})"


def _condition(draw: st.DrawFn, one: str, other: str, depth: int) -> str:
    if depth == 0:
        operator = draw(st.sampled_from(["=", "=", "=", "!=", "!=", "<"]))
        if draw(st.integers(0, 4)) == 0:
            return f"{one}.s {'=' if operator == '<' else operator} {other}.s"
        if draw(st.integers(0, 3)) == 0:
            return draw(st.sampled_from(DISTANCES)).format(one, other, operator)
        left, right = (draw(st.sampled_from(NUMBERS)).format(each) for each in (one, other))
        return f"{left} {operator} {right}"
    if draw(st.integers(0, 8)) == 0:
        return draw(st.sampled_from(["{0}[n > 0]", "{0}.k IS NULL", "NOT {0}.n = 1"])).format(one)
    match draw(st.integers(0, 3)):
        case 0:
            return f"NOT ({_condition(draw, one, other, depth - 1)})"
        case 1:
            return _condition(draw, one, other, depth - 1)
        case way:
            parts = [_condition(draw, one, other, depth - 1) for _ in range(draw(st.sampled_from([2, 2, 3])))]
            return (" AND " if way == 2 else " OR ").join(f"({part})" for part in parts)
