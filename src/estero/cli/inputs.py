"""The queries, values, predicates and events that the arguments of commands name."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from glob import has_magic
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import estero
from estero.errors import legible
from estero.events.files.temporary_files import is_pipe, named_by_content, named_for, spooled

if TYPE_CHECKING:
    from estero import Query, Scan


class Engine(StrEnum):
    """The engines that evaluate a query."""

    SPARK = "spark"
    DUCKDB = "duckdb"


class EventsFormat(StrEnum):
    """The formats of files of events."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"


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


def refuse(options: Mapping[str, object], reason: str) -> None:
    """A usage error for the first given one of some options, which are given by name."""
    for name, value in options.items():
        if value:
            raise click.BadParameter(reason, param_hint=f"--{name}")


def query_in(file: Path, params: Sequence[str] | None) -> Query:
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
            except Exception as error:  # a program of the user may raise anything
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
