"""The examples of the paper on chain-CEA and PART-BY, on its stream of tweets and replies."""

from __future__ import annotations

from estero.language.parse import parse_pattern
from estero.semantics import evaluate_pattern
from semantics.notation import stream

TWITTER = stream(
    "T R R R T R T R",
    id=[123, 155, 165, 223, 252, 352, 355, 411],
    user_id=[11, 48, 48, 48, 13, 13, 33, 79],
    tweet_id=[None, 123, 343, 123, None, 252, None, 123],
    text=["#vote", "#ihate", "#ihate", "#ihate", "#vote", "#ihate", "#ihate", "#stop"],
)
"""Figure 1."""


def matches(text: str) -> set[tuple[int, ...]]:
    """The marked events, counted from 1 as the paper does."""
    found = evaluate_pattern(parse_pattern(text), TWITTER)
    return {tuple(position + 1 for position in sorted(one.support)) for one in found}


def test_example_3_relates_a_reply_to_its_tweet() -> None:
    pairs = "(T AS X ; R AS Y) FILTER X[text = '#vote'] AND Y[text = '#ihate']"
    assert len(matches(pairs)) == 5
    assert matches(f"({pairs}) PARTITION BY [X.id, Y.tweet_id]") == {(1, 2), (1, 4), (5, 6)}


def test_example_4_nests_one_partition_in_another() -> None:
    filters = "FILTER X[text = '#vote'] AND Y[text = '#ihate'] AND Z[text = '#stop']"
    loose = matches(f"T AS X ; R+ AS Y ; R AS Z {filters}")
    assert {(1, 2, 4, 8), (1, 3, 4, 6, 8)} <= loose
    nested = matches(
        f"(T AS X ; (R+ PARTITION BY [user_id]) AS Y ; R AS Z {filters})"
        " PARTITION BY [X.id, Y.tweet_id, Z.tweet_id]"
    )
    assert nested == {(1, 2, 8), (1, 4, 8), (1, 2, 4, 8)}


def test_the_nested_partition_alone_wants_one_user() -> None:
    assert (2, 3, 4) in matches("R+ PARTITION BY [user_id]")
    assert not any({4, 6} <= set(each) for each in matches("R+ PARTITION BY [user_id]"))
