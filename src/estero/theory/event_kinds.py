"""The kinds of events that conditions distinguish, each with an example.

Two events are of the same kind if every predicate is true of both or of neither. If an attribute is only
compared with constants, it is enough to try these, a value between each two of them, and NULL. If a condition
computes (``a + b > 3``, ``length(s) = 1``, ``LIKE``), its truth value is taken to be free: some kinds may
have no events.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from typing import Final

from estero.automata.cea import FIRST, EventPredicate
from estero.automata.exploration import merged
from estero.automata.lacking import of_one_event
from estero.errors import DataError, LimitExceeded
from estero.language.tree import expressions as e
from estero.language.tree.durations import Duration
from estero.language.tree.literals import INT_MAX, INT_MIN, Value
from estero.reference.values import Event, evaluate_expression

KIND_CAP: Final = 4_096
"""The most kinds of events of one type."""
CASE_CAP: Final = 200_000
"""The most combinations of values that are tried for conditions with common attributes."""
TRUTHS: Final[tuple[bool | None, ...]] = (True, False, None)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of events: bit k of `bits` is whether predicate k is true of its example `event`.

    `assumed` maps conditions to their truth values if these were assumed without looking for attribute
    values.
    """

    bits: int
    event: Event
    assumed: Mapping[e.Node, bool | None] = field(default_factory=dict)


def kinds_of(
    predicates: Sequence[EventPredicate],
    *,
    fixed: Mapping[str, Value] | None = None,
    free: bool = True,
) -> list[Kind]:
    """All kinds of events that the predicates distinguish; the first is that of events of any other type.

    Conditions of predicates on other events are taken to be true. `fixed` are attributes with the same value
    in all events. With `free` conditions that compute can have any truth value; otherwise only values near
    the constants are tried, and kinds may be missing.

    Raises `LimitExceeded`, naming the condition, if there are too many.
    """
    predicates = [of_one_event(predicate) for predicate in predicates]
    types = dict.fromkeys(name for predicate in predicates for name in predicate.types)
    kinds = {0: Kind(0, Event(_other_than(types), dict(fixed or {})))}
    for name in types:
        asked = [
            (bit, predicate)
            for bit, predicate in enumerate(predicates)
            if predicate != FIRST and name in predicate.types
        ]
        for kind in _kinds_of_type(name, asked, fixed or {}, free=free):
            if kind.bits not in kinds or (kinds[kind.bits].assumed and not kind.assumed):
                kinds[kind.bits] = kind
    return list(kinds.values())


def _other_than(types: Iterable[str]) -> str:
    taken, number = set(types), 0
    while (name := f"other{number or ''}") in taken:
        number += 1
    return name


def _kinds_of_type(
    name: str, asked: Sequence[tuple[int, EventPredicate]], fixed: Mapping[str, Value], *, free: bool
) -> Iterator[Kind]:
    always = sum(1 << bit for bit, predicate in asked if predicate.condition is None)
    conditions = {bit: predicate.condition for bit, predicate in asked if predicate.condition is not None}
    unknowns = {bit: _unknowns(condition, free=free) for bit, condition in conditions.items()}
    groups = merged(unknowns.values())
    parts: list[list[Kind]] = []
    total = 1
    for group in groups:
        together = {bit: conditions[bit] for bit, of in unknowns.items() if not of.keys().isdisjoint(group)}
        parts.append(_kinds_of_group(name, together, group, fixed))
        total *= len(parts[-1])
        if total > KIND_CAP:
            condition = max(together.values(), key=lambda one: len(str(one)))
            raise _too_many(name, condition, f"{KIND_CAP:,} kinds of events")
    constant = sum(
        1 << bit for bit, of in unknowns.items() if not of and _truth(conditions[bit], name, {}, {})
    )
    for combination in product(*parts):
        values = {**fixed, **{k: v for kind in combination for k, v in kind.event.attributes.items()}}
        assumed = {k: v for kind in combination for k, v in kind.assumed.items()}
        bits = always | constant | sum(kind.bits for kind in combination)
        yield Kind(bits, Event(name, values), assumed)


def _too_many(name: str, condition: e.Node, what: str) -> LimitExceeded:
    return LimitExceeded(
        f"the conditions on {name} distinguish more than {what}; the longest is {condition}: "
        "write fewer conditions on the same attributes"
    )


# ------------------------------------------------------------------------------------ conditions in parts

Unknown = e.Attribute | e.Node
"""An attribute, whose values are tried, or a condition that computes, whose truth value is free."""


def _unknowns(condition: e.Node, *, free: bool) -> dict[Unknown, None]:
    """The attributes and computing conditions that determine the truth value of a condition."""
    unknowns: dict[Unknown, None] = {}
    for leaf in _leaves(condition):
        if free and not _is_plain(leaf):
            unknowns[leaf] = None
        else:
            unknowns |= dict.fromkeys(node for node in leaf.walk() if isinstance(node, e.Attribute))
    return unknowns


def _leaves(condition: e.Node) -> Iterator[e.Node]:
    """The conditions that AND, OR and NOT join."""
    match condition:
        case e.And(parts) | e.Or(parts):
            for part in parts:
                yield from _leaves(part)
        case e.Not(part):
            yield from _leaves(part)
        case _:
            yield condition


def _is_plain(leaf: e.Node) -> bool:
    """Whether a condition compares one attribute with constants."""
    match leaf:
        case e.Comparison(_, e.Attribute(), e.Literal()) | e.Comparison(_, e.Literal(), e.Attribute()):
            return True
        case e.Between(e.Attribute(), e.Literal(), e.Literal()) | e.In(e.Attribute()):
            return True
        case e.IsNull(e.Attribute()) | e.Attribute() | e.Literal():
            return True
        case _:
            return False


