"""The runs of a plan's automaton: its integer tables, and the meaning of its marks.

Only recognition imports this module, because it loads the kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from estero.automata import registers
from estero.automata.ages import AgedAutomaton
from estero.automata.cea import without_marks
from estero.automata.determinize import LazyAutomaton
from estero.automata.registers import RegisterProgram
from estero.automata.strategies import MaxAutomaton
from estero.engine.batch import BITS_IN_WORD
from estero.engine.cursor import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    CONSUME_NONE,
    CONSUME_PARTITION,
    CONSUME_PARTITION_ASKED,
)
from estero.engine.runs.kinds import cea_runs
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.spans.run_spans import MAX
from estero.engine.runs.split.ranks import LAST, NEXT, NO_ORDER
from estero.engine.runs.split.registers import RegisterTables
from estero.engine.runs.split.run_split import FIRST_ENDS, LAST_ENDS, NOT_APART
from estero.engine.runs.starts.groups import DISJOINT, DISJOINT_IN_PARTITIONS, NOT_DISJOINT
from estero.engine.runs.starts.start_runs import ByStart, StartRuns
from estero.language.tree.query import Consume, Strategy
from estero.plan.passes import Compared, Listed, PerStart
from estero.plan.plan import Opened, Plan

_CONSUME = {
    Consume.NONE: (CONSUME_NONE, CONSUME_NONE),
    Consume.ANY: (CONSUME_ANY, CONSUME_ANY_ASKED),
    Consume.PARTITION: (CONSUME_PARTITION, CONSUME_PARTITION_ASKED),
}
"""The events forgotten after an answer: directly, and if filters remain that decide what an answer is."""

_ORDER = {Strategy.MAX: MAX, Strategy.NEXT: NEXT, Strategy.LAST: LAST}


class _Comparison(NamedTuple):
    """How runs are compared as they go on; see `order`, `per_start` and `apart` of `Settings`."""

    order: int = NO_ORDER
    per_start: bool = False
    apart: int = NOT_APART


_Deterministic = LazyAutomaton | MaxAutomaton | AgedAutomaton


def opened_automaton(  # noqa: PLR0913  (the properties of a plan, and the request)
    plan: Plan,
    automaton: _Deterministic,
    program: RegisterProgram | None,
    words: int,
    *,
    first_bit: int | None,
    gaps: bool,
    ordinals: bool,
    counting: bool,
    total: bool,
) -> Opened:
    """The runs of a CEA. The bit of the first event gets a word of its own if the others are full."""
    clocks = automaton.program.clocks if isinstance(automaton, AgedAutomaton) else ()
    shown = program.clocks if program is not None else clocks
    if first_bit is not None and first_bit // BITS_IN_WORD >= words:
        words += 1
    compared = _comparison(plan)
    settings = Settings(
        window=length_of(plan),
        consume=consume_of(plan),
        gaps=gaps,
        keyed=plan.keyed,
        words=words,
        counting=counting and not (total and plan.limit is not None),
        total=total,
        registers=_registers(program, automaton),
        order=compared.order,
        per_start=compared.per_start,
        apart=compared.apart,
        visible=np.array([bool(labels) for labels in automaton.label_sets], np.bool_),
        first_bit=first_bit,
        ordinals=ordinals,
        clocks=len(clocks),
    )
    marks = automaton.label_sets, automaton.hidden_sets
    match plan.served_by:
        case PerStart(listed=Listed.NOTHING) if isinstance(automaton, LazyAutomaton):
            unmarked = LazyAutomaton(without_marks(automaton.cea), automaton.state_cap)
            by_start = StartRuns(automaton, unmarked, settings, _by_start(plan))
            return Opened(by_start, *marks, words, plan.keyed, compared=False, automaton=unmarked)
        case _:
            runs = cea_runs(automaton, settings)
            return Opened(runs, *marks, words, plan.keyed, compared=True, automaton=automaton, clocks=shown)


def _comparison(plan: Plan) -> _Comparison:
    match plan.served_by:
        case Compared():
            return _Comparison(_ORDER[plan.strategy])
        case PerStart(listed=Listed.BEST, drops_overlaps=True):
            ends = LAST_ENDS if plan.strategy is Strategy.LONGEST else FIRST_ENDS
            return _Comparison(NEXT, per_start=True, apart=ends)
        case PerStart(listed=Listed.BEST):
            return _Comparison(NEXT, per_start=True)
        case _:
            return _Comparison()


def _by_start(plan: Plan) -> ByStart:
    """The choice made for each start; a query without keys of its own has one partition."""
    disjoint = NOT_DISJOINT
    if plan.tree.disjoint:
        disjoint = DISJOINT_IN_PARTITIONS if plan.shown_keys else DISJOINT
    limit = None if plan.limit is None else plan.limit.per_end
    return ByStart(plan.strategy is Strategy.LONGEST, disjoint, limit)


def length_of(plan: Plan) -> int | None:
    """The length of the window, if there is one."""
    return None if plan.window is None else plan.window.length


def consume_of(plan: Plan) -> int:
    """The CONSUME code: forget directly, or on request if a filter decides what an answer is."""
    return _CONSUME[plan.consume][plan.sieved]


def _registers(program: RegisterProgram | None, automaton: _Deterministic) -> RegisterTables | None:
    if program is None:
        return None
    steps = registers.tables(program, automaton.label_sets, automaton.hidden_sets)
    flat = np.array([step for steps_of_mark in steps for step in steps_of_mark], np.int64).reshape(-1, 4)
    first = np.cumsum([0, *map(len, steps)], dtype=np.int32)
    action, register, value = flat[:, :3].T.astype(np.int32)
    return RegisterTables(program.registers, first, action, register, value, flat[:, 3])
