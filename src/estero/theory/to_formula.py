"""Turns an automaton into an equivalent pattern by state elimination.

This is the other direction of Theorem 6.2 of "A Second-Order Approach to Complex Event Recognition"
(docs/papers.md). Between two states stands the pattern of all paths from one to the other through eliminated
states. Paths are concatenated by ``:``; at a state with a loop over any event, or over all but some events,
they are concatenated by ``;`` or ``; NOT(…) ;``, which is equivalent and easier to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from estero.automata.cea import ALWAYS, CEA, FIRST, NO_LABELS, Guard, LabelSet
from estero.automata.exploration import between
from estero.automata.reads import Read, read_of
from estero.errors import LimitExceeded
from estero.language.tree.conditions import conjoined
from estero.language.tree.depth import MAXIMUM_DEPTH
from estero.language.tree.expressions import EventFilter
from estero.language.tree.pattern import Filter, Keep, Link, Pattern
from estero.language.tree.selection import label_types
from estero.theory.atoms import Atoms, absent_of, atoms_for
from estero.theory.rational import around, either, followed

_CAP = 5_000
"""A pattern has so many operators and atoms at most."""

CONTIGUOUS = Link(contiguous=True)
INITIAL, FINAL = -1, -2
Pair = tuple[int, int]


def automaton_to_formula(cea: CEA, types: Sequence[str] | None = None) -> Pattern:
    """A pattern with the same complex events as `cea` on every stream: the same starts, ends and labels.

    `types` are all types of events of the stream; they are needed if a transition, other than a loop that
    marks nothing, reads events of any type. Type names with a stream (``S>R``) keep it if FROM names no
    stream. Hidden labels are ignored.

    The pattern can be exponentially longer than the automaton. Raises `LimitExceeded` if a part of it has
    more than 5,000 operators and atoms, or is nested too deeply for the parser, and `ValueError` if `types`
    are needed and missing, if no run can accept, or if no transition has a label (a pattern always marks an
    event).

    >>> from estero.automata.compile.compile_pattern import compile_pattern
    >>> from estero.language.syntax.parser import parse_pattern
    >>> automaton = compile_pattern(parse_pattern("A AS x ; (B+ AS y) FILTER x[n > 3]")).automaton
    >>> str(automaton_to_formula(automaton))
    'A AS x ; B AS y+ FILTER x[n > 3]'
    """
    elimination = _Elimination(cea, types)
    return _finished(elimination.run(elimination.reads(_ways(cea))), elimination.atoms)


def automaton_outline(cea: CEA, types: Sequence[str] | None) -> Pattern:
    """The union of the events that the transitions of an automaton read, with labels, types and filters.

    It is always short, and has the same conditions on single events as `automaton_to_formula`. Unmarked
    events of any type are left out. Raises `ValueError` like that function.
    """
    elimination = _Elimination(cea, types)
    reads = elimination.reads(_ways(cea), outline=True)
    atoms = elimination.atoms
    return _finished(either([atoms.pattern(read) for _, read in reads]), atoms)


# --------------------------------------------------------------------------------------- what is read

Guards = dict[LabelSet, list[Guard]]


def _ways(cea: CEA) -> dict[Pair, Guards]:
    """The guards between two useful states by labels, with a fresh initial and one final state."""
    ways: dict[Pair, Guards] = {}
    first_bit = cea.predicates.index(FIRST) if FIRST in cea.predicates else None
    for transition in cea.transitions:
        if transition.guard.present & transition.guard.absent:
            continue
        target = FINAL if transition.target in cea.final else transition.target
        if transition.source in cea.initial:
            ways.setdefault((INITIAL, target), {}).setdefault(transition.labels, []).append(transition.guard)
        if first_bit not in transition.guard.present:  # inside a run no event is the first of the stream
            guard = Guard(transition.guard.present, transition.guard.absent - {first_bit})
            ways.setdefault((transition.source, target), {}).setdefault(transition.labels, []).append(guard)
    useful = between(INITIAL, FINAL, ways)
    return {
        pair: {labels: _fewer(guards) for labels, guards in by_labels.items()}
        for pair, by_labels in ways.items()
        if useful.issuperset(pair)
    }


def _fewer(guards: Sequence[Guard]) -> list[Guard]:
    """Fewer guards with the same events: ``p q`` or ``p not q`` is ``p``, which includes ``p r``."""
    left = list(dict.fromkeys(guards))
    pairs = [(i, j) for i in range(len(left)) for j in range(len(left)) if i != j]
    for i, j in pairs:
        one, other = left[i], left[j]
        split = one.present - other.present
        if one.present <= other.present and one.absent <= other.absent:
            return _fewer([guard for k, guard in enumerate(left) if k != j])
        if len(split) == 1 and one.present - split == other.present and one.absent | split == other.absent:
            merged = Guard(other.present, one.absent)
            return _fewer([merged, *(guard for k, guard in enumerate(left) if k not in (i, j))])
    return left


# ---------------------------------------------------------------------------------------- elimination


@dataclass(slots=True)
class _Elimination:
    """The elimination of states: patterns `between` two states, and the loops that pass over events."""

    cea: CEA
    types: Sequence[str] | None
    between: dict[Pair, Pattern] = field(default_factory=dict)
    passing: dict[int, tuple[Link, Guard]] = field(default_factory=dict)
    atoms: Atoms = field(init=False)

    def reads(self, ways: Mapping[Pair, Guards], *, outline: bool = False) -> list[tuple[Pair, Read]]:
        """The reads of single transitions, without the loops by which states pass over events.

        With `outline` transitions that mark nothing and read events of any type are left out.
        """
        loops: list[tuple[Pair, LabelSet, Guard]] = []
        for pair, by_labels in ways.items():
            for labels, guards in by_labels.items():
                for guard in guards:
                    link = absent_of(guard, self.cea.predicates)
                    passes = pair[0] == pair[1] and labels == NO_LABELS and link is not None
                    if passes and link is not None and pair[0] not in self.passing:
                        self.passing[pair[0]] = link, guard
                    else:
                        open_type = self.types is None and self.cea.types_of(guard) is None
                        if not (outline and open_type and labels == NO_LABELS):
                            loops.append((pair, labels, guard))
        reads = [
            (pair, read)
            for pair, labels, guard in loops
            if (read := read_of(guard, labels, self.cea, self.types)) is not None
        ]
        useful = between(INITIAL, FINAL, (pair for pair, _ in reads))
        reads = [(pair, read) for pair, read in reads if outline or useful.issuperset(pair)]
        if not reads:
            raise ValueError("no run of the automaton can accept, and every pattern finds something")
        self.atoms = atoms_for([read for _, read in reads], self.types or ())
        if not self.atoms.wanted:
            raise ValueError("no transition marks an event, and a pattern always marks some")
        return reads

    def run(self, reads: Iterable[tuple[Pair, Read]]) -> Pattern:
        """The pattern from the initial to the final state after eliminating all others, cheapest first."""
        for pair, read in reads:
            self._add(pair, self.atoms.pattern(read))
        states = {state for pair in self.between for state in pair} - {INITIAL, FINAL}
        while states:
            state = min(states, key=lambda candidate: (self._cost(candidate), -candidate))
            states.remove(state)
            self._eliminate(state)
        return self.between[INITIAL, FINAL]

    def _cost(self, state: int) -> int:
        coming = sum(target == state and source != state for source, target in self.between)
        leaving = sum(source == state and target != state for source, target in self.between)
        return coming * leaving

    def _eliminate(self, state: int) -> None:
        rounds = self.between.pop((state, state), None)
        link, guard = self.passing.get(state, (CONTIGUOUS, ALWAYS))
        if rounds is not None and link.absent:  # rounds with ; NOT(…) ; between them have no operator
            over = read_of(guard, NO_LABELS, self.cea, self.types)
            rounds = rounds if over is None else either([rounds, self.atoms.pattern(over)])
            link = CONTIGUOUS
        coming = [(source, way) for (source, target), way in self.between.items() if target == state]
        leaving = [(target, way) for (source, target), way in self.between.items() if source == state]
        for source, _ in coming:
            del self.between[source, state]
        for target, _ in leaving:
            del self.between[state, target]
        for source, before in coming:
            for target, after in leaving:
                way = followed(before, link, after) if rounds is None else around(before, link, rounds, after)
                self._add((source, target), way)

    def _add(self, pair: Pair, way: Pattern) -> None:
        whole = either([self.between[pair], way]) if pair in self.between else way
        _check_size(whole)
        self.between[pair] = whole


def _finished(pattern: Pattern, atoms: Atoms) -> Pattern:
    """The pattern with the filters at the top, and with KEEP for the wanted labels."""
    labels = list(label_types(pattern))
    top = conjoined(EventFilter(label, atoms.top[label]) for label in labels if label in atoms.top)
    if top is not None:
        pattern = Filter(pattern, top)
    if not atoms.wanted.issuperset(labels):
        pattern = Keep(pattern, tuple(label for label in labels if label in atoms.wanted))
    return pattern


def _check_size(pattern: Pattern) -> None:
    level, size, depth = [pattern], 0, 0
    while level:
        size, depth = size + len(level), depth + 1
        if size > _CAP or depth > MAXIMUM_DEPTH - 2:  # two for the filters and KEEP at the top
            many = f"more than {_CAP:,} operators and atoms" if size > _CAP else "too many nested parentheses"
            raise LimitExceeded(
                f"the pattern of this automaton has {many}; "
                "fewer states, or fewer ways between them, make it shorter"
            )
        level = [child for node in level for child in node.children()]
