"""Plans with a complex event automaton: compact sets, with registers on top and a filter after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import TYPE_CHECKING, ClassVar

from estero.automata.ages import AgedAutomaton, AgeProgram, by_age, with_distances
from estero.automata.cea import CEA, FIRST, EventPredicate
from estero.automata.counted import largest_count, with_counts
from estero.automata.determinize import DEAD, DEFAULT_STATE_CAP, LazyAutomaton
from estero.automata.exploration import reached
from estero.automata.greatest import has_greatest
from estero.automata.growing import growing_keys
from estero.automata.lacking import of_one_event
from estero.automata.marking import ends_on_anything, has_contiguity, marks_its_start, marks_several
from estero.automata.registers import RegisterProgram, drop_hidden
from estero.automata.residual import NO_HIDDEN, Apartness, Residual, predicates_called
from estero.automata.strategies import MaxAutomaton
from estero.language.check.set_predicates import registered_among
from estero.language.tree import pattern as p
from estero.language.tree.query import Consume, Strategy
from estero.language.tree.words import named
from estero.plan.automaton_lines import automaton_lines, label_lines, steps_of
from estero.plan.deadlines import deadlines_of
from estero.plan.passes import AtEnd, Compared, Listed, Pass, PerStart
from estero.plan.plan import Opened, Plan, Section, measured_in_places

if TYPE_CHECKING:
    from estero.plan.draft import Compilation, Draft  # what made a plan does not cross to Spark's workers

FEW_STATES, FEW_CLASSES = 200, 64
"""The deterministic automaton is built in full for an explanation if it is no larger than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomatonPlan(Plan):
    """How a query is evaluated by a complex event automaton.

    With `best_per_start` each start keeps the complex event that NEXT chooses among all of its own, wherever
    they end. With `asks_greatest` it is enough to check all filters on the one that NEXT chooses for a start
    and an end: if that one fails, all others do. `cut_by` is the CONSUME code of another query, if this plan
    finds that query's partial matches.

    `gaps` says that dropped events count (contiguity): recognition then needs each event's position in the
    stream. `registers` are the comparisons that runs check as they go.
    """

    evaluated: ClassVar[tuple[str, ...]] = (
        "automaton",
        "gaps",
        "registers",
        "ages",
        "best_per_start",
        "asks_greatest",
        "cut_by",
    )

    automaton: CEA
    gaps: bool = False
    state_cap: int = DEFAULT_STATE_CAP
    registers: RegisterProgram | None = None
    ages: AgeProgram | None = None
    best_per_start: bool = False
    asks_greatest: bool = False
    cut_by: Consume = Consume.NONE

    @property
    def from_first(self) -> bool:
        return FIRST in self.automaton.predicates

    @property
    def counts_places(self) -> bool:
        return self.gaps or (self.from_first and not self.keyed)

    @property
    def has_hidden(self) -> bool:
        """Whether runs carry labels that answers do not show."""
        measured = frozenset(label for label, _ in self.ages.bounds) if self.ages is not None else NO_HIDDEN
        return any(transition.hidden - measured for transition in self.automaton.transitions)

    @property
    def merges_starts(self) -> bool:
        return self.distinct and not marks_its_start(self.automaton)

    @property
    def bits_for_deadlines(self) -> tuple[int, ...]:
        guards = (transition.guard for transition in self.automaton.transitions)
        read = {bit for guard in guards for bit in guard.present | guard.absent}
        return tuple(sorted({deadline.forbidden for deadline in self.deadlines} - read))

    @property
    def forgets_by_age(self) -> bool:
        return self.ages is not None

    @property
    def measures_places(self) -> bool:
        clocks = any(any(program.clocks) for program in (self.ages, self.registers) if program is not None)
        return clocks or measured_in_places(self.residuals)

    def _pass(self) -> Pass:
        """The pass that serves the query, by its strategy and by what distinguishes complex events."""
        sieved = bool(self.residuals) or self.has_hidden or self.merges_starts
        match self.strategy:
            case Strategy.LONGEST | Strategy.SHORTEST:
                return self._pass_per_start(sieved=sieved)
            case Strategy.MAX if not (self.residuals or self.has_hidden or self._distinguishes_runs):
                return Compared(sieved)
            case Strategy.NEXT | Strategy.LAST if not self.residuals and self.ages is None:
                return Compared(sieved)
            case Strategy.MAX | Strategy.NEXT | Strategy.LAST:
                return AtEnd(sieved=True)
            case _:
                forgets = self.consume is not Consume.NONE
                return AtEnd(sieved, tallied=not (sieved or self._distinguishes_runs or self.gaps or forgets))

    def _pass_per_start(self, *, sieved: bool) -> PerStart:
        if not (sieved or self.registers is not None or self.best_per_start):
            return PerStart(Listed.NOTHING)
        distinguished = (self.registers is not None or self.best_per_start) and not self.residuals
        if not ((distinguished or self.asks_greatest) and marks_its_start(self.automaton)):
            return PerStart(Listed.ALL, sieved)
        return PerStart(Listed.BEST, sieved, drops_overlaps=self.tree.disjoint and self._decides_overlaps)

    @property
    def _distinguishes_runs(self) -> bool:
        """Whether runs in one state may differ in the values they remember or in their age."""
        return self.registers is not None or self.ages is not None

    @property
    def _decides_overlaps(self) -> bool:
        """Whether it is known as soon as complex events end which of them DISJOINT keeps.

        It is not if something decides later whether an ended match is an answer, nor if runs are in
        partitions that the pattern makes: DISJOINT then concerns the whole stream.
        """
        later = self.residuals or self.best_per_start or self.deadlines or self.cut_by is not Consume.NONE
        return not later and (not self.keyed or bool(self.shown_keys))

    @property
    def kernels(self) -> str:
        match self.served_by:
            case _ if self.ages is not None:
                return "cea-aged"
            case PerStart(listed=Listed.NOTHING):
                return "cea-starts"
            case PerStart(listed=Listed.BEST):
                return "cea-split"
            case _ if self.registers is not None:
                return "cea-split"
            case Compared():
                return "cea-spans"
            case _:
                return "cea"

    @property
    def machine(self) -> CEA:
        return self.automaton

    @property
    def drawn(self) -> CEA:
        """The automaton."""
        return self.automaton

    @property
    def estimated_by(self) -> CEA | None:
        """The automaton, if its runs depend only on the classes of events and mark several events."""
        distinguished = self.registers is not None or self.ages is not None or self.has_hidden
        distinguished = distinguished or bool(self.deadlines) or self.merges_starts
        if distinguished or self.decides_later or not marks_several(self.automaton):
            return None
        return self.automaton

    def opened(self, words: int, *, ordinals: bool, counting: bool, total: bool) -> Opened:
        from estero.plan.opening import opened_automaton  # loads the kernels

        return opened_automaton(
            self,
            self.deterministic(),
            self.registers,
            words,
            first_bit=len(self.automaton.predicates) - 1 if self.from_first else None,
            gaps=self.gaps or ordinals,
            ordinals=ordinals,
            counting=counting,
            total=total and self.totals_by_states,
        )

    @property
    def totals_by_states(self) -> bool:
        match self.limit:
            case None:
                countable = self.window is None or not (self.keyed or self.automaton.repeats)
            case limit:
                countable = limit.interval is None and limit.per_end == 1
        tallied = isinstance(self.served_by, AtEnd) and self.served_by.tallied
        return tallied and countable

    def deterministic(self) -> LazyAutomaton | MaxAutomaton | AgedAutomaton:
        """A fresh deterministic automaton, whose states are computed as events reach them."""
        if self.ages is not None:
            return AgedAutomaton(self.automaton, self.state_cap, program=self.ages)
        automaton = LazyAutomaton(self.automaton, self.state_cap, registers=self.registers)
        largest = self.strategy is Strategy.MAX and isinstance(self.served_by, Compared)
        return MaxAutomaton(automaton, self.state_cap) if largest else automaton

    # ------------------------------------------------------------------------------------- in words

    def lines(self) -> Iterator[str]:
        if self.ages is not None:
            over = "residual filter over " if self.residuals else ""
            yield f"{over}CEA + tECS with ages: a distance is the time since a run marked its last event"
        elif self.residuals:
            yield "residual filter over CEA + tECS: some filters need the whole complex event"
        elif self.registers is not None:
            yield "CEA + tECS with registers: comparisons of variables are evaluated as runs advance"
        else:
            yield "CEA + tECS: all predicates concern single events, so one automaton evaluates the pattern"
        yield f"guarantee: {self._guarantee()}"
        if self.registers is not None:
            yield (
                f"registers: {self.registers.registers} per run; runs in one state with different values are "
                "tracked separately, so the time per event grows with their number"
            )

    def _guarantee(self) -> str:
        update = self._update()
        match self.served_by:
            case PerStart(listed=Listed.BEST) if self.residuals:
                first = "latest" if self.strategy is Strategy.LONGEST else "earliest"
                return (
                    "time per event linear in the starts in the window; the ends of each start are listed, "
                    f"{first} first, until one passes the filter"
                )
            case _ if self.residuals:
                return f"{update}; filters are evaluated during enumeration, so the delay is unbounded"
            case PerStart(listed=Listed.NOTHING):
                return f"{update}; each answer is read a second time, from its start to its end"
            case PerStart(listed=listed):
                kept = "latest" if self.strategy is Strategy.LONGEST else "earliest"
                candidates = (
                    "one complex event per start is" if listed is Listed.BEST else "all complex events are"
                )
                return f"{update}; at each end, {candidates} listed, and each start keeps its {kept} end"
            case AtEnd(sieved=True) | Compared(sieved=True):
                return (
                    f"{update}; complex events with the same end are compared with each other, so the delay "
                    "is unbounded"
                )
            case _:
                return f"{update}, output-linear delay between complex events"

    def _update(self) -> str:
        """The time that one event takes, in words."""
        if self.registers is not None:
            return "time per event linear in the register values of open runs"
        if self.ages is not None:
            return "amortised constant time per event (runs too old for their next step are dropped)"
        match self.served_by:
            case Compared() | PerStart(listed=Listed.BEST) if self.window is not None:
                return "time per event linear in the groups of windows that have runs in different states"
            case PerStart(listed=Listed.NOTHING):
                return "time per event linear in the different states of open starts"
            case _:
                return "constant time per event"

    def key_lines(self) -> Iterator[str]:
        """The partitions."""
        if self.keyed:
            keys = ", ".join(f"[{', '.join(map(named, bracket))}]" for bracket in self.classification.keys)
            why = "" if self.shown_keys else ", which the equalities of the pattern imply"
            yield f"partitions: by {keys}{why}; one pass of the kernel advances the runs of all partitions"

    def filter_lines(self) -> Iterator[str]:
        conditions = [
            predicate for predicate in self.classification.predicates if predicate.condition is not None
        ]
        if conditions:
            yield "in the automaton, as bits that the classification computes (conditions on one event):"
            yield from (f"  {condition}" for condition in dict.fromkeys(conditions))
        taken_back = [deadline for deadline in self.deadlines if not deadline.compared]
        if taken_back:
            yield "in the automaton, as bits that are cleared if such an event is near:"
            yield from (f"  {deadline}" for deadline in taken_back)
        if self.wait is not None:
            yield "complex events are returned when their deadlines have passed"
        yield from self._pushed_lines()
        if self.residuals:
            yield from self.residual_lines()
            known = self.classification.schema
            compares = any(not isinstance(residual.condition, Apartness) for residual in self.residuals)
            if compares and not known.types and not known.shared:
                yield "  (planned without events: registers may check some of these if the kinds are known)"
        if self.has_hidden:
            yield (
                "after enumeration: duplicates of a complex event, from runs with different hidden labels, "
                "are removed"
            )
        if self.merges_starts:
            yield "after enumeration: of complex events that differ only in their starts, one is returned"
        if self.strategy is not Strategy.ALL:
            yield f"strategy {self.strategy.value}: {self._strategy()}"
        if self.tree.disjoint:
            where = "in each partition" if self.shown_keys else "in the whole stream"
            yield f"DISJOINT: {where}, complex events that start before the last one kept ends are dropped"

    def _pushed_lines(self) -> Iterator[str]:
        """The filters that are evaluated as runs advance."""
        aged = [residual for residual in self.pushed if isinstance(residual.condition, Apartness)]
        if aged:
            yield "by the age of runs, as they advance (a run too old for its next step is dropped):"
            yield from (f"  {self.said(residual)}" for residual in aged)
        counted = [residual for residual in self.pushed if largest_count(residual) is not None]
        if counted:
            yield "by states of the automaton that count events:"
            yield from (f"  {self.said(residual)}" for residual in counted)
        others = [residual for residual in self.pushed if residual not in aged and residual not in counted]
        if others:
            yield "by registers, as runs advance (a run that violates a filter is dropped at once):"
            yield from dict.fromkeys(f"  {self.said(residual)}" for residual in others)

    def _strategy(self) -> str:
        """The stage that applies the strategy."""
        later = "decided when the window of the start has passed"
        match self.served_by:
            case PerStart(listed=Listed.BEST) if self.residuals:
                return (
                    "during recognition, each state keeps the best run for each start; filters are evaluated "
                    "only on it, because runs that mark fewer events fail whenever it does"
                )
            case PerStart(listed=Listed.BEST):
                return (
                    "during recognition, each state keeps the best run for each start; which end is taken is "
                    f"{later}"
                )
            case PerStart(listed=Listed.ALL):
                return f"after enumeration, among complex events with the same start; {later}"
            case PerStart():
                return f"during recognition, starts in the same state advance together; {later}"
            case Compared() if self.strategy is Strategy.MAX:
                return "in the automaton, which also tracks the runs that mark more than a given run"
            case Compared() if self.window is None:
                return "during recognition, each state keeps only the best run"
            case Compared():
                return "during recognition, each state keeps the best run for each start in the window"
            case AtEnd() if self.strategy is Strategy.STRICT:
                return "in the automaton, which is rewritten to skip no event between marked ones"
            case AtEnd() if self.strategy is Strategy.MAX:
                return "after enumeration, among complex events with the same end"
            case AtEnd():
                return "after enumeration, because filters are evaluated first"

    def automaton_sections(self) -> Iterator[Section]:
        """The automaton with its size, and the labels of its marks."""
        yield "Automaton", (*automaton_lines(self.automaton, steps_of(self.pushed)), self._size())
        yield "Label sets", label_lines(self.automaton)

    def _size(self) -> str:
        """The size of the deterministic automaton, taking conditions to be true or false independently."""
        lazily = "computed on demand"
        classes = _classes(self.automaton.predicates)
        states = _few_states(self, classes) if len(classes) <= FEW_CLASSES else None
        if states is not None:
            return f"deterministic: at most {states} states and {len(classes)} classes of events, {lazily}"
        return f"deterministic: states and classes of events {lazily}, at most {self.state_cap:,} states"


