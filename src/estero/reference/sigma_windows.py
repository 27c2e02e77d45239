"""The reference semantics of correlations in Sigma: all windows of all groups, one by one.

An event is in a group for each of the rules that match it: an alias may be another field in each. A window
begins with an event that one of the rules matches (for rules in order: the first one), and has all such
events of its group from there on, up to and including the timespan. It is a result if it satisfies the
correlation, and is not a part of an earlier result of its group. A result that further events could
invalidate is decided when time has passed the timespan after its last event.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, Final

from estero.reference.sigma import Event, detects, values_of

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def windows(
    correlation: Mapping[str, Any],
    rules: Mapping[str, Mapping[str, Any]],
    events: Sequence[Event],
    times: Sequence[int],
    *,
    ended: bool = False,
) -> list[tuple[int, ...]]:
    """The positions of the events of all results, in order of their starts.

    `rules` are detections by name, `events` in stream order with their `times` in seconds; `ended` is whether
    it is known that none follow.
    """
    names = correlation["rules"]
    groups: dict[tuple[Any, ...], dict[int, set[str]]] = {}
    for place, one in enumerate(events):
        for name in names:
            key = _key(correlation, name, one)
            if key is not None and detects(rules[name], one):
                groups.setdefault(key, {}).setdefault(place, set()).add(name)
    span = int(correlation["timespan"][:-1]) * _SECONDS[correlation["timespan"][-1]]
    results = [
        window for met in groups.values() for window in _of_group(correlation, met, times, span, events)
    ]
    if _is_final(correlation) or ended:
        return sorted(results)
    return sorted(window for window in results if times[window[-1]] + span < times[-1])


def _key(correlation: Mapping[str, Any], rule: str, event: Event) -> tuple[Any, ...] | None:
    """The group that an event of a rule is in; None for an event without a value of some field.

    Numbers and texts are equal if their texts are, where an alias has both.
    """
    key = []
    for field in correlation.get("group-by", []):
        alias = correlation.get("aliases", {}).get(field)
        values = values_of(event, field if alias is None else alias[rule])
        if not values:
            return None
        key.append(values[0] if alias is None else _text(values[0]))
    return tuple(key)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_final(correlation: Mapping[str, Any]) -> bool:
    """Whether a window remains a result whatever further events come."""
    signs = set(correlation.get("condition", {})) - {"field"}
    return signs <= {"gt", "gte"} and correlation["type"] not in ("value_sum", "value_avg", "value_median")


def _of_group(
    correlation: Mapping[str, Any],
    met: Mapping[int, set[str]],
    times: Sequence[int],
    span: int,
    events: Sequence[Event],
) -> list[tuple[int, ...]]:
    """The results of a group, by the rules that match each of its events."""
    given: list[tuple[int, ...]] = []
    for first in met:
        window = tuple(place for place in met if place >= first and times[place] - times[first] <= span)
        is_part = any(set(window) <= set(earlier) for earlier in given)
        if not is_part and _asked(correlation, window, met, events):
            given.append(window)
    return given


def _asked(
    correlation: Mapping[str, Any],
    window: Sequence[int],
    met: Mapping[int, set[str]],
    events: Sequence[Event],
) -> bool:
    """Whether a window satisfies the correlation."""
    names, condition = correlation["rules"], correlation.get("condition", {"gte": len(correlation["rules"])})
    kind = correlation["type"]
    if kind == "temporal_ordered":
        return bool(names[0] in met[window[0]]) and _in_order(names, window, met)
    existing = [values_of(events[place], condition.get("field", "")) for place in window]
    values = [one[0] for one in existing if one]
    result = _result(kind, window, values, met)
    return result is not None and all(
        compare(result, condition[sign]) for sign, compare in _SIGNS.items() if sign in condition
    )


def _result(
    kind: str, window: Sequence[int], values: Sequence[Any], met: Mapping[int, set[str]]
) -> float | None:
    """The number that a condition compares; None for a function of values if there are none."""
    match kind:
        case "event_count":
            return len(window)
        case "value_count":
            return len(set(values))
        case "temporal":
            return len(set().union(*(met[place] for place in window)))
    numbers = [float(value) for value in values]
    if not numbers:
        return None
    if kind == "value_sum":
        return sum(numbers)
    return fmean(numbers) if kind == "value_avg" else median(numbers)


_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "eq": operator.eq,
    "neq": operator.ne,
}


def _in_order(names: Sequence[str], window: Sequence[int], met: Mapping[int, set[str]]) -> bool:
    """Whether the rules match events of the window one after another."""
    following = 0
    for place in window:
        if following < len(names) and names[following] in met[place]:
            following += 1
    return following == len(names)
