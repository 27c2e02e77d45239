"""Shares of an enumeration: each process finds its own, all together find everything, and once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from string import ascii_uppercase
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import chain_steps, pcea_runs, streams
from engine.chain_steps import chains, iteration
from engine.pcea_runs import pceas, star
from estero.engine.recognizer import Recognizer
from estero.engine.runs.cea_runs import CeaRuns
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.walk.enumeration import Enumeration
from estero.engine.walk.roots import Roots
from estero.engine.walk.share import WHOLE, Dealer, Part, Share

AnyRecognizer = Recognizer[CeaRuns] | Recognizer[PceaRuns] | Recognizer[ChainRuns]
Found = tuple[int, int, tuple[tuple[int, int], ...]]

PATTERNS = ("A ; B", "A+ ; B", "(A ; B)+", "A ; B ; C", "A+ ; B+ ; C", "A OR (A ; B+)")
WINDOWS = st.sampled_from([None, 2, 4, 7])
SHARES = st.integers(1, 7)


def enumerated(found: Enumeration[Any]) -> Iterator[Found]:
    """(start, end, marked events) of each complex event."""
    for matches in found:
        for number, (low, high) in enumerate(pairwise(matches.offsets.tolist())):
            items = zip(matches.event[low:high].tolist(), matches.marks[low:high].tolist(), strict=True)
            yield int(matches.start[number]), int(matches.end[number]), tuple(items)


def everything(recognizer: AnyRecognizer, roots: Roots, limit: int | None = None) -> list[Found]:
    return list(enumerated(recognizer.matches(roots, limit)))


def parts_of(recognizer: AnyRecognizer, roots: Roots, of: int, limit: int | None = None) -> list[Part]:
    counts = recognizer.counts(roots, limit)
    return [Dealer(Share(number, of)).deal(roots.event, counts, limit) for number in range(of)]


def is_shared(recognizer: AnyRecognizer, roots: Roots, of: int, limit: int | None = None) -> bool:
    """Whether the shares together are what is enumerated at once; all are as large as they say."""
    parts = parts_of(recognizer, roots, of, limit)
    shares = [list(enumerated(recognizer.matches(roots, part=part, first_batch=1))) for part in parts]
    sizes = [part.total for part in parts]
    assert [len(share) for share in shares] == sizes
    assert max(sizes) - min(sizes) <= 1
    together = [each for share in shares for each in share]
    return sorted(together) == sorted(everything(recognizer, roots, limit))


def is_seekable(recognizer: AnyRecognizer, roots: Roots) -> bool:
    """Whether every suffix of every root can be had alone, by kernels and by numbers that pass a word."""
    for place, count in enumerate(recognizer.counts(roots)):
        expected = everything(recognizer, roots.part(place, place + 1))
        for first in range(count):
            for beyond in (False, True):
                part = Part(np.array([place]), np.array([first]), np.array([count - first]))
                found = recognizer.matches(roots, part=part)
                if beyond:
                    found._asked.skip[:] = -1
                if list(enumerated(found)) != expected[first:]:
                    return False
    return True


# ---------------------------------------------------------------------------- every kind of compact set


@given(st.sampled_from(PATTERNS), st.text("ABC", max_size=9), WINDOWS, SHARES)
def test_shares_of_paths(pattern: str, letters: str, window: int | None, of: int) -> None:
    recognizer, bits = streams.recognizer_of(pattern, window=window)
    for roots in recognizer.push(streams.batch_of(letters, bits)):
        assert is_shared(recognizer, roots, of)
        assert is_shared(recognizer, roots, of, limit=3)
        assert is_seekable(recognizer, roots)


@given(pceas(), pcea_runs.streams(), WINDOWS, SHARES)
def test_shares_of_products(
    pcea: pcea_runs.Pcea, events: list[pcea_runs.Event], window: int | None, of: int
) -> None:
    recognizer = Recognizer(PceaRuns(pcea.tables, window, capacity=4))
    for roots in recognizer.push(pcea_runs.batch_of(events)):
        assert is_shared(recognizer, roots, of)
        assert is_shared(recognizer, roots, of, limit=3)
        assert is_seekable(recognizer, roots)


@given(chains(), chain_steps.streams(7), SHARES)
def test_shares_of_run_nodes(chain: chain_steps.Chain, events: list[chain_steps.Event], of: int) -> None:
    recognizer = Recognizer(ChainRuns(chain.tables, capacity=4))
    for roots in recognizer.push(chain_steps.batch_of(events)):
        assert is_shared(recognizer, roots, of)
        assert is_shared(recognizer, roots, of, limit=3)
        assert is_seekable(recognizer, roots)


# ----------------------------------------------------------------------------------------- huge answers


def of_paths(number: int) -> tuple[AnyRecognizer, Iterator[Roots]]:
    recognizer, bits = streams.recognizer_of("A+ ; B")
    return recognizer, recognizer.push(streams.batch_of("A" * number + "B", bits))


def of_products(number: int) -> tuple[AnyRecognizer, Iterator[Roots]]:
    recognizer = Recognizer(PceaRuns(pcea_runs.iteration().tables))
    return recognizer, recognizer.push(pcea_runs.batch_of(pcea_runs.events_of("A" * number)))


def of_wide_products(number: int) -> tuple[AnyRecognizer, Iterator[Roots]]:
    """One event of each of 20 types, in any order; half of those that there are have left the window."""
    letters = ascii_uppercase[:20]
    events = pcea_runs.events_of("".join(letter * number for letter in letters[:-1] * 2) + letters[-1])
    recognizer = Recognizer(PceaRuns(star(20).tables, window=19 * number))
    return recognizer, recognizer.push(pcea_runs.batch_of(events))


def of_run_nodes(number: int) -> tuple[AnyRecognizer, Iterator[Roots]]:
    recognizer = Recognizer(ChainRuns(iteration([(1, 1)]).tables))
    events = chain_steps.events_of("A" * number, list(range(number)))
    return recognizer, recognizer.push(chain_steps.batch_of(events))


HUGE = {
    "paths": (of_paths, 300, 2**300 - 1),
    "products": (of_products, 110, 2**109 - 1),
    "wide products": (of_wide_products, 40, 40**19),
    "run nodes": (of_run_nodes, 110, 2**109 - 1),
}


@pytest.mark.parametrize("kind", HUGE)
def test_shares_of_more_than_2_to_the_100(kind: str) -> None:
    of = 3
    roots_of, number, count = HUGE[kind]
    recognizer, found = roots_of(number)
    *_, roots = found
    last = roots.part(roots.root.size - 1, roots.root.size)
    assert recognizer.counts(last) == [count]
    parts = parts_of(recognizer, last, of)
    assert sum(part.total for part in parts) == count
    assert max(part.total for part in parts) - min(part.total for part in parts) <= 1
    for part in parts:
        first, after = int(part.first[0]), int(part.first[0]) + part.total
        begun = islice(enumerated(recognizer.matches(last, part=part)), 1_000)
        assert is_from(first, list(begun), recognizer, last)
        ended = part._replace(first=np.array([after - 1_000], object), size=np.array([1_000], object))
        rest = enumerated(recognizer.matches(last, part=ended))
        assert is_from(after - 1_000, list(rest), recognizer, last)


def is_from(first: int, found: list[Found], recognizer: AnyRecognizer, roots: Roots) -> bool:
    """Whether these are 1,000 different complex events of one root, from number `first` on."""
    assert len(set(found)) == 1_000
    for number in (0, 1, 500, 999):
        match = recognizer.match_at(roots, 0, first + number)
        items = tuple(zip(match.event.tolist(), match.marks.tolist(), strict=True))
        if found[number] != (match.start[0], match.end[0], items):
            return False
    return True


def test_the_first_of_a_huge_end_are_shared_where_that_is_the_limit() -> None:
    for roots_of, number, _ in HUGE.values():
        recognizer, found = roots_of(number)
        *_, roots = found
        assert is_shared(recognizer, roots.part(roots.root.size - 1, roots.root.size), 3, limit=1_001)


# ------------------------------------------------------------------------------------------------ dealing


def test_what_has_left_the_window_is_not_shared() -> None:
    recognizer, bits = streams.recognizer_of("A+ ; B", window=10)
    (roots,) = recognizer.push(streams.batch_of("A" * 1_000 + "B", bits))
    shares = [
        list(enumerated(recognizer.matches(roots, part=part))) for part in parts_of(recognizer, roots, 4)
    ]
    assert [len(share) for share in shares] == [256, 256, 256, 255]
    assert min(start for share in shares for start, _, _ in share) == 990


def is_counted_in_any_order(recognizer: AnyRecognizer, roots: Roots) -> bool:
    """Whether counting in one window leaves what is counted and sought in the others as it is."""
    counts = recognizer.counts(roots)
    for place in reversed(range(roots.root.size)):
        root, half = roots.part(place, place + 1), counts[place] // 2
        part = Part(np.array([0]), np.array([half]), np.array([counts[place] - half]))
        if list(enumerated(recognizer.matches(root, part=part))) != everything(recognizer, root)[half:]:
            return False
    return [recognizer.counts(roots.part(place, place + 1))[0] for place in range(len(counts))] == counts


def test_windows_are_counted_in_any_order() -> None:
    letters = "AABABBAAABABAABB" * 3
    of_paths, bits = streams.recognizer_of("A+ ; B", window=9)
    of_products = Recognizer(PceaRuns(pcea_runs.iteration().tables, 9))
    for roots in of_paths.push(streams.batch_of(letters, bits)):
        assert is_counted_in_any_order(of_paths, roots)
    for roots in of_products.push(pcea_runs.batch_of(pcea_runs.events_of("A" * len(letters)))):
        assert is_counted_in_any_order(of_products, roots)


def ranges(part: Part) -> list[tuple[int, int, int]]:
    return list(zip(part.place.tolist(), part.first.tolist(), part.size.tolist(), strict=True))


def test_what_does_not_divide_goes_round() -> None:
    dealers = [Dealer(Share(number, 3)) for number in range(3)]
    parts = [dealer.deal(np.arange(4), [1, 2, 1, 10]) for dealer in dealers]
    assert [ranges(part) for part in parts] == [
        [(0, 0, 1), (2, 0, 1), (3, 7, 3)],
        [(1, 0, 1), (3, 0, 4)],
        [(1, 1, 1), (3, 4, 3)],
    ]
    parts = [dealer.deal(np.arange(2), [1, 2**70]) for dealer in dealers]
    third = 2**70 // 3
    assert [ranges(part) for part in parts] == [
        [(1, 0, third + 1)],
        [(1, third + 1, third)],
        [(0, 0, 1), (1, 2 * third + 1, third)],
    ]


def test_a_part_finds_its_complex_events_by_their_indexes() -> None:
    ends = np.array([4, 4, 9])
    part = Dealer(WHOLE).deal(ends, [3, 2**80, 5], limit=10)
    assert ranges(part) == [(0, 0, 3), (1, 0, 7), (2, 0, 5)]
    assert part.total == 15
    assert list(part.by_end(ends)) == [(4, 10), (9, 5)]
    assert list(part.at([0, 2, 3, 9, 14])) == [(0, 0), (0, 2), (1, 0), (1, 6), (2, 4)]
    assert Dealer(WHOLE).deal(np.empty(0, np.int64), []).total == 0


@given(
    st.lists(st.tuples(st.integers(0, 3), st.one_of(st.integers(1, 9), st.integers(2**61, 2**65)))),
    st.one_of(st.none(), st.integers(1, 12), st.just(2**64)),
    SHARES,
    st.integers(0, 9),
)
def test_shares_are_even_however_roots_are_grouped(
    roots: list[tuple[int, int]], limit: int | None, of: int, cut: int
) -> None:
    ends = np.cumsum([step for step, _ in roots])
    counts = [count for _, count in roots]
    while 0 < cut < len(ends) and ends[cut] == ends[cut - 1]:
        cut -= 1
    totals, covered = [], 0
    for number in range(of):
        dealer, alone = Dealer(Share(number, of)), Dealer(Share(number, of))
        both = [dealer.deal(ends[:cut], counts[:cut], limit), dealer.deal(ends[cut:], counts[cut:], limit)]
        at_once = alone.deal(ends, counts, limit)
        first, after = (ranges(part) for part in both)
        assert first + [(place + min(cut, len(ends)), *rest) for place, *rest in after] == ranges(at_once)
        totals.append(at_once.total)
        covered += at_once.total
    assert max(totals) - min(totals) <= 1
    assert covered == Dealer(WHOLE).deal(ends, counts, limit).total


@pytest.mark.parametrize(
    ("number", "of", "message"),
    [
        (0, 0, "the number of shares must be at least 1, not 0"),
        (2, 2, "there is no share 2: shares are numbered from 0 to 1"),
        (-1, 2, "there is no share -1: shares are numbered from 0 to 1"),
    ],
)
def test_a_share_that_is_none(number: int, of: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Share(number, of)
