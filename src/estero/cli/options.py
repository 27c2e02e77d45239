"""The options of the command line, and the meaning of those about events together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial, wraps
from glob import has_magic
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import estero
from estero.cli.completion import Decorator, column_names, file_names
from estero.errors import legible
from estero.events.files.temporary_files import is_pipe, named_by_content, named_for, spooled

if TYPE_CHECKING:
    from estero import Query, Scan


class Engine(StrEnum):
    """The engines that evaluate a query."""

    SPARK = "spark"
    DUCKDB = "duckdb"


class Format(StrEnum):
    """The formats of an answer."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


class RowsOf(StrEnum):
    """The units that get one row each."""

    MATCHES = "matches"
    EVENTS = "events"


class EventsFormat(StrEnum):
    """The formats of files of events."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"


LOCAL = "local[*]"
"""The master of Spark on this machine, with all its cores."""

PICTURES = (".svg", ".png", ".pdf")

_ARGUMENTS, _OPTIONS = "Arguments", "Options"


class Option(click.Option):
    """An option that the help lists in a group."""

    def __init__(self, *declarations: Any, group: str = _OPTIONS, **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self.group = group


class Argument(click.Argument):
    """An argument with a line in the help: its name there, and its description."""

    def __init__(self, *declarations: Any, line: tuple[str, str], **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self._line = line

    def get_help_record(self, _context: click.Context) -> tuple[str, str]:
        """Its line of the help."""
        return self._line


class Command(click.Command):
    """A command of the program, which lists its arguments and options in groups."""

    def get_short_help_str(self, _limit: int = 45) -> str:
        """The full text of its help, as the program lists it."""
        return self.help or ""

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes nothing: arguments are a group of `format_options`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the help of arguments and options, group by group."""
        groups: dict[str, list[tuple[str, str]]] = {_ARGUMENTS: [], _OPTIONS: []}
        for parameter in self.get_params(ctx):
            of_no_group = _ARGUMENTS if isinstance(parameter, click.Argument) else _OPTIONS
            if (line := parameter.get_help_record(ctx)) is not None:
                groups.setdefault(getattr(parameter, "group", of_no_group), []).append(line)
        for group, lines in groups.items():
            if lines:
                with formatter.section(group):
                    formatter.write_dl(lines, col_max=_WIDTH_OF_OPTIONS)


_WIDTH_OF_OPTIONS = 36
"""The width beyond which the help of an option begins on the next line."""

option: Callable[..., Decorator] = partial(click.option, cls=Option)
"""An option of a command."""

about_events: Callable[..., Decorator] = partial(option, group="Options for the events")
"""An option that is shown with those about events."""

existing_or_not: click.Path = click.Path(path_type=Path)
"""A path, whether or not it exists."""

file_to_write: click.Path = click.Path(path_type=Path, dir_okay=False)
"""A path that is not that of a directory."""


def one_of(kind: type[StrEnum]) -> dict[str, Any]:
    """The settings of an option whose value is a member of an enumeration."""

    def member(_context: click.Context, _option: click.Parameter, value: str | None) -> StrEnum | None:
        return None if value is None else kind(value)

    return {"type": click.Choice([str(choice) for choice in kind]), "callback": member}


query_file: Decorator = click.argument(
    "query",
    cls=Argument,
    line=("QUERY.ceql", "The query, or a directory of rules; - reads it from standard input."),
    metavar="QUERY.ceql",
    type=existing_or_not,
)

events_type: Decorator = about_events(
    "--type",
    metavar="COL",
    help="The column with the event's type, if there are several types.",
    shell_complete=column_names,
)
events_time: Decorator = about_events(
    "--time",
    metavar="COL",
    help="The time column, by which events are sorted.",
    shell_complete=column_names,
)
events_time_unit: Decorator = about_events(
    "--time-unit",
    metavar="UNIT",
    help="The unit of an integer time column: ns, us, ms, s, min, h or d.",
)
events_order: Decorator = about_events(
    "--order",
    metavar="COL",
    multiple=True,
    help="A column that breaks ties of time; can be repeated.",
    shell_complete=column_names,
)

