"""Python workers of Spark between tasks."""

from __future__ import annotations

import gc

_LOADED = 20_000
"""The number of objects from which they are those of modules and kernels, not left behind by tasks."""


def spare_collector() -> None:
    """Makes the garbage collector ignore what this process has loaded; called at the start of a task.

    PySpark collects all garbage of a worker after each of its tasks, and the next task waits for that. Estero
    loads 140,000 objects that are never garbage; traversing them takes 0.1 s, which is more than the rest of
    a micro-batch. Objects are traversed once, and then no more.
    """
    if len(gc.get_objects()) > _LOADED:
        gc.collect()
        gc.freeze()
