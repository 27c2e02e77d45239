"""The options of the command line, and what the ones about events mean together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial, wraps
from glob import has_magic
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

import estero
from estero.cli.completion import column_names
from estero.errors import legible
from estero.events.files.temporary_files import is_pipe, named_by_content, named_for, spooled

if TYPE_CHECKING:
    from estero import Query, Scan


class Engine(StrEnum):
    """What evaluates a query."""

    SPARK = "spark"
    DUCKDB = "duckdb"


class Format(StrEnum):
    """What an answer is written as."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


class RowsOf(StrEnum):
    """What has a row each."""

    MATCHES = "matches"
    EVENTS = "events"


PICTURES = (".svg", ".png", ".pdf")

about_events = partial(typer.Option, rich_help_panel="Options for the events")
"""An option that is shown with those about events."""

QueryFile = Annotated[
    Path, typer.Argument(metavar="QUERY.ceql", help="The query; - reads it from standard input.")
]


class EventsFormat(StrEnum):
    """What files of events are written in."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"


Events = Annotated[
    list[str] | None,
    about_events(
        metavar="FILE",
        help="Events in Parquet, CSV, JSON lines or Arrow: a file, glob or directory; - is standard input; "
        "on Spark also s3a://…, hdfs://… or delta:DIR. Can be repeated: all files are one stream.",
    ),
]
EventsFormatOption = Annotated[
    EventsFormat | None,
    about_events(
        "--events-format", help="The format of the events, if the name of the file does not say it."
    ),
]
Type = Annotated[
    str | None,
    about_events(
        metavar="COL",
        help="The column with the event's type, if there are several types.",
        autocompletion=column_names,
    ),
]
Time = Annotated[
    str | None,
    about_events(
        metavar="COL", help="The time column, by which events are sorted.", autocompletion=column_names
    ),
]
TimeUnit = Annotated[
    str | None,
    about_events(metavar="UNIT", help="The unit of an integer time column: ns, us, ms, s, min, h or d."),
]
Order = Annotated[
    list[str] | None,
    about_events(
        metavar="COL",
        help="A column that breaks ties of time; can be repeated.",
        autocompletion=column_names,
    ),
]
Types = Annotated[
    list[str] | None,
    about_events(
        metavar="A,B,…",
        help="The types that may occur, besides those that do; any other in the query is an error.",
    ),
]
Delimiter = Annotated[
    str | None, about_events(metavar="CHAR", help="CSV: the delimiter, if it is not detected.")
]
Columns = Annotated[
    str | None, about_events(metavar="A,B,…", help="CSV without a header: the names of its columns.")
]
TimestampFormat = Annotated[
    str | None,
    about_events(metavar="FORMAT", help="CSV: how timestamps are written, such as %Y%m%d%H%M."),
]
Predicates = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE",
        help="A module, or a file, with predicates of your own (@estero.predicate); can be repeated.",
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="The value of $NAME in the query; can be repeated. A list is [1, 2], or @FILE with a value "
        "in each line.",
    ),
]
EngineOption = Annotated[
    Engine | None,
    typer.Option(
        help="duckdb runs in this process, spark on Spark. Default: duckdb, unless there is a --master, or "
        "events that only Spark reads."
    ),
]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The Spark master, for a run on Spark. Default: local[*]."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", dir_okay=False, help="Write to a file; its suffix sets the format."),
]
FormatOption = Annotated[Format | None, typer.Option(help="Default: by the suffix of --out, else table.")]
Limit = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="At most N complex events: the first N, or on Spark any N."),
]
Count = Annotated[bool, typer.Option("--count", help="Only print how many complex events there are.")]
RowsOption = Annotated[
    RowsOf,
    typer.Option(
        "--rows",
        help="events writes one row for each marked event and label, matches one for each complex event.",
    ),
]
Positions = Annotated[bool, typer.Option("--positions", help="Show events as their positions in the stream.")]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Up to when events are known, for queries that end with NOT(…) FOR; end: no more events come. "
        "Default: up to the last event.",
    ),
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="First print how the query is evaluated, on standard error.")
]
Picture = Annotated[
    Path, typer.Option(metavar="FILE", dir_okay=False, help="The file for the picture (svg, png or pdf).")
]
Partials = Annotated[
    bool,
    typer.Option(
        "--partials",
        help="Also how far each start came that was not completed in its window: columns steps, expired_time "
        "and complete.",
    ),
]
WhyNotOption = Annotated[
    bool,
    typer.Option(
        "--why-not",
        help="In place of the plan, say why there are not more complex events: how far the sequence "
        "comes, and what keeps events away.",
    ),
]
Svg = Annotated[
    Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Also draw the automaton, as SVG.")
]


@dataclass(frozen=True, slots=True)
class Stream:
    """Events and how they are laid out; `layout` are the keyword arguments that say so everywhere.

    `types` are those there may be, beside those that occur.
    """

    path: str | list[str]
    layout: dict[str, Any] = field(default_factory=dict)
    csv_options: dict[str, Any] | None = None
    types: tuple[str, ...] = ()

    @property
    def is_of_spark(self) -> bool:
        """Whether only Spark reads the events, or some of them."""
        from estero.events.files.paths import in_store

        return any(map(in_store, [self.path] if isinstance(self.path, str) else self.path))

    @property
    def scan(self) -> Scan:
        """The events as `Query.run` and its like take them."""
        return estero.scan(self.path, **self.layout, csv_options=self.csv_options, types=self.types)


def stream_of(
    events: Events = None,
    events_format: EventsFormatOption = None,
    type: Type = None,
    time: Time = None,
    time_unit: TimeUnit = None,
    order: Order = None,
    types: Types = None,
    delimiter: Delimiter = None,
    columns: Columns = None,
    timestamp_format: TimestampFormat = None,
) -> Stream | None:
    """The stream that the options of a command describe; None without events."""
    if not events:
        if events_format is not None:
            raise typer.BadParameter("there are no events: give --events, too", param_hint="--events-format")
        return None
    if events.count("-") > 1:
        raise typer.BadParameter("standard input can be read once", param_hint="--events")
    csv_options: dict[str, Any] = {}
    if delimiter is not None:
        csv_options["delim"] = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if columns is not None:
        csv_options |= {"names": [name.strip() for name in columns.split(",")], "header": False}
    if timestamp_format is not None:
        csv_options["timestampformat"] = timestamp_format
    layout = {"type": type, "time": time, "time_unit": time_unit, "order": order or []}
    named = tuple(name.strip() for kind in types or () for name in kind.split(",") if name.strip())
    files = [_as_file(event, events_format) for event in events]
    return Stream(files if len(files) > 1 else files[0], layout, csv_options or None, named)


def with_event_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `stream_of` in place of its parameter `stream`."""
    own = signature(command, eval_str=True)
    options = signature(stream_of, eval_str=True).parameters

    @wraps(command)
    def with_options(**given: Any) -> None:
        if str(given.get("query")) == "-" and "-" in (given["events"] or ()):
            raise typer.BadParameter("the query is read from standard input already", param_hint="--events")
        stream = stream_of(**{name: given.pop(name) for name in options})
        command(stream=stream, **given)

    parameters: list[Parameter] = []
    for parameter in own.parameters.values():
        parameters += options.values() if parameter.name == "stream" else [parameter]
    with_options.__dict__["__signature__"] = own.replace(parameters=parameters)
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def query_in(file: Path, params: Sequence[str] | None = None) -> Query:
    """The query in a file, or from standard input, with values for its parameters."""
    return with_values(estero.Query(text_in(file)), params)


