"""The state of a recognizer of rules: its rules, and the states of its passes.

It has only digests of the queries, which the user provides when it is restored. Rules are identified by
numbers, so each group says which rule is at each of its places, and since which era.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from estero.engine.store.checks import Arrays
from estero.errors import DataError
from estero.events.streams.stream_layout import StreamLayout
from estero.language.tree.names import some
from estero.plan.plan import Plan
from estero.recognize.recognizers.intake import LAYOUT
from estero.recognize.rules.rule_reading import KeptGroup, KeptReading
from estero.recognize.state_bytes import State, sound_content

KIND: Final = "a recognizer of rules"
"""The name of this kind of state, which the state contains."""

_RULES, _READINGS = "rules", "readings"
_TYPES, _GROUPS, _DISPATCHED = "types", "groups", "dispatched"
_WITHHELD, _WAITING = "untold", "waiting"
_KEPT: Final = "kept: "


class RuleDigests:
    """The digests of rules, each computed once: printing thousands of rules would stop a stream."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Plan, str]] = {}

    def of(self, plans: Mapping[str, Plan]) -> dict[str, str]:
        """The digests of the rules with these plans, by name."""
        before, self._known = self._known, {}
        for name, plan in plans.items():
            known = before.get(name)
            if known is None or known[0] is not plan:
                known = plan, _digest(plan)
            self._known[name] = known
        return {name: digest for name, (_, digest) in self._known.items()}


def state_of(digests: Mapping[str, str], readings: Sequence[KeptReading]) -> State:
    """The state of the passes of some rules with these digests, in order, without the layout of events."""
    numbers = {name: number for number, name in enumerate(digests)}
    kept = [
        {
            _TYPES: reading.types,
            _GROUPS: [
                [None if rule is None else [numbers[rule[0]], rule[1]] for rule in group.places]
                for group in reading.groups
            ],
            _DISPATCHED: [group.dispatched for group in reading.groups],
            **_handovers(reading, numbers),
        }
        for reading in readings
    ]
    arrays = {
        f"{number} {name}": array
        for number, reading in enumerate(readings)
        for name, array in _arrays(reading)
    }
    return State(
        {"kind": KIND, _RULES: json.dumps(list(digests.items())), _READINGS: json.dumps(kept)}, arrays
    )


def _handovers(reading: KeptReading, numbers: Mapping[str, int]) -> dict[str, Any]:
    """The rules that are to move to another group; empty if there are none."""
    if not reading.waiting:
        return {}
    waiting = [[numbers[name], latest, position] for name, latest, position in reading.waiting]
    return {_WITHHELD: [list(group.withheld) for group in reading.groups], _WAITING: waiting}


def _arrays(reading: KeptReading) -> Iterator[tuple[str, NDArray[Any]]]:
    yield from reading.intake.items()
    for number, group in enumerate(reading.groups):
        yield f"recognition {number}", group.recognition


def kept_arrays(kept: Arrays) -> Arrays:
    """The events kept, as arrays of a state."""
    return {f"{_KEPT}{name}": array for name, array in kept.items()}


def kept_in(state: State) -> Arrays:
    """The events kept in a state."""
    return {name.removeprefix(_KEPT): array for name, array in state.arrays.items() if name.startswith(_KEPT)}


def layout_of_rules(state: State) -> StreamLayout:
    """The layout of events in a state; raises `DataError` if it is not a state of rules."""
    if state.about.get("kind") != KIND:
        raise DataError(f"the state is of {state.about.get('kind')}, and {KIND} was expected")
    with sound_content():
        return StreamLayout.of_state(state.about[LAYOUT], state.arrays)


def names_in(state: State, names: Sequence[str]) -> list[str]:
    """The rules in a state, in order; raises `DataError` unless `names` are the same, in any order."""
    with sound_content():
        known = list(_digests(state))
    missing = [name for name in known if name not in set(names)]
    if missing:
        raise DataError(
            f"the state has {_rules(missing)}, and the set does not",
            hint="restore it with all of its rules, and then remove(…) from the recognizer",
        )
    new = [name for name in names if name not in set(known)]
    if new:
        raise DataError(
            f"the set has {_rules(new)}, and the state does not",
            hint="restore it with the rules that it has, and then add(…) to the recognizer",
        )
    return known


def readings_in(state: State, plans: Mapping[str, Plan]) -> list[KeptReading]:
    """The passes in a state; raises `DataError` for a rule with another query than in the state."""
    with sound_content():
        digests = _digests(state)
    for name, plan in plans.items():
        if digests[name] != _digest(plan):
            raise DataError(
                f"the rule {name!r} has another query than in this state: {plan.text}",
                hint="restore it with the query that it had, and then replace(…) it in the recognizer",
            )
    with sound_content():
        return _readings(state, list(digests))


def _readings(state: State, names: Sequence[str]) -> list[KeptReading]:
    listed = json.loads(state.about[_READINGS])
    reported = [
        rule[0]
        for reading in listed
        for places, withheld in zip(reading[_GROUPS], _withheld(reading), strict=True)
        for place, rule in enumerate(places)
        if rule is not None and place not in withheld
    ]
    if sorted(reported) != list(range(len(names))) or not listed:
        raise ValueError("some rules are nowhere, or in several groups")
    readings = []
    for number, reading in enumerate(listed):
        own = {
            name.removeprefix(f"{number} "): array
            for name, array in state.arrays.items()
            if name.startswith(f"{number} ")
        }
        kept = [
            KeptGroup(
                tuple(_place(rule, names) for rule in places),
                _bytes(own.pop(f"recognition {place}")),
                bool(dispatched),
                withheld,
            )
            for place, (places, dispatched, withheld) in enumerate(
                zip(reading[_GROUPS], reading[_DISPATCHED], _withheld(reading), strict=True)
            )
        ]
        waiting = tuple(_waiting(handover, names) for handover in reading.get(_WAITING, ()))
        readings.append(KeptReading(own, tuple(kept), tuple(map(str, reading[_TYPES])), waiting))
    return readings


def _withheld(reading: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """The withheld places of each group of a pass."""
    listed: list[list[int]] = reading.get(_WITHHELD) or [[]] * len(reading[_GROUPS])
    for places, withheld in zip(reading[_GROUPS], listed, strict=True):
        if any(type(place) is not int or places[place] is None for place in withheld):
            raise ValueError("a withheld place without a rule")
    return [tuple(withheld) for withheld in listed]


def _waiting(handover: Any, names: Sequence[str]) -> tuple[str, int | None, int | None]:
    number, latest, position = handover
    if not all(value is None or type(value) is int for value in (latest, position)):
        raise ValueError("a rule waits for no time")
    return names[number], latest, position


def _place(rule: Any, names: Sequence[str]) -> tuple[str, int] | None:
    if rule is None:
        return None
    number, era = rule
    if not isinstance(era, int) or era < 0:
        raise ValueError(f"there is no era {era}")
    return names[number], era


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    if array.dtype != np.uint8:
        raise ValueError("a state consists of bytes")
    return array


def _digests(state: State) -> dict[str, str]:
    listed = json.loads(state.about[_RULES])
    digests = {str(name): str(digest) for name, digest in listed}
    if len(digests) != len(listed):
        raise ValueError("two rules have one name")
    return digests


def _digest(plan: Plan) -> str:
    """A digest of a query."""
    return hashlib.sha256(repr((plan.text, plan.distinct)).encode()).hexdigest()[:32]


def _rules(names: Sequence[str]) -> str:
    return f"the rule{'s' if len(names) > 1 else ''} {some(map(repr, names), word='and')}"
