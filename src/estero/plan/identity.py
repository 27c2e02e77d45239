"""What a plan is, as a short text that is equal in every process: a state is only good for its own plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Protocol

from estero.language.check.set_predicates import RegisteredPredicate
from estero.plan.plan_chains import ChainPlan
from estero.plan.plan_joins import AnyPlan, JoinPlan, KeyedPlan

STATE_VERSION = 1
"""To be raised whenever a state of the same plan means something else than before."""


class Columns(Protocol):
    """The columns of classified events, as a `pyarrow.Schema` has them."""

    @property
    def names(self) -> list[str]:
        """The names, in order."""

    @property
    def types(self) -> Iterable[object]:
        """The types, in order; each prints as something that says what it is."""


def fingerprint(plan: AnyPlan, events: Columns) -> str:
    """32 hexadecimal digits that two plans share if states of one are good for the other.

    `events` are the columns of the classified events. It depends on what the plan says, and neither on the
    process nor on how sets are ordered there.
    """
    columns = [f"{name} {kind}" for name, kind in zip(events.names, events.types, strict=True)]
    text = "\n".join(_canonical([STATE_VERSION, _evaluated(plan), columns]))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def query_of(plan: AnyPlan) -> str:
    """The canonical text of the query of a plan."""
    return plan.text if isinstance(plan, KeyedPlan) else str(plan.tree)


def _evaluated(plan: AnyPlan) -> list[object]:
    """What evaluation depends on."""
    shared: list[object] = [
        query_of(plan),
        plan.classification,
        plan.window,
        plan.window_in_positions,
        plan.residuals,
        plan.predicates,
    ]
    match plan:
        case ChainPlan():
            return [
                "chain",
                *shared,
                plan.columns,
                plan.chain.states,
                plan.chain.final,
                plan.steps,
                plan.transitions,
                plan.orders,
                plan.residuals,
                plan.predicates,
            ]
        case JoinPlan():
            return ["joins", *shared, plan.columns, plan.automaton]
        case KeyedPlan():
            raise TypeError(f"no states of a {type(plan).__name__}")
        case _:
            return ["automaton", *shared, plan.automaton, plan.gaps, plan.registers]


def _canonical(value: object) -> Iterator[str]:
    """A value in lines; sets and mappings in order of what they print."""
    match value:
        case None | bool() | int() | float() | str():
            yield f"{type(value).__name__} {value!r}"
        case Enum():
            yield f"{type(value).__name__}.{value.name}"
        case RegisteredPredicate():
            yield f"predicate {value.name} of {value.arguments}"
        case frozenset() | set():
            yield from _block("set", sorted(" ".join(_canonical(each)) for each in value))
        case Mapping():
            items = sorted(" ".join(_canonical(each)) for each in value.items())
            yield from _block("mapping", items)
        case tuple() | list():
            yield from _block("list", (line for each in value for line in _canonical(each)))
        case _ if is_dataclass(value):
            compared = [each.name for each in fields(value) if each.compare]
            lines = (line for name in compared for line in _canonical(getattr(value, name)))
            yield from _block(type(value).__name__, lines)
        case _:
            yield f"{type(value).__name__} {value}"


def _block(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{title}("
    yield from lines
    yield ")"
