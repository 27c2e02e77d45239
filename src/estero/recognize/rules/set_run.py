"""A set of rules on one source of events, which is read for each answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from estero.answers.rule_answers import RulesRun
from estero.answers.rule_rows import RuleTable, rule_schema
from estero.events.sources import Source
from estero.plan.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from estero.recognize.in_process import InProcessRun
    from estero.recognize.source_run import Progress


@dataclass(frozen=True, slots=True)
class RuleSetRun(RulesRun):
    """The plans of a set of rules, by name, over one source; each method reads the events again.

    Events are known up to time `until`, in ticks, or up to the last one. `progress` is called after each
    batch. If there are many events, the rules are divided among up to `threads` threads.

    Recognition and its kernels are imported when the first answer is read, because planning needs neither.
    """

    plans: Mapping[str, Plan]
    source: Source
    until: int | None = None
    progress: Progress | None = None
    threads: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return tuple(self.plans)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the common table."""
        from estero.recognize.source_run import time_type

        return rule_schema(time_type(self.source))

    def alone(self, name: str) -> InProcessRun:
        """The run of one rule."""
        from estero.recognize.in_process import InProcessRun

        return InProcessRun(self.plans[name], self.source, until=self.until, threads=self.threads)

    def tables(self) -> Iterator[RuleTable]:
        """The complex events of all rules; those that a batch of events decides together, by group."""
        from estero.recognize.rules import set_reading

        return set_reading.tables(self)

    def placed_rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the complex events of all rules in the common table."""
        from estero.recognize.rules import set_reading

        return set_reading.placed_rows(self)

    def counts(self) -> dict[str, int]:
        """The exact number of complex events of each rule, by name."""
        from estero.recognize.rules import set_reading

        return set_reading.counts(self)
