"""How fast the studio is in a browser: its first paint, the answer to a keystroke, frames of the timeline.

    make studio
    .venv/bin/python benchmarks/studio.py          # needs the extra studio, Playwright and a Chromium

100,000 events of the demo's kind, in a file. The answer is compared with that of `Query.run` before anything
is measured. An answer has come when it is drawn: the pause behind the keystroke, the message, its rows and
the frame with them are in the time. Chromium draws without a graphics card here, so frames are what software
drawing can do.
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

import estero  # noqa: E402 (behind the path)
from chromium import chromium, studio, why_not_here  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Page

EVENTS, STATIONS, ROUNDS = 100_000, 20, 12
QUERY = """\
SELECT calm[time, value], damp[time, value], frost[time, value]
WHERE Wind AS calm ; Humidity AS damp ; Temperature AS frost
FILTER calm[value < 0.05] AND damp[value >= 0.9] AND frost[value < 0.05]
PARTITION BY [station]
WITHIN 2 HOURS
"""
LAYOUT: dict[str, Any] = {"type": "kind", "time": "time", "order": ["id"]}

_FRAMES = """async (seconds) => {
  const canvas = document.querySelector(".timeline canvas");
  const timeline = document.querySelector("#estero-studio").studio.timeline;
  const gaps = [], drawn = [];
  let before = performance.now(), turn = 0;
  const begun = before;
  while (performance.now() - begun < seconds * 1000) {
    const width = canvas.clientWidth;
    const deltaY = turn++ % 60 < 30 ? -12 : 12;
    const turned = { deltaY, clientX: width / 2, bubbles: true, cancelable: true };
    canvas.dispatchEvent(new WheelEvent("wheel", turned));
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    gaps.push(now - before);
    drawn.push(timeline.drawn);
    before = now;
  }
  return { gaps, drawn };
}"""
_ANSWERED = """async (text) => {
  const app = document.querySelector("#estero-studio").studio;
  app.answered = 0;
  app.text = text;
  while (!app.answered) await new Promise((done) => setTimeout(done, 1));
  return app.answered;
}"""


def stream() -> pa.Table:
    """Readings of three kinds at twenty stations, in order of time, from a fixed seed."""
    random = np.random.default_rng(7)
    kinds = np.array(["Temperature", "Humidity", "Wind"])
    return pa.table(
        {
            "id": np.arange(EVENTS),
            "kind": kinds[random.integers(0, 3, EVENTS)],
            "time": pa.array(
                np.cumsum(random.integers(0, 20, EVENTS)) * 1_000_000, pa.timestamp("us", "UTC")
            ),
            "station": pa.array([f"station {number:02}" for number in random.integers(0, STATIONS, EVENTS)]),
            "value": random.random(EVENTS),
        }
    )


def main() -> None:
    """Measures and prints, as JSON."""
    if reason := why_not_here():
        raise SystemExit(f"nothing is measured: {reason}")
    events = stream()
    expected = estero.query(QUERY).run(events, **LAYOUT).count()
    with tempfile.TemporaryDirectory(prefix="estero-") as directory:
        pa.parquet.write_table(events, Path(directory, "events.parquet"))
        Path(directory, "frost.ceql").write_text(QUERY, encoding="utf-8")
        arguments = ["events.parquet", "--type", "kind", "--time", "time", "--order", "id"]
        with (
            studio(*arguments, "--query", "frost.ceql", directory=directory) as address,
            chromium() as browser,
        ):
            page = browser.new_page(viewport={"width": 1360, "height": 1000})
            page.set_default_timeout(120_000)
            page.goto(address)
            status = page.locator(".status b", has_text="complex event")
            status.wait_for()
            page.locator(".automaton svg").wait_for()
            said = status.inner_text().replace(",", "")
            if not said.startswith(f"{expected} "):
                raise RuntimeError(f"the studio says {said}, and there are {expected}")
            page.close()
            print(json.dumps(measured(browser.new_page(viewport={"width": 1360, "height": 1000}), address)))


def measured(page: Page, address: str) -> dict[str, Any]:
    """The figures of one page, in milliseconds but for the frames in a second."""
    page.goto(address)
    page.locator(".automaton svg").wait_for()
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    page.wait_for_function("document.querySelector('.timeline canvas').width > 0")
    texts = [QUERY.replace("0.05", f"0.05{number}") for number in range(1, 1 + ROUNDS)]
    answers = [page.evaluate(_ANSWERED, text) for text in texts]
    page.get_by_role("button", name="Show all").click()
    frames = page.evaluate(_FRAMES, 4)
    gaps = sorted(frames["gaps"])
    return {
        "events": EVENTS,
        "first paint": round(paint),
        "answer after a change, median": round(median(answers)),
        "answer after a change, worst": round(max(answers)),
        "frames in a second, median": round(1000 / median(gaps), 1),
        "gap between frames, 95 of 100": round(gaps[int(0.95 * len(gaps))], 1),
        "drawing a frame, median": round(median(frames["drawn"]), 2),
        "browser": page.context.browser.version if page.context.browser else "",
        "machine": platform.platform(),
    }


if __name__ == "__main__":
    main()
