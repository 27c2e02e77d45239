"""Rules in EQL, sequences above all, over events like those of Elastic's agent, beside the package eql.

    python -m benchmarks.eql_rules RULES [--sequences] [--events 10000000] [--hosts 10000] [--batch 1000000]

RULES is a directory of rules in EQL (.eql, or Elastic's .toml); with --sequences those of single events are
left out. The events are those of `sysmon_events` with the names of the Elastic Common Schema; fields that
rules ask for and these events lack are there, and NULL. They are written into files batch by batch, which
takes 70 MB a million, and read from there, so memory holds a batch and what is open; writing is not timed.
With --files DIRECTORY they are written there, unless they are there already.
The numbers of a few rules in the set are compared with those of the rules alone before anything is timed. The
peer (pip install eql) has an older dialect: it gets the rules that it can read, and fewer events
(--peer-events, 0 for none).
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import estero
from benchmarks.sysmon_events import batches

T = TypeVar("T")

LAYOUT: dict[str, Any] = {"time": "@timestamp"}
KINDS: Final = {
    1: ("process", "start", "exec"),
    3: ("network", "start", "connection_attempted"),
    7: ("library", "start", "load"),
    10: ("api", "access", "open"),
    11: ("file", "creation", "creation"),
    12: ("registry", "creation", "creation"),
    13: ("registry", "change", "modification"),
    22: ("network", "protocol", "lookup_requested"),
}
"""The category, the type and the action of each kind of event."""
NAMES: Final = {
    "Computer": "host.id",
    "User": "user.id",
    "Image": "process.executable",
    "CommandLine": "process.command_line",
    "ParentImage": "process.parent.executable",
    "ParentCommandLine": "process.parent.command_line",
    "OriginalFileName": "process.pe.original_file_name",
    "TargetFilename": "file.path",
    "TargetObject": "registry.path",
    "Details": "registry.data.strings",
    "ImageLoaded": "dll.path",
    "DestinationIp": "destination.ip",
    "DestinationPort": "destination.port",
    "QueryName": "dns.question.name",
}


def timed(question: Callable[[], T]) -> tuple[float, T]:
    """The seconds that a question takes, and its answer."""
    begin = time.perf_counter()
    answer = question()
    return time.perf_counter() - begin, answer


def elastic(table: pa.Table, seed: int = 1) -> pa.Table:
    """The same events with the names of the Elastic Common Schema."""
    random = np.random.default_rng(seed)
    kinds = table["EventID"].combine_chunks().dictionary_encode()
    codes = [KINDS[number] for number in kinds.dictionary.to_pylist()]
    systems = ["windows", "windows", "windows", "linux", "macos"]
    hosts = table["Computer"].combine_chunks()
    columns: dict[str, Any] = {"@timestamp": table["UtcTime"]}
    for place, name in enumerate(("event.category", "event.type", "event.action")):
        columns[name] = pa.DictionaryArray.from_arrays(
            kinds.indices, pa.array([code[place] for code in codes])
        )
    columns |= {new: table[old] for old, new in NAMES.items()}
    of_hosts = pa.array([systems[number % 5] for number in range(len(hosts.dictionary))])
    columns["host.os.type"] = of_hosts.take(hosts.indices).dictionary_encode()
    for old, new in (
        ("Image", "process.name"),
        ("ParentImage", "process.parent.name"),
        ("ImageLoaded", "dll.name"),
    ):
        encoded = table[old].combine_chunks()
        names = [text.rpartition("\\")[2] for text in encoded.dictionary.to_pylist()]
        columns[new] = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(names))
    entities = random.integers(0, 50 * len(hosts.dictionary), table.num_rows).astype(np.int32)
    columns["process.entity_id"] = pc.cast(pa.array(entities), pa.string())
    columns["process.pid"] = pa.array(entities % 30_000)
    columns["user.name"] = table["User"]
    return pa.table(columns)


def with_missing(rules: estero.RuleSet, table: pa.Table) -> list[str]:
    """The fields that rules ask for and the events lack."""
    missing: list[str] = []
    while True:
        empty = table.schema.empty_table()
        for name in missing:
            empty = empty.append_column(name, pa.array([], pa.string()))
        errors = [error for told in rules.check(empty, **LAYOUT).values() for error in told]
        new = {error.found.strip("`") for error in errors if error.message.startswith("no event has a field")}
        if not new - set(missing):
            return missing
        missing += sorted(new - set(missing))


def main() -> None:
    """Compares and times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rules", type=Path)
    parser.add_argument("--sequences", action="store_true")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=1_000_000)
    parser.add_argument("--files", type=Path)
    parser.add_argument("--peer-events", type=int, default=20_000)
    asked = parser.parse_args()
    seconds, rules = timed(lambda: estero.rules(str(asked.rules)))
    print(f"{len(rules):,} rules, read in {seconds:.1f} s; {len(rules.refused):,} refused")
    if asked.sequences:
        for name in [name for name in rules if not str(rules[name]).startswith("sequence")]:
            rules.remove(name)
        print(f"{len(rules):,} of them are sequences")
    few = elastic(next(batches(min(asked.events, 200_000), asked.hosts)))
    missing = with_missing(rules, few)
    few, unfit = with_nothing(few, missing), 0
    counts = rules.run(few, **LAYOUT).counts()
    for name in [name for name in rules if name not in counts]:
        rules.remove(name)
        unfit += 1
    some = sorted(counts, key=lambda name: -counts[name])[:20]
    if any(rules[name].run(few, **LAYOUT).count() != counts[name] for name in some):
        raise SystemExit("a rule has another number of answers in the set than alone")
    alerts = sum(counts.values())
    print(
        f"{unfit:,} rules do not fit the events; {alerts:,} alerts of {few.num_rows:,} events",
        flush=True,
    )
    _time_all(rules, asked, missing)
    if asked.peer_events:
        _peer(rules, with_nothing(elastic(next(batches(asked.peer_events, asked.hosts))), missing))


