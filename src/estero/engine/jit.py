"""How kernels are compiled: the one place with compiler options."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import Any

from numba.core import config, event, types
from numba.core.registry import CPUDispatcher

from estero.engine.kernel_compiler import KernelCompiler
from estero.engine.kernel_files import keep_on_disk
from estero.engine.pool_types import is_pool, pool_type

_log = logging.getLogger("estero")

_OPTIONS: dict[str, Any] = {"nopython": True, "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}


def kernel(function: Any) -> Any:
    """For kernels, which allocate nothing.

    `_nrt=False` leaves out reference counting: a kernel that takes its arrays as named tuples would count
    at every field it reads. Measured on `advance` with every event relevant: 2 million events/s with it,
    12 million without.
    """
    return function if config.DISABLE_JIT else keep_on_disk(_Kernel(function))


def inlined(function: Any) -> Any:
    """For the frequent small steps of a kernel: LLVM puts them in place of each call.

    Rare steps are left to calls. Types are worked out once for each step and not at each call, as they would
    be where Numba inlines.
    """
    return function if config.DISABLE_JIT else keep_on_disk(_Kernel(function, forceinline=True))


class _Part(CPUDispatcher):
    """A kernel as other kernels call it: compiled with each of these, and not by itself.

    Signed integers of all widths are of 64 bits, so that there is one part for all of them.
    """

    def __init__(self, function: Any, **options: bool) -> None:
        options = {**_OPTIONS, "no_cpython_wrapper": True, **options}
        super().__init__(function, targetoptions=options, pipeline_class=KernelCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """See Numba's dispatcher."""
        return super().get_call_template(tuple(map(_widened, args)), kws)

    def add_overload(self, cres: Any) -> None:
        """See Numba's dispatcher; this one is never called from Python."""
        self.overloads[tuple(cres.signature.args)] = cres


def _widened(kind: Any) -> Any:
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind


class _Kernel(CPUDispatcher):
    """A kernel as Python calls it; to the compiler of others it is a `_Part`."""

    def __init__(self, function: Any, **options: bool) -> None:
        super().__init__(function, targetoptions=_OPTIONS, pipeline_class=KernelCompiler)
        self._part_options = options

    @cached_property
    def _part(self) -> _Part:
        return _Part(self.py_func, **self._part_options)

    @property
    def _numba_type_(self) -> Any:
        return self._part._numba_type_

    def typeof_pyval(self, val: Any) -> Any:
        """The type of an argument; named tuples are pools."""
        if not is_pool(val):
            return super().typeof_pyval(val)
        kind = pool_type(val)
        self._types_active_call.add(kind)
        return kind


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
