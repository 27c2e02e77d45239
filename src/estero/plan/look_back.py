"""How far back a recognizer has to look for what it is still to give: what a rule needs of the past."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from estero.plan.division import why_of_all_before

if TYPE_CHECKING:
    from estero.plan.plan import Plan, Window


def look_back_of(plan: Plan) -> Window | str:
    """How far the events of a plan's answers to come may lie behind the stream; why no bound is known.

    What a look ahead or the end of a window decides ends before the stream does, and what must not have
    happened lies before its window: each adds to the window.
    """
    if why := why_of_all_before(plan):
        return why
    if plan.from_first:
        return "START is the first event of the stream"
    window = plan.window
    if window is None:
        return "it has no window (WITHIN)"
    if not plan.deadlines:
        return replace(window, length=window.length * plan.windows_back)
    if window.in_positions:
        return "its window counts events, and NOT(…) FOR time"
    ahead = max((one.ticks for one in plan.deadlines if one.ahead), default=0)
    behind = max((one.ticks for one in plan.deadlines if not one.ahead), default=0)
    return replace(window, length=window.length + ahead + behind)
