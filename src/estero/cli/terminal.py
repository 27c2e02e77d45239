"""Output of the command line: answers as tables, progress while it works, errors as a paragraph."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from shutil import get_terminal_size
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from estero.errors import legible

if TYPE_CHECKING:
    import pyarrow as pa

    from estero import Answer
    from estero.answers.rows import Rows
    from estero.cli.tables import Table
    from estero.spark.batch.collected import Collected

ROWS_OF_A_TABLE = 20
EVENTS_OF_A_CELL = 4
WIDTH_IN_A_PIPE = 160

_CELLS_OF_A_BAR = 30
_SECONDS_BETWEEN_LOOKS = 0.1


ComplexEvents: TypeAlias = "Answer | Collected"
"""The complex events of one run, recognized in this process or on Spark."""


def say(text: str) -> None:
    """Writes a line to standard error."""
    _write(text, stderr=True)


def show(text: str = "") -> None:
    """Writes a line to standard output."""
    _write(text)


def show_table(table: Table) -> None:
    """Writes a table to standard output; in a pipe it may be wider than most terminals."""
    wide = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = get_terminal_size().columns if wide else WIDTH_IN_A_PIPE
    plain = "utf" not in (sys.stdout.encoding or "").lower()
    show("\n".join(table.lines(width, ascii_only=plain)))


def heading(text: str) -> str:
    """The text in bold, on a terminal."""
    return click.style(text, bold=True)


def _write(text: str, *, stderr: bool = False) -> None:
    """Writes a line; characters that the stream cannot encode are written as escapes."""
    encoding = (sys.stderr if stderr else sys.stdout).encoding or "utf-8"
    with _Line.hidden():
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), err=stderr)


class _Line:
    """A line of a terminal on standard error that shows progress, and is removed afterwards.

    A thread calls `text` for it repeatedly; nothing does if standard error is no terminal.
    """

    _shown: _Line | None = None
    _writing = Lock()

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text
        self._width = 0
        self._over = Event()
        self._thread = Thread(target=self._draw_until_over, daemon=True)

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            _Line._shown = self
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        if _Line._shown is self:
            self._over.set()
            self._thread.join()
            _Line._shown = None
            self._draw()  # the final state
            self.clear()

    @classmethod
    @contextmanager
    def hidden(cls) -> Iterator[None]:
        """Removes the line while the block writes another one; it is drawn again soon."""
        with cls._writing:
            if cls._shown is not None:
                cls._shown.clear()
            yield

    def clear(self) -> None:
        """Overwrites the line with blanks."""
        self._put(f"\r{'':{self._width}}\r")
        self._width = 0

    def _draw_until_over(self) -> None:
        while not self._over.wait(_SECONDS_BETWEEN_LOOKS):
            with self._writing:
                self._draw()

    def _draw(self) -> None:
        text = legible(self._text())[: get_terminal_size().columns - 1]
        self._put(f"\r{text:{self._width}}")
        self._width = len(text)

    def _put(self, text: str) -> None:
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(text.encode(encoding, "replace").decode(encoding))
        sys.stderr.flush()


def _line_about(what: str, *, bar: Callable[[], str] = str, detail: Callable[[], str] = str) -> _Line:
    """A line on the current activity, with a bar, further text and the time elapsed."""
    began = monotonic()

    def text() -> str:
        minutes, seconds = divmod(int(monotonic() - began), 60)
        parts = (what, bar(), detail(), f"{minutes}:{seconds:02}")
        return "  ".join(part for part in parts if part)

    return _Line(text)


def bar_of(done: int, of: int | None) -> str:
    """A bar of the share of events that have been read; empty if their total is unknown.

    >>> bar_of(1, 3)
    '[##########--------------------]'
    """
    if not of:
        return ""
    full = min(done, of) * _CELLS_OF_A_BAR // of
    return f"[{'#' * full:-<{_CELLS_OF_A_BAR}}]"


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows an activity and its duration while the block runs; nothing in a pipe."""
    with _line_about(what):
        yield