# ------------------------------------------------------------------------------------------ the rules


def in_partitions(draft: Draft) -> AutomatonPlan | str:
    """The plan in partitions that the equalities of the pattern make, or the reason why there is none."""
    compilation = draft.in_partitions
    if isinstance(compilation, str):
        return compilation
    tree = draft.tree
    if p.has_deadlines(tree.pattern) and tree.partition_by != compilation.tree.partition_by:
        return "NOT(…) FOR uses only the partitions of PARTITION BY"
    if (tree.disjoint or tree.per is not None) and tree.partition_by not in (
        (),
        compilation.tree.partition_by,
    ):
        which = "DISJOINT" if tree.disjoint else "LIMIT … PER"
        return f"{which} uses only the partitions of PARTITION BY"
    return _planned(draft, compilation)


def with_registers(draft: Draft) -> AutomatonPlan:
    """The plan of the query as it is written; it serves every query."""
    return _planned(draft, draft.whole)


_COMPARES_RUNS = frozenset({Strategy.NEXT, Strategy.LAST, Strategy.LONGEST, Strategy.SHORTEST})
"""The strategies that registers leave to recognition but ages do not."""

_TOLD_BY_AGE = "runs are already distinguished by their age, and then have no registers"


def _planned(draft: Draft, compilation: Compilation) -> AutomatonPlan:
    automaton, residuals = compilation.compiled.automaton, compilation.pushed.residuals
    program, reasons = compilation.pushed.program, compilation.pushed.reasons
    ages = None
    if draft.tree.strategy in _COMPARES_RUNS:
        program, residuals = with_distances(program, residuals)
    elif not isinstance(aged := by_age(automaton, compilation.compiled.residuals), str):
        automaton, ages, residuals, program = aged.automaton, aged.program, aged.residuals, None
        reasons = {**dict.fromkeys(residuals, _TOLD_BY_AGE), **reasons, **aged.reasons}
    if draft.tree.strategy not in (Strategy.ALL, Strategy.STRICT):  # which choose after all filters
        automaton, residuals = with_counts(automaton, residuals)
    kept = NO_HIDDEN if ages is None else frozenset(label for label, _ in ages.bounds)
    automaton, registers = drop_hidden(automaton, program, residuals, kept)
    asks_greatest = draft.tree.strategy.one_for_each_start and registers is None
    if asks_greatest:
        asks_greatest = _asks_greatest(automaton, residuals)
    keys = [bracket.alternatives for bracket in compilation.tree.partition_by]
    contiguous = has_contiguity(automaton)
    every_of_a_key = bool(keys) and (contiguous or FIRST in automaton.predicates)
    return AutomatonPlan(
        tree=draft.tree,
        written=draft.text,
        automaton=automaton,
        classification=draft.classification(
            [of_one_event(predicate) for predicate in automaton.predicates if predicate != FIRST],
            residuals,
            registers.values if registers is not None else (),
            keys=keys,
            keep_all=every_of_a_key or ends_on_anything(automaton),
        ),
        shown=draft.shown,
        measures=draft.measures,
        window=draft.window,
        interval=draft.interval,
        deadlines=tuple(deadlines_of(automaton.predicates)),
        wait=draft.wait,
        gaps=contiguous and not keys,
        state_cap=draft.state_cap,
        registers=registers,
        ages=ages,
        asks_greatest=asks_greatest,
        pushed=tuple(residual for residual in compilation.compiled.residuals if residual not in residuals),
        residuals=residuals,
        reasons=tuple(reasons[residual] for residual in residuals),
        predicates=registered_among(predicates_called(residuals)),
    )


