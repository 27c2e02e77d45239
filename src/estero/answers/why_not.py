"""The reasons why a query finds no more: how far its sequence comes, and what stops it there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from estero.errors import legible


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the sequence, and the number of events that complete it and all parts before.

    The number is None where the time was not enough to count them.
    """

    part: str
    events: int | None


@dataclass(frozen=True, slots=True)
class Reason:
    """A condition that keeps events away.

    `kind` is "condition", "window", "key", "distance", "contiguity", "absence", "repetition", "place",
    "together", "order", "type" or "choice". `events` is the number of events that it keeps away: for a
    condition or a choice (a strategy, LIMIT, CONSUME BY) out of those that came, else of those that would
    come without it. `nearest` describes the nearest miss.
    """

    kind: str
    condition: str
    events: int
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class WhyNot:
    """How far events come in the sequence of a query, and what stops them at the first missing part.

    `found` is the number of complex events, and `undecided` the number of those that wait for a deadline.
    `steps` are the parts of the sequence up to the missing one, `waited_for` (the last part if none is
    missing). `came` is the number of events that reach it, because they satisfy everything but the conditions
    on that part itself, and `passed` the number of those that satisfy these conditions, too.

    If the time was not enough (`seconds` of `Answer.why_not`), `found`, `passed` or the events of the last
    step are None, and `unanswered` names the conditions that were not decided.
    """

    found: int | None
    undecided: int | None
    steps: Sequence[Step]
    waited_for: str
    came: int | None
    passed: int | None
    reasons: Sequence[Reason]
    unanswered: Sequence[str] = ()

    def to_dicts(self) -> list[dict[str, Any]]:
        """The reasons: ``kind``, ``condition``, ``events`` and ``nearest`` of each."""
        return [asdict(reason) for reason in self.reasons]

    def lines(self) -> list[str]:
        """The explanation, line by line."""
        said = [f"{_some(self.found, 'complex event')}"]
        if self.undecided:
            said.append(self._waiting())
        width = max((len(step.part) for step in self.steps), default=0)
        said += [
            f"step {number}  {step.part:<{width}}  {_some(step.events, 'event')}"
            for number, step in enumerate(self.steps, 1)
        ]
        said.append(f"waited for {self.waited_for}: {self._came()}")
        said += [
            f"  {''.join(_around(reason))}{'; ' if reason.nearest else ''}{reason.nearest}"
            for reason in self.reasons
        ]
        if self.unanswered:
            said.append(_UNANSWERED)
            said += [f"  {unread}" for unread in self.unanswered]
        return [legible(line) for line in said]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        from estero.markup.html import element
        from estero.markup.query_text import code
        from estero.markup.style import shown
        from estero.markup.tables import Column, table

        said = [element("p", element("b", _some(self.found, "complex event").capitalize()))]
        if self.undecided:
            said.append(element("p", self._waiting()))
        columns = [Column("step", is_number=True), Column("part"), Column("events", is_number=True)]
        steps = [
            [f"{number}", code(step.part), "unknown" if step.events is None else f"{step.events:,}"]
            for number, step in enumerate(self.steps, 1)
        ]
        said += [table(columns, steps, named="How far the sequence comes")] if steps else []
        said.append(element("p", "Waited for ", code(self.waited_for), f": {self._came()}"))
        reasons = []
        for reason in self.reasons:
            before, condition, behind = _around(reason)
            nearest = element("span", f"; {reason.nearest}", class_="quiet") if reason.nearest else ""
            reasons.append(element("li", before, code(condition), behind, nearest))
        said += [element("ul", *reasons)] if reasons else []
        if self.unanswered:
            unread = (element("li", code(condition)) for condition in self.unanswered)
            said += [element("p", _UNANSWERED.capitalize()), element("ul", *unread)]
        return shown(*said)

    def _waiting(self) -> str:
        return f"{self.undecided:,} more wait for a deadline: until= says how far events are known"

    def _came(self) -> str:
        came = f"{_some(self.came, 'event')} {'comes' if self.came in (0, 1) else 'come'} to it"
        if self.came and self.passed is not None:
            came += f", {_satisfying(self.passed)} all its conditions"
        return came


_UNANSWERED: Final = "not looked at to the end, as it takes longer than seconds= allows:"


def _some(number: int | None, noun: str) -> str:
    if number is None:
        return f"an unknown number of {noun}s"
    return f"{f'{number:,}' if number else 'no'} {noun}{'' if number in (0, 1) else 's'}"


def _satisfying(number: int) -> str:
    return f"{f'{number:,}' if number else 'none'} {'satisfies' if number in (0, 1) else 'satisfy'}"


def _around(reason: Reason) -> tuple[str, str, str]:
    """The words before the condition of a reason, the condition, and the words after it."""
    match reason.kind:
        case "type":
            return "there are no events of type ", reason.condition, ""
        case "order":
            return "no events come as ", reason.condition, ", even without the conditions"
        case "condition":
            return "", reason.condition, f" rejects {reason.events:,}"
        case "choice":
            return "", reason.condition, " leaves out all of these"
        case _:
            return "without ", reason.condition, f": {reason.events:,} more"