_EVENTS_OPTION: Decorator = about_events(
    "--events",
    metavar="FILE",
    multiple=True,
    help="Events in Parquet, CSV, JSON lines or Arrow: a file, glob or directory; - is standard input; "
    "on Spark also s3a://…, hdfs://… or delta:DIR. Can be repeated: all files are one stream.",
    shell_complete=file_names,
)
_EVENT_OPTIONS = (
    about_events(
        "--events-format",
        **one_of(EventsFormat),
        help="The format of the events, if the name of the file does not say it.",
    ),
    events_type,
    events_time,
    events_time_unit,
    events_order,
    about_events(
        "--types",
        metavar="A,B,…",
        multiple=True,
        help="The types that may occur, besides those that do; any other in the query is an error.",
    ),
    about_events("--delimiter", metavar="CHAR", help="CSV: the delimiter, if it is not detected."),
    about_events("--columns", metavar="A,B,…", help="CSV without a header: the names of its columns."),
    about_events(
        "--timestamp-format",
        metavar="FORMAT",
        help="CSV: how timestamps are written, such as %Y%m%d%H%M.",
    ),
)


events_argument: Decorator = click.argument(
    "events",
    cls=Argument,
    line=("EVENTS", "Events in Parquet, CSV, JSON lines or Arrow: files, globs or directories."),
    metavar="[EVENTS]",
    nargs=-1,
    required=False,
    shell_complete=file_names,
)

predicates: Decorator = option(
    "--predicates",
    metavar="MODULE",
    multiple=True,
    help="A module, or a file, with predicates of your own (@estero.predicate); can be repeated.",
    shell_complete=file_names,
)
params: Decorator = option(
    "--param",
    metavar="NAME=VALUE",
    multiple=True,
    help="The value of $NAME in the query; can be repeated. A list is [1, 2], or @FILE with a value "
    "in each line.",
)
engine: Decorator = option(
    "--engine",
    **one_of(Engine),
    help="duckdb runs in this process, spark on Spark. Default: duckdb, unless there is a --master, or "
    "events that only Spark reads.",
)
master: Decorator = option(
    "--master", metavar="URL", help="The Spark master, for a run on Spark. Default: local[*]."
)
debug: Decorator = option("--debug", is_flag=True, help="Show the stack trace of an error.")
out: Decorator = option(
    "--out", metavar="FILE", type=file_to_write, help="Write to a file; its suffix sets the format."
)
format_option: Decorator = option(
    "--format", **one_of(Format), help="Default: by the suffix of --out, else table."
)
limit: Decorator = option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    help="At most N complex events: the first N, or on Spark any N.",
)
count: Decorator = option("--count", is_flag=True, help="Only print how many complex events there are.")
rows: Decorator = option(
    "--rows",
    **one_of(RowsOf),
    default=str(RowsOf.MATCHES),
    show_default=True,
    help="events writes one row for each marked event and label, matches one for each complex event.",
)
positions: Decorator = option(
    "--positions", is_flag=True, help="Show events as their positions in the stream."
)
threads: Decorator = option(
    "--threads",
    metavar="N",
    type=click.IntRange(min=1),
    help="Threads that recognize, in this process. Default: ESTERO_THREADS, else as many as there are cores.",
)
metadata: Decorator = option(
    "--metadata",
    metavar="WORD",
    multiple=True,
    help="For a directory of rules: an entry of their metadata, such as title, level or tags, to be shown "
    "as a column rule_WORD; can be repeated.",
)
until: Decorator = option(
    "--until",
    metavar="TIME",
    help="For queries that end with NOT(…) FOR: the time up to which all events are known, or end, if no "
    "more will follow. Default: the time of the last event.",
)
explain_option: Decorator = option(
    "--explain", is_flag=True, help="First print how the query is evaluated, on standard error."
)
picture: Decorator = option(
    "--picture",
    metavar="FILE",
    type=file_to_write,
    default="estero-demo.svg",
    show_default=True,
    help="The file for the picture (svg, png or pdf).",
)
partials: Decorator = option(
    "--partials",
    is_flag=True,
    help="Also show partial matches: how many steps each start completed in its window, as columns steps, "
    "expired_time and complete.",
)
why_not: Decorator = option(
    "--why-not",
    is_flag=True,
    help="In place of the plan, say why there are not more complex events: how far the sequence "
    "comes, and what keeps events away.",
)
svg: Decorator = option("--svg", metavar="FILE", type=file_to_write, help="Also draw the automaton, as SVG.")


