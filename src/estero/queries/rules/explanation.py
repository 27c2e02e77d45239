"""What `RuleSet.explain` says: what rules share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from estero.errors import legible
from estero.plan.plan import Plan
from estero.queries.explanation import Explanation
from estero.recognize.rules.passes import Pass, passes_of

_NAMED = 6
"""Rules that are named of one recognition."""


@dataclass(frozen=True, slots=True)
class RulesExplanation:
    """How a set of rules is evaluated; ``explanation["name"]`` is the `Explanation` of one rule."""

    plans: Mapping[str, Plan]

    def __getitem__(self, name: str) -> Explanation:
        """The explanation of one rule; KeyError for a name that the set does not have."""
        return Explanation(self.plans[name])

    def __str__(self) -> str:
        return legible("\n".join(self._lines()), lines=True)

    def _lines(self) -> Iterator[str]:
        passes = passes_of(self.plans)
        conditions = sum(len(plan.classification.predicates) for plan in self.plans.values())
        shared = sum(len(reading.classification.predicates) for reading in passes)
        yield f"{_number(len(self.plans), 'rule')}, {_number(len(passes), 'reading')} of the events"
        yield f"{_number(conditions, 'condition')} on one event, {shared:,} of them different"
        for number, reading in enumerate(passes, 1):
            yield ""
            yield f"Reading {number}: {_keys(reading)}"
            for group in reading.groups:
                named = group.names[:_NAMED]
                more = len(group.names) - len(named)
                said = ", ".join(named) + (f" and {more:,} more" if more else "")
                together = "together" if len(group.names) > 1 else "alone"
                yield f"  {together}: {said}"

    def __repr__(self) -> str:
        return str(self)


def _keys(reading: Pass) -> str:
    brackets = [" or ".join(bracket) for bracket in reading.classification.keys]
    return f"partitions by {', '.join(brackets)}" if brackets else "no partition keys"


def _number(size: int, noun: str) -> str:
    return f"{size:,} {noun}" + ("" if size == 1 else "s")
