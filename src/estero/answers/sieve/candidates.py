"""The bound on the complex events with one end among which a strategy chooses, if each has to be checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from estero.engine.walk.matches import Matches
from estero.errors import EnvironmentProblem, LimitExceeded
from estero.language.tree.query import Strategy

VARIABLE: Final = "ESTERO_CANDIDATES"
"""The environment variable that sets the bound."""
ORDINARY: Final = 10_000_000
"""The default bound: checking that many takes about 20 seconds."""


def most_candidates() -> int:
    """The number of complex events with the same end after which a strategy gives up choosing."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return ORDINARY
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise EnvironmentProblem(
            f"{VARIABLE} is {text!r}: set it to a number of at least 1, or leave it unset"
        )
    return int(text)


def bounded(chunks: Iterable[Matches], most: int, strategy: Strategy, asked: str | None) -> Iterator[Matches]:
    """The same chunks; raises `LimitExceeded` where an end has more than `most` complex events.

    `asked` is the text of a filter that is checked for each of them.
    """
    end, before = -1, 0
    for chunk in chunks:
        last = int(chunk.end[-1])
        here = int(np.count_nonzero(chunk.end == last))
        before = before + here if last == end else here
        end = last
        if before > most:
            raise LimitExceeded(
                f"SELECT {strategy.value} has to choose from more than {most:,} complex events with the same "
                f"end{_because(asked)}: make the window shorter, let steps leave nothing out "
                "(as A+[NOT A] does), or allow more by setting the variable "
                f"{VARIABLE} of the environment"
            )
        yield chunk


def _because(asked: str | None) -> str:
    return "" if asked is None else f", because the filter {asked} is checked for each of them"
