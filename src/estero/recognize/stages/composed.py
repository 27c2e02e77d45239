"""The parts for a plan: stages in order, only those that it needs, and their reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_store import EventStore
from estero.answers.report import Reporter
from estero.answers.sieve.starts import Starts, partition_columns
from estero.answers.wait import Wait
from estero.engine.recognizer import Recognizer
from estero.engine.throttle import Throttle
from estero.engine.walk.share import WHOLE, Share
from estero.language.tree.query import Consume
from estero.plan.plan import Opened, Plan
from estero.recognize.consumed import Consumed
from estero.recognize.ended_sets import EndedSets
from estero.recognize.set_reader import SetReader
from estero.recognize.stages.consumption import ConsumptionStage
from estero.recognize.stages.deadlines import DeadlineHold
from estero.recognize.stages.deal import DealStage
from estero.recognize.stages.nearby import NearbyStage
from estero.recognize.stages.sift import SiftStage
from estero.recognize.stages.stage import Pipeline, Stage
from estero.recognize.stages.starts import StartStage
from estero.recognize.stages.throttle import ThrottleStage

if TYPE_CHECKING:
    from estero.answers.sieve.nearby import NearbyEvents
    from estero.answers.sieve.sieve import Sieve


def reader_of(
    plan: Plan,
    opened: Opened,
    events: pa.Schema,
    *,
    time: pa.DataType | None,
    positions: bool,
    nearby: NearbyEvents | None,
    consumed: Consumed | None,
) -> SetReader:
    """The reader of a plan's results; its store has the columns of events that stages read."""
    asked = () if consumed is None else consumed.columns
    reporter = Reporter(
        plan.shown,
        opened.label_sets,
        events,
        keys=plan.shown_keys,
        time=time,
        positions=positions,
        suppressed=plan.interval is not None,
        measures=plan.measures,
        wait=plan.wait,
    )
    return SetReader(
        plan,
        Recognizer(opened.runs),
        EventStore(events, (*partition_columns(plan), *asked)),
        reporter,
        _sieve_of(plan, opened, nearby, time, placed=positions or plan.needs_positions),
    )


def event_stages(plan: Plan, events: pa.Schema, nearby: NearbyEvents | None) -> Pipeline[pa.RecordBatch]:
    """The stages that classified events pass before they are recognized; `events` is their schema."""
    stages: list[Stage[pa.RecordBatch]] = []
    if nearby is not None:
        stages.append(NearbyStage(nearby))
    if plan.deadlines:
        stages.append(DeadlineHold(plan, events))
    return Pipeline(stages)


def set_stages(
    reader: SetReader,
    events: pa.Schema,
    *,
    in_order: bool,
    starts: NDArray[np.int64] | None,
    consumed: Consumed | None,
    share: Share,
) -> Pipeline[EndedSets]:
    """The stages that compact sets pass; `starts` are the positions of the starts that are wanted."""
    plan = reader.plan
    stages: list[Stage[EndedSets]] = []
    if plan.lists_for_starts:
        candidates = Starts(plan, events, ordered=in_order, wanted=starts)
        stages.append(StartStage(candidates, reader, consumed))
    elif plan.consume is not Consume.NONE:
        if reader.sieve is not None:
            stages.append(SiftStage(reader))
        if consumed is not None:
            stages.append(ConsumptionStage(reader, consumed))
    if plan.limit is not None and plan.limit.interval is not None:
        throttle = Throttle(plan.limit.most, plan.limit.interval)
        stages.append(ThrottleStage(throttle, reader, partition_columns(plan)))
    if share != WHOLE:
        stages.append(DealStage(reader, share))
    return Pipeline(stages)


def nearby_of(plan: Plan, events: pa.Schema) -> NearbyEvents | None:
    """The events forbidden by compared absences; None if a plan has no such absences."""
    if not any(deadline.compared for deadline in plan.deadlines):
        return None
    from estero.answers.sieve.nearby import NearbyEvents  # loads DuckDB, which few workers of Spark need

    return NearbyEvents(plan, events)


def _sieve_of(
    plan: Plan, opened: Opened, nearby: NearbyEvents | None, time: pa.DataType | None, *, placed: bool
) -> Sieve | None:
    """The sieve for the complex events of a plan; None if each of them is an answer.

    Events are `placed` if they have the positions of the whole stream.
    """
    if not plan.sieved:
        return None
    from estero.answers.sieve.sieve import Sieve  # loads DuckDB, too

    return Sieve(
        plan.residuals,
        opened.label_sets,
        opened.hidden_sets,
        classification=plan.classification,
        strategy=plan.strategy,
        limit=None if plan.limit is None or plan.lists_for_starts else plan.limit.per_end,
        predicates=plan.predicates,
        repeats=plan.has_hidden,
        marks_only=plan.merges_starts,
        placed=placed,
        nearby=nearby,
        wait=None if plan.wait is None or time is None else Wait(plan.wait, time),
    )
