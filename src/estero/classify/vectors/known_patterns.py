"""The LIKE patterns, out of many, that each of some strings matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.classify.arrays import array_of, known_in
from estero.classify.rows.texts import like_test
from estero.classify.vectors.conditions import mask_of
from estero.classify.vectors.text_columns import ends_and_letters
from estero.classify.vectors.text_patterns import Pattern, needle_of, regex_of
from estero.engine.substrings import KnownSubstrings
from estero.language.tree.literals import in_lower_case

_NO_PLACES: Final = np.empty(0, np.int64)
_FOLDED: Final = np.array([letter + 32 if 65 <= letter <= 90 else letter for letter in range(256)], np.uint8)
"""The bytes of ASCII in lower case."""
_MANY: Final = 16
"""The number of strings from which compiling a pattern for RE2 (30 µs) is cheaper than testing them here."""
_MOST_ANSWERS: Final = 1 << 16
"""The number of remembered pairs of a pattern and a string; larger batches are not remembered."""
Places = NDArray[np.int64]


class KnownPatterns:
    """Patterns on one column: their longest parts are searched together, and the rest where these occur."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns
        self._tests: dict[int, Callable[[str], bool]] = {}
        self._answers: dict[tuple[int, str], bool] = {}
        by_needle: dict[tuple[str, int], list[int]] = {}
        certain, self._without_needle = np.zeros(len(patterns), np.bool_), []
        for place, needle in enumerate(map(needle_of, patterns)):
            if needle is None:
                self._without_needle.append(place)
            else:
                by_needle.setdefault((needle.text, needle.where), []).append(place)
                certain[place] = needle.certain
        self._certain = certain
        self._known = KnownSubstrings(
            [text.encode() for text, _ in by_needle], [where for _, where in by_needle]
        )
        self._of_needles = np.array([place for places in by_needle.values() for place in places], np.int64)
        self._firsts = np.cumsum([0, *map(len, by_needle.values())], dtype=np.int64)

    def pairs(self, texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The pairs of a string and a pattern that it matches, int64[pairs] both; NULL matches none."""
        lower = _in_lower_case(texts)
        values, needles = self._known.occurrences(*ends_and_letters(lower))
        begin, end = self._firsts[needles], self._firsts[needles + 1]
        sizes = end - begin
        before = sizes.cumsum() - sizes
        within = np.arange(sizes.sum()) - np.repeat(before, sizes)
        values, patterns = np.repeat(values, sizes), self._of_needles[np.repeat(begin, sizes) + within]
        if texts.null_count:
            not_null = known_in(texts)[values]
            values, patterns = values[not_null], patterns[not_null]
        doubtful = np.flatnonzero(~self._certain[patterns])
        kept = np.ones(values.size, np.bool_)
        kept[doubtful] = self._are_like(texts, lower, values[doubtful], patterns[doubtful])
        parts = [(values[kept], patterns[kept]), *self._asked_one_by_one(texts)]
        of_values, of_patterns = zip(*parts, strict=True)
        return np.concatenate(of_values), np.concatenate(of_patterns)

    def _are_like(
        self, texts: pa.Array, lower: pa.Array, values: Places, patterns: Places
    ) -> NDArray[np.bool_]:
        """Whether each of these strings, lower-cased in `lower`, matches the pattern paired with it."""
        like = np.zeros(values.size, np.bool_)
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.clear()
        order = np.argsort(patterns, kind="stable")
        begins = np.flatnonzero(np.diff(patterns[order], prepend=-1))
        for asked in np.split(order, begins[1:]) if values.size else ():
            place = int(patterns[asked[0]])
            pattern = self._patterns[place]
            strings = (lower if pattern.ignoring_case else texts).take(array_of(values[asked]))
            if asked.size < _MANY:
                like[asked] = [self._is_like(place, text) for text in strings.to_pylist()]
            else:
                like[asked] = mask_of(pc.match_substring_regex(strings, regex_of(pattern)))
        return like

    def _is_like(self, place: int, text: str) -> bool:
        """Whether a string, lower-cased where case is ignored, matches the pattern with an index."""
        is_like = self._answers.get((place, text))
        if is_like is None:
            if place not in self._tests:
                self._tests[place] = like_test(self._patterns[place].pattern)
            is_like = self._answers[place, text] = self._tests[place](text)
        return is_like

    def _asked_one_by_one(self, texts: pa.Array) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        parts = []
        for place in self._without_needle:
            rows = np.flatnonzero(self._patterns[place].of_texts(texts))
            parts.append((rows, np.full(rows.size, place)))
        return parts


def _in_lower_case(texts: pa.Array) -> pa.Array:
    """The strings in lower case, letter by letter; values for NULL are undefined."""
    ends, letters = ends_and_letters(texts)
    own = letters[ends[0] : ends[-1]]
    if own.size and own.max() > 127:
        starts = np.maximum.reduceat(np.append(own, 0), np.minimum(ends[:-1] - ends[0], own.size))
        foreign = (starts > 127) & (ends[1:] > ends[:-1])
        lower = [in_lower_case(text or "") for text in texts.filter(pa.array(foreign)).to_pylist()]
        texts = pc.replace_with_mask(texts, pa.array(foreign), pa.array(lower, texts.type))
        ends, letters = ends_and_letters(texts)
    folded = pa.py_buffer(_FOLDED[letters])
    return pa.Array.from_buffers(pa.string(), ends.size - 1, [None, pa.py_buffer(ends), folded])
