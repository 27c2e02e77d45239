"""Checks of the distances of steps: their lengths, and whether two events can be that far apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from estero.errors import Span
from estero.language.check.clauses import check_length
from estero.language.check.problems import Problems
from estero.language.tree import pattern as p
from estero.language.tree.distances import AttributeWindow, Distance, EventWindow, Window
from estero.language.tree.schema import Schema


def check_steps(pattern: p.Pattern, schema: Schema | None, problems: Problems) -> None:
    """Notes errors of the distances of the steps of a pattern."""
    for node in pattern.walk():
        steps: Iterable[p.Link | p.Step] = ()
        match node:
            case p.Sequence(links=links):
                steps = links
            case p.Iteration(step=between):
                steps = (between,)
            case _:
                pass
        for step in steps:
            _check_step(step.distances, schema, problems)


def _check_step(distances: Sequence[Distance], schema: Schema | None, problems: Problems) -> None:
    alright = [_check_distance(distance, schema, problems) for distance in distances]
    if not distances or not all(alright):
        return
    for group in _alike(distances):
        bounds = [distance.bounds(1) for distance in group]
        low = max(bound.low for bound in bounds)
        high = min((bound.high for bound in bounds if bound.high is not None), default=None)
        in_positions = bounds[0].in_positions
        if high is not None and high <= max(low, int(in_positions)):
            span = Span(group[0].span.start, group[-1].span.end)
            problems.add(
                "no two events are this far apart, so the step is never taken",
                span,
                expected="at least 1 EVENTS" if in_positions else "a lower bound below the upper one",
                hint="what follows is at least one event later"
                if in_positions
                else "1 SECOND .. 5 MINUTES has the smaller one first",
            )


def _check_distance(distance: Distance, schema: Schema | None, problems: Problems) -> bool:
    """Notes errors of a distance; returns whether there are none."""
    lengths = distance.lengths
    alright = [check_length(length, schema, problems, what="distance") for length in lengths]
    if len({_unit(length) for length in lengths}) > 1:
        problems.add(
            "the two ends of this distance are measured in different units",
            distance.span,
            expected="two durations, or EVENTS twice, or the time column twice",
            hint="several conditions are separated by commas: [>= 1 SECOND, <= 5 EVENTS]",
        )
        return False
    return all(alright)


def _unit(length: Window) -> str:
    match length:
        case EventWindow():
            return "positions"
        case AttributeWindow():
            return "ticks"
        case _:
            return "durations"


def _alike(distances: Iterable[Distance]) -> list[list[Distance]]:
    """The distances grouped by unit."""
    groups: dict[str, list[Distance]] = {}
    for distance in distances:
        groups.setdefault(_unit(distance.lengths[0]), []).append(distance)
    return list(groups.values())
