"""Python workers of Spark between tasks."""

from __future__ import annotations

import gc

_LOADED = 20_000
"""The number of objects beyond which they are those of modules and kernels, not left behind by tasks."""


def spare_collector() -> None:
    """Has the garbage collector ignore what this process has loaded; called at the start of a task.

    PySpark collects all garbage of a worker after each of its tasks, and the next task waits for that. What
    Estero loads is 140,000 objects that are never garbage; looking through them takes 0.1 s, which is more
    than a micro-batch takes otherwise. Objects are looked through once, and then no more.
    """
    if len(gc.get_objects()) > _LOADED:
        gc.collect()
        gc.freeze()
