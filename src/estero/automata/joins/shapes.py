"""The shape of a pattern: the possible orders of its events, and the progress of a run through it.

A shape is a pattern without labels and filters. Its *progress* records which events a run already has; a
*move* is the effect of one more event. The parts of an ALL with nothing before it run independently and are
joined when they are complete (gathering.py): `opened` stops there. After other events they run interleaved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple

Served = tuple[int, ...]
"""The numbers of the events of a pattern that one event of the stream serves as, ascending."""

Progress = Any  # hashable, in a form that depends on the kind of shape
"""The progress of a run in a shape."""

NOTHING: Final[frozenset[int]] = frozenset()
_THERE: Final = ()
GATHERED: Final = "gathered"
"""The progress of an ALL whose parts ran independently and have been joined."""


class Move(NamedTuple):
    """An event's role, the progress of a run after it, and the shapes that begin an instance with it."""

    served: Served
    progress: Progress
    begun: frozenset[int] = NOTHING


@dataclass(frozen=True, slots=True, eq=False)
class Shape(ABC):
    """A part of a pattern, with a `number` of its own, the events in it (`singles`) and its `parts`."""

    number: int
    singles: frozenset[int]
    parts: tuple[Shape, ...]

    @abstractmethod
    def begin(self) -> Iterator[Move]:
        """The moves by which a run after other events may begin the shape."""

    @abstractmethod
    def opened(self) -> Iterator[tuple[Served | Together, Progress]]:
        """The beginnings of the shape with nothing before it: an event, or an ALL whose parts are joined."""

    @abstractmethod
    def step(self, progress: Progress) -> Iterator[Move]:
        """The moves by which a run may go on."""

    @abstractmethod
    def is_done(self, progress: Progress) -> bool:
        """Whether a run may end with this progress."""

    def live(self, progress: Progress) -> frozenset[int]:
        """The shapes, this one included, that the run is inside an instance of."""
        place, inner = progress
        part: Shape = self.parts[place]
        return part.live(inner) | {self.number}

    @abstractmethod
    def count(self, singles: frozenset[int]) -> tuple[int, int]:
        """The least and the largest number of these events in an instance; 2 means two or more."""


@dataclass(frozen=True, slots=True, eq=False)
class Single(Shape):
    """A single event."""

    def begin(self) -> Iterator[Move]:
        yield Move(tuple(self.singles), _THERE, frozenset({self.number}))

    def opened(self) -> Iterator[tuple[Served | Together, Progress]]:
        yield tuple(self.singles), _THERE

    def step(self, progress: Progress) -> Iterator[Move]:  # noqa: ARG002 - as declared
        yield from ()

    def is_done(self, progress: Progress) -> bool:  # noqa: ARG002 - as declared
        return True

    def live(self, progress: Progress) -> frozenset[int]:  # noqa: ARG002 - as declared
        return frozenset({self.number})

    def count(self, singles: frozenset[int]) -> tuple[int, int]:
        marked = len(self.singles & singles)
        return marked, marked


@dataclass(frozen=True, slots=True, eq=False)
class Succession(Shape):
    """A sequence of parts, some of them `optional`. Progress: the index of a part, and its progress."""

    optional: tuple[bool, ...]

    def begin(self) -> Iterator[Move]:
        for move in self._from(0):
            yield move._replace(begun=move.begun | {self.number})

    def opened(self) -> Iterator[tuple[Served | Together, Progress]]:
        for place, part in enumerate(self.parts):
            for start, progress in part.opened():
                yield start, (place, progress)
            if not self.optional[place]:
                break

    def step(self, progress: Progress) -> Iterator[Move]:
        place, inner = progress
        part = self.parts[place]
        for move in part.step(inner):
            yield move._replace(progress=(place, move.progress))
        if part.is_done(inner):
            yield from self._from(place + 1)

    def _from(self, first: int) -> Iterator[Move]:
        for place in range(first, len(self.parts)):
            for move in self.parts[place].begin():
                yield move._replace(progress=(place, move.progress))
            if not self.optional[place]:
                break

    def is_done(self, progress: Progress) -> bool:
        place, inner = progress
        part: Shape = self.parts[place]
        return part.is_done(inner) and all(self.optional[place + 1 :])

    def count(self, singles: frozenset[int]) -> tuple[int, int]:
        counts = [part.count(singles) for part in self.parts]
        least = sum(few for (few, _), optional in zip(counts, self.optional, strict=True) if not optional)
        return min(2, least), min(2, sum(many for _, many in counts))