def _truth(
    condition: e.Node, name: str, values: Mapping[str, Value], assumed: Mapping[e.Node, bool | None]
) -> bool | None:
    """The truth value of a condition, given `assumed` parts; None if it is unknown."""
    if condition in assumed:
        return assumed[condition]
    match condition:
        case e.And(parts) | e.Or(parts):
            ends = isinstance(condition, e.Or)
            truths = [_truth(part, name, values, assumed) for part in parts]
            return ends if ends in truths else None if None in truths else not ends
        case e.Not(part):
            truth = _truth(part, name, values, assumed)
            return None if truth is None else not truth
        case _:
            value = evaluate_expression(condition, Event(name, values))
            return value if isinstance(value, bool) else None


# --------------------------------------------------------------------------------------- values to try


def _kinds_of_group(
    name: str, conditions: Mapping[int, e.Node], unknowns: Sequence[Unknown], fixed: Mapping[str, Value]
) -> list[Kind]:
    """The kinds that conditions with common attributes distinguish."""
    leaves = [leaf for condition in conditions.values() for leaf in _leaves(condition)]
    choices: list[Sequence[Value]] = []
    cases = 1
    for unknown in unknowns:
        if isinstance(unknown, e.Attribute):
            own = [leaf for leaf in leaves if unknown in leaf.walk()]
            tried = [fixed[unknown.name]] if unknown.name in fixed else candidates(own)
            choices.append(_telling(unknown.name, tried, own))
        else:
            choices.append(TRUTHS)
        cases *= len(choices[-1])
    if cases > CASE_CAP:
        longest = max(conditions.values(), key=lambda one: len(str(one)))
        raise _too_many(name, longest, f"{CASE_CAP:,} cases")
    kinds: dict[int, Kind] = {}
    for chosen in product(*choices):
        pairs = list(zip(unknowns, chosen, strict=True))
        values = {unknown.name: value for unknown, value in pairs if isinstance(unknown, e.Attribute)}
        assumed = {
            unknown: value
            for unknown, value in pairs
            if not isinstance(unknown, e.Attribute) and (value is None or isinstance(value, bool))
        }
        try:
            bits = sum(
                1 << bit
                for bit, condition in conditions.items()
                if _truth(condition, name, values, assumed) is True
            )
        except DataError:  # no column can have these values
            continue
        kinds.setdefault(bits, Kind(bits, Event(name, values), assumed))
    return list(kinds.values())


def _telling(attribute: str, tried: Sequence[Value], leaves: Sequence[e.Node]) -> Sequence[Value]:
    """One value of each class that conditions distinguish; all values if one has other attributes, too."""
    if not all(map(_is_plain, leaves)):
        return tried
    by_truth: dict[tuple[object, ...], Value] = {}
    for value in tried:
        try:
            event = Event("", {attribute: value})
            truths = tuple(evaluate_expression(leaf, event) for leaf in leaves)
        except DataError:  # a column of this attribute cannot have this value
            continue
        by_truth.setdefault(truths, value)
    return list(by_truth.values())


def candidates(leaves: Iterable[e.Node]) -> list[Value]:
    """The constants in conditions, values between and beyond them, and finally NULL."""
    constants: set[Value] = set()
    for leaf in leaves:
        for node in leaf.walk():
            if isinstance(node, e.Literal):
                constants.add(node.value)
            elif isinstance(node, e.Like | e.Ilike):
                constants.add(node.pattern.replace("%", "").replace("_", "a"))
    numbers = sorted(
        constant
        for constant in constants
        if isinstance(constant, int | float) and not isinstance(constant, bool)
    )
    texts = sorted(constant for constant in constants if isinstance(constant, str))
    times = sorted(constant for constant in constants if isinstance(constant, datetime))
    lengths = sorted(constant.nanoseconds for constant in constants if isinstance(constant, Duration))
    values: list[Value] = [*_numbers(numbers), *_texts(texts), *_times(times)]
    values += [Duration(int(length)) for length in _numbers(lengths) if math.isfinite(length)]
    if not values or any(isinstance(constant, bool) for constant in constants):
        values += [True, False]
    if not constants - {None, True, False}:
        values += [0, 1, "a"]
    return [*values, None]


def _numbers(constants: Sequence[int | float]) -> Iterator[int | float]:
    if not constants:
        return
    least, most = constants[0], constants[-1]
    if least > INT_MIN:
        yield least - 1
    for low, high in pairwise(constants):
        yield low
        whole = int(low) + 1
        yield whole if low < whole < high else (low + high) / 2
    yield most
    yield most + 1 if most < INT_MAX else float("inf")


def _texts(constants: Sequence[str]) -> Iterator[str]:
    if not constants:
        return
    yield ""
    for low, high in pairwise([*constants, ""]):
        yield low
        for longer in (low + "a", low + " ", low + "\0"):
            if not high or longer < high:
                yield longer
                break


def _times(constants: Sequence[datetime]) -> Iterator[datetime]:
    if not constants:
        return
    day = timedelta(days=1)
    if constants[0] > datetime.min.replace(tzinfo=UTC) + day:
        yield constants[0] - day
    for low, high in pairwise(constants):
        yield low
        yield low + (high - low) / 2
    yield constants[-1]
    if constants[-1] < datetime.max.replace(tzinfo=UTC) - day:
        yield constants[-1] + day
