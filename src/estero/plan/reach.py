"""Events too far from those that every complex event needs, which recognition can leave out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from estero.automata.needs import Need, needs

if TYPE_CHECKING:
    from estero.plan.plan import Plan, Window


@dataclass(frozen=True, slots=True)
class Reach:
    """The condition for an event to matter: an event for each of `needs`, no further than the window away.

    It is at or before it for the first event of a complex event, and at or after it for the last one.
    """

    needs: tuple[Need, ...]
    window: Window


def reach_of(plan: Plan) -> Reach | None:
    """The events of a whole stream that matter to the answer of a plan; None if all may.

    All of them may matter to partial matches and open runs.
    """
    if plan.window is None or asks_others(plan):
        return None
    needed = needs(plan.machine)
    return Reach(needed, plan.window) if needed else None


def reach_in_words(plan: Plan) -> str:
    """The line of `explain` about the events that may be left out; empty if all matter."""
    reach = reach_of(plan)
    if reach is None:
        return ""
    needs = ", or ".join(f"without {_kinds(plan, need)} {_where(need)}" for need in reach.needs)
    return f"skipped if they are the majority: events {needs}"


def _where(need: Need) -> str:
    if need.first:
        return "in the window before them"
    return "in the window after them" if need.last else "near them"


def _kinds(plan: Plan, need: Need) -> str:
    """The kinds of events that serve a need, as predicates."""
    predicates = plan.classification.predicates
    kinds = {" and ".join(str(predicates[bit]) for bit in sorted(kind)) for kind in need.kinds}
    return " or ".join(sorted(kinds))


def asks_others(plan: Plan) -> bool:
    """Whether the answer depends on events outside all complex events, or on the number of events.

    Requirements on rows do not apply to the events that become rows, either.
    """
    if plan.roles is not None:
        return True
    counts = plan.classification.keep_all or plan.from_first
    return bool(plan.deadlines) or counts or plan.takes_candidates
