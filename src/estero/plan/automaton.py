"""Plans with a complex event automaton: compact sets, registers on top of it, and a filter behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from types import MappingProxyType

from estero.automata.ages import AgedAutomaton, AgeProgram, by_age, with_distances
from estero.automata.cea import CEA, FIRST, NO_LABELS, EventPredicate, LabelSet, Transition
from estero.automata.counted import largest_count, with_counts
from estero.automata.determinize import DEAD, DEFAULT_STATE_CAP, LazyAutomaton
from estero.automata.exploration import leaving, reached
from estero.automata.greatest import has_greatest
from estero.automata.growing import growing_keys
from estero.automata.lacking import of_one_event
from estero.automata.registers import RegisterProgram, drop_hidden
from estero.automata.residual import NO_HIDDEN, Apartness, Hidden, HiddenSet, Residual, predicates_called
from estero.automata.strategies import MaxAutomaton
from estero.language.check.set_predicates import registered_among
from estero.language.tree import pattern as p
from estero.language.tree.query import Consume, Strategy
from estero.language.tree.words import named
from estero.plan.deadlines import deadlines_of
from estero.plan.draft import Compilation, Draft
from estero.plan.plan import Opened, Plan, Section, measured_in_places

FEW_STATES, FEW_CLASSES = 200, 64
"""The whole deterministic automaton is worked out for an explanation if it is no bigger than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomatonPlan(Plan):
    """How a query is evaluated by a complex event automaton.

    With `best_per_start` each start keeps what NEXT chooses of all its complex events, wherever they end.
    With `asks_greatest` all filters may be asked of what NEXT chooses for a start and an end: where that does
    not pass, nothing else does.
    `cut_by` is what another query forgets, which this one tells the partial matches of.

    `gaps` says that dropped events count (contiguity): recognition then needs each event's place in the
    stream. `registers` are the comparisons that runs check as they go.
    """

    evaluated = ("automaton", "gaps", "registers", "ages", "best_per_start", "asks_greatest", "cut_by")

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
        """Whether some transition asks for the first event of the stream (START)."""
        return FIRST in self.automaton.predicates

    @property
    def counts_places(self) -> bool:
        """Whether runs depend on the places that events have in the whole stream (contiguity, START)."""
        return self.gaps or (self.from_first and not self.keyed)

    @property
    def has_hidden(self) -> bool:
        """Whether runs carry labels that answers do not show."""
        asked = frozenset(label for label, _ in self.ages.bounds) if self.ages is not None else NO_HIDDEN
        return any(transition.hidden - asked for transition in self.automaton.transitions)

    @property
    def merges_starts(self) -> bool:
        """Whether complex events may differ in their starts alone, and are then one."""
        return self.distinct and not _marks_its_start(self.automaton)

    @property
    def bits_for_deadlines(self) -> tuple[int, ...]:
        """The bits that only deadlines ask for."""
        guards = (each.guard for each in self.automaton.transitions)
        asked = {bit for guard in guards for bit in guard.present | guard.absent}
        return tuple(sorted({each.forbidden for each in self.deadlines} - asked))

    @property
    def forgets_by_age(self) -> bool:
        """Whether runs are forgotten when they are too old for their next step."""
        return self.ages is not None

    @property
    def measures_places(self) -> bool:
        """Whether some distance is measured in positions of the whole stream."""
        clocks = any(any(each.clocks) for each in (self.ages, self.registers) if each is not None)
        return clocks or measured_in_places(self.residuals)

    @property
    def selects_in_kernel(self) -> bool:
        """Whether recognition itself keeps only what the strategy keeps, or of each start NEXT's choice."""
        if self.ages is not None:
            return False
        if self.decides_later:
            told_apart = (self.registers is not None or self.best_per_start) and not self.residuals
            return (told_apart or self.asks_greatest) and _marks_its_start(self.automaton)
        if self.strategy is Strategy.MAX:
            return not (self.residuals or self.has_hidden or self.registers is not None)
        return self.strategy in (Strategy.NEXT, Strategy.LAST) and not self.residuals

    @property
    def lists_for_starts(self) -> bool:
        """Whether for each start complex events are listed, from which one is chosen (LONGEST, SHORTEST)."""
        listed = self.sieved or self.registers is not None or self.best_per_start
        return self.decides_later and listed

    @property
    def kernels(self) -> str:
        """Plans with one name run the same kernels."""
        if self.ages is not None:
            return "cea-aged"
        if self.registers is not None:
            return "cea-split"
        if self.decides_later and not self.lists_for_starts:
            return "cea-starts"
        return "cea-spans" if self.selects_in_kernel else "cea"

    @property
    def machine(self) -> CEA:
        """The automaton that runs."""
        return self.automaton

    @property
    def drawn(self) -> CEA:
        """The automaton."""
        return self.automaton

    @property
    def estimated_by(self) -> CEA | None:
        """The automaton, where its runs depend on classes of events alone and mark several."""
        told_apart = self.registers is not None or self.ages is not None or self.has_hidden
        told_apart = told_apart or bool(self.deadlines) or self.merges_starts
        if told_apart or self.decides_later or not _marks_several(self.automaton):
            return None
        return self.automaton

    def opened(self, words: int, *, ordinals: bool, counting: bool) -> Opened:
        """What runs the automaton (`Plan.opened`)."""
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
        )

    def deterministic(self) -> LazyAutomaton | MaxAutomaton | AgedAutomaton:
        """A fresh deterministic automaton, worked out as far as events ask for it."""
        if self.ages is not None:
            return AgedAutomaton(self.automaton, self.ages, self.state_cap)
        automaton = LazyAutomaton(self.automaton, self.state_cap, registers=self.registers)
        selects = self.strategy is Strategy.MAX and self.selects_in_kernel
        return MaxAutomaton(automaton, self.state_cap) if selects else automaton

    @property
    def tallied(self) -> bool:
        """Whether complex events are counted by the automaton alone, without a look at the compact set."""
        plain = self.registers is None and self.ages is None
        plain = plain and not (self.selects_in_kernel or self.decides_later or self.gaps)
        return plain and not self.sieved and self.consume is Consume.NONE

    # ------------------------------------------------------------------------------------- in words

    def lines(self) -> Iterator[str]:
        """Which algorithm runs and why, and what it guarantees."""
        if self.ages is not None:
            over = "residual filter over " if self.residuals else ""
            yield f"{over}CEA + tECS with ages: a distance is how long ago a run marked its last event"
        elif self.residuals:
            yield "residual filter over CEA + tECS: not every filter can be checked while runs go on"
        elif self.registers is not None:
            yield "CEA + tECS with registers: the comparisons between variables are checked while runs go on"
        else:
            yield "CEA + tECS: every predicate is over one event, so one automaton serves the whole pattern"
        yield f"guarantee: {self._guarantee()}"
        if self.registers is not None:
            yield (
                f"registers: {self.registers.registers} for each run; runs in one state that remember "
                "different values are kept apart, so the time per event grows with their number"
            )

    def _guarantee(self) -> str:
        if self.registers is not None:
            update = "time per event linear in the values that open runs remember"
        elif self.ages is not None:
            update = "amortised constant time per event, runs too old for their next step are forgotten"
        elif self.selects_in_kernel and self.window is not None:
            update = "time per event linear in the spans of windows whose runs are in different states"
        elif self.decides_later and not self.lists_for_starts:
            update = "time per event linear in the different states that starts are in"
        else:
            update = "constant time per event"
        if self.selects_in_kernel and self.residuals:
            return (
                "time per event linear in the starts in the window; for each start its ends are listed, "
                "the last or first ones before others, until one passes the filter"
            )
        if self.residuals:
            return f"{update}; filtered while enumerating, so there is no bound on the delay"
        if self.lists_for_starts:
            each = "one" if self.selects_in_kernel else "all"
            return (
                f"{update}; at each end {each} for each start is listed, of which that of the last or first \
end stays"
            )
        if self.sieved:
            return (
                f"{update}; complex events with the same end are compared, so there is no bound on the delay"
            )
        if self.decides_later:
            return f"{update}; each one given is read once more, from its start to its end"
        return f"{update}, output-linear delay between complex events"

    def key_lines(self) -> Iterator[str]:
        """The partitions."""
        if self.keyed:
            keys = ", ".join(f"[{', '.join(map(named, bracket))}]" for bracket in self.classification.keys)
            why = "" if self.shown_keys else ", because the pattern's equalities say the same"
            yield f"partitions: by {keys}{why}; runs of all partitions are interleaved inside the kernel"

    def filter_lines(self) -> Iterator[str]:
        """Each filter, and the strategy, with the place where it is applied."""
        conditions = [each for each in self.classification.predicates if each.condition is not None]
        if conditions:
            yield "in the automaton, as bits that the SQL computes (each over one event):"
            yield from (f"  {each}" for each in dict.fromkeys(conditions))
        taken_back = [each for each in self.deadlines if not each.compared]
        if taken_back:
            yield "in the automaton, as bits that are taken back where such an event is near:"
            yield from (f"  {each}" for each in taken_back)
        if self.wait is not None:
            yield "events wait for their deadlines: complex events are given when these have passed"
        yield from self._pushed_lines()
        if self.residuals:
            yield from self.residual_lines()
            known = self.classification.schema
            compares = any(not isinstance(each.condition, Apartness) for each in self.residuals)
            if compares and not known.types and not known.shared:
                yield "  (no events were given; once kinds are known, registers may check some of these)"
        if self.has_hidden:
            yield (
                "after enumeration: a complex event found twice, by runs with different hidden labels, "
                "is given once"
            )
        if self.merges_starts:
            yield "after enumeration: complex events that differ in their starts alone are given once"
        if self.strategy is not Strategy.ALL:
            yield f"the strategy {self.strategy.value}: {self._strategy()}"
        if self.tree.disjoint:
            where = "in each partition" if self.shown_keys else "in the whole stream"
            yield f"DISJOINT: {where}, what starts before the last one kept has ended is left out"

    def _pushed_lines(self) -> Iterator[str]:
        """The filters that are checked while runs go on."""
        aged = [each for each in self.pushed if isinstance(each.condition, Apartness)]
        if aged:
            yield "by the age of runs, while they go on (what is too old for its next step is dropped):"
            yield from (f"  {self.said(each)}" for each in aged)
        counted = [each for each in self.pushed if largest_count(each) is not None]
        if counted:
            yield "by the states of the automaton, which count:"
            yield from (f"  {self.said(each)}" for each in counted)
        others = [each for each in self.pushed if each not in aged and each not in counted]
        if others:
            yield "by registers, while runs go on (a run that violates one is dropped at once):"
            yield from dict.fromkeys(f"  {self.said(each)}" for each in others)

    def _strategy(self) -> str:
        match self.strategy:
            case Strategy.STRICT:
                return "in the automaton, which was rewritten"
            case Strategy.LONGEST | Strategy.SHORTEST if self.selects_in_kernel and self.residuals:
                return (
                    "in recognition, where each state keeps the best run for each start: filters are asked "
                    "of that alone, as what marks less passes only where it does"
                )
            case Strategy.LONGEST | Strategy.SHORTEST if self.selects_in_kernel:
                return (
                    "in recognition, where each state keeps the best run for each start, and behind it "
                    "among different ends; decided when the window of the start has passed"
                )
            case Strategy.LONGEST | Strategy.SHORTEST if self.lists_for_starts:
                return (
                    "after enumeration, among complex events with the same start; decided when the window of "
                    "the start has passed"
                )
            case Strategy.LONGEST | Strategy.SHORTEST:
                return (
                    "in recognition, where starts that are in one state stay together; decided when the "
                    "window of the start has passed"
                )
            case Strategy.MAX if self.selects_in_kernel:
                return "in the automaton, which follows the runs that mark what a run marks and more"
            case Strategy.MAX:
                return "after enumeration, among complex events with the same end"
            case _ if self.selects_in_kernel and self.window is None:
                return "in recognition, where each state keeps only the best run"
            case _ if self.selects_in_kernel:
                return "in recognition, where each state keeps the best run for each start of the window"
            case _:
                return "after enumeration, because filters are applied before it"

    def automaton_sections(self) -> Iterator[Section]:
        """The automaton with its size, and the labels of its marks."""
        yield "Automaton", (*automaton_lines(self.automaton, steps_of(self.pushed)), self._size())
        yield "Label sets", _label_lines(self.automaton)

    def _size(self) -> str:
        """How big the deterministic automaton is; conditions are taken to be true or not independently."""
        lazily = "computed as events need them"
        classes = _classes(self.automaton.predicates)
        states = _few_states(self, classes) if len(classes) <= FEW_CLASSES else None
        if states is not None:
            return f"deterministic: {states} states, {len(classes)} classes of events at most; {lazily}"
        return f"deterministic: states and classes of events are {lazily}, at most {self.state_cap:,} states"


