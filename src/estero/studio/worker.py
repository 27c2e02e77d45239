"""A process that answers a session's questions, so that each can be ended: on request, by time, by memory."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from estero.errors import EsteroError
from estero.studio.opening import Opening
from estero.studio.questions import CANCELLED, Questions, refused
from estero.studio.session import Message, Reply

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from multiprocessing.synchronize import Event

GRACE: Final = 2.0
"""Seconds after which a process that does not stop by itself is ended."""
GIGABYTE: Final = 1 << 30


class Worker(Questions):
    """The process of one session, started with the first question and restarted after it has been ended.

    `memory` is the number of bytes that questions may take beside the events, if the system can tell (Linux).
    """

    def __init__(self, opening: Opening, *, memory: int | None = 4 * GIGABYTE) -> None:
        super().__init__()
        self._opening = opening
        self._memory = memory
        self._context = get_context("spawn")
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._wish: Event = self._context.Event()

    def _answered(self, message: Message) -> Reply:
        ends = math.inf
        try:
            connection, wrong = self._started()
            if wrong is not None:
                return refused(message, wrong)
            ends = monotonic() + self._opening.seconds + GRACE
            connection.send(dict(message))
            return cast(Reply, self._heard(connection, ends))
        except (EOFError, OSError):
            return self._ended(message, ends)

    def close(self) -> None:
        """Ends the process, and stops answering."""
        super().close()
        self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()

    def _started(self) -> tuple[Connection, str | None]:
        """The connection to the process, which has read the events; or the error in them."""
        if self._process is not None and self._process.is_alive() and self._connection is not None:
            return self._connection, None
        self._connection, theirs = self._context.Pipe()
        process = self._context.Process(
            target=serve, args=(self._opening, theirs, self._wish, self._memory), daemon=True
        )
        process.start()
        self._process = process  # from now on it can be ended
        theirs.close()
        wrong = cast("str | None", self._heard(self._connection, math.inf))
        if wrong is not None:
            self._end()
        return self._connection, wrong

    def _heard(self, connection: Connection, ends: float) -> object:
        """The next message of the process; EOFError if it must be, or has been, ended."""
        while not connection.poll(0.05):
            cancelled = self._cancelled_at is not None and monotonic() > self._cancelled_at + GRACE
            if cancelled or self._closed or monotonic() > ends:
                raise EOFError
        return connection.recv()

    def _ended(self, message: Message, ends: float) -> Reply:
        """The reply to a question whose process has ended, or is ended now."""
        if self._cancelled_at is not None:
            why = CANCELLED
        elif monotonic() > ends:
            why = f"this takes longer than {self._opening.seconds:g} seconds: ask for less"
        else:
            why = "the question ended its process, most likely for want of memory: ask for less"
        self._end()
        return refused(message, why)


def serve(opening: Opening, connection: Connection, wish: Event, memory: int | None) -> None:
    """Answers the messages of a connection until it is closed; this runs in the process."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    try:
        session = opening.session(cancelled=wish.is_set)
        session.stream.scan  # noqa: B018 (reads the events)
        connection.send(None)
    except (EsteroError, OSError, MemoryError) as error:
        connection.send(str(error))
        return
    if memory is not None:
        limit_memory(memory)
    with suppress(EOFError), settled() as settle:
        while True:
            message: dict[str, Any] = connection.recv()
            connection.send(session.answer(message))
            if message.get("kind") == "typed":
                settle()


@contextmanager
def settled() -> Iterator[Callable[[], None]]:
    """A function whose first call excludes all existing objects from garbage collection, until the end.

    They are the language, the engine and the events. Traversing them takes 60 ms, for which one keystroke in
    twenty would have to wait. (If they stayed excluded, DuckDB would complain as the process ends.)
    """
    done = False

    def settle() -> None:
        nonlocal done
        if not done:
            gc.collect()
            gc.freeze()
            done = True

    try:
        yield settle
    finally:
        gc.unfreeze()


def limit_memory(more: int) -> None:
    """Limits this process to this many bytes beyond those it has, if the system can tell both."""
    try:
        import resource
    except ImportError:  # Windows
        return
    sizes = Path("/proc/self/statm")
    if sys.platform == "linux" and sizes.is_file():
        taken = int(sizes.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = taken + more
        if hard == resource.RLIM_INFINITY or wanted < hard:
            resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
