"""The command line: run, check, explain, stream, demo (`estero --help`).

It uses only the public interface. Everything heavy is imported inside the commands, so that
``--help`` is there at once and a run in this process never loads Spark.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

import estero
from estero.cli.ending import (
    NOBODY_READS,
    drop_output,
    stopped,
    was_asked_to_end,
    write_out,
)
from estero.cli.options import (
    PICTURES,
    Command,
    Count,
    Debug,
    Engine,
    EngineOption,
    ExplainOption,
    Format,
    FormatOption,
    Group,
    Limit,
    Master,
    Out,
    Params,
    Partials,
    Picture,
    Positions,
    Predicates,
    QueryFile,
    RowsOf,
    RowsOption,
    Stream,
    Svg,
    Until,
    WhyNotOption,
    as_called,
    engine_of,
    format_of,
    load_predicates,
    query_in,
    text_in,
    with_event_options,
    with_values,
)
from estero.cli.stream import stream

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

    from estero import Answer, Query
    from estero.answers.rows import Rows
    from estero.cli.terminal import Found, Meter
    from estero.spark.batch.collected import Collected

P = ParamSpec("P")

DATA_OR_RUN_ERROR = 1
QUERY_OR_USAGE_ERROR = 2

LOCAL = "local[*]"
"""The master of Spark in this machine, on all its cores."""

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"estero {estero.__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Complex event recognition: a query and events in, complex events out."""


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """Turns what goes wrong in a command into a paragraph on standard error and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with _warnings_as_lines():
                command(*args, **kwargs)
            sys.stdout.flush()
        except (typer.Exit, typer.BadParameter):
            raise
        except KeyboardInterrupt:
            drop_output()
            raise typer.Exit(stopped()) from None
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(NOBODY_READS) from None
        except Exception as error:  # noqa: BLE001 (the one place where errors become exit codes)
            if was_asked_to_end():
                drop_output()
                raise typer.Exit(stopped()) from None
            write_out()
            if kwargs.get("debug"):
                import traceback

                traceback.print_exc()
            raise typer.Exit(explained(error)) from None

    return run


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Each warning of Estero's is a line on standard error, once; other warnings are as they were."""
    from estero import EsteroWarning

    with warnings.catch_warnings():
        warnings.simplefilter("always", EsteroWarning)
        show = warnings.showwarning
        said: set[str] = set()

        def say(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, EsteroWarning):
                show(message, category, *where, **more)
            elif str(message) not in said:
                from estero.cli.terminal import remark

                said.add(str(message))
                remark(str(message))

        warnings.showwarning = say
        yield


def explained(error: Exception) -> int:
    """Says what went wrong; the exit code for it."""
    from estero import EsteroError, QueryError
    from estero.cli.terminal import complain

    if isinstance(error, EsteroError | OSError):
        complain(as_called(str(error)))
    elif isinstance(error, MemoryError):
        complain("there is not enough memory")
    else:
        complain(f"{type(error).__name__}: {error} (a bug in Estero; --debug shows where)")
    return QUERY_OR_USAGE_ERROR if isinstance(error, QueryError) else DATA_OR_RUN_ERROR


@app.command(cls=Command)
@with_event_options
@reported
def run(
    query: QueryFile,
    stream: Stream | None,
    out: Out = None,
    format: FormatOption = None,
    engine: EngineOption = None,
    master: Master = None,
    limit: Limit = None,
    count: Count = False,
    rows: RowsOption = RowsOf.MATCHES,
    positions: Positions = False,
    partials: Partials = False,
    until: Until = None,
    explain: ExplainOption = False,
    param: Params = None,
    predicates: Predicates = None,
    debug: Debug = False,
) -> None:
    """Find the complex events of a query in a stream of events."""
    if stream is None:
        raise typer.BadParameter("run needs events", param_hint="--events")
    chosen, chosen_engine = format_of(out, format), engine_of(stream, engine, master)
    load_predicates(predicates)
    from estero.cli.terminal import Meter, messages

    parsed, meter = query_in(query, param), Meter()
    say = functools.partial(messages().print, markup=False) if explain else None
    if say is not None and not stream.is_of_spark:
        say(str(parsed.explain(stream.scan)))
    found: Found
    if chosen_engine is Engine.SPARK:
        where = master or LOCAL
        asked = {"positions": positions, "partials": partials}
        found, undecided = _found_on_spark(parsed, stream, where, until=until, say=say, **asked)
    else:
        _do_without_pandas()
        found = parsed.run(stream.scan, until=until, partials=partials, progress=meter)
        undecided = found.undecided().count
    if limit is not None:
        found = found.limit(limit)
    listed = found.rows() if rows is RowsOf.EVENTS else found
    placed = {"positions": positions} if rows is RowsOf.MATCHES else {}
    if count:
        with meter.showing("counting"):
            number = found.count()
        print(number)
    elif out is not None:
        with meter.showing(f"writing {out}"):
            written = listed.write(out, format=chosen, **placed)
        noun = "complex event" if rows is RowsOf.MATCHES else "row"
        noun += "" if written == 1 else "s"
        messages().print(f"{written:,} {noun} in {out}", markup=False, soft_wrap=True)
    else:
        _show(listed, chosen, meter, all_rows=limit is not None, **placed)
    with meter.showing("counting what is not decided"):
        number = undecided()
    _say_undecided(number)


