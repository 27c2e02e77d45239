"""Kernels that another process compiles and puts on disk, while this one goes on without them.

One such process works for all that have one directory of kernels: it holds a lock on a file there, in which
it finds what it is to compile. It has the lowest priority, and nobody waits for it, not even at the end.
Where that file cannot be written, or the system has no such locks, there is none.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import IO, Any, NamedTuple

from estero.engine.compiled.kernel_files import directory
from estero.engine.patience import VARIABLE
from estero.system.private_files import lock_file, make_folder
from estero.system.processes import module_command

_log = logging.getLogger("estero")

LOCK = "compiling.lock"
"""The file, in the directory of kernels."""


class Wanted(NamedTuple):
    """A kernel, by its module and its name there, and the types of its arguments."""

    module: str
    name: str
    signature: tuple[Any, ...]


class Background:
    """What this process has asked for, and the thread that waits for the end of the last process."""

    def __init__(self) -> None:
        self._asked: set[Wanted] = set()
        self.ending: Thread | None = None

    def compile(self, function: Callable[..., Any], signature: tuple[Any, ...]) -> None:
        """Has a kernel compiled, sooner or later; asks once."""
        wanted = Wanted(function.__module__, function.__qualname__, signature)
        if wanted in self._asked:
            return
        self._asked.add(wanted)
        place = directory()
        if place is not None and _is_python(sys.executable):
            try:
                self._ask(place / LOCK, pickle.dumps(wanted))
            except (ImportError, NotImplementedError, OSError) as error:  # as Windows has none of this
                _log.debug("estero: no process compiles kernels: %r", error)

    def _ask(self, lock: Path, wanted: bytes) -> None:
        """Asks the process that is there, or starts one; one that is just ending may overhear it."""
        import fcntl

        make_folder(lock.parent)
        with lock_file(lock) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.write(wanted)
                return
            file.truncate(0)
            file.write(wanted)
            file.seek(0)
            self.ending = Thread(target=_reap, args=(_started(file),), daemon=True)
            self.ending.start()


BACKGROUND = Background()
"""That of this process."""


def _is_python(program: str) -> bool:
    """Whether a program takes modules to run; Python may be part of another one."""
    return "python" in Path(program).name and not hasattr(sys, "frozen")


def _reap(process: int) -> None:
    """Waits for the end of a process: until somebody has, the system keeps an entry of it."""
    with suppress(ChildProcessError):  # somebody else has
        os.waitpid(process, 0)


def _started(lock: IO[bytes]) -> int:
    """A process that has the file, and so the lock, as its standard input: when it ends, the lock is free."""
    program = module_command(__name__)
    return os.posix_spawn(
        program[0],
        program,
        {**os.environ, VARIABLE: "first"},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, lock.fileno(), 0),
            *((os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)),
        ],
        setsid=True,
    )


def compile_all(file: IO[bytes]) -> None:
    """Compiles what a file names, and what is added to it meanwhile, and puts it on disk."""
    while True:
        try:
            module, name, signature = pickle.load(file)  # noqa: S301 - as trusted as the code beside it
        except EOFError:
            return
        getattr(import_module(module), name).compiled.compile(signature)


if __name__ == "__main__":
    os.nice(19)
    compile_all(sys.stdin.buffer)
