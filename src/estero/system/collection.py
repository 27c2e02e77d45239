"""Python's garbage collection, which is a hindrance where many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 10_000
"""The number of new objects from which it matters that the next collection would traverse them."""


@contextmanager
def without_collection() -> Iterator[None]:
    """Disables garbage collection in the block, if it was enabled.

    Reading and planning thousands of rules takes a quarter less time then. If many objects were made in the
    block, they count as old afterwards: otherwise the next object would cause all of them to be traversed.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if gc.get_count()[0] > _MANY and gc.get_freeze_count() == 0:  # the latter counts them one by one
                gc.freeze()
                gc.unfreeze()
            gc.enable()
