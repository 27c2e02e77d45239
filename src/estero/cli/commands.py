"""The command line: run, check, explain, stream, sql, studio, demo (`estero --help`).

It uses only the public interface. Everything heavy is imported inside the commands, so that
``--help`` is there at once and a run in this process never loads Spark.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

import estero
from estero.cli import completion, options
from estero.cli.ending import (
    NOBODY_READS,
    drop_output,
    stopped,
    was_asked_to_end,
    write_out,
)
from estero.cli.inputs import (
    Engine,
    Stream,
    as_called,
    engine_of,
    load_predicates,
    query_in,
    refuse,
    text_in,
    values_in,
    with_values,
)
from estero.cli.options import LOCAL, PICTURES, Format, RowsOf, with_event_options
from estero.cli.outputs import format_of
from estero.cli.rules import FOR_ONE_QUERY, check_rules, is_rules, rules_in, run_rules
from estero.cli.statement import statement, with_statement_options
from estero.cli.stream import stream, with_stream_options
from estero.cli.studio import studio, with_studio_options

if TYPE_CHECKING:
    import pyarrow as pa

    from estero import Answer, Query
    from estero.answers.rows import Rows
    from estero.cli.tables import Table
    from estero.cli.terminal import ComplexEvents, Meter
    from estero.spark.batch.collected import Collected

P = ParamSpec("P")

DATA_OR_RUN_ERROR = 1
QUERY_OR_USAGE_ERROR = 2

WIDTH_OF_HELP = 120
"""The longest lines of the help, on a terminal that is wide enough."""


class Program(click.Group):
    """The program itself."""

    command_class: type[click.Command] | None = options.Command

    def list_commands(self, _context: click.Context) -> list[str]:
        """The names of its commands, in the order in which they are defined here."""
        return list(self.commands)


def _say_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        print(f"estero {estero.__version__}")
        context.exit()


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH_OF_HELP},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Show the version.",
)
@completion.install_option
@completion.show_option
def app() -> None:
    """Complex event recognition: a query and events in, complex events out."""


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """Turns errors of a command into a paragraph on standard error and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with _warnings_as_lines():
                command(*args, **kwargs)
            sys.stdout.flush()
        except (click.exceptions.Exit, click.ClickException):
            raise
        except KeyboardInterrupt:
            drop_output()
            raise click.exceptions.Exit(stopped()) from None
        except BrokenPipeError:
            drop_output()
            raise click.exceptions.Exit(NOBODY_READS) from None
        except Exception as error:  # noqa: BLE001 (the one place where errors become exit codes)
            if was_asked_to_end():
                drop_output()
                raise click.exceptions.Exit(stopped()) from None
            write_out()
            if kwargs.get("debug"):
                import traceback

                traceback.print_exc()
            raise click.exceptions.Exit(explained(error)) from None

    return run


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Prints each warning of Estero's as a line on standard error, once; other warnings are unchanged."""
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
    """Explains an error; returns the exit code for it."""
    from estero import EsteroError, QueryError
    from estero.cli.terminal import complain

    if isinstance(error, EsteroError | OSError):
        complain(as_called(str(error)))
    elif isinstance(error, MemoryError):
        complain("there is not enough memory")
    else:
        complain(f"{type(error).__name__}: {error} (a bug in Estero; --debug shows where)")
    return QUERY_OR_USAGE_ERROR if isinstance(error, QueryError) else DATA_OR_RUN_ERROR


