"""A thousand rules beside Esper and Siddhi: the same rules over the same events, answers compared first.

    python -m benchmarks.peers install --only esper,siddhi
    python -m benchmarks.peers.rule_sets [--rules 1000] [--events 1000000]

A rule is an A with a key, the next B after it with a second key, and the next C after that with a third one,
within 300 events: a meaning that all three engines have. Five rules want an event. Esper gets a statement for
each rule and Siddhi a query in one app, as their manuals have it for many rules; Esper looks constants up in
its index of filters.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers.engines import Missing, java_command
from benchmarks.peers.events import FILES
from benchmarks.peers.session import PeerProblem, Session, TooLong
from benchmarks.rules import number_of_names

WINDOW = 300
CHECKED = 20_000
"""Over so many events all answers are compared."""
SIZES = (10**4, 10**5, 10**6, 10**7)
Keys = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Peer:
    """An engine, and what starts it with the file of its rules."""

    title: str
    file: str
    module: str = ""
    jars: str = ""

    def command(self, folder: Path) -> list[str]:
        """What starts it; `Missing` where it is not installed."""
        asked = [str(folder), "rules", f"file:{folder / self.file}"]
        if self.module:
            return [sys.executable, "-m", "benchmarks.peers.child", self.module, *asked]
        return [*java_command(self.jars), self.title, *asked]


PEERS = (
    Peer("Estero", "estero.json", module="rule_set_engine"),
    Peer("Esper", "esper.epl", jars="esper"),
    Peer("Siddhi", "app.siddhi", jars="siddhi"),
)


def keys_of_rules(rules: int, seed: int = 7) -> list[Keys]:
    """The three keys of each rule; each key stands in five rules at each of its places."""
    drawn = np.random.default_rng(seed).permuted(
        np.tile(np.arange(rules) % number_of_names(rules), (3, 1)), axis=1
    )
    return [(int(a), int(b), int(c)) for a, b, c in drawn.T]


def estero_rules(rules: list[Keys]) -> str:
    """The texts by number, as JSON."""
    return json.dumps(
        {
            str(number): f"""SELECT a, b, c WHERE A AS a ; NOT(B AS x FILTER x[key = {two}]) ; B AS b ;
NOT(C AS y FILTER y[key = {three}]) ; C AS c
FILTER a[key = {one}] AND b[key = {two}] AND c[key = {three}] WITHIN {WINDOW} EVENTS"""
            for number, (one, two, three) in enumerate(rules)
        }
    )


def esper_rules(rules: list[Keys]) -> str:
    """A module with a statement for each rule."""
    return "\n".join(
        f"@name('r{number}') select {number}L as rule, a.id as a, b.id as b, c.id as c from pattern ["
        f"every a=S(type='A', key={one}) -> (b=S(type='B', key={two}) -> c=S(type='C', key={three})) "
        f"where timer:within({WINDOW + 1} milliseconds)];"
        for number, (one, two, three) in enumerate(rules)
    )


def siddhi_rules(rules: list[Keys]) -> str:
    """An app with a query for each rule."""
    queries = (
        f"from every a=S[type=='A' and key=={one}] -> b=S[type=='B' and key=={two}] -> "
        f"c=S[type=='C' and key=={three}] within {WINDOW} milliseconds "
        f"select {number}L as rule, a.id as a, b.id as b, c.id as c insert into Found;"
        for number, (one, two, three) in enumerate(rules)
    )
    return "\n".join(["@app:playback define stream S (id long, type string, key int, price int);", *queries])


def save(folder: Path, events: int, rules: int, seed: int = 3) -> None:
    """Writes events and the rules of all engines into a folder."""
    random = np.random.default_rng(seed)
    columns = {
        "type": random.integers(0, 3, events),
        "key": random.integers(0, number_of_names(rules), events),
        "price": random.integers(0, 100, events),
    }
    for name, kind in FILES.items():
        (folder / name).write_bytes(columns[name].astype(kind).tobytes())
    keys = keys_of_rules(rules)
    for peer, text in zip(PEERS, (estero_rules(keys), esper_rules(keys), siddhi_rules(keys)), strict=True):
        (folder / peer.file).write_text(text, encoding="utf-8")


def measured(peer: Peer, folder: Path, truth: dict[int, tuple[int, int]], asked: argparse.Namespace) -> None:
    """Compares the answers of an engine with those of the first one, and prints its figures."""
    with Session(peer.command(folder), folder) as session:
        answers = session.answers(CHECKED, asked.longest)
        checked = folder / "checked.json"
        if not checked.exists():
            checked.write_text(json.dumps(answers), encoding="utf-8")
        elif answers != (known := [tuple(answer) for answer in json.loads(checked.read_text("utf-8"))]):
            raise SystemExit(
                f"{peer.title} has {len(answers):,} answers to {CHECKED:,} events and not {len(known):,}; "
                f"only one of both has {sorted(set(answers) ^ set(known))[:3]}"
            )
        for events in (size for size in SIZES if size <= asked.events):
            try:
                run = session.run(events, asked.longest)
            except TooLong:
                print(f"{peer.title}: {events:,} events take more than {asked.longest:g} s", flush=True)
                return
            total = truth.setdefault(events, (run.answers, run.sum or 0))
            if total != (run.answers, run.sum):
                raise SystemExit(
                    f"{peer.title}: {events:,} events have {run.answers:,} answers, not {total[0]:,}"
                )
            print(
                f"{session.version}: {events:,} events, {run.answers:,} answers, {run.wall:.2f} s "
                f"({run.cpu:.2f} s of all threads), {events / run.wall:,.0f} events/s",
                flush=True,
            )


def main() -> None:
    """Compares, then prints the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.rule_sets", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="the longest stream")
    parser.add_argument("--rules", type=int, default=1_000)
    parser.add_argument("--longest", type=float, default=120.0, help="seconds for a run at most")
    asked = parser.parse_args()
    truth: dict[int, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory(prefix="rules-") as name:
        folder = Path(name)
        save(folder, max(asked.events, CHECKED), asked.rules)
        for peer in PEERS:
            try:
                measured(peer, folder, truth, asked)
            except (Missing, PeerProblem, TooLong) as problem:
                print(f"{peer.title}: {str(problem) or f'more than {asked.longest:g} s'}", flush=True)


if __name__ == "__main__":
    main()
