"""The positions of the columns of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from estero.answers.answer_schema import (
    COMPLETE,
    DECIDED_KEY,
    EXPIRED_TIME,
    PARTIAL_KEY,
    STEPS,
    SUPPRESSED_KEY,
    is_stage,
    label_of,
    measure_of,
)


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The positions of the columns of an answer: labels and partition columns by name, in order.

    `stages` are the columns of the labels that are stages, in order.
    """

    labels: Mapping[str, int]
    partition: Mapping[str, int]
    has_time: bool
    suppressed: int | None
    decided_time: int | None
    steps: int | None
    expired_time: int | None
    complete: int | None
    measures: Mapping[str, int]
    stages: tuple[int, ...]

    @staticmethod
    def of(schema: pa.Schema) -> AnswerColumns:
        """The columns of an answer with this schema."""
        labels = {label: i for i, field in enumerate(schema) if (label := label_of(field)) is not None}
        has_time = "start_time" in schema.names and schema.get_field_index("start_time") == 2
        first = 4 if has_time else 2
        measures = {name: i for i, field in enumerate(schema) if (name := measure_of(field)) is not None}
        left_out = [i for i, field in enumerate(schema) if SUPPRESSED_KEY in (field.metadata or {})]
        decided = [i for i, field in enumerate(schema) if DECIDED_KEY in (field.metadata or {})]
        partial = {(field.metadata or {}).get(PARTIAL_KEY, b"").decode(): i for i, field in enumerate(schema)}
        came = [partial.get(STEPS), partial.get(EXPIRED_TIME), partial.get(COMPLETE)]
        others = {*labels.values(), *left_out, *decided, *came, *measures.values()}
        partition = {field.name: i for i, field in enumerate(schema) if i >= first and i not in others}
        single = [next(iter(left_out), None), next(iter(decided), None), *came]
        suppressed, decided_time, steps, expired, complete = single
        return AnswerColumns(
            labels,
            partition,
            has_time,
            suppressed,
            decided_time,
            steps,
            expired,
            complete,
            measures,
            tuple(i for i, field in enumerate(schema) if is_stage(field)),
        )
