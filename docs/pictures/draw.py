"""Draws the pictures of the README and of the freezing plantation: `make pictures`. Same code, same bytes.

The real data is looked for in $ESTERO_DATA, else in ../shared/data beside the repository; without it, the
picture of it stays as it is.
"""

from __future__ import annotations

import os
from pathlib import Path

import estero
from estero import demo
from estero.plots.picture import Picture

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
DATA = Path(os.environ.get("ESTERO_DATA") or REPOSITORY.parent / "shared" / "data")


def main() -> None:
    """Writes answer.svg, funnel.svg and freezing.svg beside this file."""
    query = estero.query(demo.QUERY)
    answer = query.run(demo.events(), type="kind", time="time", order=["id"])
    answer.plot(title="The wind drops, the air is damp, then it freezes", limit=34).save(HERE / "answer.svg")
    answer.funnel().plot().save(HERE / "funnel.svg")
    sensors = DATA / "polkura_sensors.csv"
    if sensors.is_file():
        freezing(sensors).save(HERE / "freezing.svg")


def freezing(sensors: Path) -> Picture:
    """The first answers of examples/freezing.ceql on a week of real readings."""
    query = estero.query((REPOSITORY / "examples" / "freezing.ceql").read_text(encoding="utf-8"))
    answer = query.run(sensors, type="Variable", time="Fecha", order=["id"])
    return answer.plot(title="Below zero, then rising humidity up to 60 %", limit=34)


if __name__ == "__main__":
    main()
