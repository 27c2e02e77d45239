"""Calls inside calls: the same on every engine, and SQL that grows by as much with each of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from classify.everywhere import Evaluate, F, I, S, assert_same
from estero.classify.columns import canonical
from estero.classify.dialect import Dialect
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.expressions import ExpressionWriter
from estero.classify.spark_dialect import SPARK
from estero.language.tree.durations import Duration
from estero.language.tree.expressions import Arithmetic, Call, Case, Comparison, Literal, Negative, Node, When
from estero.language.tree.schema import Kind

Around = Callable[[Node], Node]


def _call(name: str, *others: Literal) -> Around:
    return lambda node: Call(name, (node, *others))


def _positive_or_one(node: Node) -> Node:
    return Case((When(Comparison(">", Call("sign", (node,)), Literal(0)), Literal(2.5)),), Literal(1.0))


NUMBERS: Sequence[Around] = [
    *(_call(name) for name in ("round", "sign", "abs", "floor", "ceil", "sqrt")),
    _call("nullif", Literal(7)),
    lambda node: Arithmetic("/", Literal(1), node),
    lambda node: Arithmetic("%", node, Literal(7)),
    lambda node: Arithmetic("*", node, Literal(0.5)),
    Negative,
    _positive_or_one,
]
STRINGS: Sequence[Around] = [
    *(_call(name) for name in ("upper", "lower", "trim")),
    _call("substring", Literal(1)),
    _call("split_part", Literal(","), Literal(1)),
    _call("concat", Literal("ß")),
]
DURATIONS: Sequence[Around] = [
    lambda node: Arithmetic("*", node, Literal(1.5)),
    lambda node: Arithmetic("/", node, Literal(2)),
    _call("abs"),
    Negative,
]
ROUNDED = [_call("ln"), _call("exp"), _call("power", Literal(7))]
"""Engines differ in their last bit."""
LEAVES: Sequence[tuple[Node, Sequence[Around]]] = [
    (F, NUMBERS),
    (I, [*NUMBERS, lambda node: Arithmetic("+", node, Literal(1.0))]),
    (S, STRINGS),
    (Literal(Duration(10**9)), DURATIONS),
]


ROWS = pa.table(
    {
        "f": [0.0, -1.5, 7.0, 1e300, None, float("nan"), float("inf"), 0.49, -7.0, 2.5],
        "i": pa.array([0, -1, 7, 2**53, None, 3, -(2**53), 10**12, -7, 2], pa.int64()),
        "s": ["", "a", "ß,B", ",", None, " é ", "A,b,C", "a\nb", "\u0130", "x"],
    }
)


def _nested(leaf: Node, chosen: Sequence[Around]) -> Node:
    for around in chosen:
        leaf = around(leaf)
    return leaf


def test_random_calls_inside_calls_mean_what_the_reference_says(evaluate: Evaluate) -> None:
    draw = random.Random(17)
    nodes = [_nested(leaf, draw.choices(arounds, k=7)) for leaf, arounds in LEAVES for _ in range(10)]
    assert_same(evaluate, nodes, ROWS)


@pytest.mark.parametrize("dialect", [DUCKDB, SPARK], ids=lambda dialect: dialect.name)
def test_sql_grows_by_a_constant_with_each_call(dialect: Dialect) -> None:
    columns = {"i": canonical(Kind.INT), "f": canonical(Kind.FLOAT), "s": canonical(Kind.STRING)}
    writer = ExpressionWriter(columns, dialect)
    for leaf, arounds in LEAVES:
        for around in [*arounds, *(ROUNDED if arounds is NUMBERS else [])]:
            depths = (8, 16, 24)
            short, middle, long = (
                len(dialect.text(writer.value(_nested(leaf, [around] * n)).sql)) for n in depths
            )
            assert long - middle <= 1.5 * (middle - short) + 200, str(_nested(leaf, [around]))
