"""How far a recognizer is: what it has read, and which partial matches are open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RecognizerProgress:
    """The progress of a recognizer: the events read, and the runs that are open.

    `position` is the number of events recognized, `held_back` of those that wait for earlier ones, `late` of
    those that came too late, and `waiting` of complex events that wait for the deadline of a
    ``NOT(…) FOR d``. `steps` maps a number of steps to the number of runs that completed it: a run is all
    partial matches of one partition in one state of the automaton. (In a pattern that is not a sequence all
    are at step 1.) `oldest_start` and `oldest_time` are the position and time of the first event that an open
    partial match has marked, and `expires` is the end of its window: a time, or a position where the window
    counts events. They are None where nothing is open or there is no time or window.
    """

    position: int
    held_back: int
    late: int
    waiting: int
    steps: Mapping[int, int]
    oldest_start: int | None
    oldest_time: Any
    expires: Any

    @property
    def runs(self) -> int:
        """How many runs are open."""
        return sum(self.steps.values())

    def to_dict(self) -> dict[str, Any]:
        """The same numbers by name."""
        return {name: getattr(self, name) for name in self.__slots__} | {"steps": dict(self.steps)}

    def __str__(self) -> str:
        said = [f"{self.position:,} events read, {self.held_back:,} held back, {self.late:,} late"]
        if self.waiting:
            said.append(f"{self.waiting:,} events wait for a deadline")
        if not self.steps:
            return "\n".join([*said, "nothing is open"])
        said += [
            f"{number:,} run{'' if number == 1 else 's'} at step {step}"
            for step, number in sorted(self.steps.items())
        ]
        if self.oldest_start is not None:
            time = "" if self.oldest_time is None else f", at {self.oldest_time}"
            expires = "" if self.expires is None else f"; its window has passed after {self.expires}"
            said.append(f"the oldest start is event {self.oldest_start}{time}{expires}")
        return "\n".join(said)

    def _repr_html_(self) -> str:
        from estero.markup.html import element
        from estero.markup.style import shown
        from estero.markup.tables import Column, named_values, table

        numbers = {"events read": self.position, "held back": self.held_back, "late": self.late}
        rows: list[tuple[str, object]] = [(name, f"{number:,}") for name, number in numbers.items()]
        rows += [("wait for a deadline", f"{self.waiting:,}")] if self.waiting else []
        if self.oldest_start is not None:
            time = "" if self.oldest_time is None else f", at {self.oldest_time}"
            rows.append(("oldest start", f"event {self.oldest_start}{time}"))
            rows += [] if self.expires is None else [("its window has passed after", self.expires)]
        said = [named_values(rows, named="Progress")]
        if not self.steps:
            return shown(*said, element("p", "Nothing is open.", class_="quiet"))
        columns = [Column("step", is_number=True), Column("open runs", is_number=True)]
        steps = [[f"{step:,}", f"{number:,}"] for step, number in sorted(self.steps.items())]
        return shown(*said, table(columns, steps, named="Open runs"))
