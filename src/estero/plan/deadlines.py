"""Events that must be absent for some time before or after another event, as bits that recognition clears."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from estero.automata.cea import EventPredicate
from estero.automata.lacking import Lacking, lacking


@dataclass(frozen=True, slots=True)
class Deadline:
    """A rule that clears the bits `asking` of an event if an event with bit `forbidden` is near.

    Near means before it, or after it if the deadline looks `ahead`, and no more than `ticks` of time away, in
    the same partition as written in the query. `said` is the wording of the query. If such events are
    `compared` with others, no bit is cleared: they are kept, and a residual filter checks them.
    """

    asking: tuple[int, ...]
    forbidden: int
    ticks: int
    ahead: bool
    said: str
    compared: bool = False

    def __str__(self) -> str:
        return f"{self.said} {'after' if self.ahead else 'before'} it"


def deadlines_of(predicates: Sequence[EventPredicate]) -> Iterator[Deadline]:
    """The deadlines that predicates ask for; predicate k is bit k."""
    asking: dict[Lacking, list[int]] = {}
    for bit, predicate in enumerate(predicates):
        for absence in lacking(predicate):
            asking.setdefault(absence, []).append(bit)
    for absence, bits in asking.items():
        near = absence.apart.bounds(None).low - 1
        yield Deadline(
            tuple(bits),
            predicates.index(absence.forbidden),
            near,
            absence.ahead,
            absence.said,
            absence.compared,
        )
