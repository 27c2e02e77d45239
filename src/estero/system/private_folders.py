"""Folders that nobody else can change, on a disk to which others write too.

A cache that others can write to may contain anything. So a folder is used only if it belongs to this user or
to root and nobody else may write to it. If the system has no owners (Windows), no check is made.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_FOLDER_MODE = 0o755
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_folder(folder: Path) -> None:
    """Makes a folder and its parents, to which only this user can write, whatever the umask."""
    if not folder.is_dir():
        make_folder(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(_FOLDER_MODE)


def exposure(folder: Path) -> str | None:
    """The reason why others could change the content of a folder; None if they cannot, or there is no folder.

    A link counts as its target if it belongs to this user or root: others can make links to folders of this
    user.
    """
    try:
        link, target = folder.lstat(), folder.stat()
    except OSError:
        return None
    return _exposed(link, link=True) or _exposed(target)


def _exposed(status: os.stat_result, *, link: bool = False) -> str | None:
    if os.name != "posix":
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to another user ({status.st_uid})"
    if status.st_mode & _OTHERS_WRITE and not link:
        return f"others can write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return None
