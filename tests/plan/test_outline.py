"""Queries of one outline have the plans that they have when each is planned itself."""

from __future__ import annotations

from typing import Any

import pytest

from estero.language.syntax.parser import parse_query
from estero.language.tree.schema import Kind, Schema
from estero.plan import outline, rules
from estero.plan.automaton import AutomatonPlan
from estero.plan.plan import Layout

LAYOUT = Layout(Schema(shared={"name": Kind.STRING, "v": Kind.INT}), type_column="type")
QUERIES = [
    "SELECT * WHERE A FILTER A[name = 'a' AND v > 1]",
    "SELECT * WHERE A FILTER A[name = 'b' OR v > 2]",
    "SELECT * WHERE A AS a ; B AS b FILTER a[name = 'a'] AND b[name = 'b'] WITHIN 5 EVENTS",
    "SELECT * WHERE A AS a ; B AS b FILTER a[name = 'x'] AND b[name = 'y'] WITHIN 5 EVENTS",
    "SELECT * WHERE A AS a ; B AS b FILTER a[name = 'a'] AND b[name = 'a' AND v = 1] WITHIN 5 EVENTS",
    "SELECT * WHERE A AS a : A AS b FILTER A[v = 1] AND a[v = 1] AND b[v = 2] LIMIT 3",
    "SELECT MAX * WHERE A AS a ; A AS b FILTER a[v = 1 AND v = 1] AND b[v = 1]",
    "SELECT NEXT a[v] WHERE A AS a ; B AS b FILTER a[v = 1] PARTITION BY [name]",
    "SELECT * WHERE A AS a ; B AS b FILTER a.v = b.v AND a[v > 1]",
    "SELECT * WHERE A ; A FILTER A[v = 1]",
    "SELECT * WHERE A AS a ; B ; A AS b FILTER a[v = 1] AND b[v = 2] WITHIN 5 EVENTS",
    "SELECT * WHERE A AS a ; B ; A AS b FILTER a[name = 'a'] AND b[v = 1] WITHIN 5 EVENTS",
    "SELECT * WHERE (A AS a ; A AS b) AS c : A AS d FILTER a[v = 1] AND b[v = 2] AND c[v > 0]",
]


@pytest.mark.parametrize("text", QUERIES)
def test_the_plan_is_that_of_the_query_itself(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = parse_query(text)
    for other in QUERIES:
        rules.plan_of(parse_query(other), LAYOUT)
    shared = rules.plan_of(tree, LAYOUT)
    monkeypatch.setattr(rules, "planned_once", lambda *_: None)
    alone = rules.plan_of(tree, LAYOUT)
    assert shared == alone
    assert (shared.text, shared.refused, shared.served_by) == (alone.text, alone.refused, alone.served_by)
    if isinstance(alone, AutomatonPlan):
        assert isinstance(shared, AutomatonPlan)
        assert shared.automaton.origins == alone.automaton.origins


@pytest.mark.parametrize("first", [2, 10])
def test_an_outline_is_planned_once(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[object] = []
    first_plan = rules._first_plan

    def counted(*given: Any) -> Any:
        planned.append(given)
        return first_plan(*given)

    monkeypatch.setattr(rules, "_first_plan", counted)
    monkeypatch.setattr(outline, "_LAST", [outline._Last()])
    for text in QUERIES[first : first + 2]:
        rules.plan_of(parse_query(text), LAYOUT)
    assert len(planned) == 1
