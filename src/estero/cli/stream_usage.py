"""The common part of both engines of the command `stream`: errors in options, and how it is stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar

import click

from estero import DataError

T = TypeVar("T")


def check_usage(sink: str, checkpoint: Path | None, time: str | None) -> None:
    """Raises a usage error where a checkpoint or the time column is missing."""
    if checkpoint is None and sink != "console":
        raise click.BadParameter(
            "a stream needs a directory for what it has read and found, so that each complex event is "
            "written once; use a new one for a new query",
            param_hint="--checkpoint",
        )
    if time is None:
        raise click.BadParameter(
            "events of a stream are sorted by their time: name its column", param_hint="--time"
        )


def meant(option: str, read: Callable[[T], object], text: T) -> None:
    """Parses the text of an option; mistakes in it are usage errors."""
    try:
        read(text)
    except DataError as error:
        text_of_error = f"{error.message}: {error.hint}" if error.hint else error.message
        raise click.BadParameter(text_of_error, param_hint=option) from None


@contextmanager
def asked_to_stop(stop: Callable[[], None] | None = None) -> Iterator[list[int]]:
    """A list of stop signals, at which `stop` is called; only the second one interrupts."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        if stop is not None:
            stop()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
