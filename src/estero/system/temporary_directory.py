"""The one temporary directory of a process, which is removed when the process ends."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path


def temporary_directory() -> Path:
    """A directory for this user and this process alone; raises OSError if none can be made."""
    return _directory(os.getpid())


@functools.cache
def _directory(process: int) -> Path:  # a forked process has its own
    made = tempfile.mkdtemp(prefix=f"estero-{process}-")
    atexit.register(_removed, made, process)
    return Path(made)


def _removed(directory: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)
