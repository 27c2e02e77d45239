"""What the command line shows: answers as tables, a sign of life while it works, errors as a paragraph."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from estero.errors import legible

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console, RenderableType
    from rich.table import Table

    from estero import Answer
    from estero.answers.rows import Rows
    from estero.spark.batch.collected import Collected

ROWS_OF_A_TABLE = 20
EVENTS_OF_A_CELL = 4
WIDTH_IN_A_PIPE = 160


Found: TypeAlias = "Answer | Collected"
"""The complex events of one run, found in this process or on Spark."""


def messages() -> Console:
    """A console on standard error."""
    return output(stderr=True)


def output(*, stderr: bool = False) -> Console:
    """A console on standard output (or `stderr`); in a pipe, as wide as a table needs."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    wide = None if stream.isatty() or "COLUMNS" in os.environ else WIDTH_IN_A_PIPE
    return Console(stderr=stderr, width=wide, highlight=False, soft_wrap=False)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows that something is going on, and for how long, while the block runs; nothing in a pipe."""
    console = messages()
    if not console.is_terminal:
        yield
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(what, total=None)
        yield


class Meter:
    """Shows how far the events of a run are read, whatever is asked of it; nothing in a pipe.

    It is the `progress` of `Query.run`. On Spark nobody calls it, and only the time is shown.
    """

    def __init__(self) -> None:
        self._show: Callable[[int, int | None], None] | None = None

    def __call__(self, read: int, of: int | None) -> None:
        """So many events are read, of so many."""
        if self._show is not None:
            self._show(read, of)

    @contextmanager
    def showing(self, what: str) -> Iterator[None]:
        """Shows it while the block runs: how many events, of how many, how many in a second, for how long."""
        console = messages()
        if not console.is_terminal:
            yield
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[events]}"),
            TimeElapsedColumn(),
        )
        began = monotonic()
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(what, total=None, events="")

            def show(read: int, of: int | None) -> None:
                rate = read / max(monotonic() - began, 1e-3)
                progress.update(task, completed=read, total=of, events=counted(read, of, rate))

            self._show = show
            try:
                yield
            finally:
                self._show = None


def counted(read: int, of: int | None, rate: float) -> str:
    """How many events are read, of how many, and how many in a second.

    >>> counted(1_000_000, 4_000_000, 2.5e6)
    '1,000,000 of 4,000,000 events, 2,500,000/s'
    >>> counted(10, None, 5)
    '10 events, 5/s'
    """
    number = f"{read:,}" if of is None else f"{read:,} of {of:,}"
    return f"{number} events, {rate:,.0f}/s"


@contextmanager
def progressing(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows how many of how many parts are done; nothing in a pipe."""
    console = messages()
    if not console.is_terminal:
        yield lambda _done, _of: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)


@contextmanager
def following(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """A function that shows a line in place of the one before, the last of which stays; nothing in a pipe."""
    console = messages()
    if not (shown and console.is_terminal):
        yield lambda _line: None
        return
    with console.status("waiting for events") as status:
        said = ""

        def say(line: str) -> None:
            nonlocal said
            said = line
            status.update(line)

        yield say
    console.print(said, markup=False)


def table_of(found: Found | Rows, *, rows: int | None, positions: bool) -> tuple[Table, bool]:
    """The first `rows` complex events, or rows, as a table (None: all), and whether there are more."""
    from rich.table import Table
    from rich.text import Text

    from estero.answers.report import measure_of, positions_schema, with_positions
    from estero.answers.shown_values import shown_rows

    table = Table(header_style="bold", row_styles=("", "dim"))
    for column in found.schema:
        name = Text(legible(column.name))
        table.add_column(name, justify="left" if _is_list(column) else "right", overflow="fold")
    told = {each.name for each in found.schema if not _is_list(each) and measure_of(each) is None}
    placed = found.schema.names[:1] == ["start"]
    schema = positions_schema(found.schema)
    shown = 0
    for batch in (found if rows is None else found.limit(rows + 1)).batches():
        kept = batch if rows is None else batch.slice(0, rows - shown)
        for row in shown_rows(with_positions(kept, schema) if positions else kept):
            table.add_row(*(_cell(value, hidden=told, placed=placed) for value in row.values()))
        shown += batch.num_rows
    return table, rows is not None and shown > rows


def _is_list(field: pa.Field) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(field.type))


def _cell(value: Any, *, hidden: Collection[str], placed: bool) -> RenderableType:
    from rich.text import Text

    if not isinstance(value, list):
        return Text(short(value))
    if not (value and isinstance(value[0], dict)):
        return Text(", ".join(map(short, value)))
    lines = [_event(event, hidden, placed=placed) for event in value[:EVENTS_OF_A_CELL]]
    if len(value) > EVENTS_OF_A_CELL:
        lines.append(f"… and {len(value) - EVENTS_OF_A_CELL} more")
    return Text("\n".join(lines))


def _event(event: dict[str, Any], hidden: Collection[str], *, placed: bool) -> str:
    """An event on one line: its attributes but the `hidden` ones, then ``@`` and its position if `placed`."""
    attributes = [*event.items()][: -1 if placed else None]
    values = " ".join(short(value) for name, value in attributes if name not in hidden)
    return f"{values} @{[*event.values()][-1]}" if placed else values


def short(value: Any) -> str:
    """A value in few letters."""
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return _time(value)
    return f"{value:g}" if isinstance(value, float) else legible(str(value))


def _time(value: datetime) -> str:
    """A time as it came: with its nanoseconds, which a Timestamp of pandas has, and its zone, if any."""
    local = value.replace(tzinfo=None).isoformat()
    zone = value.isoformat().removeprefix(local)
    text = local.replace("T", " ")
    return (text.rstrip("0") if "." in text else text) + ("Z" if zone == "+00:00" else zone)


def complain(text: str) -> None:
    """Writes a paragraph about what went wrong to standard error."""
    from rich.text import Text

    messages().print(Text.assemble(("error: ", "bold red"), legible(text, lines=True)), soft_wrap=True)


def remark(text: str) -> None:
    """Writes a line to standard error about what is allowed, and probably not meant."""
    from rich.text import Text

    messages().print(Text.assemble(("warning: ", "bold yellow"), legible(text, lines=True)), soft_wrap=True)


def note(text: str) -> None:
    """Writes a line to standard error about what is right, and easily misread."""
    from rich.text import Text

    messages().print(Text.assemble(("note: ", "bold cyan"), legible(text, lines=True)), soft_wrap=True)
