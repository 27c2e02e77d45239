"""How many events a variable can mark in one complex event of a pattern."""

from __future__ import annotations

from dataclasses import dataclass

from estero.language.tree.pattern import (
    All,
    As,
    Conjunction,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Keep,
    Optional,
    PartitionBy,
    Pattern,
    Rename,
    Sequence,
    Start,
    Strict,
    Unless,
)


@dataclass(frozen=True, slots=True)
class Marks:
    """At least `least` and at most `most` events; `most` 2 stands for two or more."""

    least: int
    most: int

    def then(self, other: Marks) -> Marks:
        """Both, one after the other."""
        return Marks(min(self.least + other.least, 2), min(self.most + other.most, 2))

    def either(self, other: Marks) -> Marks:
        """One of the two."""
        return Marks(min(self.least, other.least), max(self.most, other.most))


NONE = Marks(0, 0)
ONE = Marks(1, 1)
MANY = Marks(0, 2)


def marks_of(pattern: Pattern, variable: str) -> Marks:
    """Bounds on the number of events that `variable` marks in any complex event of `pattern`."""
    match pattern:
        case EventType():
            return ONE if pattern.name == variable else NONE
        case As():
            inner = marks_of(pattern.pattern, variable)
            return all_marks(pattern.pattern) if pattern.variable == variable else inner
        case Sequence():
            total = NONE
            for part in pattern.parts:
                total = total.then(marks_of(part, variable))
            return total
        case Disjunction():
            first, *others = (marks_of(part, variable) for part in pattern.parts)
            for other in others:
                first = first.either(other)
            return first
        case Iteration():
            inner = marks_of(pattern.pattern, variable)
            return _times(inner, pattern)
        case Optional():
            return marks_of(pattern.pattern, variable).either(NONE)
        case Filter() | Start() | Strict() | PartitionBy() | Unless():
            return marks_of(pattern.pattern, variable)
        case Keep():
            return marks_of(pattern.pattern, variable) if variable in pattern.labels else NONE
        case Rename() | Conjunction() | All():
            return MANY
        case _:
            raise TypeError(f"not a pattern: {pattern!r}")


def all_marks(pattern: Pattern) -> Marks:
    """Bounds on the number of events that `pattern` marks at all."""
    match pattern:
        case EventType():
            return ONE
        case Sequence():
            total = NONE
            for part in pattern.parts:
                total = total.then(all_marks(part))
            return total
        case Disjunction():
            first, *others = (all_marks(part) for part in pattern.parts)
            for other in others:
                first = first.either(other)
            return first
        case Iteration():
            return _times(all_marks(pattern.pattern), pattern)
        case Optional():
            return all_marks(pattern.pattern).either(NONE)
        case As() | Filter() | Start() | Strict() | PartitionBy() | Unless() | Rename():
            return all_marks(pattern.pattern)
        case Keep() | Conjunction() | All():
            return MANY
        case _:
            raise TypeError(f"not a pattern: {pattern!r}")


def _times(inner: Marks, iteration: Iteration) -> Marks:
    maximum = 2 if iteration.maximum is None else iteration.maximum
    return Marks(min(inner.least * iteration.minimum, 2), min(inner.most * maximum, 2))
