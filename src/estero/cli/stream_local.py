"""The command `stream` with the local engine: in this process, without Spark."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from estero.cli.completion import file_names
from estero.cli.inputs import query_in, values_in
from estero.cli.options import existing_or_not, option
from estero.cli.rules import is_rules, rules_in
from estero.cli.stream_usage import asked_to_stop, check_usage, meant
from estero.errors import DataError

if TYPE_CHECKING:
    from estero import Query, RuleSet

_about_local = partial(option, group="Options for the local engine")

LOCAL_OPTIONS = (
    _about_local(
        "--dead-letters",
        metavar="ADDRESS",
        help="A sink, as in --to, for events that cannot be read, with the reason. Default: they are logged "
        "and counted.",
    ),
    _about_local(
        "--backfill",
        metavar="PATH",
        type=existing_or_not,
        help="Files with past events, which are read first. From the stream, only later events, by time and "
        "--order, are taken.",
        shell_complete=file_names,
    ),
    _about_local(
        "--version-column", is_flag=True, help="Add a column `version` with the digest of the rules."
    ),
    _about_local(
        "--checkpoint-interval",
        metavar="DURATION",
        help="How often the checkpoint is written, such as '5 seconds'. Default: 10 seconds.",
    ),
    _about_local(
        "--idle-after",
        metavar="DURATION",
        help="After this time without events, such as '5 seconds', the time of the stream follows the clock "
        "at the same distance. Default: only events advance it.",
    ),
    _about_local(
        "--keep",
        metavar="LENGTH",
        multiple=True,
        help="Past events to keep, such as '2 hours' or '1000 events', for new and changed rules to replay. "
        "Default: such rules begin with the next event.",
    ),
    _about_local(
        "--memory-limit",
        metavar="SIZE",
        help="How much memory the state may take, such as '2 GB'; more is an error, unless --shed is given.",
    ),
    _about_local(
        "--shed", is_flag=True, help="At the memory limit the oldest partitions are dropped, and counted."
    ),
    _about_local(
        "--serve",
        metavar="HOST:PORT",
        help="Serves /metrics for Prometheus, and /health; :PORT is on this machine alone.",
    ),
)

_YOUNG: Final = 10_000
"""The number of new objects after which Python looks for cycles: a batch has no more than some hundreds."""
_INTERVAL: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|seconds?|min|minutes?)?\s*")
_SECONDS: Final = {"ms": 0.001, "mi": 60.0, "s": 1.0, "se": 1.0}
_SERVER: Final = re.compile(r"(?P<host>[^:\s]*|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")
_MOST_PORTS: Final = 65_535


def stream_locally(
    query: Path,
    source: str | None,
    sink: str,
    checkpoint: Path | None,
    trigger: str | None,
    param: Sequence[str],
    *,
    schema: str | None,
    layout: Mapping[str, Any],
    dead_letters: str | None,
    backfill: Path | None,
    version: bool,
    interval: str | None,
    idle_after: str | None,
    keep: Sequence[str],
    memory_limit: str | None,
    shed: bool,
    serve: str | None,
    metadata: Sequence[str],
) -> None:
    """Runs a query or a directory of rules over a stream, until it is stopped or the source ends."""
    from estero.local.door import live
    from estero.local.opening import local_sink, local_source

    if source is None:
        raise click.BadParameter("stream needs to know where events come from", param_hint="--from")
    meant("--from", local_source, source)
    meant("--to", local_sink, sink)
    if dead_letters is not None:
        meant("--dead-letters", local_sink, dead_letters)
    if source == "stdin" and str(query) == "-":
        raise click.BadParameter("the query is read from standard input already", param_hint="--from")
    if shed and memory_limit is None:
        raise click.BadParameter("there is no limit: give --memory-limit, too", param_hint="--shed")
    once = _is_once(trigger)
    every = 10.0 if interval is None else _seconds(interval, "--checkpoint-interval")
    idle = None if idle_after is None else _seconds(idle_after, "--idle-after")
    served = None if serve is None else _server(serve)
    check_usage(sink, checkpoint, layout["time"])
    rules, params = _asked(query, param)
    with ExitStack() as resources, _as_data_errors():
        stream = live(
            rules,
            source,
            sink,
            checkpoint=checkpoint,
            schema=schema,
            **layout,
            dead_letters=dead_letters,
            backfill=backfill,
            version=version,
            checkpoint_every=every,
            idle_after=idle,
            keep=tuple(keep) or None,
            memory_limit=memory_limit,
            memory_policy="shed" if shed else "error",
            params=params,
            metadata=tuple(metadata),
        )
        resources.enter_context(stream)
        asked = resources.enter_context(asked_to_stop(stream.stop))
        if served is not None:
            from estero.local.serving import serving

            resources.enter_context(serving(stream, *served))
        stream.step()  # compiles the rules, if the columns are known
        resources.enter_context(_seldom_collected())
        stream.run(until_caught_up=once)
    if asked:
        raise click.exceptions.Exit(128 + asked[0])


def _asked(query: Path, param: Sequence[str]) -> tuple[Query | RuleSet | Path, Mapping[str, object] | None]:
    """A query, the rules of a file, or a directory of rules, which may change, with its parameters."""
    if not is_rules(query):
        return query_in(query, param), None
    if query.is_dir():
        return query, values_in(param)
    return rules_in(query, values_in(param)), None


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Makes Python look for cycles rarely, and not among the compiled rules, for which it takes 50 ms."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def _as_data_errors() -> Iterator[None]:
    """Turns Python's errors about a lateness or a time without meaning into those of the command."""
    try:
        yield
    except ValueError as error:
        raise DataError(str(error)) from error


def _is_once(trigger: str | None) -> bool:
    """Whether the stream ends when all available data is read; the local engine has no other trigger."""
    if trigger is None:
        return False
    if trigger.strip().lower().replace("_", "-").replace(" ", "-") not in {"available-now", "availablenow"}:
        raise click.BadParameter(
            "the local engine looks for events as soon as possible; it knows available-now only",
            param_hint="--trigger",
        )
    return True


def _seconds(text: str, asked: str) -> float:
    match = _INTERVAL.fullmatch(text.lower())
    if match is None:
        raise click.BadParameter(f"{text!r} is not a duration such as 5 seconds", param_hint=asked)
    unit = match[2] or "s"
    return float(match[1]) * (1.0 if unit == "s" else _SECONDS["ms" if unit == "milliseconds" else unit[:2]])


def _server(text: str) -> tuple[str, int]:
    """The host and port to serve at; by default only this machine."""
    match = _SERVER.fullmatch(text)
    if match is None or int(match["port"]) > _MOST_PORTS:
        raise click.BadParameter(f"{text!r} is not HOST:PORT", param_hint="--serve")
    return match["host"].strip("[]") or "127.0.0.1", int(match["port"])
