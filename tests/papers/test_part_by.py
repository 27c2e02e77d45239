"""The examples of the paper on chain-CEA and PART-BY, on its stream of tweets and replies."""

from __future__ import annotations

from itertools import combinations

import pyarrow as pa

import estero
from papers.conftest import Evaluate
from reference.notation import stream

TWITTER = stream(
    "T R R R T R T R",
    id=[123, 155, 165, 223, 252, 352, 355, 411],
    user_id=[11, 48, 48, 48, 13, 13, 33, 79],
    tweet_id=[None, 123, 343, 123, None, 252, None, 123],
    post=["#vote", None, None, None, "#vote", None, "#ihate", None],
    reply=[None, "#ihate", "#ihate", "#ihate", None, "#ihate", None, "#stop"],
)
"""Figure 1."""

PAIRS = "(T AS X ; R AS Y) FILTER X[post = '#vote'] AND Y[reply = '#ihate']"
"""φ1 of Example 1."""

FILTERS = "FILTER X[post = '#vote'] AND Y[reply = '#ihate'] AND Z[reply = '#stop']"
DEBATES = f"T AS X ; R+ AS Y ; R AS Z {FILTERS}"
"""φ2 of Example 2."""


def matches(evaluate: Evaluate, text: str) -> set[tuple[int, ...]]:
    """The marked events, counted from 1 as the paper does."""
    return {tuple(position + 1 for position in sorted(one.support)) for one in evaluate(text, TWITTER)}


def test_example_1_pairs_a_tweet_with_any_later_reply(evaluate: Evaluate) -> None:
    assert matches(evaluate, PAIRS) == {(1, 2), (1, 3), (1, 4), (1, 6), (5, 6)}


def test_example_1_marks_a_tweet_and_a_reply(evaluate: Evaluate) -> None:
    found = {str(one) for one in evaluate(PAIRS, TWITTER)}
    assert "[0, 1] {R: [1], T: [0], X: [0], Y: [1]}" in found


def test_example_2_finds_every_choice_of_replies(evaluate: Evaluate) -> None:
    replies = (2, 3, 4, 6)
    choices = [chosen for size in range(1, 5) for chosen in combinations(replies, size)]
    expected = {(1, *chosen, 8) for chosen in choices} | {(5, 6, 8)}
    found = matches(evaluate, DEBATES)
    assert {(1, 2, 4, 8), (1, 3, 4, 6, 8)} <= found
    assert found == expected


def test_example_3_relates_a_reply_to_its_tweet(evaluate: Evaluate) -> None:
    related = f"({PAIRS}) PARTITION BY [X.id, Y.tweet_id]"
    assert matches(evaluate, related) == {(1, 2), (1, 4), (5, 6)}


def test_example_4_nests_one_partition_in_another(evaluate: Evaluate) -> None:
    nested = (
        f"(T AS X ; (R+ PARTITION BY [user_id]) AS Y ; R AS Z {FILTERS})"
        " PARTITION BY [X.id, Y.tweet_id, Z.tweet_id]"
    )
    found = matches(evaluate, nested)
    assert (1, 2, 4, 8) in found
    assert (1, 3, 4, 6, 8) not in found
    assert found == {(1, 2, 8), (1, 4, 8), (1, 2, 4, 8)}


def test_the_nested_partition_alone_wants_one_user(evaluate: Evaluate) -> None:
    found = matches(evaluate, "R+ PARTITION BY [user_id]")
    one_user = [chosen for size in (1, 2, 3) for chosen in combinations((2, 3, 4), size)]
    assert found == {*one_user, (6,), (8,)}


PROPOSITION_9 = "(((R ; S) PARTITION BY [a]) ; T) OR (R ; ((S ; T) PARTITION BY [a]))"
OF_PROPOSITION_9 = [
    ("q0", "R", "R", "q1"),
    ("q1", "S", "S", "q2", "before.a = a"),
    ("q2", "T", "T", "q5"),
    ("q0", "R", "R", "q3"),
    ("q3", "S", "S", "q4"),
    ("q4", "T", "T", "q5", "before.a = a"),
]


def test_the_automaton_of_proposition_9_is_made_deterministic_by_disequalities() -> None:
    """Without `!=` there is no deterministic automaton; with it, as in Theorem 8, there is."""
    events = pa.table({"type": list("RSTTST"), "a": [1, 1, 2, 1, 2, 2]})
    given = estero.automaton(OF_PROPOSITION_9, initial="q0", final="q5")
    written = estero.query(f"SELECT * WHERE {PROPOSITION_9}")
    found, right = (
        sorted(
            tuple(sorted(at for places in each.positions.values() for at in places))
            for each in query.run(events, type="type")
        )
        for query in (given, written)
    )
    assert found == right == [(0, 1, 2), (0, 1, 3), (0, 1, 5), (0, 4, 5)]
    lines = str(given.automaton(events, type="type"))
    assert "a != a" in lines
    assert "output-linear delay" in str(given.explain(events, type="type"))


def test_proposition_5_a_hierarchical_query_is_a_pattern_of_all_and_part_by() -> None:
    """The pattern of its proof, over the q-tree in which y stands below x."""
    events = pa.table(
        {"type": list("TSRSRTSR"), "x": [1, 1, 1, 1, 2, 2, 2, 1], "y": [0, 5, 5, 6, 7, 0, 7, 6]}
    )
    joined = estero.conjunctive("Q(x, y) <- T(x: x), S(x: x, y: y), R(x: x, y: y)")
    pattern = "(T ALL ((S ALL R) PARTITION BY [S.y, R.y])) PARTITION BY [T.x, S.x, R.x]"
    written = estero.query(f"SELECT * WHERE {pattern}")
    found, right = (
        {tuple(sorted(each.positions.items())) for each in query.run(events, type="type")}
        for query in (written, joined)
    )
    assert found == right
    assert len(found) == 3
