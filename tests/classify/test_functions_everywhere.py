"""Functions, CASE and CAST mean the same on every engine: on DuckDB, Spark, in Python and the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, combinations, product

import numpy as np
import pyarrow as pa
import pytest

from classify.everywhere import (
    MAX,
    MIN,
    TIMES,
    B,
    C,
    Evaluate,
    F,
    G,
    I,
    J,
    R,
    S,
    T,
    U,
    assert_same,
    comparisons,
    on_duckdb,
    on_reference,
    on_rows,
)
from estero.classify.rows.typed import AskSqlError
from estero.language.tree.expressions import (
    Arithmetic,
    Attribute,
    Call,
    Case,
    Cast,
    Comparison,
    IsNull,
    Literal,
    Node,
    When,
)
from estero.language.tree.functions import SCALAR_FUNCTIONS, Function
from estero.language.tree.literals import Value
from estero.language.tree.schema import Kind


def test_functions_of_numbers_and_strings(evaluate: Evaluate) -> None:
    nodes: list[Node] = [Call(name, (F,)) for name in ("abs", "floor", "ceil")]
    nodes += [Call("floor", (I,)), Call("ceil", (I,)), Call("length", (S,)), Call("coalesce", (S, R))]
    nodes += [Call("coalesce", (I, J, Literal(5))), Call("coalesce", (Literal(None), F, G))]
    assert_same(evaluate, nodes)


ROUNDED = [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 2.675, 1e15 + 0.5, 2.0**52 + 1, 4.5e15, 1e300]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -8.0, 0.5, 1e300, math.inf, -math.inf, math.nan, None]


def test_rounding_and_signs(evaluate: Evaluate) -> None:
    floats = [*ROUNDED, *SPECIAL, 12345.6789]
    integers = [0, 1, -1, 7, MAX, MIN, None]
    rows = pa.table({"f": floats, "i": [integers[place % 7] for place in range(len(floats))]})
    nodes: list[Node] = [Call("round", (F, Literal(digits))) for digits in (0, 1, 2, 15)]
    nodes += [Call(name, (each,)) for name in ("round", "sign") for each in (F, I)]
    assert_same(evaluate, nodes, rows)


def test_roots_logarithms_and_powers_are_those_of_floats(evaluate: Evaluate) -> None:
    rows = pa.table(pairs_of(SPECIAL))
    nodes: list[Node] = [Call(name, (each,)) for name in ("sqrt", "ln", "exp") for each in (F, I)]
    nodes += [Call("power", (F, G)), Call("power", (F, I)), Call("power", (I, Literal(0.5)))]
    wanted, found = on_reference(nodes, rows), evaluate_or_ask(evaluate, nodes, rows)
    for node, expected, values in zip(nodes, wanted, found, strict=True):
        for one, other in zip(expected, values, strict=True):
            assert one == other or other == pytest.approx(one, rel=1e-14, nan_ok=True), f"{node}"


def pairs_of(numbers: Sequence[float | None]) -> dict[str, list[Value]]:
    """All pairs of floats, with an integer beside each."""
    both = list(product(numbers, numbers))
    return {
        "f": [one for one, _ in both],
        "g": [other for _, other in both],
        "i": [place % 7 - 3 for place in range(len(both))],
    }


def evaluate_or_ask(evaluate: Evaluate, nodes: Sequence[Node], rows: pa.Table) -> list[list[Value]]:
    """In Python a power that is an error there is asked of DuckDB, as it is of single events."""
    if evaluate is not on_rows:
        return evaluate(nodes, rows)
    found: list[list[Value]] = []
    for node in nodes:
        values: list[Value] = []
        for place in range(rows.num_rows):
            try:
                values += evaluate([node], rows.slice(place, 1))[0]
            except AskSqlError:
                values += on_duckdb([node], rows.slice(place, 1))[0]
        found.append(values)
    return found


TEXTS = [
    *("", "a", "aA", " a b ", "\ta ", "Éé", "straße", "ΟΔΟΣ Σ", "İıI"),
    *("\ufb01n", "ᾳᾼᾀ", "a-b--c", "\U0001d11ex", "é-"),
]


def test_functions_of_strings(evaluate: Evaluate) -> None:
    rows = pa.table({"s": [*TEXTS, None], "r": [None, *reversed(TEXTS)], "i": [*range(-4, 11)]})
    nodes: list[Node] = [Call(name, (S,)) for name in ("lower", "upper", "trim", "length")]
    nodes += [Call(name, (S, R)) for name in ("starts_with", "ends_with", "contains", "concat")]
    parts = [Literal(text) for text in ("", "a", "b ", "é", "-")]
    nodes += [Call(name, (S, part)) for name in ("starts_with", "ends_with", "contains") for part in parts]
    nodes += [Call("replace", (S, part, Literal("xy"))) for part in parts]
    nodes += [Call("replace", (S, R, Literal("")))]
    nodes += [Call("split_part", (S, part, Literal(place))) for part in parts[1:] for place in (1, 2, 4)]
    edges = (-(2**63), -2, 0, 1, 2, 5, 2**31, 2**63 - 1)
    nodes += [Call("substring", (S, Literal(start))) for start in edges]
    nodes += [Call("substring", (S, Literal(start), Literal(many))) for start in edges for many in edges]
    nodes += [Call("substring", (S, I)), Call("substring", (S, I, Literal(3))), Call("substring", (S, I, I))]
    nodes += [Call("concat", (S,) * 1_100)]  # more than DuckDB reads in one chain
    nodes += [Call("concat", (S,)), Call("concat", (S, Literal("/"), R)), Call("concat", (S, Literal(None)))]
    assert_same(evaluate, nodes, rows)


def test_places_of_strings_in_strings(evaluate: Evaluate) -> None:
    rows = pa.table(
        {"s": [*TEXTS, "abab", "aXa", "a.a\\E", None], "r": [None, *reversed(TEXTS), "ab", "a", ".a"]}
    )
    parts = [Literal(text) for text in ("", "a", "ab", "é", "-", "\\E", ".", "\n", "\U0001d11e")]
    nodes: list[Node] = [
        Call(name, (S, part)) for name in ("position", "last_position") for part in (*parts, R)
    ]
    assert_same(evaluate, nodes, rows)


def test_digits_to_a_base(evaluate: Evaluate) -> None:
    digits = ["0", "-0", "+1f", "-1F", "zz", "", "-", "1 ", "0x1", "1_0", "١", "000000000000000000000000001"]
    edges = [np.base_repr(edge, base) for edge in (MAX, MAX + 1) for base in (2, 10, 16, 36)]
    rows = pa.table({"s": [*digits, *edges, *(f"-{edge}" for edge in edges), "1" * 70, None]})
    assert_same(evaluate, [Call("parse_integer", (S, Literal(base))) for base in (2, 8, 10, 16, 36)], rows)


def test_whole_quotients_go_towards_zero(evaluate: Evaluate) -> None:
    numbers = [0, 1, -1, 2, -3, 7, -7, 2**53 + 1, MAX, MIN, None]
    both = [(one, other) for one in numbers for other in numbers if (one, other) != (MIN, -1)]
    rows = pa.table({"i": [one for one, _ in both], "j": [other for _, other in both]})
    nodes: list[Node] = [Call("div", (I, J)), Call("div", (I, Literal(3))), Call("div", (Literal(-7), J))]
    assert_same(evaluate, nodes, rows)


def test_every_letter_changes_its_case_in_one_way(evaluate: Evaluate) -> None:
    letters = [chr(each) for each in range(1, 0x1F000) if not 0xD800 <= each < 0xE000]
    newer = {chr(each) for each in NEWER_LETTERS}
    rows = pa.table({"s": [letter for letter in letters if letter not in newer]})
    assert_same(evaluate, [Call("lower", (S,)), Call("upper", (S,))], rows)


NEWER_LETTERS = (
    *(0x19B, 0x264, 0x1C89, 0x1C8A, 0x2C2F, 0x2C5F, 0xA7C0, 0xA7C1, *range(0xA7CB, 0xA7DD)),
    *(*range(0x10570, 0x105BD), *range(0x10D50, 0x10D90), *range(0x16EA0, 0x16ED9)),
)
"""Letters of which Unicode 13 has not both cases."""


NUMERALS = [
    *("0", "-7", "+12", "007", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("1.5", "-.5", "5.", "1e3", "1E-3", "1e999", "-1e999", "1e-999", "", " 1", "1 ", "1_0", "0x1", "--1"),
    *("e5", "1e", ".", "-", "+.5e-3", "1.e3", "1-2", "1e3.5", "+-1", "."),
    *("NaN", "inf", "Infinity", "a", "1\n", "\u0661", "1d", "1f", "1L", None),
]


def test_casts(evaluate: Evaluate) -> None:
    rows = pa.table({"s": pa.array(NUMERALS, pa.string())})
    assert_same(evaluate, [Cast(S, "INTEGER"), Cast(S, "FLOAT"), Cast(S, "STRING")], rows)
    nodes: list[Node] = [Cast(F, "INTEGER"), Cast(I, "FLOAT"), Cast(I, "STRING"), Cast(I, "BOOLEAN")]
    nodes += [Cast(B, "INTEGER"), Cast(B, "FLOAT"), Cast(B, "STRING"), Cast(T, "TIMESTAMP")]
    assert_same(evaluate, [*nodes, Cast(Literal(None), "INTEGER"), Cast(Literal(2.5), "INTEGER")])


def test_cases(evaluate: Evaluate) -> None:
    positive = When(Comparison(">", I, Literal(0)), Literal("positive"))
    zero = When(Comparison("=", I, Literal(0)), Literal("zero"))
    divided = When(Comparison("!=", J, Literal(0)), Arithmetic("%", I, J))
    nodes: list[Node] = [
        Case((positive, zero), Literal("negative or NULL")),
        Case((positive, zero)),
        Case((divided,), J),
        *comparisons(Case((divided,), F), G),
        Case((When(B, C), When(C, Literal(None)))),
        Case((When(IsNull(T), U),), T),
        Case((When(B, Literal(None)),)),
        Comparison("=", Case((positive,), S), Literal("positive")),
    ]
    assert_same(evaluate, nodes)


def test_functions_that_choose(evaluate: Evaluate) -> None:
    nodes: list[Node] = [
        Call(name, both)
        for name in ("greatest", "least", "nullif")
        for both in [(I, J), (F, G), (S, R), (T, U)]
    ]
    nodes += [Call(name, (I, Literal(0))) for name in ("greatest", "least", "nullif")]
    nodes += [Call(name, (Literal(None), F)) for name in ("greatest", "least")]
    nodes += [Call("nullif", (F, Literal(None))), Call("greatest", (F, G, Literal(0.0)))]
    assert_same(evaluate, nodes)


def test_calendars_by_weeks_and_quarters(evaluate: Evaluate) -> None:
    days = [datetime(2019, 12, 28, 12, tzinfo=UTC) + timedelta(days=day) for day in range(800)]
    rows = pa.table({"t": pa.array([*TIMES, *days], pa.timestamp("us", "UTC"))})
    units = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    nodes: list[Node] = [Call("date_trunc", (Literal(unit), T)) for unit in units]
    nodes += [Call(part, (T,)) for part in ("quarter", "week", "day_of_week", "epoch")]
    assert_same(evaluate, nodes, rows)


@pytest.mark.parametrize("name", ["duckdb", "rows"])
def test_functions_of_nanoseconds(name: str) -> None:
    ticks = [-1, 0, 1_600_000_000_000_000_001, None]
    rows = pa.table({"t": pa.array(ticks, pa.timestamp("ns"))})
    nodes: list[Node] = [Call("epoch", (T,)), Call("week", (T,)), Call("quarter", (T,))]
    begun = [Call("date_trunc", (Literal(unit), T)) for unit in ("second", "month")]
    wanted = [datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1969, 12, 1, tzinfo=UTC)]
    nodes += [Comparison("=", each, Literal(moment)) for each, moment in zip(begun, wanted, strict=True)]
    found = {"duckdb": on_duckdb, "rows": on_rows}[name](nodes, rows)
    assert found == [
        [-1e-9, 0.0, 1_600_000_000.0, None],
        [1, 1, 37, None],
        [4, 1, 3, None],
        [True, False, False, None],
        [True, False, False, None],
    ]


def test_a_case_computes_only_what_it_chooses(evaluate: Evaluate) -> None:
    rows = pa.table({"i": pa.array([MAX, 1, None], pa.int64())})
    small = When(Comparison("<", I, Literal(5)), Arithmetic("+", I, Literal(1)))
    assert_same(evaluate, [Case((small,), I), Case((small,))], rows)


TYPES = {
    Kind.BOOL: (pa.bool_(), True),
    Kind.INT: (pa.int64(), 2),
    Kind.FLOAT: (pa.float64(), 2.5),
    Kind.STRING: (pa.string(), "abc"),
    Kind.TIMESTAMP: (pa.timestamp("us", "UTC"), TIMES[2]),
}
"""The type of a column of a kind, and a value of it. Columns of durations are opaque; here t - u is one."""
KNOWN_AND_NULL = pa.table(
    {
        f"{kind.name}_{place}".lower(): pa.array([value, value, None, None], of)
        for kind, (of, value) in TYPES.items()
        for place in ("known", "null")
    }
)
KNOWN_AND_NULL = pa.table(
    {
        name: pa.array([None] * 4, column.type) if name.endswith("null") else column
        for name, column in zip(KNOWN_AND_NULL.column_names, KNOWN_AND_NULL.columns, strict=True)
    }
)
CONSTANTS: dict[tuple[str, int], Value] = {
    ("round", 1): 1,
    ("split_part", 1): "b",
    ("split_part", 2): 1,
    ("date_trunc", 0): "day",
    ("parse_integer", 1): 16,
}
"""What stands where a function takes a constant, which NULL is not."""


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_null_in_any_places_of_any_function(name: str, evaluate: Evaluate) -> None:
    function = SCALAR_FUNCTIONS[name]
    most = 3 if function.repeated else len(function.takes)
    nodes: list[Node] = []
    for many in range(1, most + 1):
        for kind in sorted(function.taken(0) - {Kind.OPAQUE, Kind.NULL}, key=lambda kind: kind.name):
            nodes += called_with_nulls(name, function, kind, many) if function.accepts(many) else []
    nulls: list[Node] = [IsNull(node) for node in nodes]
    differ_in_the_last_digit = {"ln", "exp", "power"}
    assert_same(evaluate, nulls if name in differ_in_the_last_digit else nulls + nodes, KNOWN_AND_NULL)


def called_with_nulls(name: str, function: Function, kind: Kind, many: int) -> list[Node]:
    """Calls with NULLs, values and literals, in all subsets of the places where no constant is wanted."""
    free = [place for place in range(many) if place not in function.constants]
    subsets = chain.from_iterable(combinations(free, count) for count in range(len(free) + 1))
    calls: list[Node] = []
    for nulls, literal in product(subsets, (False, True)):
        calls.append(
            Call(
                name,
                tuple(
                    Literal(CONSTANTS[name, place])
                    if place in function.constants
                    else argument(function, kind, place, is_null=place in nulls, literal=literal)
                    for place in range(many)
                ),
            )
        )
    return calls


def argument(function: Function, kind: Kind, place: int, *, is_null: bool, literal: bool) -> Node:
    """A column that is NULL or not, or the literal NULL."""
    if is_null and literal:
        return Literal(None)
    takes = function.taken(place)
    own = kind if kind in takes else min(takes, key=lambda each: each.name)
    which = "null" if is_null else "known"
    if own is Kind.DURATION:
        return Arithmetic("-", Attribute(f"timestamp_{which}"), Literal(TIMES[0]))
    return Attribute(f"{own.name.lower()}_{which}")