class Meter:
    """Shows how many events of a run have been read; nothing in a pipe.

    It is the `progress` of `Query.run`. On Spark it is never called, and only the time is shown.
    """

    def __init__(self) -> None:
        self._began = monotonic()
        self._read: int | None = None
        self._of: int | None = None

    def __call__(self, read: int, of: int | None) -> None:
        """Shows how many events have been read, and of how many."""
        self._read, self._of = read, of

    @contextmanager
    def showing(self, what: str) -> Iterator[None]:
        """Shows it while the block runs: events read, their total, events per second, time elapsed."""
        self._began, self._read = monotonic(), None
        with _line_about(what, bar=lambda: bar_of(self._read or 0, self._of), detail=self._counts):
            yield

    def _counts(self) -> str:
        if self._read is None:
            return ""
        return counted(self._read, self._of, self._read / max(monotonic() - self._began, 1e-3))


def counted(read: int, of: int | None, rate: float) -> str:
    """The events read, their total, and events per second.

    >>> counted(1_000_000, 4_000_000, 2.5e6)
    '1,000,000 of 4,000,000 events, 2,500,000/s'
    >>> counted(10, None, 5)
    '10 events, 5/s'
    """
    number = f"{read:,}" if of is None else f"{read:,} of {of:,}"
    return f"{number} events, {rate:,.0f}/s"


@contextmanager
def following(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """A function that replaces the line it printed before; the last one stays; nothing in a pipe."""
    if not (shown and sys.stderr.isatty()):
        yield lambda _line: None
        return
    last = ""

    def follow(line: str) -> None:
        nonlocal last
        last = line

    with _Line(lambda: last or "waiting for events"):
        yield follow
    say(last)


def table_of(answer: ComplexEvents | Rows, *, rows: int | None, positions: bool) -> tuple[Table, bool]:
    """The first `rows` complex events, or rows, as a table (None: all), and whether there are more."""
    from estero.answers.answer_schema import measure_of, positions_schema
    from estero.answers.report import with_positions
    from estero.answers.shown_values import shown_rows
    from estero.cli.tables import Table

    columns = list(answer.schema)
    table = Table([legible(column.name) for column in columns], [not _is_list(column) for column in columns])
    hidden = {column.name for column in columns if not _is_list(column) and measure_of(column) is None}
    placed = answer.schema.names[:1] == ["start"]
    schema = positions_schema(answer.schema)
    shown = 0
    for batch in (answer if rows is None else answer.limit(rows + 1)).batches():
        kept = batch if rows is None else batch.slice(0, rows - shown)
        for row in shown_rows(with_positions(kept, schema) if positions else kept):
            table.rows.append([_cell(value, hidden=hidden, placed=placed) for value in row.values()])
        shown += batch.num_rows
    return table, rows is not None and shown > rows


def _is_list(field: pa.Field) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(field.type))


def _cell(value: Any, *, hidden: Collection[str], placed: bool) -> str:
    if not isinstance(value, list):
        return short(value)
    if not (value and isinstance(value[0], dict)):
        return ", ".join(map(short, value))
    lines = [_event(event, hidden, placed=placed) for event in value[:EVENTS_OF_A_CELL]]
    if len(value) > EVENTS_OF_A_CELL:
        lines.append(f"… and {len(value) - EVENTS_OF_A_CELL} more")
    return "\n".join(lines)


def _event(event: dict[str, Any], hidden: Collection[str], *, placed: bool) -> str:
    """An event on one line: its attributes but the `hidden` ones, ``@`` and, if `placed`, its position."""
    attributes = [*event.items()][: -1 if placed else None]
    values = " ".join(short(value) for name, value in attributes if name not in hidden)
    return f"{values} @{[*event.values()][-1]}" if placed else values


def short(value: Any) -> str:
    """A value in few characters."""
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return _time(value)
    return f"{value:g}" if isinstance(value, float) else legible(str(value))


def _time(value: datetime) -> str:
    """A time unchanged: with its nanoseconds, which a pandas Timestamp has, and its zone, if any."""
    local = value.replace(tzinfo=None).isoformat()
    zone = value.isoformat().removeprefix(local)
    text = local.replace("T", " ")
    return (text.rstrip("0") if "." in text else text) + ("Z" if zone == "+00:00" else zone)


def complain(text: str) -> None:
    """Writes a paragraph about an error to standard error."""
    say(click.style("error: ", fg="red", bold=True) + legible(text, lines=True))


def remark(text: str) -> None:
    """Writes a line to standard error about something allowed but probably not intended."""
    say(click.style("warning: ", fg="yellow", bold=True) + legible(text, lines=True))


def note(text: str) -> None:
    """Writes a line to standard error about something correct but easily misread."""
    say(click.style("note: ", fg="cyan", bold=True) + legible(text, lines=True))
