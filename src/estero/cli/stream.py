"""The command `stream`: a query over events that keep coming, until it is stopped."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from estero import DataError
from estero.answers.output_file import output_file
from estero.cli.completion import file_names
from estero.cli.options import (
    RowsOf,
    about_events,
    debug,
    events_order,
    events_time,
    events_time_unit,
    events_type,
    existing_or_not,
    load_predicates,
    option,
    params,
    partials,
    predicates,
    query_file,
    query_in,
    rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from estero import Query

T = TypeVar("T")

_NOTE = "estero.json"
_UNLESS_NOTED = {"kind of rows": str(RowsOf.MATCHES)}
"""What a checkpoint is of where its note, an older one, does not say it."""

_about_places = partial(option, group="Source and sink")
_about_spark = partial(option, group="Options for Spark")

_STREAM_OPTIONS = (
    query_file,
    _about_places(
        "--from",
        "source",
        metavar="ADDRESS",
        help="parquet:DIR, json:DIR or csv:DIR (a directory where files arrive), kafka://HOST:PORT/TOPIC, "
        "delta:DIR; after a ?, options of Spark's reader.",
    ),
    _about_places(
        "--to",
        "sink",
        metavar="ADDRESS",
        default="console",
        show_default=True,
        help="The same, or postgresql://USER@HOST:PORT/DATABASE/TABLE, or console.",
    ),
    _about_places(
        "--checkpoint",
        metavar="DIR",
        type=existing_or_not,
        help="Keeps what was read and found, so that a stream resumes where it stopped. "
        "Only the console needs none.",
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
        "are dropped and counted. Default: not at all.",
    ),
    rows,
    about_events(
        "--positions",
        is_flag=True,
        help="Also show the positions of events in the stream; one task then sees all events.",
    ),
    partials,
    _about_spark("--master", metavar="URL", default="local[*]", show_default=True, help="The Spark master."),
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
    params,
    predicates,
    debug,
)


def with_stream_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the argument and the options of `stream`."""
    for parameter in reversed(_STREAM_OPTIONS):
        command = parameter(command)
    return command


def stream(
    query: Path,
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
    master: str,
    packages: Sequence[str],
    jars: Sequence[str],
    conf: Sequence[str],
    param: Sequence[str],
    predicates: Sequence[str],
    debug: bool,
) -> None:
    """Find the complex events of a query in events that keep coming, until stopped (Ctrl-C)."""
    load_predicates(predicates)
    # Usage errors come before Spark starts.
    parsed, connectors, config = query_in(query, param), _jar_files(jars), _spark_settings(conf)
    source = _checked_usage(source, sink, checkpoint, trigger, time)
    from estero.cli.terminal import working
    from estero.spark import read_stream, stream_session, write_stream

    layout = {"type": type, "time": time, "time_unit": time_unit, "order": list(order)}
    with ExitStack() as things:
        place = checkpoint or Path(things.enter_context(tempfile.TemporaryDirectory(prefix="estero-")))
        note = _note_of(parsed, source, sink, rows, partials=partials)
        check_note(place, note)
        with working("starting Spark"):
            stream_session(source, sink, master=master, packages=packages, jars=connectors, config=config)
            events = read_stream(source, schema=schema)
            shown = {"positions": positions, "rows": "events" if rows is RowsOf.EVENTS else None}
            matches = _recognized(events, parsed, lateness, {**layout, **shown, "partials": partials})
            running = write_stream(matches, sink, checkpoint=place, trigger=trigger)
        things.callback(running.stop)
        _write_note(place, note)
        _watch(running, shown=not (sink == "console" and sys.stdout.isatty()))


def _recognized(events: DataFrame, query: Query, lateness: str | None, layout: dict[str, Any]) -> DataFrame:
    from estero.spark import recognize

    late = int(lateness) if lateness is not None and lateness.isdigit() else lateness
    try:
        return recognize(events, query, **layout, lateness=late)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--lateness") from None


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
    """The .jar files that are named, or in directories that are; a usage error where there are none."""
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


def check_note(checkpoint: Path, note: dict[str, str]) -> None:
    """Raises `DataError` where the checkpoint was made by another query, or from or to somewhere else.

    The same where what is noted in it cannot be read.
    """
    file = checkpoint / _NOTE
    if not file.is_file():
        return
    try:
        noted = dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise DataError(
            "this note about the checkpoint cannot be read",
            file=str(file),
            hint="if query, source and sink are unchanged, delete it: it will be written again",
        ) from error
    for what, value in note.items():
        before = noted.get(what, _UNLESS_NOTED.get(what))
        if before != value:
            raise DataError(
                f"this checkpoint has another {what}: {before}",
                file=str(checkpoint),
                hint="a new query starts with a new checkpoint, and reads everything from the beginning",
            )


def _write_note(checkpoint: Path, note: dict[str, str]) -> None:
    """Notes what the checkpoint is of."""
    with output_file(checkpoint / _NOTE) as file:
        file.write(json.dumps(note, indent=2, ensure_ascii=False).encode() + b"\n")


def _note_of(query: Query, source: str, sink: str, rows: RowsOf, *, partials: bool) -> dict[str, str]:
    """The options that have to stay the same; those of readers and writers may change."""
    from estero.spark import sink_address, source_address

    return {
        "query": str(query),
        "source": str(source_address(source)),
        "sink": str(sink_address(sink)),
        "kind of rows": f"{rows} with partial matches" if partials else str(rows),
    }


def _checked_usage(
    source: str | None, sink: str, checkpoint: Path | None, trigger: str | None, time: str | None
) -> str:
    """The source, where all of them can be meant."""
    from estero.spark import sink_address, source_address, trigger_of

    if source is None:
        raise click.BadParameter("stream needs to know where events come from", param_hint="--from")
    _meant("--from", source_address, source)
    _meant("--to", sink_address, sink)
    _meant("--trigger", trigger_of, trigger)
    if checkpoint is None and sink != "console":
        raise click.BadParameter(
            "a stream needs a directory for what it has read and found, so that each complex event is "
            "written once; use a new one for a new query",
            param_hint="--checkpoint",
        )
    if time is None:
        raise click.BadParameter(
            "events of a stream are sorted by their time: name its column", param_hint="--time"
        )
    return source


def _meant(option: str, read: Callable[[T], object], text: T) -> None:
    """Reads an option's text; what is wrong with it is a usage error."""
    try:
        read(text)
    except DataError as error:
        text_of_error = f"{error.message}: {error.hint}" if error.hint else error.message
        raise click.BadParameter(text_of_error, param_hint=option) from None


def _watch(running: Any, *, shown: bool) -> None:
    """Waits for the end, saying on a terminal how it goes. A signal to stop is heeded between two looks."""
    from estero.cli.terminal import following
    from estero.spark import follow

    with _asked_to_stop() as asked, following(shown=shown) as say:
        for totals in follow(running):
            say(str(totals))
            if asked:
                break
    if asked:
        raise click.exceptions.Exit(128 + asked[0])


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """A list of signals that asked to stop; none interrupts what waits for Java, but for the second one."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
