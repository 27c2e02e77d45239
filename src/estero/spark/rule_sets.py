"""Sets of rules over a DataFrame, a batch or a stream, and the options that conflict with them."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from estero.queries.rules.read_rules import rules as rules_of
from estero.queries.rules.rule_set import RuleSet
from estero.queries.rules.rule_table import RuleTable
from estero.spark.asked import MOST_TASKS, check_number, laid_out, refuse_on_stream
from estero.spark.batch.rules import recognize_rules
from estero.spark.streams.changing_rules import recognize_changing_rules
from estero.spark.streams.rule_source import of_files
from estero.spark.streams.rules import recognize_rules_on_stream
from estero.spark.streams.streaming import MOST_BUCKETS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from estero.events.streams.stream_layout import Keep, Lateness
    from estero.language.tree.schema import EventLayout
    from estero.recognize.until import Until


def refuse_for_rules(**given: object) -> None:
    """Raises ValueError for options of a single query that are given with a set of rules."""
    for name, value in given.items():
        if value not in (None, False):
            raise ValueError(f"{name} is for one query: leave it out for a set of rules")


def recognize_set(  # noqa: PLR0913 (what users may have to say)
    df: DataFrame,
    columns: EventLayout,
    rules: RuleSet | RuleTable | PathLike[str],
    *,
    positions: bool,
    partitions: int | None,
    until: Until | None,
    lateness: Lateness | None,
    state: str | None,
    metadata: str | Sequence[str],
    keep: Keep | None,
    answer_ids: bool,
) -> DataFrame:
    """The complex events of all rules, see `estero.spark.recognize`."""
    lives = df.isStreaming or state is not None
    check_number("partitions", partitions, MOST_BUCKETS if lives else MOST_TASKS)
    if not df.isStreaming and isinstance(rules, RuleTable):
        rules = of_files(df.sparkSession, rules).rules()
    elif not df.isStreaming and isinstance(rules, PathLike):
        rules = rules_of(rules)
    df, layout = laid_out(df, columns, rules.only_type if isinstance(rules, RuleSet) else "Event")
    if lives:
        refuse_on_stream(share=None, split_keys=True, until=until)
    if not isinstance(rules, RuleSet):
        if state is not None:
            raise ValueError(
                "rules that may change see events from when they come: leave state out, or take a set"
            )
        if not positions:
            raise ValueError(
                "rules that may change show positions, as one task has all events: leave positions out"
            )
        if metadata:
            raise ValueError(
                "metadata is for rules that stay as they are: give estero.rules(path) in place of the path, "
                "or table.rules() in place of the table"
            )
        _refuse_partitions(partitions)
        place = rules if isinstance(rules, RuleTable) else Path(rules)
        return recognize_changing_rules(
            df, place, columns, layout, lateness=lateness, keep=keep, answer_ids=answer_ids
        )
    if keep is not None:
        raise ValueError("keep is for rules that may change while a stream runs: leave it out")
    said = rules.columns(metadata, encoded=False)
    if lives:
        if positions:
            _refuse_partitions(partitions)
        return recognize_rules_on_stream(
            df,
            rules.plans(layout),
            layout,
            positions=positions,
            partitions=partitions,
            lateness=lateness,
            state=state,
            said=said,
            answer_ids=answer_ids,
        )
    if lateness is not None:
        raise ValueError("lateness is for streaming DataFrames: a batch has all its events at once")
    return recognize_rules(
        df,
        rules.plans(layout),
        layout,
        positions=positions,
        partitions=partitions,
        until=until,
        said=said,
    )


def _refuse_partitions(partitions: int | None) -> None:
    """Raises ValueError for a number of buckets if rules show positions on a stream."""
    if partitions is not None:
        raise ValueError(
            "on a stream, one task numbers all events where rules show positions: leave partitions out, or "
            "say positions=False of a set of rules"
        )