@app.command(cls=Command)
@with_event_options
@reported
def check(
    query: QueryFile,
    stream: Stream | None,
    param: Params = None,
    predicates: Predicates = None,
    debug: Debug = False,
) -> None:
    """Report everything that is wrong with a query, or easily misread; with events, whether it fits them."""
    load_predicates(predicates)
    from estero.cli.terminal import note
    from estero.queries.statement import raise_first

    text = text_in(query)
    if stream is None or param:
        raise_first(estero.check(text))
    else:
        raise_first(estero.check(text, stream.scan))
    asked = with_values(estero.Query(text), param)
    if stream is not None and param:
        raise_first(asked.check(stream.scan))
    for each in asked.notes():
        note(each)
    print(f"{query}: ok")


@app.command(cls=Command)
@with_event_options
@reported
def explain(
    query: QueryFile,
    stream: Stream | None,
    why_not: WhyNotOption = False,
    svg: Svg = None,
    param: Params = None,
    predicates: Predicates = None,
    debug: Debug = False,
) -> None:
    """Show how a query is evaluated: plan, guarantee, filters, automaton and, with events, the SQL."""
    if svg is not None and not svg.name.lower().endswith(".svg"):
        raise typer.BadParameter(
            f"{svg.name} does not end in .svg, and the automaton is drawn as SVG only", param_hint="--svg"
        )
    load_predicates(predicates)
    parsed = query_in(query, param)
    if why_not:
        if stream is None:
            raise typer.BadParameter("why not more is asked of events", param_hint="--why-not")
        if svg is not None:
            raise typer.BadParameter("a picture of the plan is another call", param_hint="--svg")
        print(parsed.run(stream.scan).why_not())
        return
    explanation = parsed.explain() if stream is None else parsed.explain(stream.scan)
    if svg is not None:
        from estero.answers.output_file import output_file

        with output_file(svg) as file:
            file.write(explanation.svg().encode())
    print(explanation)


app.command(cls=Command)(reported(stream))


@app.command(cls=Command)
@reported
def demo(
    picture: Picture = Path("estero-demo.svg"),
    engine: EngineOption = None,
    debug: Debug = False,
) -> None:
    """Show a small stream, a query, its complex events, and a picture of them."""
    from estero import demo as night
    from estero.cli.terminal import output, remark, table_of, working
    from estero.errors import MissingPackage

    if picture.suffix.lower() not in PICTURES:
        raise typer.BadParameter(
            f"{picture.name} does not say its format: use one of {', '.join(PICTURES)}",
            param_hint="--picture",
        )
    console = output()
    events = night.events()
    parsed = estero.query(night.QUERY)
    layout: dict[str, Any] = {"type": "kind", "time": "time", "order": ["id"]}
    console.print(f"[bold]A stream[/]: {events.num_rows:,} readings of five farms in a cold night\n")
    console.print(_first_rows(events))
    console.print("\n[bold]A query[/]: the wind drops, the air is damp, then it freezes\n")
    console.print(night.QUERY, markup=False)
    answer = parsed.run(events, **layout)
    with working("recognising"):
        number = answer.count()
        table, _ = table_of(answer, rows=8, positions=False)
    console.print(f"[bold]The answer[/]: {number} complex events; the first of them\n")
    console.print(table)
    if engine is Engine.SPARK:
        _compare_with_spark(parsed, answer, layout)
        console.print(f"\n[bold]On Spark[/]: {number} complex events, the same ones")
    try:
        with working("drawing"):
            answer.plot(title="Frost may form", limit=number).save(picture)
    except MissingPackage as error:
        remark(str(error))
    else:
        console.print(f"\n[bold]Its picture[/]: {picture}")


