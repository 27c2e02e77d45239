"""How kernels are compiled: the one place with compiler options."""

from __future__ import annotations

import logging
from typing import Any

import numba
from numba.core import event

from estero.engine.kernel_files import keep_on_disk

_log = logging.getLogger("estero")

_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}


def kernel(function: Any) -> Any:
    """For kernels, which allocate nothing.

    `_nrt=False` leaves out reference counting: a kernel that takes its arrays as named tuples would count
    at every field it reads. Measured on `advance` with every event relevant: 2 million events/s with it,
    12 million without.
    """
    return keep_on_disk(numba.njit(**_OPTIONS)(function))


def inlined(function: Any) -> Any:
    """For the frequent small steps of a kernel: a call would copy the descriptors of thirty arrays.

    Rare steps are left to calls: inlining them as well made `advance` 5 % faster and tripled its compilation.
    """
    return keep_on_disk(numba.njit(**_OPTIONS, inline="always")(function))


class _Notice(event.Listener):
    """Says once that kernels are being compiled; what comes from the cache on disk is silent."""

    said = False

    def on_start(self, event: event.Event) -> None:
        """A compilation begins."""
        dispatcher = event.data["dispatcher"]
        if not self.said and dispatcher.py_func.__module__.startswith("estero."):
            self.said = True
            _log.warning("estero: compiling kernels, once; they are cached on disk for the next run")

    def on_end(self, event: event.Event) -> None:
        """Nothing is said at the end."""


event.register("numba:compile", _Notice())