@dataclass(frozen=True, slots=True, eq=False)
class Choice(Shape):
    """A choice of one part. Progress: the index of the part, and its progress."""

    def begin(self) -> Iterator[Move]:
        for place, part in enumerate(self.parts):
            for move in part.begin():
                yield Move(move.served, (place, move.progress), move.begun | {self.number})

    def opened(self) -> Iterator[tuple[Served | Together, Progress]]:
        for place, part in enumerate(self.parts):
            for start, progress in part.opened():
                yield start, (place, progress)

    def step(self, progress: Progress) -> Iterator[Move]:
        place, inner = progress
        for move in self.parts[place].step(inner):
            yield move._replace(progress=(place, move.progress))

    def is_done(self, progress: Progress) -> bool:
        place, inner = progress
        part: Shape = self.parts[place]
        return part.is_done(inner)

    def count(self, singles: frozenset[int]) -> tuple[int, int]:
        counts = [part.count(singles) for part in self.parts]
        return min(few for few, _ in counts), max(many for _, many in counts)


@dataclass(frozen=True, slots=True, eq=False)
class Rounds(Shape):
    """A repetition of one part, `least` to `most` times (None: unbounded). Progress: a round, and its own.

    Rounds are counted only as far as it matters.
    """

    least: int
    most: int | None

    @property
    def body(self) -> Shape:
        """The part that is repeated."""
        return self.parts[0]

    def begin(self) -> Iterator[Move]:
        for move in self.body.begin():
            yield Move(move.served, (1, move.progress), move.begun | {self.number})

    def opened(self) -> Iterator[tuple[Served | Together, Progress]]:
        for start, progress in self.body.opened():
            yield start, (1, progress)

    def step(self, progress: Progress) -> Iterator[Move]:
        number, inner = progress
        for move in self.body.step(inner):
            yield move._replace(progress=(number, move.progress))
        if self.body.is_done(inner) and number != self.most:
            following = min(number + 1, self.least) if self.most is None else number + 1
            for move in self.body.begin():
                yield move._replace(progress=(following, move.progress))

    def is_done(self, progress: Progress) -> bool:
        number, inner = progress
        return bool(number >= self.least) and self.body.is_done(inner)

    def live(self, progress: Progress) -> frozenset[int]:
        return self.body.live(progress[1]) | {self.number}

    def count(self, singles: frozenset[int]) -> tuple[int, int]:
        few, many = self.body.count(singles)
        return min(2, few * self.least), min(2, many * (2 if self.most is None else self.most))


@dataclass(frozen=True, slots=True, eq=False)
class Together(Shape):
    """A conjunction of parts in any order; one event may move several. Progress: a tuple, None before a part.

    `beside` maps each event to the others that the same event of the stream can serve as.
    """

    beside: Mapping[int, frozenset[int]]

    def begin(self) -> Iterator[Move]:
        for move in self._moves((None,) * len(self.parts)):
            yield move._replace(begun=move.begun | {self.number})

    def opened(self) -> Iterator[tuple[Served | Together, Progress]]:
        yield self, GATHERED

    def step(self, progress: Progress) -> Iterator[Move]:
        if progress != GATHERED:
            yield from self._moves(progress)

    def _moves(self, progress: tuple[Progress, ...]) -> Iterator[Move]:
        """The moves of one part, and of several parts by the same event."""
        alone = [
            (place, move)
            for place, (part, inner) in enumerate(zip(self.parts, progress, strict=True))
            for move in (part.begin() if inner is None else part.step(inner))
        ]
        combinations = [[step] for step in alone]
        for moved in combinations:  # the loop appends to it
            changed = dict(moved)
            served = tuple(sorted(single for move in changed.values() for single in move.served))
            after = tuple(
                changed[place].progress if place in changed else inner for place, inner in enumerate(progress)
            )
            yield Move(served, after, NOTHING.union(*(move.begun for move in changed.values())))
            if all(self.beside[single] for single in served):
                last = moved[-1][0]
                combinations += [
                    [*moved, (place, move)]
                    for place, move in alone
                    if place > last and all(self.beside[single].issuperset(served) for single in move.served)
                ]

    def is_done(self, progress: Progress) -> bool:
        return progress == GATHERED or all(
            inner is not None and part.is_done(inner)
            for part, inner in zip(self.parts, progress, strict=True)
        )

    def live(self, progress: Progress) -> frozenset[int]:
        below = zip(self.parts, () if progress == GATHERED else progress, strict=False)
        inside = (part.live(inner) for part, inner in below if inner is not None)
        return frozenset({self.number}).union(*inside)

    def count(self, singles: frozenset[int]) -> tuple[int, int]:
        counts = [part.count(singles) for part in self.parts]
        return min(2, sum(few for few, _ in counts)), min(2, sum(many for _, many in counts))


def all_shapes(shape: Shape) -> Iterator[Shape]:
    """A shape and all shapes below it."""
    yield shape
    for part in shape.parts:
        yield from all_shapes(part)


def orders(shape: Shape) -> int:
    """An upper bound of the number of states of runs that go through a shape after other events."""
    parts = [orders(part) for part in shape.parts]
    match shape:
        case Together():
            return prod(1 + number for number in parts) - 1
        case Rounds(least=least, most=most):
            return parts[0] * (most or least)
        case _:
            return sum(parts) if parts else 1
