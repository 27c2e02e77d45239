"""The runs of the plan of a sequence by stages, or of a sample.

Only recognition imports this module, because it loads the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estero.automata.residual import NO_HIDDEN
from estero.engine.runs.sequences.run_sequences import SequenceTables
from estero.engine.runs.sequences.sample_runs import SampleRuns
from estero.engine.runs.sequences.sequence_runs import SequenceRuns
from estero.plan.opening import length_of
from estero.plan.plan import Opened

if TYPE_CHECKING:
    from estero.plan.stages import Asked, StagedPlan


def opened_sequence(
    plan: StagedPlan,
    words: int,
    *,
    gaps: Sequence[tuple[int, Asked]],
    leading: Sequence[Asked],
    trailing: Sequence[Asked],
    until: Sequence[Asked],
) -> Opened:
    """The runs of a sequence; label set i is that of its stage i.

    Stages that must be missing, and conditions that drop candidates, are as in `SequencePlan`.
    """
    tables = SequenceTables(
        *_columns(plan.stages),
        np.arange(len(plan.stages), dtype=np.int32),
        np.array([stage for stage, _ in gaps], np.int64),
        *_columns([asked for _, asked in gaps]),
        *_columns(leading),
        *_columns(trailing),
        *_columns(until),
    )
    labels = [frozenset({label}) for label in plan.labels]
    runs = SequenceRuns(tables, length_of(plan))
    hidden = [NO_HIDDEN] * len(labels)
    return Opened(runs, labels, hidden, words, partitioned=plan.keyed, compared=False, keys=plan.columns)


def opened_sample(plan: StagedPlan, words: int, most: int) -> Opened:
    """The runs of a sample, with up to `most` for a key; label set i is that of its condition i."""
    labels = [frozenset({label}) for label in plan.labels]
    runs = SampleRuns(*_columns(plan.stages), most)
    hidden = [NO_HIDDEN] * len(labels)
    return Opened(runs, labels, hidden, words, partitioned=plan.keyed, compared=False, keys=plan.columns)


def _columns(stages: Sequence[Asked]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The bits and the key columns."""
    return np.array([one.bit for one in stages], np.int64), np.array([one.key for one in stages], np.int64)