# ------------------------------------------------------------------------------------------ the rules


def in_partitions(draft: Draft) -> AutomatonPlan | str:
    """The plan in partitions that equalities of the pattern make, or why there is none."""
    found = draft.in_partitions
    if isinstance(found, str):
        return found
    tree = draft.tree
    if p.has_deadlines(tree.pattern) and tree.partition_by != found.tree.partition_by:
        return "NOT(…) FOR looks at the partitions of PARTITION BY alone"
    if (tree.disjoint or tree.per is not None) and tree.partition_by not in ((), found.tree.partition_by):
        which = "DISJOINT" if tree.disjoint else "LIMIT … PER"
        return f"{which} looks at the partitions of PARTITION BY alone"
    return _planned(draft, found)


def with_registers(draft: Draft) -> AutomatonPlan:
    """The plan of the query as it is written; it serves every query."""
    return _planned(draft, draft.whole)


_COMPARES_RUNS = frozenset({Strategy.NEXT, Strategy.LAST, Strategy.LONGEST, Strategy.SHORTEST})
"""Strategies that registers leave to recognition, and ages do not."""

_TOLD_BY_AGE = "runs are told apart by their age already, and not by what they remember as well"


def _planned(draft: Draft, found: Compilation) -> AutomatonPlan:
    automaton, residuals = found.compiled.automaton, found.pushed.residuals
    program, reasons = found.pushed.program, found.pushed.reasons
    ages = None
    if draft.tree.strategy in _COMPARES_RUNS:
        program, residuals = with_distances(program, residuals)
    elif not isinstance(aged := by_age(automaton, found.compiled.residuals), str):
        automaton, ages, residuals, program = aged.automaton, aged.program, aged.residuals, None
        reasons = {**dict.fromkeys(residuals, _TOLD_BY_AGE), **reasons, **aged.reasons}
    if draft.tree.strategy not in (Strategy.ALL, Strategy.STRICT):  # which choose behind all filters
        automaton, residuals = with_counts(automaton, residuals)
    kept = NO_HIDDEN if ages is None else frozenset(label for label, _ in ages.bounds)
    automaton, registers = drop_hidden(automaton, program, residuals, kept)
    asks_greatest = draft.tree.strategy.one_for_each_start and registers is None
    if asks_greatest:
        asks_greatest = _asks_greatest(automaton, residuals)
    keys = [bracket.alternatives for bracket in found.tree.partition_by]
    contiguous = has_contiguity(automaton)
    every_of_a_key = bool(keys) and (contiguous or FIRST in automaton.predicates)
    return AutomatonPlan(
        tree=draft.tree,
        text=str(draft),
        automaton=automaton,
        classification=draft.classification(
            [of_one_event(each) for each in automaton.predicates if each != FIRST],
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
        pushed=tuple(each for each in found.compiled.residuals if each not in residuals),
        residuals=residuals,
        reasons=tuple(reasons[each] for each in residuals),
        predicates=registered_among(predicates_called(residuals)),
    )


# ------------------------------------------------------------------------------- what an automaton does


def has_contiguity(automaton: CEA) -> bool:
    """Whether an event that no predicate wants can matter: some state does not simply pass over it."""
    waiting = {
        transition.source
        for transition in automaton.transitions
        if transition.source == transition.target
        and not transition.guard.present
        and transition.labels == NO_LABELS
    }
    return any(
        state not in waiting
        for state in range(automaton.states)
        if state not in automaton.initial and state not in automaton.final
    )


def ends_on_anything(automaton: CEA) -> bool:
    """Whether a run may begin, end or be marked by an event that no predicate wants."""
    return any(
        not transition.guard.present
        and (
            transition.labels
            or transition.source in automaton.initial
            or transition.target in automaton.final
        )
        for transition in automaton.transitions
    )


def _asks_greatest(automaton: CEA, residuals: Sequence[Residual]) -> bool:
    """Whether all `residuals` may be asked of the complex event that marks most from a start to an end."""
    asked = growing_keys(residuals, automaton) if residuals else None
    if not asked:
        return asked is not None  # what depends on the start and the end alone
    classes = _classes(automaton.predicates)
    ordinary = len(classes) <= FEW_CLASSES and not any(True for _ in deadlines_of(automaton.predicates))
    return ordinary and has_greatest(automaton, classes, asked)


def _marks_several(automaton: CEA) -> bool:
    """Whether some run marks more than one event."""
    leaves = leaving(automaton.transitions)
    marked = {each.target for each in automaton.transitions if each.labels}
    behind = reached(marked, lambda state: [each.target for each in leaves[state]])
    return any(each.labels for state in behind for each in leaves[state])


def _marks_its_start(automaton: CEA) -> bool:
    """Whether every run shows the event with which it begins."""
    return all(each.labels for each in automaton.transitions if each.source in automaton.initial)


def automaton_lines(automaton: CEA, steps: Mapping[Hidden, str] = MappingProxyType({})) -> Iterator[str]:
    """The states and transitions of an automaton, a line each; `steps` are labels that ask for an age."""
    begins, accepts = _listed(sorted(automaton.initial)), _listed(sorted(automaton.final))
    yield f"{automaton.states} states; a run begins in {begins} and accepts in {accepts}"
    yield from (_transition(each) for each in automaton.transitions)
    for label, asked in steps.items():
        yield f"({label}): only so long after the event marked before: [{asked}]"
    if any(each.hidden - steps.keys() for each in automaton.transitions):
        yield "(#…): hidden labels, which group events for filters; answers do not show them"


def steps_of(residuals: Iterable[Residual]) -> dict[Hidden, str]:
    """The labels of transitions that ask how long ago a run marked an event, and what they ask for."""
    return {
        Hidden(each.place): ", ".join(map(str, each.condition.distances))
        for each in residuals
        if isinstance(each.condition, Apartness) and each.place is not None
    }


def _transition(transition: Transition) -> str:
    guard = " and ".join(
        [
            *(f"b{bit}" for bit in sorted(transition.guard.present)),
            *(f"not b{bit}" for bit in sorted(transition.guard.absent)),
        ]
    )
    marks = f"mark {_listed(sorted(transition.labels))}" if transition.labels else "pass over"
    hidden = f" ({_listed(sorted(transition.hidden))})" if transition.hidden else ""
    return f"{transition.source} → {transition.target}  on {guard or 'any event'}: {marks}{hidden}"


def _label_lines(automaton: CEA) -> Iterator[str]:
    marks: dict[tuple[LabelSet, HiddenSet], None] = {
        (each.labels, each.hidden): None for each in automaton.transitions if each.labels or each.hidden
    }
    for number, (labels, hidden) in enumerate(marks):
        shown = _listed(sorted(labels)) or "none"
        yield f"{number}  {shown}{f' ({_listed(sorted(hidden))})' if hidden else ''}"


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def _few_states(plan: AutomatonPlan, classes: Iterable[int]) -> int | None:
    """How many states the deterministic automaton has, or None where they are more than a few."""
    automaton = plan.deterministic()

    def step(state: int) -> Iterator[int]:
        for bits in classes:
            row = automaton.row(state, automaton.class_of(bits))
            yield from (target for _, target in row.edges)
            if row.skip != DEAD:
                yield row.skip
        if isinstance(automaton, AgedAutomaton):
            later = map(partial(automaton.later, state), range(automaton.clocks))
            yield from (each for each in later if each != DEAD)

    most = min(plan.state_cap, FEW_STATES)
    states = sum(1 for _ in islice(reached([0], step), most + 1))
    return None if states > most else states


def _classes(predicates: tuple[EventPredicate, ...]) -> list[int]:
    """The combinations of bits that an event can have: it has one type, and one of another name has none.

    Gives up beyond `FEW_CLASSES`.
    """
    names = dict.fromkeys(name for predicate in predicates for name in predicate.types)
    found: dict[int, None] = {0: None}
    for name in (*names, None):
        open_bits: list[tuple[int, ...]] = []
        for bit, predicate in enumerate(predicates):
            if predicate == FIRST or (name in predicate.types and predicate.condition is not None):
                open_bits.append((0, 1 << bit))
            elif name in predicate.types:
                open_bits.append((1 << bit,))
        for choice in product(*open_bits):
            found[sum(choice)] = None
            if len(found) > FEW_CLASSES:
                return list(found)
    return list(found)
