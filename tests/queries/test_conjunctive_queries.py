"""Conjunctive queries as users hold them."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import estero
from estero.automata.joins.q_tree import QTreeOfAtoms, q_tree
from estero.language.syntax.parser import parse_conjunctive
from estero.plan.plan import Layout
from estero.plots.automaton import drawn_alone
from notebooks import shown_by

TEXT = "Q(x, y) <- T(x), S(x, y), R(x, y)"
STREAM = pa.table(
    {"type": list("STRSTRST"), "x": [2, 2, 1, 2, 1, 2, 4, 1], "y": [11, None, 10, 11, None, 11, 13, None]}
)
"""The stream of the PCEA paper."""


def query() -> estero.Query:
    return estero.conjunctive(TEXT)


def test_it_runs_as_other_queries_do() -> None:
    answer = query().run(STREAM, type="type")
    assert {(each.start, each.end) for each in answer} == {(0, 5), (1, 5)}
    assert answer.to_arrow().column_names == ["start", "end", "T", "S", "R"]
    assert [event["y"] for event in answer[0]["S"]] == [11]


def test_it_prints_and_compares_as_its_text() -> None:
    assert str(estero.conjunctive("Q(x,y)<-T(x),S(x,y),R(x,y)")) == TEXT
    assert query() == estero.conjunctive(parse_conjunctive(TEXT))
    assert len({query(), estero.conjunctive(TEXT)}) == 1
    assert query() != estero.conjunctive("Q(x) <- T(x)")
    assert repr(query()) == f"estero.conjunctive('{TEXT}')"
    assert query().run(STREAM, type="type")._run.query == TEXT


def test_an_error_shows_the_place() -> None:
    with pytest.raises(estero.QueryError) as caught:
        estero.conjunctive("Q(x, y) <- A(x), B(x, y), C(y)")
    assert str(caught.value) == (
        "this query is not hierarchical: B(x, y) has both x and y, A(x) has x without y, and C(y) has"
        " y without x\n"
        "  1 | Q(x, y) <- A(x), B(x, y), C(y)\n"
        "    |                  ^^^^^^^\n"
        "    expected: of two variables that share an atom, one is in every atom of the other\n"
        "    hint: join x or y elsewhere; as a pattern, any join is filtered without a guarantee: "
        "(A ALL B ALL C) FILTER …"
    )


def test_what_does_not_fit_the_events_is_found_before_they_are_read() -> None:
    wrong = estero.conjunctive("Q(x) <- T(x), U(k: x)")
    messages = [error.message for error in wrong.check(STREAM, type="type", types=["T"])]
    assert messages == ["there are no events of type U"]
    with pytest.raises(estero.QueryError, match="there are no events of type U"):
        wrong.run(STREAM, type="type", types=["T"])
    assert [error.message for error in wrong.check(STREAM, type="type", types=["U"])] == [
        "U has no attribute k"
    ]
    assert query().check(STREAM, type="type") == []


def test_it_is_explained() -> None:
    explained = str(query().explain(STREAM, type="type"))
    assert explained.startswith(f"Query\n  {TEXT}\n\nPlan\n  PCEA + heap: the query is hierarchical")
    for part in (
        "guarantee: O(log n) per event with n events read, output-linear delay between complex events",
        "join keys: computed by the classification, stored as they are",
        "on Spark: each task processes some of the values of x, which all events of an answer share",
        "  x\n  ├─ T(x)\n  └─ y\n     ├─ S(x, y)\n     └─ R(x, y)",
        "  T & R → x  on S: mark S, joining T by x = x; R by (x, y) = (x, y)",
        "Classification (DuckDB)",
    ):
        assert part in explained


def test_it_is_explained_without_events() -> None:
    explained = estero.conjunctive(f"{TEXT} WITHIN 10 MINUTES").explain()
    assert "window: at most 10 MINUTES from start to end, which bounds memory use" in str(explained)
    assert "O(log w) per event with w events in the window" in str(explained)
    assert explained.svg().startswith("<?xml")
    (picture,) = shown_by(explained).all("svg", "automaton")
    assert picture.texts("text") == ["T(x)", "S(x, y)", "R(x, y)", "y", "x"]
    assert picture.attributes["aria-label"] == "Below y: S(x, y); R(x, y). Below x: T(x); y."


def test_a_q_tree_has_a_picture_of_the_same_bytes_each_time() -> None:
    tree = q_tree([["x", "y"], ["x"]])
    pictures = {drawn_alone(QTreeOfAtoms(tree, ["S(x, y)", "T(x)"])) for _ in range(2)}
    assert len(pictures) == 1


def test_a_plan_travels() -> None:
    plan = query().plan(_layout())
    assert pickle.loads(pickle.dumps(plan)) == plan


def _layout() -> Layout:
    from estero.language.tree.schema import Kind, Schema

    attributes = {"type": Kind.STRING, "x": Kind.INT, "y": Kind.INT}
    return Layout(Schema(shared=attributes), "type")
