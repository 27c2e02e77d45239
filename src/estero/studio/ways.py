"""The states of its automaton that a complex event went through, event by event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from estero.automata.cea import CEA, FIRST, EventPredicate, LabelSet, Transition
from estero.automata.exploration import leaving
from estero.automata.parted import parted
from estero.automata.pcea import PCEA, PceaTransition
from estero.automata.skeleton import skeleton
from estero.classify.column_names import BITS, KEYS, POSITION, WORD
from estero.events.sources import open_source
from estero.plan.plan import Plan
from estero.studio.stream import Stream

MOST_READ: Final = 200_000
"""The longest complex event, in events from start to end, whose path is shown."""
MOST_TRIED: Final = 20_000
"""The largest number of steps that are tried to find a run that gathers others."""
_TOO_LONG: Final = f"it is longer than {MOST_READ:,} events"
_UNTOLD: Final = "its marks do not tell them"
_SEVERAL: Final = "several runs of the automaton mark these events so"
_HIDDEN: Final = "it has read events that the query does not keep"


@dataclass(frozen=True, slots=True)
class Way:
    """The transitions of a run, in order of the events; or the reason, in words, why they are unknown.

    Each step has the ``position`` of its event, the state that it leaves (``source``) and the one that it
    enters (``target``), as they are drawn. In a run that gathers others, an event has a step from each state
    that it gathers.
    """

    steps: list[dict[str, int]] | None = None
    why: str = ""


def way_of(plan: Plan, stream: Stream, start: int, end: int, marks: Mapping[int, LabelSet]) -> Way:
    """The path of the complex event from `start` to `end` with these `marks` (the labels of a position).

    Events of other partitions are not read. The path is unknown for a complex event that is too long, or
    whose marks do not determine a run.
    """
    machine = plan.machine
    if end - start >= MOST_READ:
        return Way(why=_TOO_LONG)
    if isinstance(machine, PCEA):
        return _way_of_tree(plan, parted(machine), stream, start, end, marks)
    cea = machine if isinstance(machine, CEA) else skeleton(machine)
    positions, bits = _bits(plan, cea.predicates, stream, start, end)
    asked = [marks.get(int(position), frozenset()) for position in positions]
    steps = _run(cea, bits, asked, _labels_shown(plan))
    if steps is None:
        return Way(why=_UNTOLD)
    return Way(
        [
            {"position": int(position), "source": step.source, "target": step.target}
            for position, step in zip(positions, steps, strict=True)
        ]
    )


def _labels_shown(plan: Plan) -> LabelSet:
    return frozenset(selected.label for selected in plan.shown)


# --------------------------------------------------------------------------------- runs that gather runs


def _way_of_tree(
    plan: Plan, pcea: PCEA, stream: Stream, start: int, end: int, marks: Mapping[int, LabelSet]
) -> Way:
    """The path of a run that is a tree: it reads what it marks, and an event gathers runs."""
    shown = _labels_shown(plan)
    if any(not transition.labels & shown for transition in pcea.transitions):
        return Way(why=_HIDDEN)
    positions, bits = _bits(plan, pcea.predicates, stream, start, end)
    bits_of = dict(zip(map(int, positions), bits, strict=True))
    choices = [
        [
            transition
            for transition in pcea.transitions
            if transition.labels & shown == marks[position] and bits_of[position] >> transition.predicate & 1
        ]
        for position in sorted(marks)
    ]
    trees = _Trees(pcea, choices)
    runs = list(islice(trees.all(), 2))
    if len(runs) != 1 or trees.tried > MOST_TRIED:
        return Way(why=_SEVERAL if runs else _UNTOLD)
    last = len(pcea.states) + 1
    steps = []
    for position, transition in zip(sorted(marks), runs[0], strict=True):
        target = last if position == end else transition.target + 1
        sources = sorted(source.state + 1 for source in transition.sources) or [0]
        steps += [{"position": position, "source": source, "target": target} for source in sources]
    return Way(steps)


class _Trees:
    """The runs over some events, each of which takes one of its `choices`; keys are not compared.

    `tried` counts steps: beyond `MOST_TRIED` runs may be missing.
    """

    def __init__(self, pcea: PCEA, choices: Sequence[Sequence[PceaTransition]]) -> None:
        self._pcea = pcea
        self._choices = choices
        self.tried = 0

    def all(self) -> Iterator[list[PceaTransition]]:
        """The transitions of each run, one for each event."""
        yield from self._from(0, Counter())

    def _from(self, number: int, begun: Counter[int]) -> Iterator[list[PceaTransition]]:
        """The ways to continue from an event, with runs `begun` in these states that wait to be gathered."""
        for transition in self._choices[number]:
            self.tried += 1
            if self.tried > MOST_TRIED:
                return
            left = begun.copy()
            left.subtract(source.state for source in transition.sources)
            if min(left.values(), default=0) < 0:
                continue
            if number == len(self._choices) - 1:
                if transition.target in self._pcea.final and not any(left.values()):
                    yield [transition]
                continue
            left[transition.target] += 1
            for rest in self._from(number + 1, left):
                yield [transition, *rest]


# ----------------------------------------------------------------------------------- runs without gathering


def _bits(
    plan: Plan, asked_of: Sequence[EventPredicate], stream: Stream, start: int, end: int
) -> tuple[NDArray[np.int64], list[int]]:
    """The positions of the events that a run reads from `start` to `end`, and which predicates are true."""
    predicates = tuple(predicate for predicate in asked_of if predicate != FIRST)
    asked = replace(plan.classification, predicates=predicates, keep_all=True, payload=(), values=())
    if stream.source.type_column in (None, *stream.source.columns):
        events = stream.table.slice(start, end - start + 1)
        batches = list(open_source(events, stream.asked.layout, None, declared=False).read(asked))
    else:  # each type has its own table, which identifies it
        batches = [
            batch.slice(max(0, start - first), end + 1 - max(first, start))
            for batch in stream.source.read(asked)
            for first in [batch.column(POSITION)[0].as_py()]
            if first <= end and first + batch.num_rows > start
        ]
    words = [
        np.concatenate([batch.column(f"{BITS}{word}").to_numpy() for batch in batches])
        for word in range((len(predicates) + WORD - 1) // WORD)
    ]
    rows = np.arange(start, end + 1)
    kept = np.ones(rows.size, bool)
    if plan.classification.keys:
        for name in KEYS:
            keys = np.concatenate([batch.column(name).to_numpy(zero_copy_only=False) for batch in batches])
            kept &= keys == keys[-1]
    bits = [0] * rows.size
    for number, word in enumerate(words):
        bits = [total | int(part) << (WORD * number) for total, part in zip(bits, word, strict=True)]
    if FIRST in asked_of:
        bits[0] |= 1 << (len(asked_of) - 1)
    return rows[kept], [value for value, keep in zip(bits, kept, strict=True) if keep]


def _run(
    cea: CEA, bits: Sequence[int], marks: Sequence[LabelSet], shown: LabelSet
) -> list[Transition] | None:
    """A run from an initial to a final state over all events, that shows exactly these marks."""
    leaves = leaving(cea.transitions)
    here = dict.fromkeys(cea.initial)
    before: list[dict[int, Transition]] = []
    for word, labels in zip(bits, marks, strict=True):
        reached: dict[int, Transition] = {}
        for state in here:
            for transition in leaves[state]:
                if transition.labels & shown == labels and transition.guard.allows(word):
                    reached.setdefault(transition.target, transition)
        before.append(reached)
        here = dict.fromkeys(reached)
    accepting = next((state for state in here if state in cea.final), None)
    if accepting is None:
        return None
    steps, state = [], accepting
    for reached in reversed(before):
        steps.append(reached[state])
        state = reached[state].source
    return steps[::-1]
