"""How far back a recognizer has to look for answers still to come: the past that a rule needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from estero.plan.division import why_of_all_before

if TYPE_CHECKING:
    from estero.plan.plan import Plan, Window


def look_back_of(plan: Plan) -> Window | str:
    """How far the events of a plan's future answers may lie behind the stream, or why no bound is known.

    Answers decided by a look ahead or by the end of a window end before the stream does, and absences are
    checked before the window: each adds to the window.
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