@dataclass(frozen=True, slots=True)
class Stream:
    """Events and their layout; `layout` are the keyword arguments for it, which are the same everywhere.

    `types` are those that may occur, in addition to those that do.
    """

    path: str | list[str]
    layout: dict[str, Any] = field(default_factory=dict)
    csv_options: dict[str, Any] | None = None
    types: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """The paths of the events, one or several."""
        return [self.path] if isinstance(self.path, str) else self.path

    @property
    def is_of_spark(self) -> bool:
        """Whether only Spark can read the events, or some of them."""
        from estero.events.files.paths import in_store

        return any(map(in_store, self.paths))

    @property
    def scan(self) -> Scan:
        """The events in the form that `Query.run` and others accept."""
        return estero.scan(self.path, **self.layout, csv_options=self.csv_options, types=self.types)


def stream_of(
    events: Sequence[str],
    events_format: EventsFormat | None,
    type: str | None,
    time: str | None,
    time_unit: str | None,
    order: Sequence[str],
    types: Sequence[str],
    delimiter: str | None,
    columns: str | None,
    timestamp_format: str | None,
) -> Stream | None:
    """The stream that the options of a command describe; None without events."""
    if not events:
        about: dict[str, object] = {"events-format": events_format, "type": type, "time": time}
        about |= {"time-unit": time_unit, "timestamp-format": timestamp_format}
        about |= {"order": order, "types": types, "delimiter": delimiter, "columns": columns}
        refuse(about, "there are no events: name their files, too")
        return None
    if events.count("-") > 1:
        raise click.BadParameter("standard input can be read once", param_hint="--events")
    csv_options: dict[str, Any] = {}
    if delimiter is not None:
        csv_options["delim"] = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if columns is not None:
        csv_options |= {"names": [name.strip() for name in columns.split(",")], "header": False}
    if timestamp_format is not None:
        csv_options["timestampformat"] = timestamp_format
    layout = {"type": type, "time": time, "time_unit": time_unit, "order": list(order)}
    named = tuple(name.strip() for kind in types for name in kind.split(",") if name.strip())
    files = [_as_file(event, events_format) for event in events]
    return Stream(files if len(files) > 1 else files[0], layout, csv_options or None, named)


def decorated(command: Callable[..., None], decorators: Sequence[Decorator]) -> Callable[..., None]:
    """The command with arguments and options, which the help lists in this order."""
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def with_event_options(
    command: Callable[..., None], events: Decorator = _EVENTS_OPTION
) -> Callable[..., None]:
    """The command with the argument for its `events` and the options about them, in place of `stream`."""
    names = signature(stream_of).parameters

    @wraps(command)
    def with_options(**given: Any) -> None:
        if str(given["query"]) == "-" and "-" in given["events"]:
            raise click.BadParameter("the query is read from standard input already", param_hint="--events")
        stream = stream_of(**{name: given.pop(name) for name in names})
        command(stream=stream, **given)

    return decorated(with_options, [events, *_EVENT_OPTIONS])


def refuse(options: Mapping[str, object], reason: str) -> None:
    """A usage error for the first given one of some options, which are given by name."""
    for name, value in options.items():
        if value:
            raise click.BadParameter(reason, param_hint=f"--{name}")


def query_in(file: Path, params: Sequence[str] | None = None) -> Query:
    """The query in a file, or from standard input, with values for its parameters."""
    return with_values(estero.Query(text_in(file)), params)


def with_values(query: Query, params: Sequence[str] | None) -> Query:
    """The query with values for its parameters."""
    return query.bind(values_in(params)) if params else query


