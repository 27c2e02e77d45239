"""Texts looked up among known ones, by the kernel and by a dictionary of Python."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.engine.masked_texts import MaskedTexts
from estero.engine.picked_texts import picked_texts
from estero.engine.texts import KnownTexts, _apart, _Key

TEXTS = st.lists(st.text(alphabet="ab\0é", max_size=5).map(str.encode), max_size=40)


@given(known=TEXTS.map(lambda texts: list(dict.fromkeys(texts))), texts=TEXTS, before=st.integers(0, 3))
def test_codes_are_places_of_known_texts(known: list[bytes], texts: list[bytes], before: int) -> None:
    ends = np.cumsum([before, *map(len, texts)]).astype(np.int32)
    letters = np.frombuffer(b"x" * before + b"".join(texts) + b"beyond", np.uint8)
    places = {text: place for place, text in enumerate(known)}
    codes = KnownTexts(known).codes(ends, letters)
    assert codes.tolist() == [places.get(text, len(known)) for text in texts]


@given(
    known=TEXTS.map(lambda texts: list(dict.fromkeys(texts))),
    texts=TEXTS,
    before=st.integers(0, 3),
    beyond=st.sampled_from([b"", b"beyond"]),
    data=st.data(),
)
def test_rows_are_chosen_by_the_bits_of_their_texts(
    known: list[bytes], texts: list[bytes], before: int, beyond: bytes, data: st.DataObject
) -> None:
    ends = np.cumsum([before, *map(len, texts)]).astype(np.int32)
    letters = np.frombuffer(b"x" * before + b"".join(texts) + beyond or b"\0", np.uint8)
    kept = data.draw(st.lists(st.integers(0, 3), min_size=len(known) + 1, max_size=len(known) + 1))
    before_them = np.array(
        data.draw(st.lists(st.integers(1, 3), min_size=len(texts), max_size=len(texts))), np.int64
    )
    masked = MaskedTexts(KnownTexts(known), known, np.array(kept, np.int64))
    bits = np.array(kept, np.int64)[KnownTexts(known).codes(ends, letters)]
    rows, chosen = masked.rows(ends, letters)
    assert (rows.tolist(), chosen.tolist()) == (np.flatnonzero(bits).tolist(), bits[bits != 0].tolist())
    some = np.arange(0, len(texts), 2)
    both = bits[some] & before_them[some]
    rows, chosen = masked.among(ends, letters, some.copy(), before_them[some])
    assert (rows.tolist(), chosen.tolist()) == (some[both != 0].tolist(), both[both != 0].tolist())


def test_short_texts_with_one_key_have_slots_of_their_own() -> None:
    known = [b"", b"\0", b"a", b"\0a", b"\0\0a", b"aaaaaaaa", b"\0aaaaaaa"]
    masked = MaskedTexts(KnownTexts(known), known, np.arange(1, len(known) + 2))
    texts = [*known, b"b"]
    ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    rows, bits = masked.rows(ends, np.frombuffer(b"".join(texts), np.uint8))
    assert (rows.tolist(), bits.tolist()) == (list(range(8)), list(range(1, 9)))


LONG = st.lists(st.text(alphabet="ab\0é", max_size=20).map(str.encode), min_size=1, max_size=20)


@given(texts=LONG, before=st.integers(0, 3), beyond=st.sampled_from([b"", b"beyond all"]), data=st.data())
def test_texts_are_picked_whole(texts: list[bytes], before: int, beyond: bytes, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=30))
    ends = np.cumsum([before, *map(len, texts)]).astype(np.int32)
    letters = np.frombuffer(b"x" * before + b"".join(texts) + beyond or b"\0", np.uint8)
    picked = picked_texts(ends, letters, np.array(rows, np.int64))
    assert picked is not None
    starts, bytes_of = picked[0].tolist(), picked[1].tobytes()
    assert [bytes_of[first:last] for first, last in pairwise(starts)] == [texts[row] for row in rows]


def test_texts_with_one_hash_are_told_apart() -> None:
    known = [bytes([97 + first, 98, 100 + second, 99]) for first in range(4) for second in range(4)]
    texts = [*known, *(text[:1] + b"z" + text[2:] for text in known)]
    codes = KnownTexts(known).codes(
        np.arange(0, 4 * len(texts) + 1, 4, dtype=np.int32), np.frombuffer(b"".join(texts), np.uint8)
    )
    assert codes.tolist() == [*range(16), *[16] * 16]


@pytest.mark.parametrize("place", range(16))
def test_texts_that_differ_in_one_byte_need_few_slots(place: int) -> None:
    known = [bytes(letter if there == place else 97 for there in range(16)) for letter in range(98, 118)]
    slots, _ = _apart(set(map(_Key.of, known)))
    assert slots <= 1024
    ends = np.arange(0, 16 * len(known) + 1, 16, dtype=np.int32)
    codes = KnownTexts(known).codes(ends, np.frombuffer(b"".join(known), np.uint8))
    assert codes.tolist() == list(range(20))
