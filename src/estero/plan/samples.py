"""Plans of samples: for each key one event for each condition, in any order (EQL)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from estero.errors import QueryError
from estero.plan.plan import Layout, Opened, Section
from estero.plan.stages import Stage, StagedPlan, drafted

MOST_CONDITIONS = 63
"""The conditions that an event satisfies are the bits of a number."""


MOST_SAMPLES = 1000
"""The largest number of samples for a key; it decides how many events are kept for the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan(StagedPlan):
    """How a sample is evaluated where each key has one."""

    @property
    def kernels(self) -> str:
        return "samples"

    @property
    def most(self) -> int:
        """The largest number of samples for a key."""
        return 1

    def opened(self, words: int, *, ordinals: bool, counting: bool, total: bool) -> Opened:
        from estero.plan.opening_sequences import opened_sample  # loads the kernels

        del ordinals, counting, total
        return opened_sample(self, words, self.most)

    def lines(self) -> Iterator[str]:
        """The algorithm that runs, and its guarantees."""
        yield "samples: for each key, augmenting paths extend a matching of conditions and events"
        yield "guarantee: time per event depends only on the number of conditions; each key has one sample"

    def automaton_sections(self) -> Iterator[Section]:
        """The conditions."""
        stages = zip(self.labels, self.stages, strict=True)
        yield "Conditions", (f"{label}: {self.described(stage)}" for label, stage in stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesPlan(SamplePlan):
    """How samples are evaluated if a key may have several; states record the number unless it is one."""

    evaluated: ClassVar[tuple[str, ...]] = (*StagedPlan.evaluated, "samples")

    samples: int

    @property
    def most(self) -> int:
        return self.samples

    def lines(self) -> Iterator[str]:
        """The algorithm that runs, and its guarantees."""
        yield (
            "samples: for each key, augmenting paths extend a matching of conditions and events; "
            "further samples are chosen among the first events of each condition"
        )
        yield (
            "guarantee: time per event and sample depends on the number of conditions and samples; "
            f"each key has at most {self.samples:,} samples and "
            f"{len(self.stages) * (self.samples + len(self.stages) - 2):,} events"
        )


def plan_sample(stages: Sequence[Stage], layout: Layout, *, most: int = 1, text: object = "") -> SamplePlan:
    """The plan of a sample: the first `most` of each key; see `plan_sequence`.

    Also raises `QueryError` for more than `MOST_CONDITIONS` stages.
    """
    if len(stages) > MOST_CONDITIONS:
        raise QueryError(
            f"a sample has at most {MOST_CONDITIONS} conditions, and this one has {len(stages)}",
            text=str(text),
        )
    draft = drafted(stages, (), layout, span_ns=None, text=text)
    fields: dict[str, Any] = {**draft.fields, "stages": draft.checks, "labels": draft.labels}
    return SamplePlan(**fields) if most == 1 else SamplesPlan(**fields, samples=most)
