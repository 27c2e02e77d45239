"""Patterns of LIKE that are asked together, against the reference of each alone."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from estero.classify.vectors.known_patterns import KnownPatterns
from estero.classify.vectors.text_patterns import Pattern
from estero.language.tree.expressions import Attribute, Ilike, Like
from estero.reference.values import Event, evaluate_expression

LETTERS = "aAbSσςİÉé1\\%_"
texts = st.lists(st.none() | st.text(LETTERS, max_size=8), max_size=12)
likes = st.lists(st.tuples(st.text(LETTERS + "%%%", max_size=6), st.booleans()), max_size=12)


@given(likes, texts, st.sampled_from([pa.string(), pa.large_string()]), st.integers(0, 3))
def test_strings_are_like_what_the_reference_says(
    asked: list[tuple[str, bool]], strings: list[str | None], kind: pa.DataType, begin: int
) -> None:
    nodes = [
        (Ilike if ignoring_case else Like)(Attribute("s"), pattern)
        for pattern, ignoring_case in asked
        if (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 0
    ]
    patterns = [
        Pattern("s", node.as_like.pattern, ignoring_case=True)
        if isinstance(node, Ilike)
        else Pattern("s", node.pattern)
        for node in nodes
    ]
    values = pa.array(strings, kind)[begin:]
    of_values, of_patterns = KnownPatterns(patterns).pairs(values)
    pairs = list(zip(of_values.tolist(), of_patterns.tolist(), strict=True))
    assert sorted(pairs) == [
        (place, number)
        for place, text in enumerate(values.to_pylist())
        for number, node in enumerate(nodes)
        if evaluate_expression(node, Event("", {"s": text}))
    ]
