"""Python's search for garbage, which is in the way where many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Looks for no garbage in the block, if anybody did before.

    To read and plan thousands of rules takes a quarter less time so. What is made in the block counts as old
    afterwards: else the next object would have all of it looked through.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()
            gc.enable()
