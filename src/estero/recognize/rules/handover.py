"""The time at which a rule that began with a replay moves to the group of its shape.

The group recognizes the rule as well from the moment when it was added, without the events before. Once a
window has passed, no complex event reaches back beyond that moment, and both groups have the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from estero.plan.plan import Window
from estero.recognize.recognizers.intake import Intake


@dataclass(slots=True)
class Handover:
    """A rule `name` with a window, which moves once the window has passed all events before the rule.

    These have times up to `latest`, None if all of them have been processed, and are before `position`, once
    that is known.
    """

    name: str
    window: Window
    latest: int | None = None
    position: int | None = None

    @classmethod
    def begun(cls, name: str, window: Window, intake: Intake) -> Handover:
        """The handover of a rule that has just been added."""
        return cls(name, window, intake.greatest if intake.held_back or not window.in_positions else None)

    def is_due(self, intake: Intake) -> bool:
        """Whether no complex event that ends from now on reaches back before the rule was added."""
        passed = intake.passed
        if not self.window.in_positions:
            return self.latest is None or (passed is not None and passed - self.window.length > self.latest)
        if self.position is None and (self.latest is None or (passed is not None and passed > self.latest)):
            self.position = intake.position
        return self.position is not None and intake.position - self.position >= self.window.length
