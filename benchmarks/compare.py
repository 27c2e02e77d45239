"""Estero beside CORE: the same answers first, then the best of a few interleaved runs of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from benchmarks import estero_runs
from benchmarks.core_peer import CorePeer
from benchmarks.thinning import rows_around_one_match
from benchmarks.workloads import DENSE, BenchmarkQuery, Workload, dense_text

Figures = dict[str, Any]
"""One line of the results: JSON values by name."""

CHECKED_EVENTS = {"dense": 400}
"""Events over which whole answers are compared, where many matter; else `SPARSE_CHECKED_EVENTS`."""
SPARSE_CHECKED_EVENTS = 30_000

PLAIN_TARGET, DICTIONARY_TARGET, DENSE_TARGET, ENUMERATION_TARGET = 50.0, 100.0, 15.0, 5.0

ENUMERATED = (("sequence", 100, 20_000), ("Kleene", 20, 20_000))
"""Pattern of the dense stream, window and number of events for which every answer is written out."""


class Disagreement(Exception):
    """The two engines answer differently: nothing is timed."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The same stream three times: what CORE has too, and longer ones for the faster engine."""

    shared: pa.Table
    plain: pa.Table
    dictionary: pa.Table

    @classmethod
    def of(cls, workload: Workload, events: int, shared: int) -> Tables:
        """The first `events` events, and the first `shared` of them."""
        plain = workload.table(events)
        return cls(plain.slice(0, shared), plain, workload.table(events, dictionary=True))


def check_answers(workload: Workload, query: BenchmarkQuery, table: pa.Table, core: CorePeer) -> Figures:
    """Compares whole answers over a prefix, then how many answers end where over all that CORE has.

    Raises `Disagreement`. Labels are not compared: CORE's text has none.
    """
    events = CHECKED_EVENTS.get(workload.name, SPARSE_CHECKED_EVENTS)
    prefix = table.slice(0, events)
    if query.around:
        rows = rows_around_one_match(workload, query.around, prefix)
        prefix = prefix.take(pa.array(rows))
        core.load(workload, events, rows)
    ours = estero_runs.marked_positions(workload, query.check, prefix)
    theirs = [tuple(marked) for marked in core.run(query.check, prefix.num_rows, "sets")["sets"]]
    if query.around:
        core.load(workload, table.num_rows)
    if ours != theirs:
        missing, extra = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
        raise Disagreement(
            f"{query.check}\n  Estero has {len(ours)} answers, CORE {len(theirs)}; "
            f"only CORE has {missing[:3]}, only Estero has {extra[:3]}"
        )
    counts = estero_runs.counts_by_end(workload, query.text, table)
    core_counts = dict(core.run(query.text, table.num_rows, "counts")["counts"])
    differing = sorted(end for end in counts.keys() | core_counts if counts.get(end) != core_counts.get(end))
    if differing:
        end = differing[0]
        raise Disagreement(
            f"{query.text}\n  {len(differing)} end positions differ; at {end} Estero has "
            f"{counts.get(end, 0)} answers, CORE {core_counts.get(end, 0)}"
        )
    if query.answers == "none" and counts:
        raise Disagreement(f"{query.text}\n  both have answers, but its last event never occurs")
    return {"whole answers": len(ours), "end positions": len(counts)}


def throughput(workload: Workload, tables: Tables, core: CorePeer | None, repeats: int) -> list[Figures]:
    """Events per second of every query of a workload; answers are written out as tables, text by CORE."""
    rows = []
    for query in workload.queries:
        line: Figures = {"workload": workload.name, "query": query.name, "text": query.text}
        if core is not None:
            line["equal answers"] = check_answers(workload, query, tables.shared, core)
        runs: dict[str, Callable[[], tuple[float, int]]] = {
            "estero same events": _estero(workload, query.text, tables.shared),
            "estero plain": _estero(workload, query.text, tables.plain),
        }
        if tables.dictionary.schema != tables.plain.schema:
            runs["estero dictionary"] = _estero(workload, query.text, tables.dictionary)
        if core is not None:
            runs["core"] = _core(core, query.text, tables.shared.num_rows)
        for name, (seconds, outputs) in _best(runs, repeats).items():
            events = (
                tables.shared.num_rows if name in ("core", "estero same events") else tables.plain.num_rows
            )
            line[name] = {
                "events/s": events / seconds,
                "seconds": seconds,
                "events": events,
                "outputs": outputs,
            }
        if "estero dictionary" not in line:
            line["strings"] = "none"
        rows.append(line)
        _say(line)
    return rows


def enumeration(core: CorePeer | None, repeats: int) -> list[Figures]:
    """Answers per second where every answer is written out, marked events with their attributes."""
    rows = []
    for pattern, window, events in ENUMERATED:
        text = dense_text(pattern, window)
        table = DENSE.table(events)
        runs = {
            "estero": _estero(DENSE, text, table),
            "estero objects": _objects(text, table),
        }
        if core is not None:
            runs["core"] = _core(core, text, events)
        line: Figures = {"query": f"{pattern}, window {window}", "text": text, "events": events}
        best = _best(runs, repeats)
        if len({outputs for _, outputs in best.values()}) > 1:
            raise Disagreement(f"{text}\n  " + ", ".join(f"{name}: {n}" for name, (_, n) in best.items()))
        for name, (seconds, outputs) in best.items():
            line[name] = {"outputs/s": outputs / seconds, "seconds": seconds, "outputs": outputs}
        rows.append(line)
        _say(line)
    return rows


def _best(runs: dict[str, Callable[[], tuple[float, int]]], repeats: int) -> dict[str, tuple[float, int]]:
    """The fastest of `repeats` runs of each, taken in turns so that a noisy minute hits all alike."""
    best: dict[str, tuple[float, int]] = {}
    for _ in range(repeats):
        for name, run in runs.items():
            result = run()
            best[name] = min(best.get(name, result), result)
    return best


def _estero(workload: Workload, text: str, table: pa.Table) -> Callable[[], tuple[float, int]]:
    return lambda: estero_runs.seconds_to_answers(workload, text, table)


def _objects(text: str, table: pa.Table) -> Callable[[], tuple[float, int]]:
    return lambda: estero_runs.seconds_to_objects(DENSE, text, table)


def _core(core: CorePeer, text: str, events: int) -> Callable[[], tuple[float, int]]:
    def run() -> tuple[float, int]:
        reply = core.run(text, events)
        return reply["engine"], reply["outputs"]

    return run


def _say(line: Figures) -> None:
    figures: Sequence[str] = [
        f"{name} {rate / 1e6:.3f} M {unit}"
        for name, value in line.items()
        if isinstance(value, dict)
        for unit, rate in value.items()
        if unit.endswith("/s")
    ]
    print(f"{line.get('workload', 'enumeration')}: {line['query']}: {', '.join(figures)}", flush=True)
