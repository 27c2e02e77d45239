"""Temporary files in place of what readers cannot take directly: a pipe, or a file with an odd name."""

from __future__ import annotations

import functools
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from estero.system.temporary_directory import temporary_directory


def is_pipe(path: str) -> bool:
    """Whether there is a pipe at `path`, so that its data can be read only once."""
    try:
        return stat.S_ISFIFO(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False


def spooled(path: str) -> str:
    """A file with the whole content of a pipe, under the pipe's name; waits for its end.

    Raises OSError if the pipe cannot be read or the copy not be written.
    """
    place = Path(tempfile.mkdtemp(dir=temporary_directory())) / Path(path).name
    with Path(path).open("rb") as pipe, place.open("wb") as copy:
        shutil.copyfileobj(pipe, copy)
    return str(place)


_COMPRESSED = {b"\x1f\x8b": ("gzip", ".gz"), b"\x28\xb5\x2f\xfd": ("zstd", ".zst")}
"""The first bytes of compressed files, the name of the compression, and the suffixes of such files."""


def named_by_content(path: str) -> str:
    """The file under a name with its format, found from its first bytes: CSV if it is nothing else."""
    start, compressed = _beginning(path)
    if start.startswith(b"PAR1"):
        suffix = ".parquet"
    elif start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        suffix = ".arrow"
    else:
        first = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        suffix = {b"{": ".jsonl", b"[": ".json"}.get(first, ".csv")
    file = Path(path)
    return str(file.rename(file.with_suffix(f"{suffix}{compressed}")))


def named_for(path: str, form: str) -> str:
    """A link to the file, under a name with this format: csv, json, parquet or arrow."""
    _, compressed = _beginning(path)
    return linked(str(Path(path).absolute()), f"events.{form}{compressed}")


def _beginning(path: str) -> tuple[bytes, str]:
    """The first bytes of a file, uncompressed, and the suffix of its compression, or ""."""
    with Path(path).open("rb") as opened:
        start = opened.read(256)
    for mark, (name, suffix) in _COMPRESSED.items():
        if start.startswith(mark):
            import pyarrow as pa  # the help of the command line does not need it

            with suppress(OSError), pa.input_stream(path, compression=name) as stream:
                start = stream.read(256)
            return start, suffix
    return start, ""


@functools.cache
def linked(path: str, name: str) -> str:
    """A link called `name` to the file at an absolute `path`."""
    place = Path(tempfile.mkdtemp(dir=temporary_directory())) / name
    place.symlink_to(path)
    return str(place)