# ------------------------------------------------------------------------------------ classes of events


def _asks_greatest(automaton: CEA, residuals: Sequence[Residual]) -> bool:
    """Whether checking `residuals` on the complex event that marks most from a start to an end is enough."""
    keys = growing_keys(residuals, automaton) if residuals else None
    if not keys:
        return keys is not None  # these depend on the start and the end alone
    classes = _classes(automaton.predicates)
    ordinary = len(classes) <= FEW_CLASSES and not any(True for _ in deadlines_of(automaton.predicates))
    return ordinary and has_greatest(automaton, classes, keys)


def _few_states(plan: AutomatonPlan, classes: Iterable[int]) -> int | None:
    """The number of states of the deterministic automaton, or None if there are too many."""
    automaton = plan.deterministic()

    def step(state: int) -> Iterator[int]:
        for bits in classes:
            row = automaton.row(state, automaton.class_of(bits))
            yield from (target for _, target in row.edges)
            if row.skip != DEAD:
                yield row.skip
        if isinstance(automaton, AgedAutomaton):
            later = map(partial(automaton.later, state), range(automaton.clocks))
            yield from (successor for successor in later if successor != DEAD)

    most = min(plan.state_cap, FEW_STATES)
    states = sum(1 for _ in islice(reached([0], step), most + 1))
    return None if states > most else states


def _classes(predicates: tuple[EventPredicate, ...]) -> list[int]:
    """The combinations of bits that an event can have: it has exactly one type, and no bits of other types.

    Gives up beyond `FEW_CLASSES`.
    """
    names = dict.fromkeys(name for predicate in predicates for name in predicate.types)
    combinations: dict[int, None] = {0: None}
    for name in (*names, None):
        open_bits: list[tuple[int, ...]] = []
        for bit, predicate in enumerate(predicates):
            if predicate == FIRST or (name in predicate.types and predicate.condition is not None):
                open_bits.append((0, 1 << bit))
            elif name in predicate.types:
                open_bits.append((1 << bit,))
        for choice in product(*open_bits):
            combinations[sum(choice)] = None
            if len(combinations) > FEW_CLASSES:
                return list(combinations)
    return list(combinations)
