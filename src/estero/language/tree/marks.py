"""Bounds on the number of events that a variable marks in complex events of a pattern."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from estero.language.tree import pattern as p


@dataclass(frozen=True, slots=True)
class Marks:
    """Bounds of `least` and `most` events; `most` 2 stands for two or more."""

    least: int
    most: int

    def then(self, other: Marks) -> Marks:
        """The bounds of both together."""
        return Marks(min(self.least + other.least, 2), min(self.most + other.most, 2))

    def either(self, other: Marks) -> Marks:
        """The bounds of one of the two."""
        return Marks(min(self.least, other.least), max(self.most, other.most))


NONE, ONE, MANY = Marks(0, 0), Marks(1, 1), Marks(0, 2)


def marks_of(pattern: p.Pattern, variable: str | None) -> Marks:
    """Bounds on the number of events that `variable` marks in complex events of `pattern`; None is any."""
    match pattern:
        case p.EventType(name):
            return ONE if variable in (None, name) else NONE
        case p.As(inner, given):
            return marks_of(inner, None if given == variable else variable)
        case p.Sequence(parts):
            return reduce(Marks.then, (marks_of(part, variable) for part in parts))
        case p.Disjunction(parts):
            return reduce(Marks.either, (marks_of(part, variable) for part in parts))
        case p.Iteration(inner):
            once = marks_of(inner, variable)
            maximum = 2 if pattern.maximum is None else pattern.maximum
            return Marks(min(once.least * pattern.minimum, 2), min(once.most * maximum, 2))
        case p.Optional(inner):
            return marks_of(inner, variable).either(NONE)
        case p.Filter(inner) | p.Start(inner) | p.Strict(inner) | p.PartitionBy(inner) | p.Unless(inner):
            return marks_of(inner, variable)
        case p.Keep(inner, labels) if variable is not None:
            return marks_of(inner, variable) if variable in labels else NONE
        case p.Rename(inner) if variable is None:
            return marks_of(inner, None)
        case p.All(parts):
            marks_by_part = [marks_of(part, variable) for part in parts]
            return Marks(
                max(marks.least for marks in marks_by_part),
                min(sum(marks.most for marks in marks_by_part), 2),
            )
        case p.Keep() | p.Rename() | p.Conjunction():
            return MANY
        case _:
            raise TypeError(f"not a pattern: {pattern!r}")
