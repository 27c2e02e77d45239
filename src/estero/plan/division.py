"""How tasks on Spark divide the work of a plan, as far as the plan alone decides; explain says it in words.

Sharing an enumeration among tasks: distributed-cea.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from estero.automata.cea import CEA
from estero.language.tree.query import Consume, Strategy
from estero.plan.plan import Plan
from estero.plan.plan_joins import AnyPlan, KeyedPlan


@dataclass(frozen=True, slots=True)
class Division:
    """What tasks may divide among them, and what they have to know of places in the stream.

    `by_key`: all events of a partition key meet in one task; else one order has all events. `positions`: the
    places of events in the whole stream count. `ordinals`: their places in the stream of their key count.
    `cut`: every complex event lies in a window and events have times, so that a stream can be cut into ranges
    of time, each with the window before it.
    """

    by_key: bool
    positions: bool = False
    ordinals: bool = False
    cut: bool = False

    @property
    def counted(self) -> bool:
        """Whether irrelevant events are counted, too."""
        return self.positions or self.ordinals

    @property
    def one_order(self) -> bool:
        """Whether one task has to see all events where nothing is cut."""
        return self.positions or not self.by_key

    @property
    def cuts_hot_keys(self) -> bool:
        """Whether keys with most of the events are cut into ranges of time.

        Not where a task sorts all events for their positions: that takes longer than any key.
        """
        return self.cut and self.by_key and not self.positions

    @property
    def cuts_by_footers(self) -> bool:
        """Whether footers of files may say where ranges of time begin: not where all events are counted."""
        return self.cut and not self.counted


def division_of(plan: AnyPlan, *, positions: bool = False) -> Division:
    """What tasks may divide of the work of `plan`; `positions` says whether its answer shows them."""
    shared_value = isinstance(plan, KeyedPlan) and bool(plan.partition)
    return Division(
        # CONSUME BY ANY forgets across partitions: they have to be seen in one order.
        by_key=(plan.keyed or shared_value) and plan.consume is not Consume.ANY,
        positions=positions or plan.needs_positions,
        ordinals=plan.keyed and plan.classification.keep_all,
        # With CONSUME BY each answer depends on all before it. Without a time there is nothing to cut by: how
        # many events arrive in each partition of a DataFrame may change from one job to the next.
        cut=plan.window is not None
        and plan.consume is Consume.NONE
        and plan.classification.schema.time is not None,
    )


def division_in_words(plan: AnyPlan) -> str:
    """What `explain` says of the tasks on Spark."""
    return "".join(_words(plan, division_of(plan)))


def _words(plan: AnyPlan, division: Division) -> Iterator[str]:
    if division.by_key:
        yield f"tasks share {_keys(plan)}"
        if division.cuts_hot_keys:
            yield "; hot keys are cut into ranges of time"
            yield ", or all events are where footers of files tell how" if division.cuts_by_footers else ""
    elif division.cut:
        yield "tasks share ranges of time, each with the window before it"
    elif may_be_shared(plan):
        yield "one task recognises; several share the enumeration where its events promise a long one"
    else:
        yield f"one task recognises{_why_one_task(plan)}"
    if division.positions:
        in_ranges = division.cut and not division.by_key
        counted = "all events have been counted by ranges" if in_ranges else "one task has sorted all events"
        yield f", after {counted}: places in the whole stream count"


def _keys(plan: AnyPlan) -> str:
    if plan.shown_keys or not isinstance(plan, KeyedPlan):
        return "the partition keys"
    names = " or ".join(dict.fromkeys(plan.partition.values()))
    return f"the values of {names}, which every event of an answer has"


def _why_one_task(plan: AnyPlan) -> str:
    if plan.consume is Consume.ANY:
        return ", because what is forgotten depends on all events before"
    if isinstance(plan, KeyedPlan):
        return ", because not all events of an answer share a value"
    return ""


def may_be_shared(plan: AnyPlan) -> TypeGuard[Plan]:
    """Whether tasks share the enumeration where the events promise many complex events, and nobody asks.

    Where the work can be divided by keys or by time it is: recognition is divided then, too. What is left is
    one order of events that one task has to see; another task that sees them as well costs a copy of the
    relevant events, and saves half of an enumeration. That is not much where each end has one complex event,
    or so few that LIMIT or the strategy leaves. And the automaton has to tell how many there may be: what
    registers and joins compare is not known before the events are read.
    """
    if plan.keyed or plan.consume is not Consume.NONE or division_of(plan).cut:
        return False
    if plan.limit is not None or plan.tree.strategy not in {Strategy.ALL, Strategy.STRICT}:
        return False
    if not isinstance(plan, Plan) or plan.registers is not None or plan.has_hidden:
        return False
    return _marks_several(plan.automaton)


def why_not_shared(plan: AnyPlan) -> str:
    """Why sharing would save nothing even if it was asked for; empty where it would."""
    if plan.sieved and plan.consume is not Consume.NONE:
        return "what CONSUME BY forgets depends on filters after enumeration, so each task would do all of it"
    return ""


def _marks_several(automaton: CEA) -> bool:
    """Whether some run marks more than one event."""
    marked = {each.target for each in automaton.transitions if each.labels}
    before = None
    while marked != before:
        before = set(marked)
        marked |= {each.target for each in automaton.transitions if each.source in marked}
    return any(each.labels and each.source in marked for each in automaton.transitions)
