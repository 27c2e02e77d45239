"""What must not happen before or after an event for so long, as bits that recognition takes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from estero.automata.cea import EventPredicate
from estero.automata.lacking import Lacking, lacking


@dataclass(frozen=True, slots=True)
class Deadline:
    """An event with one of the bits `asking` has it no longer where one with bit `forbidden` is near.

    Near is: before it, or behind it where it looks `ahead`, and no more than `ticks` of time away, in the
    partition that the query writes. `said` is what the query says. If such events are `compared` with others,
    no bit is lost: they are kept, and a residual filter looks at them.
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
