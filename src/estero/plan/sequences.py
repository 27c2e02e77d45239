"""Plans of sequences by stages, with one candidate for each key and stage (EQL)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from estero.plan.plan import Layout, Opened, Section
from estero.plan.stages import Asked, Stage, StagedPlan, drafted


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencePlan(StagedPlan):
    """How a sequence by stages is evaluated.

    `stages` are those that must be present. Stages that must be missing are `leading` before them, `trailing`
    after them, or in a gap: `gaps` has the number of the stage before each. `until` drops candidates.
    """

    evaluated: ClassVar[tuple[str, ...]] = (
        *("columns", "stages", "labels", "leading", "trailing", "gaps", "until"),
    )

    leading: tuple[Asked, ...] = ()
    trailing: tuple[Asked, ...] = ()
    gaps: tuple[tuple[int, Asked], ...] = ()
    until: tuple[Asked, ...] = ()

    @property
    def decides_later(self) -> bool:
        """Whether the passing of time decides what is missing after the last stage."""
        return bool(self.trailing)

    @property
    def opening_bits(self) -> frozenset[int] | None:
        """The bits of the first stage, and of the stages that must be missing before it."""
        if self.trailing:
            return None
        return frozenset(stage.bit for stage in (self.stages[0], *self.leading))

    @property
    def windows_back(self) -> int:
        return 1 + bool(self.leading) + bool(self.trailing)

    @property
    def kernels(self) -> str:
        return "sequences"

    def opened(self, words: int, *, ordinals: bool, counting: bool, total: bool) -> Opened:
        from estero.plan.opening_sequences import opened_sequence  # loads the kernels

        del ordinals, counting, total
        return opened_sequence(
            self, words, gaps=self.gaps, leading=self.leading, trailing=self.trailing, until=self.until
        )

    # ------------------------------------------------------------------------------------- in words

    def lines(self) -> Iterator[str]:
        """The algorithm that runs, and its guarantees."""
        yield (
            "sequence of stages: an event extends the newest candidate of the stage before that has its key, "
            "so that each key has one candidate per stage"
        )
        yield "guarantee: constant time per event and stage, output-linear delay between complex events"
        if self.trailing:
            yield "decided later: whether events after the last stage are missing is known after maxspan"

    def automaton_sections(self) -> Iterator[Section]:
        """The stages."""
        yield "Stages", self._stage_lines()

    def _stage_lines(self) -> Iterator[str]:
        for title, stages in (("missing before", self.leading), ("until (drops candidates)", self.until)):
            yield from (f"{title}: {self.described(one)}" for one in stages)
        for number, (stage, label) in enumerate(zip(self.stages, self.labels, strict=True)):
            yield f"{label}: {self.described(stage)}"
            yield from (
                f"missing in between: {self.described(gap)}" for place, gap in self.gaps if place == number
            )
        yield from (f"missing after: {self.described(one)}" for one in self.trailing)


def plan_sequence(
    stages: Sequence[Stage],
    layout: Layout,
    *,
    until: Stage | None = None,
    span_ns: int | None = None,
    text: object = "",
) -> SequencePlan:
    """The plan of a sequence of two or more stages, at least one of which must be present.

    All stages, and `until`, have equally many keys. Labels are the numbers of the stages, from 1. The first
    and the last event are at most `span_ns` nanoseconds apart, which is required if a stage at an end is
    missing. `text` is what the query prints as. Raises `QueryError` if keys have values that cannot be equal,
    or if events have no time for the span.
    """
    further = () if until is None else (until,)
    draft = drafted(stages, further, layout, span_ns=span_ns, text=text)
    shown = [number for number, stage in enumerate(stages) if not stage.missing]
    before = {
        number: sum(place < number for place in shown) for number, stage in enumerate(stages) if stage.missing
    }
    checks = draft.checks
    return SequencePlan(
        **draft.fields,
        stages=tuple(checks[number] for number in shown),
        labels=tuple(draft.labels[number] for number in shown),
        leading=tuple(checks[number] for number, count in before.items() if count == 0),
        trailing=tuple(checks[number] for number, count in before.items() if count == len(shown)),
        gaps=tuple((count - 1, checks[number]) for number, count in before.items() if 0 < count < len(shown)),
        until=checks[len(stages) :],
    )
