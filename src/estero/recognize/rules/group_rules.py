"""The changing rules of a group: which rules it has, since when, and whose answers it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from estero.plan.plan import Plan
from estero.recognize.rules.groups import RuleGroup
from estero.system.cached_property import cached_property


@dataclass(frozen=True, eq=False)
class GroupRules:
    """The rules of a group, which see events from the eras `since` on; both are in order of places.

    A place without an era is left out, whatever rule is there. Rules at `withheld` places are recognized, but
    another group returns their answers.
    """

    group: RuleGroup
    since: Mapping[int, int]
    withheld: frozenset[int] = frozenset()

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """The plans of the rules that are not left out and whose answers it returns, by name."""
        names, plans = self.group.names, self.group.plans
        return {names[place]: plans[place] for place in self.since if place not in self.withheld}

    @cached_property
    def left_out(self) -> frozenset[int]:
        """The places without a rule."""
        return frozenset(range(len(self.group.names))) - self.since.keys()

    @cached_property
    def silent(self) -> frozenset[int]:
        """The places whose answers are withheld."""
        return self.left_out | self.withheld

    @property
    def withheld_names(self) -> list[str]:
        """The names of the rules whose answers another group returns."""
        return [self.group.names[place] for place in self.withheld]

    def added(self, place: int, name: str, plan: Plan, since: int, *, reported: bool) -> GroupRules:
        """The rules with another one, which takes a place that is left out, or the one after the last."""
        names, plans = list(self.group.names), list(self.group.plans)
        names[place : place + 1], plans[place : place + 1] = [name], [plan]
        return GroupRules(
            RuleGroup(tuple(names), tuple(plans), self.group.shape),
            dict(sorted({**self.since, place: since}.items())),
            self.withheld if reported else self.withheld | {place},
        )

    def reporting(self, name: str) -> GroupRules:
        """The rules, with the answers of the named rule returned, too."""
        names = self.group.names
        return replace(self, withheld=frozenset(place for place in self.withheld if names[place] != name))

    def places_of(self, name: str) -> list[int]:
        """The places of the rules of a name."""
        return [place for place in self.since if self.group.names[place] == name]

    def without(self, place: int) -> GroupRules:
        """The rules without the one at a place."""
        since = {own: era for own, era in self.since.items() if own != place}
        return replace(self, since=since, withheld=self.withheld - {place})
