"""Where the rows of a command go, and in which format."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click

from estero.cli.options import Format


def format_of(out: Path | None, named: Format | None, read: Iterable[str]) -> Format:
    """The format to write; a usage error where it does not go with where it is written.

    `read` are the paths of what is read, which is not to be replaced.
    """
    if out is None:
        if named in (Format.PARQUET, Format.ARROW):
            raise click.BadParameter(f"{named} needs a file: give --out, too", param_hint="--format")
        return named or Format.TABLE
    if out.is_file() and any(_is_read(out, path) for path in read):
        raise click.BadParameter(
            f"{out} is read, and would be replaced; choose another file", param_hint="--out"
        )
    if named is Format.TABLE:
        raise click.BadParameter(
            "a table cannot be written to a file; choose another format", param_hint="--format"
        )
    if named is not None:
        return named
    from estero.answers.writers import format_in_name

    try:
        return Format(format_in_name(out, or_give="--format"))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--out") from None


def _is_read(out: Path, path: str) -> bool:
    """Whether a file is among those of a path; a wrong path is reported where it is read."""
    from estero.errors import DataError
    from estero.events.files.paths import files_of

    with suppress(DataError):
        return any(map(out.samefile, files_of(path)))
    return False