def values_in(params: Sequence[str]) -> dict[str, object]:
    """The values in ``NAME=VALUE``; a usage error for another form, or for a file that cannot be read."""
    from estero.queries.parameters import value_in

    values: dict[str, object] = {}
    for param in params:
        name, equals, text = param.removeprefix("$").partition("=")
        if not equals or not name.strip().isidentifier():
            raise click.BadParameter(f"{param} is not NAME=VALUE", param_hint="--param")
        if name.strip() in values:
            raise click.BadParameter(f"{name.strip()} has two values", param_hint="--param")
        if text.startswith("@"):
            lines = text_in(Path(text[1:]), "--param").splitlines()
            values[name.strip()] = [value_in(line) for line in lines if line.strip()]
        else:
            values[name.strip()] = value_in(text)
    return values


def text_in(file: Path, hint: str = "QUERY.ceql") -> str:
    """The text of a file, or from standard input; a usage error if it cannot be read."""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except OSError as error:
        if isinstance(error, FileNotFoundError) and hint == "QUERY.ceql":
            text = (
                f"{file}: there is no such file; a query is in a file, or comes from standard input, with -"
            )
            raise click.BadParameter(text, param_hint=hint) from None
        raise _unreadable(str(file), error, hint) from None
    except UnicodeDecodeError:
        raise click.BadParameter(f"{file} is not UTF-8 text", param_hint=hint) from None


def _unreadable(name: str, error: OSError, hint: str) -> click.BadParameter:
    return click.BadParameter(f"{name}: {error.strerror or 'it cannot be read'}", param_hint=hint)


def load_predicates(modules: Sequence[str] | None) -> None:
    """Runs modules, or files, that register predicates; a usage error if one cannot be found.

    A file does not become a module that can be imported, so that its functions are sent whole to Spark's
    workers.
    """
    for name in modules or ():
        file = Path(name)
        if file.suffix == ".py":
            if not file.is_file():
                raise click.BadParameter(f"there is no file {name}", param_hint="--predicates")
            spec = spec_from_file_location(file.stem, file)
            if spec is None or spec.loader is None:
                raise click.BadParameter(f"{name} cannot be run", param_hint="--predicates")
            try:
                spec.loader.exec_module(module_from_spec(spec))
            except Exception as error:  # whatever a program of the user's raises
                raise _broken(name, error) from error
            continue
        if not name or name.startswith("."):  # Python would take it for a relative import
            raise _absent(name)
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise _broken(name, error) from error
            raise _absent(name) from None
        except Exception as error:
            raise _broken(name, error) from error


def _absent(name: str) -> click.BadParameter:
    """The message for a module that Python does not find."""
    advice = "give the path of a .py file, or a module that Python can import"
    return click.BadParameter(
        legible(f"there is no module {name or 'without a name'}: {advice}"), param_hint="--predicates"
    )


def _broken(name: str, error: Exception) -> click.BadParameter:
    """The message for predicates that cannot be run, with Python's reason."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return click.BadParameter(legible(f"{name} cannot be run: {said}"), param_hint="--predicates")


_called: dict[str, str] = {}
"""The user's names of events that are read through a copy or a link."""


def as_called(text: str) -> str:
    """A text with the names that users gave to the events."""
    for path, name in _called.items():
        text = text.replace(path, name)
    return text


def _as_file(events: str, form: EventsFormat | None) -> str:
    """The path of the events; for a pipe that of a copy, since a command may open it more than once."""
    try:
        path = spooled("/dev/stdin") if events == "-" else spooled(events) if is_pipe(events) else events
    except OSError as error:
        raise _unreadable(events, error, "--events") from None
    if form is not None:
        if not Path(path).exists() and not has_magic(path):
            return path  # the reader reports that it does not exist
        if not Path(path).is_file():
            raise click.BadParameter(
                f"{events} is not a file: files of a directory or a pattern say their format by their names",
                param_hint="--events-format",
            )
        path = named_for(path, form)
    elif events == "-":
        path = named_by_content(path)
    if path != events:
        _called[path] = "standard input" if events == "-" else events
    return path


def engine_of(stream: Stream, named: Engine | None, master: str | None) -> Engine:
    """The engine for the query: this process, unless Spark is requested or only Spark reads the events.

    A usage error if options conflict, and if Spark is not installed.
    """
    if named is Engine.DUCKDB and master is not None:
        raise click.BadParameter("a master is for --engine spark", param_hint="--master")
    if named is not None:
        return named
    return Engine.SPARK if master is not None or stream.is_of_spark else Engine.DUCKDB
