"""Distances between two events: windows, and the distances of steps (docs/semantics.md, "Clauses")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from estero.language.tree.durations import TimeUnit
from estero.language.tree.literals import integer_text
from estero.language.tree.nodes import SyntaxNode


@dataclass(frozen=True, slots=True)
class EventWindow(SyntaxNode, form="{events} EVENTS"):
    """``WITHIN n EVENTS``: end − start ≤ n, in positions of the whole stream."""

    events: int


@dataclass(frozen=True, slots=True)
class DurationWindow(SyntaxNode):
    """``WITHIN 2 HOURS 30 MINUTES``: time(end) − time(start) ≤ the sum of `parts`."""

    parts: tuple[tuple[int, TimeUnit], ...]

    def __str__(self) -> str:
        return " ".join(f"{integer_text(amount)} {unit.name}" for amount, unit in self.parts)

    @property
    def nanoseconds(self) -> int:
        """The length of the window in nanoseconds."""
        return sum(amount * unit.value for amount, unit in self.parts)


@dataclass(frozen=True, slots=True)
class AttributeWindow(SyntaxNode, form="{ticks} [{attribute}]"):
    """``WITHIN n [attr]``: time(end) − time(start) ≤ n ticks of the time column `attribute`."""

    ticks: int
    attribute: str


Window = EventWindow | DurationWindow | AttributeWindow


class Bounds(NamedTuple):
    """Distances from `low` on that are below `high` (None: no limit), in ticks or in positions."""

    low: int
    high: int | None
    in_positions: bool


@dataclass(frozen=True, slots=True)
class Distance(SyntaxNode):
    """A condition of a step on the distance from the end of one part to the start of the next."""

    def bounds(self, tick: int | None) -> Bounds:
        """The allowed distances in ticks of `tick` nanoseconds; raises ValueError without a needed tick."""
        raise NotImplementedError

    @property
    def lengths(self) -> tuple[Window, ...]:
        """The lengths that the distance is compared with."""
        return tuple(node for node in self.below() if isinstance(node, Window))


@dataclass(frozen=True, slots=True)
class Apart(Distance, form="{operator!s} {length}"):
    """``<= 5 MINUTES``, ``> 2 EVENTS``."""

    operator: Literal["<=", "<", ">=", ">"]
    length: Window

    def bounds(self, tick: int | None) -> Bounds:
        """See `Distance`."""
        amount, unit, in_positions = _measured(self.length, tick)
        match self.operator:
            case "<=":
                return Bounds(0, amount // unit + 1, in_positions)
            case "<":
                return Bounds(0, -(-amount // unit), in_positions)
            case ">=":
                return Bounds(-(-amount // unit), None, in_positions)
            case ">":
                return Bounds(amount // unit + 1, None, in_positions)


@dataclass(frozen=True, slots=True)
class ApartBetween(Distance, form="{low} .. {high}"):
    """``1 SECOND .. 5 MINUTES``: both are allowed, too."""

    low: Window
    high: Window

    def bounds(self, tick: int | None) -> Bounds:
        """See `Distance`."""
        low, unit, in_positions = _measured(self.low, tick)
        high, unit_above, _ = _measured(self.high, tick)
        return Bounds(-(-low // unit), high // unit_above + 1, in_positions)


@dataclass(frozen=True, slots=True)
class Measured(Distance, form="{said}"):
    """The distance `said` where the length of a tick is known."""

    said: Distance
    allowed: Bounds

    def bounds(self, tick: int | None) -> Bounds:
        """See `Distance`."""
        del tick
        return self.allowed


def _measured(length: Window, tick: int | None) -> tuple[int, int, bool]:
    """A length as a number of ticks or positions, and whether it is in positions."""
    match length:
        case EventWindow(events):
            return events, 1, True
        case AttributeWindow(ticks):
            return ticks, 1, False
        case DurationWindow():
            if tick is None:
                raise ValueError("a duration needs the length of a tick: check the query first")
            return length.nanoseconds, tick, False
