"""`estero sql`: a statement with MATCH_RECOGNIZE over files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from estero.cli import options
from estero.cli.completion import file_names
from estero.cli.inputs import text_in
from estero.cli.options import Argument, Format, decorated, existing_or_not, option
from estero.cli.outputs import format_of

if TYPE_CHECKING:
    import pyarrow as pa

_HINT = "QUERY.sql"


_tables = option(
    "--table",
    metavar="NAME=FILE",
    multiple=True,
    help="A table that the statement names, and its file in Parquet, CSV, JSON lines or Arrow; can be "
    "repeated.",
    shell_complete=file_names,
)


def statement(
    statement: Path,
    table: Sequence[str],
    out: Path | None,
    format: Format | None,
    explain: bool,
    debug: bool,
) -> None:
    """Evaluate a SQL statement with MATCH_RECOGNIZE after any of its tables."""
    import estero
    from estero.answers.output_file import output_file
    from estero.cli.terminal import say, working

    tables = _tables_of(table)
    chosen = format_of(out, format, tables.values())
    result = estero.sql(text_in(statement, _HINT), connection=None, **tables)
    if explain:
        say(result.explain())
    with working("evaluating"):
        rows = result.to_arrow()
    if out is not None:
        with output_file(out) as file:
            _write(rows, file, chosen)
        say(f"{rows.num_rows:,} row{'' if rows.num_rows == 1 else 's'} in {out}")
    elif chosen is Format.TABLE:
        _show(rows)
    else:
        _write(rows, sys.stdout.buffer, chosen)


def with_statement_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its argument and options."""
    line = _HINT, "The statement; - reads it from standard input."
    decorators = [
        click.argument("statement", cls=Argument, line=line, metavar=_HINT, type=existing_or_not),
        _tables,
        options.out,
        options.format_option,
        options.explain_option,
        options.debug,
    ]
    return decorated(command, decorators)


def _tables_of(given: Sequence[str]) -> dict[str, str]:
    """The files by the names of their tables."""
    tables: dict[str, str] = {}
    for entry in given:
        name, equals, file = entry.partition("=")
        if not (name and equals and file):
            raise click.BadParameter(
                f"{entry!r} does not name a table and its file: write NAME=FILE", param_hint="--table"
            )
        if name in tables:
            raise click.BadParameter(f"{name} has two files", param_hint="--table")
        tables[name] = file
    return tables


def _write(rows: pa.Table, file: BinaryIO, format: Format) -> None:
    """Writes all rows in a format of files."""
    from estero.answers.writers import write_answer

    if format is not Format.JSONL:
        write_answer(file, rows.schema, rows.to_batches(), format=format)
        return
    for batch in rows.to_batches():
        lines = (json.dumps(row, ensure_ascii=False, default=str) for row in batch.to_pylist())
        file.writelines(f"{line}\n".encode() for line in lines)


def _show(rows: pa.Table) -> None:
    """Prints the first rows as a table."""
    from estero.cli.tables import Table
    from estero.cli.terminal import ROWS_OF_A_TABLE, say, short, show_table

    first = rows.slice(0, ROWS_OF_A_TABLE).to_pylist()
    cells = [[short(value) for value in row.values()] for row in first]
    show_table(Table(rows.column_names, [False] * rows.num_columns, [*cells]))
    if not rows.num_rows:
        say("no rows")
    if rows.num_rows > ROWS_OF_A_TABLE:
        say(f"the first {ROWS_OF_A_TABLE} of {rows.num_rows:,}; --out FILE writes them all")
