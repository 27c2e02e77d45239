"""Recognition on strings: each letter is an event of that type, for tests of the engine alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.determinize import LazyAutomaton
from estero.engine.batch import EventBatch
from estero.engine.recognizer import Recognizer
from estero.engine.runs.cea_runs import CeaRuns
from estero.engine.runs.kinds import cea_runs
from estero.engine.runs.numbered_events import Settings
from estero.language.syntax.parser import parse_pattern


def recognizer_of(pattern: str, **settings: object) -> tuple[Recognizer[CeaRuns], dict[str, int]]:
    """A recognizer for a pattern without filters, and the bit of each letter."""
    automaton = compile_pattern(parse_pattern(pattern)).automaton
    bits = {predicate.types[0]: 1 << bit for bit, predicate in enumerate(automaton.predicates)}
    return Recognizer(cea_runs(LazyAutomaton(automaton), Settings(**settings))), bits  # type: ignore[arg-type]


def batch_of(
    letters: str, bits: dict[str, int], first: int = 0, keys: Sequence[int] | None = None
) -> EventBatch:
    """Events `first`, `first` + 1, … of these types; stamps are positions."""
    places = np.arange(first, first + len(letters))
    words = np.array([bits.get(letter, 0) for letter in letters], np.uint64).reshape(-1, 1)
    key = np.zeros((len(letters), 2), np.uint64)
    if keys is not None:
        key[:, 0] = keys
    return EventBatch(places, words, partition=key, ordinal=places)


def supports(
    recognizer: Recognizer[CeaRuns], batch: EventBatch, limit: int | None = None
) -> list[tuple[int, ...]]:
    """The marked events of each complex event that ends in the batch, in order of enumeration."""
    return [
        tuple(matches.event[a:b].tolist())
        for roots in recognizer.push(batch)
        for matches in recognizer.matches(roots, limit)
        for a, b in zip(matches.offsets[:-1].tolist(), matches.offsets[1:].tolist(), strict=True)
    ]
