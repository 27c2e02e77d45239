"""Known strings in texts, against Python's own search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.engine.substrings import AT_BEGIN, AT_END, KnownSubstrings

pieces = st.text("aB\\.é", max_size=9).map(str.encode)
strings = st.lists(st.tuples(pieces.filter(bool), st.integers(0, 3)), max_size=40)


def occurs(string: bytes, where: int, text: bytes) -> bool:
    if where == AT_BEGIN | AT_END:
        return text == string
    if where:
        return text.startswith(string) if where == AT_BEGIN else text.endswith(string)
    return string in text


def pairs(known: list[tuple[bytes, int]], texts: list[bytes], before: bytes = b"") -> set[tuple[int, int]]:
    """The pairs of texts that are read behind other letters; none of them is there twice."""
    ends = np.cumsum([len(before), *map(len, texts)], dtype=np.int32)
    letters = np.frombuffer(before + b"".join(texts) + b"\0", np.uint8)
    of_texts, of_strings = KnownSubstrings(
        *([list(part) for part in zip(*known, strict=True)] or [[], []])
    ).occurrences(ends, letters)
    met = list(zip(of_texts.tolist(), of_strings.tolist(), strict=True))
    assert len(set(met)) == len(met)
    return set(met)


@given(strings, st.lists(st.text("aB\\.é", max_size=30).map(str.encode), max_size=20), pieces)
def test_known_strings_are_where_python_sees_them(
    known: list[tuple[bytes, int]], texts: list[bytes], before: bytes
) -> None:
    assert pairs(known, texts, before) == {
        (place, number)
        for place, text in enumerate(texts)
        for number, (string, where) in enumerate(known)
        if occurs(string, where, text)
    }


def test_pairs_beyond_the_first_arrays_are_all_there() -> None:
    known = [(b"ab" * length, 0) for length in range(1, 60)]
    texts = [b"ab" * 60] * 100
    assert len(pairs(known, texts)) == 59 * 100


def test_an_empty_string_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        KnownSubstrings([b""], [0])
