"""The automaton of a query as a page draws it."""

from __future__ import annotations

from typing import Any, Final

from estero.automata.cea import CEA
from estero.automata.skeleton import skeleton
from estero.errors import legible
from estero.plan.plan import Plan
from estero.plots.drawing import LOOP, RADIUS, Drawing, width_of

MOST_STATES: Final = 120
"""The most states that are drawn: of more, nothing is seen."""
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
