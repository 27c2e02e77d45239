"""The automaton of a query as a page draws it, and the states that a complex event went through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from estero.automata.cea import CEA, FIRST, LabelSet, Transition
from estero.automata.chain import Chain
from estero.automata.skeleton import skeleton
from estero.classify.column_names import BITS, KEYS, POSITION, WORD
from estero.errors import legible
from estero.events.sources import open_source
from estero.plan.plan import Plan
from estero.plots.drawing import LOOP, RADIUS, Drawing, width_of
from estero.studio.stream import Stream

MOST_STATES: Final = 120
"""The most states that are drawn: of more, nothing is seen."""
MOST_READ: Final = 200_000
"""The most events from start to end of a complex event whose way is shown."""
_STEP: Final = 8
"""Every eighth point of an arc is sent: a smooth line needs no more."""


def drawn(plan: Plan) -> dict[str, Any]:
    """The places of states, arcs and their lines, in inches, y upwards; ``states`` is empty if too many."""
    cea = _shown_of(plan)
    if cea.states > MOST_STATES:
        return {"states": [], "arcs": [], "legend": [], "many": cea.states}
    drawing = Drawing.of(cea)
    arcs = []
    for arc, lines in drawing.texts.items():
        points = drawing.bare(arc)
        x, y = drawing.labels[arc]
        arcs.append(
            {
                "source": arc[0],
                "target": arc[1],
                "points": [_rounded(point) for point in [*points[:-1:_STEP], points[-1]]],
                "at": _rounded((x, y)),
                "width": round(width_of(lines), 3),
                "faint": drawing.unmarked(arc),
                "lines": [
                    {"text": legible(line.text), "kind": _kind(line.marking, faint=line.faint)}
                    for line in lines
                ],
            }
        )
    states = [
        {"at": _rounded(place), "initial": state in cea.initial, "final": state in cea.final}
        for state, place in sorted(drawing.places.states.items())
    ]
    return {
        "states": states,
        "arcs": arcs,
        "legend": [legible(line) for line in drawing.legend],
        "radius": RADIUS,
        "loop": LOOP,
        "many": 0,
    }


def _kind(marking: bool, *, faint: bool) -> str:
    return "mark" if marking else "faint" if faint else "plain"


def _rounded(point: tuple[float, float]) -> list[float]:
    return [round(point[0], 3), round(point[1], 3)]


def _shown_of(plan: Plan) -> CEA:
    return plan.machine if isinstance(plan.machine, CEA) else skeleton(plan.machine, comparing=True)


def way_of(
    plan: Plan, stream: Stream, start: int, end: int, marks: Mapping[int, LabelSet]
) -> list[dict[str, int]] | None:
    """The transitions of a run that gives the complex event with these `marks`: its states, event by event.

    Each has the ``position`` of the event, the state that it was read in (``source``) and that it led to
    (``target``); events of other partitions are not read. None where the automaton gathers runs (a join),
    where the complex event is too long, or where its marks are not enough to tell a run.
    """
    machine = plan.machine
    if end - start >= MOST_READ or not isinstance(machine, CEA | Chain):
        return None
    cea = machine if isinstance(machine, CEA) else skeleton(machine)
    positions, bits = _bits(plan, cea, stream, start, end)
    shown = frozenset(selected.label for selected in plan.shown)
    asked = [marks.get(int(position), frozenset()) for position in positions]
    steps = _run(cea, bits, asked, shown)
    if steps is None:
        return None
    return [
        {"position": int(position), "source": step.source, "target": step.target}
        for position, step in zip(positions, steps, strict=True)
    ]


def _bits(plan: Plan, cea: CEA, stream: Stream, start: int, end: int) -> tuple[NDArray[np.int64], list[int]]:
    """The positions of the events that a run reads from `start` to `end`, and which predicates are true."""
    predicates = tuple(predicate for predicate in cea.predicates if predicate != FIRST)
    asked = replace(plan.classification, predicates=predicates, keep_all=True, payload=(), values=())
    if stream.source.type_column in (None, *stream.source.columns):
        events = stream.table.slice(start, end - start + 1)
        batches = list(open_source(events, stream.asked.layout, None, declared=False).read(asked))
    else:  # each type has its own table, and the types of events are known by that
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
    if FIRST in cea.predicates:
        bits[0] |= 1 << (len(cea.predicates) - 1)
    return rows[kept], [value for value, keep in zip(bits, kept, strict=True) if keep]


def _run(
    cea: CEA, bits: Sequence[int], marks: Sequence[LabelSet], shown: LabelSet
) -> list[Transition] | None:
    """A run from an initial to a final state over all events, that shows exactly these marks."""
    leaving: dict[int, list[Transition]] = {}
    for transition in cea.transitions:
        leaving.setdefault(transition.source, []).append(transition)
    here = dict.fromkeys(cea.initial)
    before: list[dict[int, Transition]] = []
    for word, labels in zip(bits, marks, strict=True):
        reached: dict[int, Transition] = {}
        for state in here:
            for transition in leaving.get(state, ()):
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