@app.command()
@options.query_file
@with_event_options
@options.out
@options.format_option
@options.engine
@options.master
@options.limit
@options.count
@options.rows
@options.positions
@options.partials
@options.until
@options.threads
@options.metadata
@options.explain_option
@options.params
@options.predicates
@options.debug
@reported
def run(
    query: Path,
    stream: Stream | None,
    out: Path | None,
    format: Format | None,
    engine: Engine | None,
    master: str | None,
    limit: int | None,
    count: bool,
    rows: RowsOf,
    positions: bool,
    partials: bool,
    until: str | None,
    threads: int | None,
    metadata: Sequence[str],
    explain: bool,
    param: Sequence[str],
    predicates: Sequence[str],
    debug: bool,
) -> None:
    """Find the complex events of a query in a stream of events."""
    if stream is None:
        raise click.BadParameter("run needs events", param_hint="--events")
    load_predicates(predicates)
    if count:
        of_rows = {"out": out, "format": format, "positions": positions, "rows": rows is RowsOf.EVENTS}
        refuse(of_rows, "has no effect with --count, which prints a number: leave one of them out")
    if is_rules(query):
        of_one: dict[str, object] = {"limit": limit is not None, "positions": positions, "partials": partials}
        of_one |= {"rows": rows is RowsOf.EVENTS, "engine": engine is Engine.SPARK, "master": master}
        refuse(of_one, FOR_ONE_QUERY)
        run_rules(
            rules_in(query, values_in(param)),
            stream,
            out=out,
            format=format,
            count=count,
            until=until,
            explain=explain,
            threads=threads,
            metadata=metadata,
        )
        return
    refuse({"metadata": metadata}, "is for a directory of rules, not for one query")
    chosen, chosen_engine = format_of(out, format, stream.paths), engine_of(stream, engine, master)
    from estero.cli.terminal import Meter, say

    parsed, meter = query_in(query, param), Meter()
    if explain and not stream.is_of_spark:
        say(str(parsed.explain(stream.scan)))
    answer: ComplexEvents
    if chosen_engine is Engine.SPARK:
        if threads is not None:
            raise click.BadParameter(
                f"threads are for this process: leave it out, or write --master local[{threads}]",
                param_hint="--threads",
            )
        where = master or LOCAL
        asked = {"positions": positions, "partials": partials}
        answer, undecided = _answer_of_spark(parsed, stream, where, until=until, explain=explain, **asked)
    else:
        _do_without_pandas()
        answer = parsed.run(stream.scan, until=until, partials=partials, progress=meter, threads=threads)
        undecided = answer.undecided().count
    if limit is not None:
        answer = answer.limit(limit)
    listed = answer.rows() if rows is RowsOf.EVENTS else answer
    placed = {"positions": positions} if rows is RowsOf.MATCHES else {}
    if count:
        with meter.showing("counting"):
            number = answer.count()
        print(number)
    elif out is not None:
        with meter.showing(f"writing {out}"):
            written = listed.write(out, format=chosen, **placed)
        noun = "complex event" if rows is RowsOf.MATCHES else "row"
        noun += "" if written == 1 else "s"
        say(f"{written:,} {noun} in {out}")
    else:
        _show(listed, chosen, meter, all_rows=limit is not None, **placed)
    with meter.showing("counting what is not decided"):
        number = undecided()
    _say_undecided(number)


@app.command()
@options.query_file
@with_event_options
@options.params
@options.predicates
@options.debug
@reported
def check(
    query: Path,
    stream: Stream | None,
    param: Sequence[str],
    predicates: Sequence[str],
    debug: bool,
) -> None:
    """Report everything that is wrong with a query, or easily misread; with events, whether it fits them."""
    load_predicates(predicates)
    if is_rules(query):
        refuse({"param": param}, FOR_ONE_QUERY)
        check_rules(query, stream)
        return
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
    for remark in asked.notes():
        note(remark)
    print(f"{query}: ok")


@app.command()
@options.query_file
@with_event_options
@options.why_not
@options.svg
@options.params
@options.predicates
@options.debug
@reported
def explain(
    query: Path,
    stream: Stream | None,
    why_not: bool,
    svg: Path | None,
    param: Sequence[str],
    predicates: Sequence[str],
    debug: bool,
) -> None:
    """Show how a query is evaluated: plan, guarantee, filters, automaton and, with events, the SQL."""
    if svg is not None and not svg.name.lower().endswith(".svg"):
        raise click.BadParameter(
            f"{svg.name} does not end in .svg, and the automaton is drawn as SVG only", param_hint="--svg"
        )
    load_predicates(predicates)
    if is_rules(query):
        refuse({"why-not": why_not, "svg": svg}, FOR_ONE_QUERY)
        rules = rules_in(query, values_in(param))
        print(rules.explain() if stream is None else rules.explain(stream.scan))
        return
    parsed = query_in(query, param)
    if why_not:
        if stream is None:
            raise click.BadParameter("why not more is asked of events", param_hint="--why-not")
        if svg is not None:
            raise click.BadParameter("a picture of the plan is another call", param_hint="--svg")
        print(parsed.run(stream.scan).why_not())
        return
    explanation = parsed.explain() if stream is None else parsed.explain(stream.scan)
    if svg is not None:
        from estero.answers.output_file import output_file

        with output_file(svg) as file:
            file.write(explanation.svg().encode())
    print(explanation)


app.command("stream")(with_stream_options(reported(stream)))
app.command("sql")(with_statement_options(reported(statement)))
app.command("studio")(with_studio_options(reported(studio)))


