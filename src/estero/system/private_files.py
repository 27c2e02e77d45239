"""Folders and files that nobody else can change: what may be believed of a disk that others write to, too.

A cache that somebody else can write holds whatever they want. So a folder is used only if it belongs to this
user or to root and nobody else may write to it, and so is a file in it; a link is never followed from a
file's name, and no file is written that was there before. Where the system has no owners (Windows), that is
left to it.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, cast

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""A pipe under the name of a file would be waited for."""
_FOLDER_MODE = 0o755
_FILE_MODE = 0o644
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_said: set[Path] = set()


def make_folder(folder: Path) -> None:
    """Makes a folder, and those that it is in; whatever the umask, only this user can write to them."""
    if not folder.is_dir():
        make_folder(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(_FOLDER_MODE)


def exposure(folder: Path) -> str | None:
    """Why others could change what a folder holds; None where they cannot, and where there is no folder.

    A link counts as what it leads to, if it belongs to this user or root: others can make links to folders of
    this user.
    """
    try:
        link, found = folder.lstat(), folder.stat()
    except OSError:
        return None
    return _exposed(link, link=True) or _exposed(found)


def is_usable(folder: Path) -> bool:
    """Whether a folder is not exposed; says once of a folder that it is not used because it is."""
    why = exposure(folder)
    if why is not None and folder not in _said:
        import logging

        _said.add(folder)
        logging.getLogger("estero").warning(
            "estero: nothing is kept in %s, because %s: it needs a folder that only you can write to "
            "(chown, chmod go-w)",
            folder,
            why,
        )
    return why is None


def read(file: Path) -> bytes:
    """The bytes of a file that nobody else can write; OSError where there is no such file."""
    with _opened(file, os.O_RDONLY) as opened:
        return opened.read()


@contextmanager
def replaced(file: Path) -> Iterator[BinaryIO]:
    """A new file that takes this name if the block ends well; OSError where it cannot be written."""
    beside = file.with_name(f"{file.name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_BINARY", 0)
    descriptor = os.open(beside, flags, _FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            yield cast(BinaryIO, opened)
        beside.replace(file)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def lock_file(file: Path) -> IO[bytes]:
    """A file to lock, made if it lacks, to which can be added; OSError where it is a link or of others."""
    opened = _opened(file, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    if os.fstat(opened.fileno()).st_nlink > 1:
        opened.close()
        raise PermissionError(f"{file} has other names as well")
    return opened


def _opened(file: Path, flags: int) -> IO[bytes]:
    descriptor = os.open(file, flags | _NO_LINK | getattr(os, "O_BINARY", 0), _FILE_MODE)
    found = os.fstat(descriptor)
    why = _exposed(found) if stat.S_ISREG(found.st_mode) else "it is no regular file"
    if why is not None:
        os.close(descriptor)
        raise PermissionError(f"{file}: {why}")
    writes = flags & os.O_ACCMODE != os.O_RDONLY
    return os.fdopen(descriptor, "ab+" if writes else "rb", buffering=0)


def _exposed(found: os.stat_result, *, link: bool = False) -> str | None:
    if os.name != "posix":
        return None
    if found.st_uid not in (os.geteuid(), 0):
        return f"it belongs to another user ({found.st_uid})"
    if found.st_mode & _OTHERS_WRITE and not link:
        return f"others can write to it (mode {stat.S_IMODE(found.st_mode):o})"
    return None
