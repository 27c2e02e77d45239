"""A set of rules on one source of events, which is read when an answer is."""

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
    """The plans of a set of rules, by name, over one source; every question reads the events anew.

    Events are known up to time `until`, in ticks, or the last one. `progress` is told behind each batch.
    Where events are many, the rules are shared out to as many `threads`.

    Recognition and its kernels are imported by the first question: planning needs none of them.
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
        """The run of one rule by itself."""
        from estero.recognize.in_process import InProcessRun

        return InProcessRun(self.plans[name], self.source, until=self.until, threads=self.threads)

    def tables(self) -> Iterator[RuleTable]:
        """The complex events of all rules; those that a batch of events decides together, by group."""
        from estero.recognize.rules import set_reading

        return set_reading.tables(self)

    def placed_tables(self) -> Iterator[RuleTable]:
        """The same, of whose events only positions are asked."""
        from estero.recognize.rules import set_reading

        return set_reading.placed_tables(self)

    def counts(self) -> dict[str, int]:
        """The exact number of complex events of each rule, by name."""
        from estero.recognize.rules import set_reading

        return set_reading.counts(self)