@app.command()
@options.picture
@options.engine
@options.debug
@reported
def demo(
    picture: Path,
    engine: Engine | None,
    debug: bool,
) -> None:
    """Show a small stream, a query, its complex events, and a picture of them."""
    from estero import demo as night
    from estero.cli.terminal import heading, remark, show, show_table, table_of, working
    from estero.errors import MissingPackage

    if picture.suffix.lower() not in PICTURES:
        raise click.BadParameter(
            f"{picture.name} does not say its format: use one of {', '.join(PICTURES)}",
            param_hint="--picture",
        )
    events = night.events()
    parsed = estero.query(night.QUERY)
    layout: dict[str, Any] = {"type": "kind", "time": "time", "order": ["id"]}
    show(f"{heading('A stream')}: {events.num_rows:,} readings of five farms in a cold night\n")
    show_table(_first_rows(events))
    show(f"\n{heading('A query')}: the wind drops, the air is damp, then it freezes\n")
    show(night.QUERY)
    answer = parsed.run(events, **layout)
    with working("recognising"):
        number = answer.count()
        table, _ = table_of(answer, rows=8, positions=False)
    show(f"{heading('The answer')}: {number} complex events; the first of them\n")
    show_table(table)
    if engine is Engine.SPARK:
        _compare_with_spark(parsed, answer, layout)
        show(f"\n{heading('On Spark')}: {number} complex events, the same ones")
    try:
        with working("drawing"):
            answer.plot(title="Frost may form", limit=number).save(picture)
    except MissingPackage as error:
        remark(str(error))
    else:
        show(f"\n{heading('Its picture')}: {picture}")


def call() -> int:
    """Runs the command that the command line names; returns its exit code."""
    try:
        return int(app.main(prog_name=completion.PROGRAM, standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return stopped()
    except OSError as error:  # the help, or the version, cannot be written
        return explained(error)


def _say_undecided(number: int) -> None:
    if number:
        from estero.cli.terminal import say

        several = "complex events wait for their" if number > 1 else "complex event waits for its"
        say(
            f"{number:,} {several} deadline, which the events do not reach; "
            "--until says how far they are known"
        )


def _answer_of_spark(
    query: Query,
    stream: Stream,
    master: str = LOCAL,
    *,
    positions: bool,
    partials: bool,
    until: str | None = None,
    explain: bool = False,
) -> tuple[Collected, Callable[[], int]]:
    """The complex events, and a function for the number of those that are undecided.

    With `explain`, the evaluation of events that only Spark reads is explained first.
    """
    from estero.cli.terminal import say, working
    from estero.queries.statement import raise_first

    if not stream.is_of_spark:
        # Spark does not know which types occur, so errors in the query are found here, and at once.
        raise_first(query.check(stream.scan))
    from estero.spark import collect, count, read_events, recognize
    from estero.spark import explain as explained

    with working("starting Spark"):
        frame = read_events(stream.path, csv_options=stream.csv_options, master=master)
    events = estero.scan(frame, **stream.layout)
    if stream.is_of_spark and explain:
        say(str(explained(events, query, positions=positions, partials=partials)))
    # Without a time, positions are the only way to locate a complex event.
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
    """Keeps PyArrow from importing pandas, which takes longer than most queries and is not needed here.

    PyArrow looks for pandas when it makes the first array and when it gives the first one to NumPy, and
    remembers that there is none.
    """
    import pyarrow as pa

    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0]).to_numpy()
    finally:
        sys.meta_path.remove(finder)


def _show(
    answer: ComplexEvents | Rows, format: Format, meter: Meter, *, all_rows: bool, positions: bool = False
) -> None:
    """Writes to standard output: a table of the first rows, or everything in another format."""
    from estero.cli.terminal import ROWS_OF_A_TABLE, say, show_table, table_of

    if format is not Format.TABLE:
        placed = {"positions": True} if positions else {}
        answer.write(sys.stdout.buffer, format=format, **placed)
        return
    with meter.showing("recognising"):
        table, more = table_of(answer, rows=None if all_rows else ROWS_OF_A_TABLE, positions=positions)
    show_table(table)
    if not table.rows:
        say("no complex events")
    if more:
        say(
            f"the first {ROWS_OF_A_TABLE}; --limit shows more, --count says how many there are, "
            "--out FILE writes them all"
        )


def _compare_with_spark(query: Query, answer: Answer, layout: dict[str, Any]) -> None:
    """Runs the demo's query on Spark; RuntimeError if the complex events differ from those of `answer`."""
    import tempfile

    import pyarrow as pa
    import pyarrow.parquet

    from estero import demo as night
    from estero.cli.terminal import working

    with tempfile.TemporaryDirectory(prefix="estero-") as directory:
        path = str(Path(directory, "events.parquet"))
        pyarrow.parquet.write_table(night.events(), path)
        spark_answer, _ = _answer_of_spark(query, Stream(path, layout), positions=True, partials=False)
        with working("recognising on Spark"):
            rows = pa.Table.from_batches(spark_answer.batches(), spark_answer.schema).to_pylist()
    if sorted(map(str, rows)) != sorted(map(str, answer.to_arrow().to_pylist())):
        raise RuntimeError(f"Spark finds other complex events: {len(rows)}")


def _first_rows(events: pa.Table) -> Table:
    from estero.cli.tables import Table
    from estero.cli.terminal import short

    rows = [[short(value) for value in row.values()] for row in events.slice(0, 5).to_pylist()]
    return Table(events.column_names, [False] * events.num_columns, [*rows, ["…"] * events.num_columns])
