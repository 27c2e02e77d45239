"""The command `stream`: a query over events that keep coming, until it is stopped."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from estero.cli.completion import file_names
from estero.cli.inputs import load_predicates, query_in, refuse
from estero.cli.options import (
    LOCAL,
    RowsOf,
    about_events,
    debug,
    decorated,
    events_order,
    events_time,
    events_time_unit,
    events_type,
    existing_or_not,
    metadata,
    one_of,
    option,
    params,
    partials,
    predicates,
    query_file,
    rows,
)
from estero.cli.stream_local import LOCAL_OPTIONS, stream_locally
from estero.cli.stream_usage import asked_to_stop, check_usage, meant
from estero.local.note import check_note, write_note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from estero import Query
    from estero.events.streams.stream_layout import Lateness


class StreamEngine(StrEnum):
    """The engines that recognize streams."""

    SPARK = "spark"
    LOCAL = "local"


_about_places = partial(option, group="Source and sink")
_about_spark = partial(option, group="Options for Spark")

_STREAM_OPTIONS = (
    query_file,
    option(
        "--engine",
        **one_of(StreamEngine),
        default=str(StreamEngine.SPARK),
        show_default=True,
        help="local recognizes in this process, without Spark, one query or a directory of rules.",
    ),
    _about_places(
        "--from",
        "source",
        metavar="ADDRESS",
        help="parquet:DIR, json:DIR or csv:DIR (a directory where files arrive), kafka://HOST:PORT/TOPIC, "
        "delta:DIR; after a ?, options of Spark's reader. The local engine also reads stdin and tcp://HOST:PORT.",
    ),
    _about_places(
        "--to",
        "sink",
        metavar="ADDRESS",
        default="console",
        show_default=True,
        help="The same, or postgresql://USER@HOST:PORT/DATABASE/TABLE, or console; for the local engine also "
        "the URL of a webhook.",
    ),
    _about_places(
        "--checkpoint",
        metavar="DIR",
        type=existing_or_not,
        help="Keeps the progress of the stream, which resumes from there after a stop. Required for every "
        "sink but the console.",
    ),
    _about_places(
        "--schema",
        metavar="COLUMNS|FILE",
        help="The columns of the events, such as 'kind STRING, time TIMESTAMP', or a file that contains "
        "them; not needed if there are files already.",
        shell_complete=file_names,
    ),
    _about_places(
        "--trigger",
        metavar="WHEN",
        help="When to look for events: an interval such as '10 seconds', or available-now, which ends when "
        "everything that is there has been read. Default: as soon as possible.",
    ),
    events_type,
    events_time,
    events_time_unit,
    events_order,
    about_events(
        "--lateness",
        metavar="DURATION",
        help="How late events may come, such as '5 seconds' (ticks, for integers without a unit); later ones "
        "are dropped and counted. Default: 0.",
    ),
    rows,
    about_events(
        "--positions",
        is_flag=True,
        help="Also show the positions of events in the stream; one task then sees all events.",
    ),
    partials,
    *LOCAL_OPTIONS,
    _about_spark("--master", metavar="URL", help="The Spark master. Default: local[*]."),
    _about_spark(
        "--packages",
        metavar="COORDINATES",
        multiple=True,
        help="Connectors by group:name:version, in place of those fetched by default.",
    ),
    _about_spark(
        "--jars",
        metavar="FILE",
        multiple=True,
        help="Connectors as files or directories of .jar files; nothing is fetched then.",
        shell_complete=file_names,
    ),
    _about_spark("--conf", metavar="KEY=VALUE", multiple=True, help="A setting of Spark; can be repeated."),
    metadata,
    params,
    predicates,
    debug,
)


def with_stream_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the argument and the options of `stream`."""
    return decorated(command, _STREAM_OPTIONS)