def _say_undecided(number: int) -> None:
    if number:
        from estero.cli.terminal import messages

        several = "complex events wait for their" if number > 1 else "complex event waits for its"
        messages().print(
            f"{number:,} {several} deadline, which the events do not reach; "
            "--until says how far they are known",
            markup=False,
            soft_wrap=True,
        )


def _found_on_spark(
    query: Query,
    stream: Stream,
    master: str = LOCAL,
    *,
    positions: bool,
    partials: bool,
    until: str | None = None,
    say: Callable[[str], None] | None = None,
) -> tuple[Collected, Callable[[], int]]:
    """The complex events, and what tells how many more are not decided.

    `say` is told how events that Spark alone reads are evaluated.
    """
    from estero.cli.terminal import working
    from estero.queries.statement import raise_first

    if not stream.is_of_spark:
        # Spark does not know which types occur, so what is wrong with the query is found here; and at once.
        raise_first(query.check(stream.scan))
    from estero.spark import collect, count, explain, read_events, recognize

    with working("starting Spark"):
        frame = read_events(stream.path, csv_options=stream.csv_options, master=master)
    events = estero.scan(frame, **stream.layout)
    if stream.is_of_spark and say is not None:
        say(str(explain(events, query, positions=positions, partials=partials)))
    # Without a time, positions are what tells where a complex event is.
    placed = positions or stream.layout["time"] is None
    matches = recognize(events, query, positions=placed, until=until, partials=partials)

    def undecided() -> int:
        if not any("estero:decided" in (field.metadata or {}) for field in matches.schema.fields):
            return 0
        decided = count(events, query, until=until)
        return count(events, query, until="end") - decided

    return collect(matches, events=stream.path, csv_options=stream.csv_options), undecided


class _WithoutPandas(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("this program does without pandas", name=fullname)


def _do_without_pandas() -> None:
    """Has PyArrow not import pandas, which takes longer than most queries: no frame comes or goes here.

    It looks for pandas when it makes the first array and when it gives the first one to NumPy, and remembers
    that there is none.
    """
    import pyarrow as pa

    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0]).to_numpy()
    finally:
        sys.meta_path.remove(finder)


def _show(
    found: Found | Rows, format: Format, meter: Meter, *, all_rows: bool, positions: bool = False
) -> None:
    """Writes to standard output: a table of the first rows, or everything in another format."""
    from estero.cli.terminal import ROWS_OF_A_TABLE, messages, output, table_of

    if format is not Format.TABLE:
        placed = {"positions": True} if positions else {}
        found.write(sys.stdout.buffer, format=format, **placed)
        return
    with meter.showing("recognising"):
        table, more = table_of(found, rows=None if all_rows else ROWS_OF_A_TABLE, positions=positions)
    output().print(table)
    if not table.row_count:
        messages().print("no complex events")
    if more:
        messages().print(
            f"the first {ROWS_OF_A_TABLE}; --limit shows more, --count says how many there are, "
            "--out FILE writes them all"
        )


def _compare_with_spark(query: Query, answer: Answer, layout: dict[str, Any]) -> None:
    """Runs the demo's query on Spark; RuntimeError where the complex events are not those of `answer`."""
    import tempfile

    import pyarrow as pa
    import pyarrow.parquet

    from estero import demo as night
    from estero.cli.terminal import working

    with tempfile.TemporaryDirectory(prefix="estero-") as directory:
        path = str(Path(directory, "events.parquet"))
        pyarrow.parquet.write_table(night.events(), path)
        found, _ = _found_on_spark(query, Stream(path, layout), positions=True, partials=False)
        with working("recognising on Spark"):
            rows = pa.Table.from_batches(found.batches(), found.schema).to_pylist()
    if sorted(map(str, rows)) != sorted(map(str, answer.to_arrow().to_pylist())):
        raise RuntimeError(f"Spark finds other complex events: {len(rows)}")


def _first_rows(events: pa.Table) -> Table:
    from rich.table import Table

    from estero.cli.terminal import short

    table = Table(header_style="bold")
    for name in events.column_names:
        table.add_column(name)
    for row in events.slice(0, 5).to_pylist():
        table.add_row(*(short(value) for value in row.values()))
    table.add_row(*["…"] * events.num_columns)
    return table
