"""Sharing the enumeration among any number of processes never changes the answer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.query import QueryTree
from estero.reference.queries import Event
from laws.test_plans_agree import served
from recognize.test_joining import table_of
from strategies.conjunctive import hierarchical_queries
from strategies.conjunctive import streams as conjunctive_streams
from strategies.full import full_queries
from strategies.joined import joined_queries
from strategies.patterns import queries, streams

SHARES = st.integers(2, 7)


def rows_of(answer: Answer) -> list[str]:
    """Rows in their order, as text, because NaN is not equal to itself."""
    return [repr(row) for row in answer.to_arrow().to_pylist()]


def check(answer: Answer, of: int, *, even: bool) -> None:
    """Shares are parts of the answer, in its order, each complex event in one of them."""
    whole = rows_of(answer)
    shares = [answer.share(number, of) for number in range(of)]
    found = [rows_of(share) for share in shares]
    assert sorted(row for rows in found for row in rows) == sorted(whole)
    assert not even or max(map(len, found)) - min(map(len, found)) <= 1
    largest = max(found, key=len)
    share = shares[found.index(largest)]
    assert [row for row in whole if row in largest] == largest
    assert share.count() == len(largest)
    assert rows_of(share.sample(2, seed=1)) == rows_of(share.sample(2, seed=1))
    for index in {-1, len(largest) // 2, -len(largest)} if largest else ():
        assert repr(share[index]) == repr(list(share)[index])


@settings(max_examples=25)
@given(st.one_of(queries(), full_queries(), full_queries()), streams(max_size=9), SHARES)
def test_shares_are_the_answer(tree: QueryTree, events: list[Event], of: int) -> None:
    *_, (_, run) = served(tree, events)
    check(Answer(run), of, even=not run.plan.sieved)


@settings(max_examples=8)
@given(st.one_of(joined_queries(), full_queries()), streams(max_size=9), SHARES)
def test_shares_are_the_answer_by_every_plan(tree: QueryTree, events: list[Event], of: int) -> None:
    for _, run in served(tree, events):
        check(Answer(run), of, even=not run.plan.sieved)


@settings(max_examples=15)
@given(hierarchical_queries(), conjunctive_streams(most=9), SHARES, st.sampled_from(["", " LIMIT 2"]))
def test_shares_of_conjunctive_queries(
    tree: ConjunctiveTree, events: list[Event], of: int, limit: str
) -> None:
    query = estero.conjunctive(f"{tree}{limit}")
    check(query.run(table_of(events), type="type", types=("T", "S", "R")), of, even=True)
