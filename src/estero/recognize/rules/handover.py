"""When a rule that began with a replay goes on in the group of its shape.

It is recognized there, too, from the moment when it came, without what was before. Once a window has passed
no complex event to come reaches back to that, and both groups would give the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from estero.plan.plan import Window
from estero.recognize.recognizers.intake import Intake


@dataclass(slots=True)
class Handover:
    """The rule `name`, with a window, waits until that has passed what came before the rule.

    This has times up to `latest`, None where all of it has been let go, and lies before `position`, once that
    is known.
    """

    name: str
    window: Window
    latest: int | None = None
    position: int | None = None

    @classmethod
    def begun(cls, name: str, window: Window, intake: Intake) -> Handover:
        """The handover of a rule that has come now."""
        return cls(name, window, intake.greatest if intake.held_back or not window.in_positions else None)

    def is_due(self, intake: Intake) -> bool:
        """Whether no complex event that ends from now on reaches back so far."""
        passed = intake.passed
        if not self.window.in_positions:
            return self.latest is None or (passed is not None and passed - self.window.length > self.latest)
        if self.position is None and (self.latest is None or (passed is not None and passed > self.latest)):
            self.position = intake.position
        return self.position is not None and intake.position - self.position >= self.window.length
