"""One query on one source of events, with the questions about a whole stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.plan.plan import Layout
from estero.recognize.source_run import SourceRun

if TYPE_CHECKING:
    from estero.answers.why_not import WhyNot
    from estero.recognize.partial_matches.partials_run import PartialsRun


@dataclass(frozen=True, slots=True)
class InProcessRun(SourceRun):
    """A run that also tells how far starts get, and what keeps them from getting further."""

    def funnel(self, *, by_partition: bool, by: Sequence[str] = (), chosen: bool = False) -> pa.Table:
        """The table of a `Funnel`."""
        from estero.plan.levels import levels_plan  # loads the rules of planning
        from estero.recognize.partial_matches.funnels import funnel_table

        self.plan.refuse_levels()
        levels = levels_plan(self.plan.tree, self._layout(), chosen=chosen)
        return funnel_table(
            levels,
            self.source,
            by_partition=by_partition,
            by=by,
            until=self.until,
            threads=self.threads,
        )

    def partials(self, *, chosen: bool = False) -> PartialsRun:
        """The run of the partial matches whose windows have passed."""
        from estero.plan.levels import partials_plan  # loads the rules of planning
        from estero.recognize.partial_matches.partials_run import PartialsRun

        self.plan.refuse_levels()
        plan = partials_plan(self.plan.tree, self._layout(), chosen=chosen)
        return PartialsRun(plan, self.source, self.until, self.threads)

    def why_not(self, sample: int | None, seconds: float | None) -> WhyNot:
        """The explanation why there are not more complex events."""
        from estero.recognize.why_not import why_not  # loads the rules of planning

        self.plan.refuse_levels()
        return why_not(self, sample, seconds)

    def _layout(self) -> Layout:
        return replace(self.source.layout, schema=self.plan.classification.schema)
