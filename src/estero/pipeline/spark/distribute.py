"""Classified rows → the tasks that recognize them: by keys, in ranges of time, or all in one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from estero.pipeline.spark.failures import jobs
from estero.pipeline.spark.frames import Tasks, classified_frame
from estero.pipeline.spark.halo import halo_frame, halo_of
from estero.plan_joins import AnyPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Distributed(NamedTuple):
    """Classified rows as tasks receive them: in stream order, or with `in_ranges` as halo.py cuts them."""

    rows: DataFrame
    in_ranges: bool


def distribute(df: DataFrame, plan: AnyPlan, tasks: Tasks, count: int | None) -> Distributed:
    """The classified rows of `df` in `count` tasks, as far as `plan` lets several work at once.

    Raises ValueError for less than one task, and what is wrong with a time where cutting reads it.
    """
    if count is not None and count < 1:
        raise ValueError(f"at least 1 task shares the partition keys, not {count}")
    with jobs():
        window = halo_of(plan)
        if window is not None and count != 1:
            cut = halo_frame(df, plan.classification, window, positions=tasks.positions, count=count)
            if cut is not None:
                return Distributed(cut, in_ranges=True)
        rows = classified_frame(df, plan.classification, replace(tasks, count=count))
        return Distributed(rows, in_ranges=False)
