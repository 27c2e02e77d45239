"""Temporary files in place of what readers cannot take as it is: a pipe, or a file with an odd name.

They are in one temporary directory, which goes when the process ends.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import stat
import tempfile
from pathlib import Path


@functools.cache
def _directory(process: int) -> Path:  # a forked process has its own
    made = tempfile.mkdtemp(prefix=f"estero-{process}-")
    atexit.register(_removed, made, process)
    return Path(made)


def _removed(directory: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)


def is_pipe(path: str) -> bool:
    """Whether there is a pipe at `path`, so that its data passes once."""
    try:
        return stat.S_ISFIFO(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False


def spooled(path: str) -> str:
    """A file with all that comes through a pipe, under the pipe's name; waits for its end.

    Raises OSError where the pipe cannot be read or the copy not be written.
    """
    place = Path(tempfile.mkdtemp(dir=_directory(os.getpid()))) / Path(path).name
    with Path(path).open("rb") as pipe, place.open("wb") as copy:
        shutil.copyfileobj(pipe, copy)
    return str(place)


def named_by_content(path: str) -> str:
    """The file under a name that says its format, which its first bytes tell: what is nothing else is CSV."""
    file = Path(path)
    with file.open("rb") as opened:
        start = opened.read(256)
    if start.startswith(b"PAR1"):
        suffix = ".parquet"
    elif start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        suffix = ".arrow"
    else:
        suffix = ".jsonl" if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else ".csv"
    return str(file.rename(file.with_suffix(suffix)))


@functools.cache
def linked(path: str, name: str) -> str:
    """A link called `name` to the file at an absolute `path`."""
    place = Path(tempfile.mkdtemp(dir=_directory(os.getpid()))) / name
    place.symlink_to(path)
    return str(place)
