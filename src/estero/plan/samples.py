"""Plans of samples: of each key one event for each condition, in whatever order they come (EQL)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from estero.errors import QueryError
from estero.plan.plan import Layout, Opened, Section
from estero.plan.stages import Stage, StagedPlan, drafted

MOST_CONDITIONS = 63
"""The conditions that an event satisfies are the bits of a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan(StagedPlan):
    """How a sample is evaluated."""

    @property
    def kernels(self) -> str:
        return "samples"

    def opened(self, words: int, *, ordinals: bool, counting: bool, total: bool) -> Opened:
        from estero.plan.opening_sequences import opened_sample  # loads the kernels

        del ordinals, counting, total
        return opened_sample(self, words)

    def lines(self) -> Iterator[str]:
        """Which algorithm runs, and what it guarantees."""
        yield ("samples: each key has a matching of conditions and events, which grows by augmenting paths")
        yield "guarantee: per event a time that depends on the conditions alone; each key has one sample"

    def automaton_sections(self) -> Iterator[Section]:
        """The conditions."""
        stages = zip(self.labels, self.stages, strict=True)
        yield "Conditions", (f"{label}: {self.asked_in_words(asked)}" for label, asked in stages)


def plan_sample(
    stages: Sequence[Stage], layout: Layout, *, names: Sequence[str] = (), text: str = ""
) -> SamplePlan:
    """The plan of a sample: the first one of each key; see `plan_sequence`.

    Raises `QueryError` for more than `MOST_CONDITIONS` stages, too.
    """
    if len(stages) > MOST_CONDITIONS:
        raise QueryError(
            f"a sample has at most {MOST_CONDITIONS} conditions, and this one has {len(stages)}", text=text
        )
    draft = drafted(stages, (), layout, span_ns=None, names=names, text=text)
    return SamplePlan(**draft.fields, stages=draft.asked, labels=draft.labels)
