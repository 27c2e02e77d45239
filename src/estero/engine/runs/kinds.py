"""The kind of runs that the settings of a deterministic automaton ask for."""

from __future__ import annotations

from estero.engine.runs.cea_runs import CeaRuns
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.plain_runs import PlainRuns
from estero.engine.runs.tables import Automaton


def cea_runs(automaton: Automaton, settings: Settings) -> CeaRuns:
    """Makes empty runs of the kind that the settings ask for."""
    if settings.clocks:
        from estero.engine.runs.aged.aged_runs import AgedRuns  # each kind loads kernels of its own

        return AgedRuns(automaton, settings)
    if settings.split:
        from estero.engine.runs.split.split_runs import SplitRuns

        return SplitRuns(automaton, settings)
    if settings.chooses:
        from estero.engine.runs.spans.span_runs import SpanRuns

        return SpanRuns(automaton, settings)
    if settings.total and settings.goes_by_states:
        from estero.engine.tally.counted_runs import CountedRuns

        return CountedRuns(automaton, settings)
    return PlainRuns(automaton, settings)
