"""``python -m benchmarks.correlated``: correlated queries end to end, from an Arrow table to the count.

Every event is relevant. The figures are of whichever plan the planner picks, parsing, planning and the SQL
of the classification included. Before anything is timed, the complex events of a prefix are compared with
those of the reference semantics, and the counts of a longer prefix with those of the other plans that can
serve the query. Prints JSON; ``--write`` writes CORRELATED.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import estero
from estero.answers.answer import Answer
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.plan.automaton import AutomatonPlan
from estero.plan.chains import ChainPlan
from estero.plan.plan import Plan
from estero.plan.rules import PLANS, NotServedError, PlanName, plan_of
from estero.queries.conjunctive_statement import ConjunctiveStatement
from estero.queries.query import Query
from estero.recognize.in_process import InProcessRun
from estero.reference.conjunctive import evaluate_conjunctive
from estero.reference.queries import ComplexEvent, Event, evaluate_query

PAGE = Path(__file__).with_name("CORRELATED.md")
REFERENCE = 24
"""So many events the reference is asked about; it enumerates all sets."""
OTHER_PLAN = 3_000
ONE = " LIMIT 1"
"""Where an end has thousands of complex events, one is read; they are compared without it."""
SLOW = 5.0
"""Seconds for a tenth of the events."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query in CEQL, or a conjunctive one, over events of `kinds` types with one of `keys` keys."""

    name: str
    text: str
    kinds: int
    keys: int
    target: float | None = None
    """Events per second that it has to reach."""
    as_pattern: str = ""
    """CEQL with as many complex events at each end, which the other plans can serve."""
    only: PlanName | None = None
    """A plan that is asked for, in place of the one that the planner picks."""

    def query(self) -> Query:
        """The query."""
        return estero.query(self.text)

    def table(self, events: int, *, keys: int | None = None) -> pa.Table:
        """Seeded events, drawn evenly; `m` is one of ten values."""
        random = np.random.default_rng(1)
        names = np.array([*"ABCDE"[: self.kinds]])
        kind = random.integers(0, self.kinds, events)
        key = random.integers(0, self.keys if keys is None else keys, events)
        price = random.integers(1, 10_000, events) / 100
        return pa.table(
            {
                "type": pa.DictionaryArray.from_arrays(pa.array(kind, pa.int8()), pa.array(names)),
                "k": key,
                "m": random.integers(0, 10, events),
                "price": price,
            }
        )


def cases() -> list[Case]:
    """What is measured; the targets are those of the design."""
    chain = "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.k = b.k AND b.k = c.k WITHIN 10000 EVENTS"
    parts = "SELECT * WHERE A AS a ALL B AS b ALL C AS c FILTER a.k = b.k AND b.k = c.k{} WITHIN 10000 EVENTS"
    rising = "SELECT * WHERE A AS a ; B AS b FILTER b.price > a.price{} WITHIN 10000 EVENTS"
    within = (
        "SELECT * WHERE A AS a ; B AS b FILTER a.price BETWEEN b.price - 1 AND b.price WITHIN 10000 EVENTS"
    )
    forgetful = rising.format(" PARTITION BY [k]") + " CONSUME BY PARTITION"
    stars = {
        atoms: f"Q(x) <- {', '.join(f'{name}(k: x)' for name in 'ABCDE'[:atoms])} WITHIN 10000 EVENTS"
        for atoms in (3, 5)
    }
    patterns = {
        atoms: f"SELECT * WHERE {' ALL '.join('ABCDE'[:atoms])} FILTER "
        f"{' AND '.join(f'A.k = {name}.k' for name in 'BCDE'[: atoms - 1])} WITHIN 10000 EVENTS"
        for atoms in stars
    }
    return [
        *(Case("A ; B ; C, equal keys", chain, 3, keys, 2e6) for keys in (1_000, 1_000_000)),
        *(
            Case(f"star of {atoms} atoms", stars[atoms], atoms, keys, 1e6, as_pattern=patterns[atoms])
            for atoms in stars
            for keys in (1_000, 1_000_000)
        ),
        Case("ALL of 3 parts, one key", parts.format(""), 3, 1_000),
        Case("ALL of 3 parts, one key, forced", parts.format(""), 3, 1_000, only="partitions"),
        Case("ALL of 3 parts, two keys", parts.format(" AND a.m = b.m"), 3, 1_000),
        Case("A ; B, b.price > a.price, LIMIT 1", rising.format("") + ONE, 2, 1_000, 0.2e6),
        Case("A ; B, b.price > a.price, equal keys", rising.format(" AND a.k = b.k"), 2, 1_000, 0.2e6),
        Case("A ; B, b.price > a.price, forgotten by keys", forgetful, 2, 1_000),
        Case("A ; B, a.price in a range of b, LIMIT 1", within + ONE, 2, 1_000),
        Case("A ; B, two inequalities, LIMIT 1", rising.format(" AND b.m <= a.m") + ONE, 2, 1_000),
        Case(
            "A ; B, two inequalities, LIMIT 1, forced",
            rising.format(" AND b.m <= a.m") + ONE,
            2,
            1_000,
            only="CEA",
        ),
    ]


def run_of(case: Case, table: pa.Table) -> InProcessRun:
    """The query on a table, by the plan that the planner picks or the case asks for."""
    source = open_source(table, EventLayout.of(type="type", only_type="A"))
    query = case.query()
    if case.only is not None:
        return InProcessRun(plan_of(query.tree, source.layout, only=case.only), source)
    return InProcessRun(query.plan(source.layout), source)


