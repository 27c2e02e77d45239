"""How a command ends early: Ctrl-C, a request to end, a closed pipe, an output that cannot be written."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import RawIOBase, TextIOWrapper
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, cast

if TYPE_CHECKING:
    from typing import BinaryIO

    from _typeshed import ReadableBuffer

NOBODY_READS = 128 + 13
"""The exit code that shells report for a program whose pipe was closed by its reader (SIGPIPE is 13)."""

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

_asked: list[int] = []
"""The signals that requested the command to end."""


@contextmanager
def heeding_signals() -> Iterator[None]:
    """Makes Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt in the block, so that it ends in good order.

    An ignored signal (nohup) stays ignored. After the block signals end the process at once: only Python's
    own shutdown is left, where nothing would handle an exception.
    """
    wanted = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
    _asked.clear()
    heeded = [number for number in wanted if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, _note)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)


def _note(number: int, _frame: FrameType | None) -> NoReturn:
    _asked.append(number)
    raise KeyboardInterrupt


def was_asked_to_end() -> bool:
    """Whether a signal came. Libraries may turn its KeyboardInterrupt into any other error."""
    return bool(_asked)


def stopped() -> int:
    """Prints a line that a signal has ended the command; returns the exit code for it."""
    number = _asked[0] if _asked else signal.SIGINT
    behind_the_key = "\n" if number == signal.SIGINT and sys.stderr.isatty() else ""  # which shows as ^C
    print(f"{behind_the_key}{_WORDS.get(signal.Signals(number), 'ended')}", file=sys.stderr)
    return 128 + number


def write_out() -> None:
    """Writes what is still buffered for standard output, if it can be."""
    try:
        sys.stdout.flush()
    except OSError:
        drop_output()


def drop_output() -> None:
    """Discards what is buffered for standard output, of which Python would complain at its end."""
    with suppress(OSError):  # it is not a file: a test reads it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_standard_streams() -> None:
    """Replaces standard streams that are closed.

    Writing to the output then raises an error that says so; writing to the stream of errors does nothing.
    Files that are opened later do not get one of their numbers, under which other libraries would write into
    them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the smallest free number
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 (for as long as the process)
    if sys.stdout is None:
        sys.stdout = TextIOWrapper(cast("BinaryIO", _Closed()), encoding="utf-8", write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


class _Closed(RawIOBase):
    """A standard output to which nothing can be written."""

    def writable(self) -> bool:
        return True

    def write(self, _data: ReadableBuffer) -> int:
        raise OSError("standard output is closed: nothing can be shown; --out FILE writes to a file")
