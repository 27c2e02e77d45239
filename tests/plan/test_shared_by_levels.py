"""Which partial matches a key divides: those of which every step, by its own equalities, shares it."""

from __future__ import annotations

import pytest

import estero
from estero.plan.division import buckets_in_words, division_in_words, division_of_partials
from estero.plan.levels import PartialsPlan, partials_plan
from estero.plan.shared_by_levels import with_shared_key
from laws.test_plans_agree import layout_of


def plan_of(pattern: str, strategy: str = "") -> PartialsPlan:
    tree = estero.query(f"SELECT {strategy} * WHERE {pattern} WITHIN 5 [time]").tree
    return with_shared_key(partials_plan(tree, layout_of(), as_written=True), layout_of())


@pytest.mark.parametrize(
    ("pattern", "shared"),
    [
        ("A ; B ; C FILTER A.k = B.k AND B.k = C.k", {"A": "k", "B": "k", "C": "k"}),
        ("A ; B ; C FILTER A.k = B.k AND A.k = C.n", {"A": "k", "B": "k", "C": "n"}),
        ("A ; B ; C FILTER A.n = B.n AND A.k = B.k AND B.k = C.k", {"A": "k", "B": "k", "C": "k"}),
        ("A ; B+ ; C FILTER A.s = B.s AND B.s = C.s", {"A": "s", "B": "s", "C": "s"}),
        ("(A ; B FILTER A.k = B.k) ; C FILTER B.k = C.n", {"A": "k", "B": "k", "C": "n"}),
        ("A AS a ; A AS b FILTER a.k = b.k", {"A": "k"}),
    ],
)
def test_all_events_of_each_step_share_it(pattern: str, shared: dict[str, str]) -> None:
    plan = plan_of(pattern)
    assert plan.shared == shared
    assert division_of_partials(plan).by_key
    names = " or ".join(dict.fromkeys(shared.values()))
    said = f"some of the values of {names}, which all events of a partial match share"
    assert said in division_in_words(plan.whole, partials=plan)
    assert said in buckets_in_words(plan.whole, partials=plan)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (
            "A ; B ; C FILTER A.k = C.k AND B.k = C.k",
            "the events of the first 2 steps share no key: no equality",
        ),
        ("A+ ; B FILTER A.k = B.k", "the events of the first step share no key"),
        ("A ; B ; C FILTER A.k = B.k AND B.n = C.n", "the events of the first 3 steps share no key"),
        ("A AS a ; A AS b FILTER a.k = b.n", "the events of the first 2 steps share no key"),
        ("A : B FILTER A.k = B.k", "directly"),
        ("A ;[NOT C] B FILTER A.k = B.k", "forbids an event"),
        ("NOT(C) FOR 1 [time] ; A AS u ; B AS v FILTER u.k = v.k", "concerns events of all keys"),
    ],
)
def test_else_one_task_has_them_and_it_is_said_why(pattern: str, why: str) -> None:
    plan = plan_of(pattern)
    assert not division_of_partials(plan).by_key
    said = division_in_words(plan.whole, partials=plan)
    assert "one ordered task" in said
    assert why in said
    assert "one ordered task" in buckets_in_words(plan.whole, partials=plan)


@pytest.mark.parametrize("strategy", ["STRICT", "LONGEST DISJOINT"])
def test_what_looks_at_other_events_is_not_divided(strategy: str) -> None:
    assert not division_of_partials(plan_of("A ; B FILTER A.k = B.k", strategy)).by_key


def test_keys_that_are_written_go_before() -> None:
    plan = plan_of("A ; B FILTER A.n = B.n PARTITION BY [k]")
    assert division_of_partials(plan).by_key
    assert not plan.shared
    assert "each task processes some of the partition keys" in division_in_words(plan.whole, partials=plan)
