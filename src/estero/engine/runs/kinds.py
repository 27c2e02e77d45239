"""Which kind of runs the settings of a deterministic automaton ask for."""

from __future__ import annotations

from estero.engine.runs.aged.aged_runs import AgedRuns
from estero.engine.runs.cea_runs import CeaRuns
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.plain_runs import PlainRuns
from estero.engine.runs.spans.span_runs import SpanRuns
from estero.engine.runs.split.split_runs import SplitRuns
from estero.engine.runs.tables import Automaton


def cea_runs(automaton: Automaton, settings: Settings) -> CeaRuns:
    """No runs yet, of the kind that the settings ask for."""
    if settings.clocks:
        return AgedRuns(automaton, settings)
    if settings.split:
        return SplitRuns(automaton, settings)
    return SpanRuns(automaton, settings) if settings.chooses else PlainRuns(automaton, settings)
