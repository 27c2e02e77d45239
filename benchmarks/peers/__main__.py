"""Installs the engines, and runs them: answers compared first, then seconds for each query and length.

``python -m benchmarks.peers install [--only flink,esper]``, then ``python -m benchmarks.peers run --write``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import page
from benchmarks.peers.engines import ENGINES, NAMES, Engine, Missing
from benchmarks.peers.events import save
from benchmarks.peers.queries import QUERIES, WINDOWS, Query, Unsaid
from benchmarks.peers.session import Answers, PeerProblem, Run, Session, TooLong

HERE = Path(__file__).parents[1]
CHECKED = 10_000
"""Over so many events all answers are compared."""
SIZES = (10**4, 10**5, 10**6, 10**7)


class Wrong(Exception):
    """Engines disagree: nothing more is timed."""


def main() -> None:
    """Does what the command line says."""
    asked = _arguments()
    engines = [engine for engine in ENGINES if engine.name in asked.only]
    if asked.what == "install":
        for number, engine in enumerate(engines):
            if not engine.jars or engine.jars not in [each.jars for each in engines[:number]]:
                _install(engine)
        return
    found = measured(engines, [query for query in QUERIES if query.name in asked.queries], asked)
    print(page.page(found))
    if asked.write:
        (HERE / "PEERS.md").write_text(page.page(found), encoding="utf-8")
        text = json.dumps(found, indent=1, ensure_ascii=False)
        (HERE / "results" / "peers.json").write_text(f"{text}\n", encoding="utf-8")
        page.picture(found).save(HERE / "results" / "peers.svg")


def _install(engine: Engine) -> None:
    try:
        engine.install()
    except Missing as problem:
        print(f"{engine.title}: {problem}")
    else:
        print(f"{engine.title}: ready")


def measured(
    engines: Sequence[Engine], queries: Sequence[Query], asked: argparse.Namespace
) -> dict[str, Any]:
    """All figures, as the page wants them; `Wrong` if two engines differ in an answer."""
    versions: dict[str, str | None] = {}
    missing: dict[str, str] = {}
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="peers-") as name:
        folder = Path(name)
        save(folder, max(asked.events, CHECKED))
        for query in queries:
            truth = Truth(query)
            for engine in engines:
                if isinstance(engine.said[query.name], Unsaid):
                    continue
                try:
                    for line in _lines(engine, folder, truth, asked):
                        versions[engine.name] = line.pop("version", versions.get(engine.name))
                        runs.append({"query": query.name, "engine": engine.name, **line})
                        print(f"{query.name}: {engine.title}: {line}", flush=True)
                except Missing as problem:
                    missing[engine.name] = str(problem)
    setting = {
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "versions": ", ".join(dict.fromkeys(filter(None, versions.values()))),
        "streams": f"up to {asked.events:,} events; an engine gets no longer ones once a run takes more than "
        f"{asked.longest:g} s",
        "seconds": CLOCKS[asked.clock],
        "runs": f"the best of {asked.repeats} for each length, of one where that took more than "
        f"{asked.longest / asked.repeats:g} s, after a run that is checked",
    }
    if asked.note:
        setting["note"] = asked.note
    return {"setting": setting, "missing": missing, "runs": runs}


CLOCKS = {
    "wall": "of the wall",
    "cpu": "of the processor, in all threads of the engine's process, with Java's compiler and collector; "
    "the machine was not quiet, so that those of the wall say little",
}
CHECK_TIME = 60.0
"""Seconds that the first run may take besides, in which things are compiled."""


class Truth:
    """What the first engine says, and the others have to."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.answers: Answers | None = None
        self.totals: dict[int, tuple[int, int | None]] = {}

    def compare(self, engine: Engine, answers: Answers) -> None:
        """Compares all answers over a short stream."""
        if self.answers is None:
            self.answers = answers
        if answers != self.answers:
            mine, theirs = set(self.answers), set(answers)
            raise Wrong(
                f"{self.query.name}: {engine.title} has {len(answers)} answers and not {len(self.answers)}; "
                f"only there: {sorted(theirs - mine)[:3]}, not there: {sorted(mine - theirs)[:3]}"
            )

    def total(self, engine: Engine, events: int, run: Run) -> None:
        """Compares how many answers there are, and the sum of their positions."""
        answers, total = self.totals.setdefault(events, (run.answers, run.sum))
        if run.answers != answers or (None not in (run.sum, total) and run.sum != total):
            said = f"{run.answers} answers with the sum {run.sum}"
            raise Wrong(f"{self.query.name}, {events:,} events: {engine.title} has {said}: {self.totals}")


def _lines(engine: Engine, folder: Path, truth: Truth, asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A checked run, then the best run for each length, until one takes too long; or what went wrong."""
    try:
        with Session(engine.command(folder, truth.query.name), folder, asked.clock) as session:
            truth.compare(engine, session.answers(CHECKED, asked.longest + CHECK_TIME))
            for line in _timed(session, engine, truth, asked):
                yield {"version": session.version, **line}
    except PeerProblem as problem:
        yield {"problem": str(problem)}
    except TooLong:
        yield {"problem": f"no answers to {CHECKED:,} events in {asked.longest + CHECK_TIME:g} s"}


def _timed(
    session: Session, engine: Engine, truth: Truth, asked: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """The best run for each length, until one takes too long."""
    for events in (size for size in SIZES if size <= min(asked.events, engine.most)):
        best: Run | None = None
        try:
            for _ in range(asked.repeats):
                run = session.run(events, asked.longest)
                truth.total(engine, events, run)
                seconds = getattr(run, asked.clock)
                best = run if best is None or seconds < getattr(best, asked.clock) else best
                if seconds > asked.longest / asked.repeats:
                    break
        except TooLong:
            yield {"events": events, "seconds": None, "over": asked.longest}
            return
        if best is not None:
            seconds = round(getattr(best, asked.clock), 5)
            both = {"wall": round(best.wall, 5), "cpu": round(best.cpu, 5), "answers": best.answers}
            if seconds < engine.least:
                yield {"events": events, "seconds": None, "under": engine.least, **both}
            else:
                yield {"events": events, "seconds": seconds, **both}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("what", choices=("install", "run"))
    parser.add_argument("--only", type=_listed(NAMES), default=NAMES, help=f"engines: {', '.join(NAMES)}")
    parser.add_argument(
        "--queries", type=_listed(tuple(WINDOWS)), default=tuple(WINDOWS), help="some of them"
    )
    parser.add_argument("--events", type=int, default=SIZES[-1], help="the longest stream")
    parser.add_argument("--longest", type=float, default=60.0, help="seconds for a run at most")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: where the machine is not quiet"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the best one counts")
    parser.add_argument("--note", default="", help="what else the machine did, for the page")
    parser.add_argument("--write", action="store_true", help="write PEERS.md, peers.json and peers.svg")
    return parser.parse_args()


def _listed(known: tuple[str, ...]) -> Any:
    def listed(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(known)}")
        return names

    return listed


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