def stream(
    query: Path,
    engine: StreamEngine,
    source: str | None,
    sink: str,
    checkpoint: Path | None,
    schema: str | None,
    trigger: str | None,
    type: str | None,
    time: str | None,
    time_unit: str | None,
    order: Sequence[str],
    lateness: str | None,
    rows: RowsOf,
    positions: bool,
    partials: bool,
    dead_letters: str | None,
    backfill: Path | None,
    version_column: bool,
    checkpoint_interval: str | None,
    idle_after: str | None,
    keep: Sequence[str],
    memory_limit: str | None,
    shed: bool,
    serve: str | None,
    master: str | None,
    packages: Sequence[str],
    jars: Sequence[str],
    conf: Sequence[str],
    metadata: Sequence[str],
    param: Sequence[str],
    predicates: Sequence[str],
    debug: bool,
) -> None:
    """Find the complex events of a query in an endless stream of events, until stopped (Ctrl-C)."""
    load_predicates(predicates)
    late = _lateness(lateness)
    layout = {"type": type, "time": time, "time_unit": time_unit, "order": list(order)}
    of_local = {
        "dead-letters": dead_letters,
        "backfill": backfill,
        "version-column": version_column,
        "checkpoint-interval": checkpoint_interval,
        "idle-after": idle_after,
        "keep": keep,
        "memory-limit": memory_limit,
        "shed": shed,
        "serve": serve,
        "metadata": metadata,
    }
    if engine is StreamEngine.LOCAL:
        of_spark: dict[str, object] = {"master": master, "packages": packages, "jars": jars, "conf": conf}
        of_spark |= {"partials": partials, "rows": rows is RowsOf.EVENTS}
        refuse(of_spark, "is for Spark, not for the local engine")
        stream_locally(
            query,
            source,
            sink,
            checkpoint,
            trigger,
            param,
            schema=schema,
            layout={**layout, "lateness": late},
            dead_letters=dead_letters,
            backfill=backfill,
            version=version_column,
            interval=checkpoint_interval,
            idle_after=idle_after,
            keep=keep,
            memory_limit=memory_limit,
            shed=shed,
            serve=serve,
            metadata=metadata,
        )
        return
    refuse(of_local, "is for --engine local")
    # Usage errors come before Spark starts.
    parsed, connectors, config = query_in(query, param), _jar_files(jars), _spark_settings(conf)
    source = _checked_usage(source, sink, checkpoint, trigger, time)
    from estero.cli.terminal import working
    from estero.spark import read_stream, sink_address, stream_session, write_stream

    with ExitStack() as resources:
        place = checkpoint or Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="estero-")))
        note = _note_of(parsed, source, sink, rows, partials=partials)
        check_note(place, note)
        with working("starting Spark"):
            where = master or LOCAL
            stream_session(source, sink, master=where, packages=packages, jars=connectors, config=config)
            events = read_stream(source, schema=schema)
            by_event = rows is RowsOf.EVENTS
            shown = {"positions": positions, "rows": "events" if by_event else None}
            shown["answer_ids"] = not by_event and sink_address(sink).scheme == "kafka"
            matches = _recognized(events, parsed, late, {**layout, **shown, "partials": partials})
            running = write_stream(matches, sink, checkpoint=place, trigger=trigger)
        resources.callback(running.stop)
        write_note(place, note)
        _watch(running, shown=not (sink == "console" and sys.stdout.isatty()))


def _recognized(
    events: DataFrame, query: Query, lateness: Lateness | None, layout: dict[str, Any]
) -> DataFrame:
    from estero.spark import recognize

    try:
        return recognize(events, query, **layout, lateness=lateness)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--lateness") from None


def _lateness(text: str | None) -> Lateness | None:
    """A number of ticks, or the text of a duration; raises a usage error for another text."""
    from estero.events.streams.stream_layout import ticks_of

    if text is None:
        return None
    lateness = int(text) if text.isdecimal() else text
    try:
        ticks_of(lateness, 1)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--lateness") from None
    return lateness


def _spark_settings(conf: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE texts as a mapping."""
    settings = {}
    for setting in conf:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="--conf")
        settings[name.strip()] = value.strip()
    return settings


def _jar_files(places: Sequence[str]) -> list[str]:
    """The .jar files that are given directly, or in directories; a usage error if there are none."""
    files: list[str] = []
    for place in places:
        jars = sorted(Path(place).glob("*.jar")) if Path(place).is_dir() else [Path(place)]
        if "://" in place:
            files.append(place)
            continue
        if not jars or not all(jar.is_file() for jar in jars):
            raise click.BadParameter(f"{place}: there is no such .jar file", param_hint="--jars")
        files += [jar.absolute().as_uri() for jar in jars]
    return files


def _note_of(query: Query, source: str, sink: str, rows: RowsOf, *, partials: bool) -> dict[str, str]:
    """The options that have to stay the same; those of readers and writers may change."""
    from estero.spark import sink_address, source_address

    return {
        "query": str(query),
        "source": str(source_address(source)),
        "sink": str(sink_address(sink)),
        "kind of rows": f"{rows} with partial matches" if partials else str(rows),
        "engine": "spark",
    }


def _checked_usage(
    source: str | None, sink: str, checkpoint: Path | None, trigger: str | None, time: str | None
) -> str:
    """The source, if all options are usable."""
    from estero.spark import sink_address, source_address, trigger_of

    if source is None:
        raise click.BadParameter("stream needs to know where events come from", param_hint="--from")
    meant("--from", source_address, source)
    meant("--to", sink_address, sink)
    meant("--trigger", trigger_of, trigger)
    check_usage(sink, checkpoint, time)
    return source


def _watch(running: Any, *, shown: bool) -> None:
    """Waits for the end, reporting progress on a terminal. A stop signal is heeded between two reports."""
    from estero.cli.terminal import following
    from estero.spark import follow

    with asked_to_stop() as asked, following(shown=shown) as say:
        for totals in follow(running):
            say(str(totals))
            if asked:
                break
    if asked:
        raise click.exceptions.Exit(128 + asked[0])
