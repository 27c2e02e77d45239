"""Installs the engines, and runs them: answers compared first, then seconds for each query and length.

``python -m benchmarks.peers install [--only flink,esper]``, then ``python -m benchmarks.peers run --write``.
With ``--kept FILE`` a run that was broken off goes on where it stopped, and ``page`` writes the page of what
there is.
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
from benchmarks.peers.kept import Kept
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
            if not engine.jars or engine.jars not in [earlier.jars for earlier in engines[:number]]:
                _install(engine)
        return
    queries = [query for query in QUERIES if query.name in asked.queries]
    terms = {"clock": asked.clock, "longest": asked.longest, "repeats": asked.repeats}
    kept = Kept(asked.kept, terms)
    missing = measured(engines, queries, kept, asked) if asked.what == "run" else {}
    figures = {
        "setting": _setting(kept, asked),
        "missing": missing,
        "unmeasured": list(_unmeasured(engines, queries, kept, asked)),
        "runs": _in_order(kept),
    }
    print(page.page(figures))
    if asked.write:
        (HERE / "PEERS.md").write_text(page.page(figures), encoding="utf-8")
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        (HERE / "results" / "peers.json").write_text(f"{text}\n", encoding="utf-8")
        page.picture(figures).save(HERE / "results" / "peers.svg")


def _install(engine: Engine) -> None:
    try:
        engine.install()
    except Missing as problem:
        print(f"{engine.title}: {problem}")
    else:
        print(f"{engine.title}: ready")


def measured(
    engines: Sequence[Engine], queries: Sequence[Query], kept: Kept, asked: argparse.Namespace
) -> dict[str, str]:
    """Measures what is not kept yet; says which engines are missing. `Wrong` if two differ in an answer."""
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="peers-") as name:
        folder = Path(name)
        save(folder, max(asked.events, CHECKED))
        for query in queries:
            truth = Truth(query, kept)
            for engine in engines:
                sizes = _wanted(kept, query, engine, asked)
                if not sizes:
                    continue
                try:
                    for line in _lines(engine, folder, truth, sizes, asked):
                        print(f"{query.name}: {engine.title}: {line}", flush=True)
                        kept.keep({"query": query.name, "engine": engine.name, **line})
                except Missing as problem:
                    missing[engine.name] = str(problem)
    return missing


def _wanted(kept: Kept, query: Query, engine: Engine, asked: argparse.Namespace) -> list[int]:
    """The lengths that an engine is still to be measured at."""
    if isinstance(engine.said[query.name], Unsaid):
        return []
    sizes = [size for size in SIZES if size <= asked.events]
    return kept.wanted(query.name, engine.name, sizes)


def _unmeasured(
    engines: Sequence[Engine], queries: Sequence[Query], kept: Kept, asked: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    for query in queries:
        for engine in engines:
            if sizes := _wanted(kept, query, engine, asked):
                yield {"query": query.name, "engine": engine.name, "from": sizes[0]}


def _in_order(kept: Kept) -> list[dict[str, Any]]:
    """The figures without versions, by query and engine."""
    return [
        {name: value for name, value in line.items() if name != "version"}
        for query in QUERIES
        for engine in ENGINES
        for line in kept.of(query.name, engine.name)
    ]


def _setting(kept: Kept, asked: argparse.Namespace) -> dict[str, str]:
    versions = {line["engine"]: line["version"] for line in kept.figures if "version" in line}
    setting = {
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "versions": ", ".join(dict.fromkeys(versions[name] for name in NAMES if name in versions)),
        "streams": f"up to {asked.events:,} events; an engine gets no longer ones once a run takes more than "
        f"{asked.longest:g} s",
        "seconds": CLOCKS[asked.clock],
        "runs": f"the best of {asked.repeats} for each length, of one where that took more than "
        f"{asked.longest / asked.repeats:g} s, after a run that is checked",
    }
    if asked.note:
        setting["note"] = asked.note
    return setting


CLOCKS = {
    "wall": "of the wall",
    "cpu": "of the processor, in all threads of the engine's process, with Java's compiler and collector; "
    "the machine was not quiet, so that those of the wall say little",
}
CHECK_TIME = 60.0
"""Seconds that the first run may take besides, in which things are compiled."""


class Truth:
    """What the first engine says, and the others have to."""

    def __init__(self, query: Query, kept: Kept) -> None:
        self.query = query
        self._kept = kept
        self.totals: dict[int, tuple[int, int | None]] = {}
        for line in kept.figures:
            if line["query"] == query.name and "answers" in line:
                self._keep(line["events"], line["answers"], line["sum"])

    def compare(self, engine: Engine, answers: Answers) -> None:
        """Compares all answers over a short stream."""
        known = self._kept.answers(self.query.name)
        if known is None:
            self._kept.keep_answers(self.query.name, answers)
        elif answers != known:
            mine, theirs = set(known), set(answers)
            raise Wrong(
                f"{self.query.name}: {engine.title} has {len(answers)} answers and not {len(known)}; "
                f"only there: {sorted(theirs - mine)[:3]}, not there: {sorted(mine - theirs)[:3]}"
            )

    def total(self, engine: Engine, events: int, run: Run) -> None:
        """Compares how many answers there are, and the sum of their positions."""
        answers, total = self._keep(events, run.answers, run.sum)
        if run.answers != answers or (None not in (run.sum, total) and run.sum != total):
            said = f"{run.answers} answers with the sum {run.sum}"
            raise Wrong(f"{self.query.name}, {events:,} events: {engine.title} has {said}: {self.totals}")

    def _keep(self, events: int, answers: int, total: int | None) -> tuple[int, int | None]:
        """What was first said of so many events; a sum counts as said when an engine gives one."""
        known = self.totals.setdefault(events, (answers, total))
        if known[1] is None:
            self.totals[events] = (known[0], total)
        return known


def _lines(
    engine: Engine, folder: Path, truth: Truth, sizes: Sequence[int], asked: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """A checked run, then the best run for each length, until one takes too long; or what went wrong."""
    try:
        with Session(engine.command(folder, truth.query.name), folder, asked.clock) as session:
            truth.compare(engine, session.answers(CHECKED, asked.longest + CHECK_TIME))
            for line in _timed(session, engine, truth, sizes, asked):
                yield {"version": session.version, **line}
    except PeerProblem as problem:
        yield {"problem": str(problem)}
    except TooLong:
        yield {"problem": f"no answers to {CHECKED:,} events in {asked.longest + CHECK_TIME:g} s"}


def _timed(
    session: Session, engine: Engine, truth: Truth, sizes: Sequence[int], asked: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """The best run for each length, until one takes too long."""
    for events in sizes:
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
            both = {
                "wall": round(best.wall, 5),
                "cpu": round(best.cpu, 5),
                "answers": best.answers,
                "sum": best.sum,
            }
            if seconds < engine.least:
                yield {"events": events, "seconds": None, "under": engine.least, **both}
            else:
                yield {"events": events, "seconds": seconds, **both}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("what", choices=("install", "run", "page"))
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
    parser.add_argument(
        "--kept", type=Path, help="a file for all figures; those that it has are not measured again"
    )
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
