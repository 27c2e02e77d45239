"""The explanation of a set of rules: the passes over the events, and the automata that rules share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from estero.errors import legible
from estero.language.tree.words import named
from estero.plan.plan import Plan
from estero.queries.explanation import Explanation
from estero.recognize.rules.passes import Pass, passes_of

_MOST_LISTED = 6
"""The largest number of rules that are listed for one automaton."""


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
        shared = sum(len(one.classification.predicates) for one in passes)
        yield f"{_number(len(self.plans), 'rule')}, {_number(len(passes), 'pass', 'passes')} over the events"
        yield f"{_number(conditions, 'condition')} on single events, {shared:,} of them distinct"
        for number, one in enumerate(passes, 1):
            yield ""
            yield f"Pass {number}: {_keys(one)}"
            for group in one.groups:
                listed = group.names[:_MOST_LISTED]
                more = len(group.names) - len(listed)
                names = ", ".join(listed) + (f" and {more:,} more" if more else "")
                yield f"  {'own' if len(group.names) == 1 else 'shared'} automaton: {names}"

    def __repr__(self) -> str:
        return str(self)


def _keys(one: Pass) -> str:
    brackets = [" or ".join(map(named, bracket)) for bracket in one.classification.keys]
    return f"partitioned by {', '.join(brackets)}" if brackets else "no partition keys"


def _number(size: int, noun: str, plural: str = "") -> str:
    return f"{size:,} {noun if size == 1 else plural or f'{noun}s'}"
