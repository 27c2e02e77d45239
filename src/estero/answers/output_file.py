"""Output files: regular files are written completely or not at all, and anything else is never replaced."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from estero.errors import legible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_AS_OPENED = os.access in os.supports_effective_ids
"""Whether the system can check the permissions of the process, not those of the user who started it."""
_NAME_KEPT = 40
"""The letters of a file's name kept in its temporary file: names may be as long as systems allow."""


@contextmanager
def output_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file for the new content of `path`: it is complete if the block ends well, else `path` is unchanged.

    A regular file is replaced by a new one with its mode, owner and attributes; a symbolic link stays, and
    its target is replaced, or made. A file that cannot be replaced like this (it has other names as well,
    another owner, or a directory in which nothing can be made) gets its new content at the end, from a
    temporary file. Anything else, such as a pipe, a device or ``/dev/stdout``, is written to directly.

    Raises OSError, before anything is written, if `path` cannot be a file or may not be written.
    """
    path = Path(path)
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ValueError(
            f"{legible(str(path))} is not the name of a file: it contains half a surrogate pair"
        ) from None
    before = _status(path)
    descriptor = _own_descriptor(path)
    if descriptor is not None:
        with _duplicate(descriptor, path) as file:
            yield _counting(file)
        return
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(f"{legible(str(path))} is a directory, not a file to write to")
    if before is not None and not stat.S_ISREG(before.st_mode):
        with path.open("wb") as file:
            yield _counting(file)
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(legible(f"cannot write {path}: there is no directory {target.parent}"))
    if before is not None and not os.access(target, os.W_OK, effective_ids=_AS_OPENED):
        raise PermissionError(legible(f"cannot write {path}: the file is not writable"))
    beside = _beside(path, target, before)
    with _filled(target) if beside is None else _renamed(beside, target) as file:
        yield file


def forward_only(file: BinaryIO) -> BinaryIO:
    """The file or, if it cannot report its position (a pipe), a wrapper that counts what is written to it.

    Parquet and Arrow write positions in the file into it, and never seek back.
    """
    seekable = getattr(file, "seekable", None)
    return file if seekable is None or seekable() else _counting(file)


def _counting(file: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, _Counting(file))


class _Counting(RawIOBase):
    """Writes to another file, which it does not close, and knows how much it has written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._place = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def write(self, data: ReadableBuffer) -> int:
        self._file.write(data)
        size = memoryview(data).nbytes
        self._place += size
        return size

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()


def _status(path: Path) -> os.stat_result | None:
    """The status of the file at the path after following all links; None if there is none."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # a name that is too long, links in a circle
        raise _cannot_write(path, error) from error


def _own_descriptor(path: Path) -> int | None:
    """The open file of this process that the path refers to, as ``/dev/stdout`` does.

    If it were opened anew, a file to which a shell appends would be written from its start; if it were
    replaced, it would no longer be the one that the shell has open.
    """
    descriptors = (f"/proc/{os.getpid()}/fd", "/dev/fd")
    place = path
    for _ in range(40):  # as many links as Linux follows
        if place.name.isdecimal() and os.path.realpath(place.parent) in descriptors:
            return int(place.name)
        if not place.is_symlink():
            return None
        place = place.parent / place.readlink()
    return None


def _duplicate(descriptor: int, path: Path) -> BinaryIO:
    try:
        return os.fdopen(os.dup(descriptor), "wb")
    except OSError as error:
        raise _cannot_write(path, error) from error


def _beside(path: Path, target: Path, before: os.stat_result | None) -> Path | None:
    """A new, empty file beside the target that can replace it; None if that is impossible."""
    if before is not None and before.st_nlink > 1:
        return None
    temporary = target.with_name(f".{target.name[:_NAME_KEPT]}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.touch(exist_ok=False)
        if before is not None:
            _make_alike(temporary, target, before)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        if before is None:
            raise _cannot_write(path, error) from error
        return None
    return temporary


def _make_alike(temporary: Path, target: Path, before: os.stat_result) -> None:
    """Gives a new file the owner, mode and attributes of the one that it will replace."""
    made = temporary.stat()
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        os.chown(temporary, before.st_uid, before.st_gid)
    shutil.copystat(target, temporary)


@contextmanager
def _renamed(temporary: Path, target: Path) -> Iterator[BinaryIO]:
    """The temporary file, which takes the name of the target at the end."""
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _filled(target: Path) -> Iterator[BinaryIO]:
    """A temporary file elsewhere, whose content becomes that of the target at the end."""
    with tempfile.TemporaryFile(prefix="estero-") as file:
        yield cast(BinaryIO, file)
        file.seek(0)
        with target.open("r+b") as filled:
            shutil.copyfileobj(file, filled)
            filled.truncate()


def _cannot_write(path: Path, error: OSError) -> OSError:
    return type(error)(f"cannot write {legible(str(path))}: {error.strerror}")
