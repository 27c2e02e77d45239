"""Marked words: those of complex events, a letter for each event from the start to the end."""

from __future__ import annotations

from typing import NamedTuple

from estero.automata.cea import LabelSet


class Letter(NamedTuple):
    """A kind of event: its bits for either automaton (bit k is predicate k)."""

    ours: int
    theirs: int


class MarkedLetter(NamedTuple):
    """A letter of a marked word: its number, and the labels of the event (empty if it is not marked)."""

    letter: int
    labels: LabelSet


class Word(NamedTuple):
    """A word that grows at its end: its last letter, if it has one, and the word before it."""

    length: int = 0
    last: MarkedLetter | None = None
    before: Word | None = None

    def with_letter(self, letter: int, labels: LabelSet) -> Word:
        """The word with one more letter."""
        return Word(self.length + 1, MarkedLetter(letter, labels), self)

    def letters(self) -> tuple[MarkedLetter, ...]:
        """All letters, in order."""
        letters: list[MarkedLetter] = []
        word: Word | None = self
        while word is not None and word.last is not None:
            letters.append(word.last)
            word = word.before
        return tuple(reversed(letters))