def with_nothing(table: pa.Table, names: list[str]) -> pa.Table:
    """The events with columns of NULL, which share their memory."""
    no_text, no_number = (pa.nulls(table.num_rows, kind) for kind in (pa.string(), pa.int64()))
    missing = {name: no_number if name.endswith(".pid") else no_text for name in names}
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **missing})


def _time_all(rules: estero.RuleSet, asked: argparse.Namespace, missing: list[str]) -> None:
    """Writes the events into files, batch by batch, and says how long all rules take for them."""
    with TemporaryDirectory() as temporary:
        place = Path(temporary) if asked.files is None else asked.files
        files = _written(place, asked, missing)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        begun = time.process_time()

        def progress(read: int, of: int | None) -> None:
            print(f"{read:,} of {of or 0:,} events, {time.process_time() - begun:.1f} s of CPU", flush=True)

        seconds, counts = timed(lambda: rules.run(files, **LAYOUT, progress=_seldom(progress)).counts())
    cpu = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{sum(counts.values()):,} alerts; {seconds:.1f} s with planning, {cpu:.1f} s of CPU")
    rates = [asked.events / spent / 1e3 for spent in (seconds, cpu)]
    print(f"{rates[0]:,.0f} thousand events/s, {rates[1]:,.0f} thousand a second of CPU")
    print(f"{peak:.1f} GB of memory at most, {before:.1f} GB before")


def _written(place: Path, asked: argparse.Namespace, missing: list[str]) -> list[str]:
    """The files of the events, which are written unless they are there."""
    place.mkdir(exist_ok=True)
    files = [place / f"{number:04d}.parquet" for number in range(-(-asked.events // asked.batch))]
    if not all(file.exists() for file in files):
        for number, table in enumerate(batches(asked.events, asked.hosts, size=asked.batch)):
            pq.write_table(with_nothing(elastic(table, seed=number), missing), files[number])
    return list(map(str, files))


def _seldom(progress: Callable[[int, int | None], None]) -> Callable[[int, int | None], None]:
    """The same every ten seconds at most."""
    last = time.monotonic()

    def told(read: int, of: int | None) -> None:
        nonlocal last
        if time.monotonic() - last > 10:
            last = time.monotonic()
            progress(read, of)

    return told


def _peer(rules: estero.RuleSet, events: pa.Table) -> None:
    """The package eql, with those of the rules that its dialect reads."""
    try:
        eql = import_module("eql")
    except ImportError as missing:
        print(f"no peer: {missing}")
        return
    engine, refused = eql.PythonEngine({"print": False}), 0
    for name in rules:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                engine.add_query(eql.parse_query(rules.text_of(name), implied_any=True))
        except eql.EqlError:
            refused += 1
    rows = [_nested(row) for row in events.to_pylist()]
    begin = time.perf_counter()
    for number, row in enumerate(rows):
        engine.stream_event(eql.Event(row["event"]["category"], number, row))
    seconds = time.perf_counter() - begin
    print(f"eql: reads {len(rules) - refused:,} of the rules; {len(rows) / seconds:,.0f} events/s")


def _nested(row: dict[str, Any]) -> dict[str, Any]:
    """An event whose names with dots are structs."""
    nested: dict[str, Any] = {}
    for name, value in row.items():
        *path, last = name.split(".")
        inside = nested
        for step in path:
            inside = inside.setdefault(step, {})
        inside[last] = value
    return nested


if __name__ == "__main__":
    warnings.simplefilter("ignore", estero.EsteroWarning)
    main()