def with_values(query: Query, params: Sequence[str] | None) -> Query:
    """The query with values for its parameters."""
    return query.bind(_values(params)) if params else query


def _values(params: Sequence[str]) -> dict[str, object]:
    """The values in ``NAME=VALUE``; a usage error where one has not that form, or a file cannot be read."""
    from estero.queries.parameters import value_in

    values: dict[str, object] = {}
    for param in params:
        name, equals, text = param.removeprefix("$").partition("=")
        if not equals or not name.strip().isidentifier():
            raise typer.BadParameter(f"{param} is not NAME=VALUE", param_hint="--param")
        if name.strip() in values:
            raise typer.BadParameter(f"{name.strip()} has two values", param_hint="--param")
        if text.startswith("@"):
            lines = text_in(Path(text[1:]), "--param").splitlines()
            values[name.strip()] = [value_in(line) for line in lines if line.strip()]
        else:
            values[name.strip()] = value_in(text)
    return values


def text_in(file: Path, hint: str = "QUERY.ceql") -> str:
    """The text of a file, or from standard input; a usage error where it cannot be read."""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except OSError as error:
        if isinstance(error, FileNotFoundError) and hint == "QUERY.ceql":
            text = (
                f"{file}: there is no such file; a query is in a file, or comes from standard input, with -"
            )
            raise typer.BadParameter(text, param_hint=hint) from None
        raise _unreadable(str(file), error, hint) from None
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{file} is not UTF-8 text", param_hint=hint) from None


