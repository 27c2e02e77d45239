"""The options of the command line, as commands declare and help lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from estero.cli.completion import Decorator, column_names, file_names
from estero.cli.inputs import Engine, EventsFormat, stream_of

if TYPE_CHECKING:
    pass


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
