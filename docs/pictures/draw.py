"""Draws the pictures of the README: `make pictures`. The same code gives the same bytes."""

from __future__ import annotations

from pathlib import Path

import estero
from estero import demo
from estero.plots import plot_automaton

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Writes answer.svg and automaton.svg beside this file."""
    query = estero.query(demo.QUERY)
    answer = query.run(demo.events(), type="kind", time="time", order=["id"])
    answer.plot(title="The wind drops, the air is damp, then it freezes", limit=34).save(HERE / "answer.svg")
    plan = query.explain().plan
    plot_automaton(plan.automaton).save(HERE / "automaton.svg")


if __name__ == "__main__":
    main()