def check(case: Case) -> str:
    """Compares a prefix with the reference, and more of it with another plan; raises where they differ.

    Returns what it was compared with.
    """
    case = replace(case, text=case.text.removesuffix(ONE))
    few = case.table(REFERENCE, keys=2)
    query = case.query()
    events = [Event(row.pop("type"), row) for row in few.to_pylist()]
    answers = Counter(
        ComplexEvent(match.start, match.end, frozenset((k, frozenset(v)) for k, v in match.positions.items()))
        for match in Answer(run_of(case, few))
    )
    if isinstance(query.statement, ConjunctiveStatement):
        by_end = evaluate_conjunctive(query.statement.conjunctive, events)
    else:
        by_end = evaluate_query(query.tree, events)
    expected = Counter(match for at_end in by_end.values() for match in at_end)
    if answers != expected or not expected:
        raise ValueError(f"{case.name}: the answers over {REFERENCE} events differ from the reference's")
    return _with_another_plan(case)


def _with_another_plan(case: Case) -> str:
    """Compares the counts at each end, in a window that every plan can bear."""
    table = case.table(OTHER_PLAN, keys=20)
    small = replace(case, text=case.text.replace("WITHIN 10000", "WITHIN 60"))
    counts = dict(run_of(small, table).counts())
    tree = replace(estero.query(case.as_pattern or case.text).tree, window=small.query().tree.window)
    source = open_source(table, EventLayout.of(type="type", only_type="A"))
    compared = ["reference"]
    for only in PLANS:
        try:
            other = plan_of(tree, source.layout, only=only)
        except NotServedError:
            continue
        compared.append(plan_name(other))
        if dict(InProcessRun(other, source).counts()) != counts:
            raise ValueError(f"{case.name}: the counts over {OTHER_PLAN} events differ from those of {only}")
    return ", ".join(compared)


def seconds_to_count(case: Case, table: pa.Table) -> tuple[float, int]:
    """From the text and the table to the number of complex events."""
    began = time.perf_counter()
    count = Answer(run_of(case, table)).count()
    return time.perf_counter() - began, count


def measured(case: Case, events: int, repeats: int) -> dict[str, Any]:
    """The best of a few runs; of a tenth of the events where these alone take longer than `SLOW`."""
    against = check(case)
    table = case.table(events)
    plan = run_of(case, table).plan
    seconds, count = seconds_to_count(case, table.slice(0, events // 10))
    if seconds > SLOW:
        events //= 10
    else:
        seconds, count = min(seconds_to_count(case, table) for _ in range(repeats))
    line = {
        "query": case.name,
        "text": case.text,
        "keys": case.keys,
        "events": events,
        "plan": plan_name(plan),
        "checked": against,
        "complex events": str(count),
        "events/s": round(events / seconds),
        "target": case.target,
    }
    print(
        f"{case.name}, {case.keys:,} keys: {events / seconds / 1e6:.2f} M events/s, {line['plan']}",
        flush=True,
    )
    return line


def plan_name(plan: Plan) -> str:
    """The plan in a few words."""
    if isinstance(plan, ChainPlan):
        by_order = "chain + ordered index" if any(plan.orders) else "chain + heap"
        name = "chain + ED-index" if plan.steps else by_order
        return f"{name}, residual filter" if plan.residuals else name
    if not isinstance(plan, AutomatonPlan):
        return "PCEA + heap"
    if plan.residuals:
        return "CEA, residual filter"
    if plan.registers is not None:
        return "CEA, registers"
    return "CEA, partitioned" if plan.keyed else "CEA"


def page(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    return "\n".join(_page_lines(figures)) + "\n"


def _page_lines(figures: dict[str, Any]) -> Iterator[str]:
    yield "# Correlated queries"
    yield ""
    yield "Written by `python -m benchmarks.correlated --write`. From the query's text and an Arrow table"
    yield "in memory to the exact number of complex events; windows of 10,000 events, every event relevant."
    yield "How: [README.md](README.md)."
    yield ""
    yield from (f"- {name}: {value}" for name, value in figures["setting"].items())
    yield ""
    yield "| query | keys | plan | events | complex events | M events/s | target | met | checked with |"
    yield "|---|---:|---|---:|---:|---:|---:|---|---|"
    for line in figures["lines"]:
        target = line["target"]
        aim = "–" if target is None else f"{target / 1e6:g}"
        met = "–" if target is None else "yes" if line["events/s"] >= target else "**no**"
        yield (
            f"| {line['query']} | {line['keys']:,} | {line['plan']} | {line['events']:,} "
            f"| {_large(int(line['complex events']))} | {line['events/s'] / 1e6:.2f} | {aim} | {met} "
            f"| {line['checked']} |"
        )


def _large(count: int) -> str:
    return f"{count:,}" if count < 10**9 else f"{float(count):.2g}"


def main() -> None:
    """Checks each query, then times it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.correlated", description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the best one counts")
    parser.add_argument("--only", help="a word in the name of the queries to run")
    parser.add_argument("--write", action="store_true", help="write CORRELATED.md")
    asked = parser.parse_args()
    chosen = [case for case in cases() if asked.only is None or asked.only in case.name]
    figures = {
        "setting": {
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "versions": ", ".join(
                f"{name} {version(name)}" for name in ("numpy", "numba", "duckdb", "pyarrow")
            ),
            "best of": asked.repeats,
        },
        "lines": [measured(case, asked.events, asked.repeats) for case in chosen],
    }
    print(json.dumps(figures, indent=1))
    if asked.write:
        PAGE.write_text(page(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