def _unreadable(name: str, error: OSError, hint: str) -> typer.BadParameter:
    return typer.BadParameter(f"{name}: {error.strerror or 'it cannot be read'}", param_hint=hint)


def load_predicates(modules: Sequence[str] | None) -> None:
    """Runs modules, or files, that register predicates; a usage error where one cannot be found.

    A file does not become a module that can be imported: so its functions are sent to Spark's workers whole.
    """
    for name in modules or ():
        file = Path(name)
        if file.suffix == ".py":
            if not file.is_file():
                raise typer.BadParameter(f"there is no file {name}", param_hint="--predicates")
            spec = spec_from_file_location(file.stem, file)
            if spec is None or spec.loader is None:
                raise typer.BadParameter(f"{name} cannot be run", param_hint="--predicates")
            try:
                spec.loader.exec_module(module_from_spec(spec))
            except Exception as error:  # whatever a program of the user's raises
                raise _broken(name, error) from error
            continue
        if not name or name.startswith("."):  # Python would take it as one beside a module
            raise _absent(name)
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise _broken(name, error) from error
            raise _absent(name) from None
        except Exception as error:
            raise _broken(name, error) from error


def _absent(name: str) -> typer.BadParameter:
    """What is said of a module that Python does not find."""
    advice = "give the path of a .py file, or a module that Python can import"
    return typer.BadParameter(
        legible(f"there is no module {name or 'without a name'}: {advice}"), param_hint="--predicates"
    )


def _broken(name: str, error: Exception) -> typer.BadParameter:
    """What is said of predicates that cannot be run, as Python says why."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return typer.BadParameter(legible(f"{name} cannot be run: {said}"), param_hint="--predicates")


_called: dict[str, str] = {}
"""What users call the events of which a copy, or a link, is read."""


def as_called(text: str) -> str:
    """A text in which the events have the names that users gave them."""
    for path, name in _called.items():
        text = text.replace(path, name)
    return text


def _as_file(events: str, form: EventsFormat | None) -> str:
    """The path of the events; of a pipe that of a copy, since a command may open it more than once."""
    try:
        path = spooled("/dev/stdin") if events == "-" else spooled(events) if is_pipe(events) else events
    except OSError as error:
        raise _unreadable(events, error, "--events") from None
    if form is not None:
        if not Path(path).exists() and not has_magic(path):
            return path  # whoever reads it says that it is not there
        if not Path(path).is_file():
            raise typer.BadParameter(
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
    """What evaluates the query: this process, unless Spark is asked for or alone reads the events.

    A usage error where what is asked for does not go together, and where Spark is not installed.
    """
    if named is Engine.DUCKDB and master is not None:
        raise typer.BadParameter("a master is for --engine spark", param_hint="--master")
    if named is not None:
        return named
    return Engine.SPARK if master is not None or stream.is_of_spark else Engine.DUCKDB


def format_of(out: Path | None, named: Format | None) -> Format:
    """The format to write; a usage error where it does not go with where it is written."""
    if out is None:
        if named in (Format.PARQUET, Format.ARROW):
            raise typer.BadParameter(f"{named} needs a file: give --out, too", param_hint="--format")
        return named or Format.TABLE
    if named is Format.TABLE:
        raise typer.BadParameter(
            "a table cannot be written to a file; choose another format", param_hint="--format"
        )
    if named is not None:
        return named
    from estero.answers.writers import format_in_name

    try:
        return Format(format_in_name(out, or_give="--format"))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from None


class Command(TyperCommand):
    """A command of the program."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; typer shows ``<bool>`` behind flags that say nothing else."""
        return _without_values(super().get_params(ctx))


class Group(TyperGroup):
    """The program itself."""

    def get_params(self, ctx: Any) -> list[Any]:
        """As those of `Command`."""
        return _without_values(super().get_params(ctx))


def _without_values(params: list[Any]) -> list[Any]:
    for param in params:
        if isinstance(param, TyperOption) and param.is_flag and param.metavar is None:
            param.metavar = ""
    return params
