"""Two collections of rules, read from nothing and from the cache, and planned for events with their fields.

    python -m benchmarks.planning [--eql RULES] [--sigma RULES]

RULES are directories: rules in EQL (.eql, or Elastic's .toml), and rules in Sigma, such as those of SigmaHQ.
Each collection is read by a process of its own, and both by a third one, first with an empty cache and then
with what that has left. It is planned for a table in which all fields that its rules in Sigma name are
strings, or for events with the names of the Elastic Common Schema. The events are made by another process,
so that nothing has been parsed for them before. Times are seconds of CPU, those by the wall behind them;
importing Estero counts as reading.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

T = TypeVar("T")
TIMES = {"eql": "@timestamp", "sigma": "UtcTime"}

_BEGUN = time.perf_counter() - time.process_time()


def main() -> None:
    """Times both collections."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--eql", type=Path)
    parser.add_argument("--sigma", type=Path)
    parser.add_argument(
        "--of", choices=["eql", "sigma", "both"], help="in this process, and with the cache as it is"
    )
    parser.add_argument("--events", type=Path, help="the directory of the events, with --of")
    parser.add_argument("--make", action="store_true", help="only make the events")
    asked = parser.parse_args()
    directories = {
        name: getattr(asked, name) for name in ("eql", "sigma") if getattr(asked, name) is not None
    }
    if asked.of is not None:
        warnings.simplefilter("ignore")
        chosen = {name: path for name, path in directories.items() if asked.of in (name, "both")}
        (_make if asked.make else _time)(chosen, asked.events)
        return
    with TemporaryDirectory() as events:
        _compare(directories, Path(events))


def _compare(directories: Mapping[str, Path], events: Path) -> None:
    """Times the collections alone and together, without a cache and with one."""
    given = [word for name, path in directories.items() for word in (f"--{name}", path)]
    given += ["--events", events]
    program = [sys.executable, "-m", "benchmarks.planning"]
    subprocess.run([*program, "--of", "both", *given, "--make"], check=True)
    for of in (*directories, "both")[: 3 if len(directories) == 2 else 1]:
        with TemporaryDirectory() as cache:
            for known in ("nothing", "the cache"):
                print(f"{of}, from {known}:", flush=True)
                environment = {**os.environ, "ESTERO_CACHE": cache}
                subprocess.run([*program, "--of", of, *given], check=True, env=environment)


def _make(directories: Mapping[str, Path], place: Path) -> None:
    """Writes the events of each collection, as Arrow."""
    from pyarrow import feather

    import estero

    for name, directory in directories.items():
        rules = estero.rules(directory)
        events = _of_sigma(rules) if name == "sigma" else _of_elastic(rules)
        feather.write_feather(events, str(place / f"{name}.arrow"), compression="uncompressed")


def _time(directories: Mapping[str, Path], place: Path) -> None:
    import estero  # as a part of what is timed

    read = {name: estero.rules(directory) for name, directory in directories.items()}
    numbers = [
        f"{len(rules):,} rules of {name} and {len(rules.refused):,} refused" for name, rules in read.items()
    ]
    _say(f"{', '.join(numbers)}, read", time.process_time(), _BEGUN)
    from pyarrow import feather

    for name, rules in read.items():
        events = feather.read_table(place / f"{name}.arrow")
        _timed(f"those of {name} planned", partial(rules.run, events, time=TIMES[name]))


def _timed(said: str, question: Callable[[], T]) -> T:
    begun, cpu = time.perf_counter(), time.process_time()
    answer = question()
    _say(said, time.process_time() - cpu, begun)
    return answer


def _say(said: str, cpu: float, begun: float) -> None:
    print(f"  {said}: {cpu:.2f} s ({time.perf_counter() - begun:.2f} s)", flush=True)


def _of_sigma(rules: Any) -> Any:
    """One event with the fields that rules in Sigma name; of names that differ in case only there is one."""
    import pyarrow as pa

    names = {"channel": "Channel"}
    for name in rules:
        statement = rules[name].statement
        for condition in (getattr(statement, "source", None), getattr(statement.rule, "condition", None)):
            for field in _fields(condition):
                names.setdefault(field.lower(), field)
    named = [name for lower, name in names.items() if lower not in ("eventid", "utctime")]
    columns = {"UtcTime": pa.array([0], pa.timestamp("us")), "EventID": pa.array([1])}
    return pa.table({**columns, **{name: pa.array(["x"]) for name in named}})


def _fields(condition: Any) -> Iterator[str]:
    """The fields that a condition of a rule in Sigma names."""
    for part in getattr(condition, "parts", ()):
        yield from _fields(part)
    if hasattr(condition, "part"):
        yield from _fields(condition.part)
    for name in ("field", "other"):
        if hasattr(condition, name):
            yield getattr(condition, name)


def _of_elastic(rules: Any) -> Any:
    """A thousand events as `eql_rules` makes them, with the fields that they lack as NULL."""
    from benchmarks.eql_rules import elastic, with_missing, with_nothing
    from benchmarks.sysmon_events import batches

    few = elastic(next(batches(1_000, 100)))
    return with_nothing(few, with_missing(rules, few))


if __name__ == "__main__":
    main()
