"""Python workers of Spark between tasks."""

from __future__ import annotations

import gc

_LOADED = 20_000
"""More objects than this are not what tasks leave behind, but what modules and kernels consist of."""


def spare_collector() -> None:
    """Has the garbage collector leave alone what this process has loaded; for the begin of a task.

    PySpark collects all garbage of a worker after each of its tasks, and the next task waits for that. What
    Estero loads is 140,000 objects that are never garbage; looking through them takes 0.1 s, which is more
    than a micro-batch takes otherwise. Objects are looked through once, and then no more.
    """
    if len(gc.get_objects()) > _LOADED:
        gc.collect()
        gc.freeze()
