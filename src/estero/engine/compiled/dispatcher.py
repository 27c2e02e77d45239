"""How kernels are compiled: the one place with compiler options."""

from __future__ import annotations

import gc
import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from numba.core import event, sigutils, types
from numba.core.registry import CPUDispatcher

from estero.engine.compiled.background import BACKGROUND
from estero.engine.compiled.kernel_compiler import KernelCompiler
from estero.engine.compiled.kernel_files import kernel_cache
from estero.engine.compiled.pool_types import is_pool, pool_type
from estero.engine.patience import patience

_log = logging.getLogger("estero")

_OPTIONS: dict[str, Any] = {"nopython": True, "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
"""`_nrt=False` leaves out reference counting: a kernel that takes its arrays as named tuples would count at
every field it reads. Measured on `advance` with every event relevant: 2 million events/s with it, 12 million
without."""


class _Part(CPUDispatcher):
    """A kernel as other kernels call it: compiled with each of these, and not by itself.

    Signed integers of all widths are of 64 bits, so that there is one part for all of them. Nothing calls it
    with keywords.
    """

    def __init__(self, function: Any, **options: bool) -> None:
        options = {**_OPTIONS, "no_cpython_wrapper": True, **options}
        super().__init__(function, targetoptions=options, pipeline_class=KernelCompiler)
        self._templates: dict[tuple[Any, ...], Any] = {}

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """See Numba's dispatcher."""
        kinds = tuple(map(_widened, args))
        if kinds not in self._templates:
            self._templates[kinds] = super().get_call_template(kinds, kws)
        return self._templates[kinds]

    def compile(self, sig: Any) -> Any:
        """See Numba's dispatcher; the lock and the timers are those of the kernel that this is a part of."""
        args, _ = sigutils.normalize_signature(sig)
        if args not in self.overloads:
            with self._compiling_counter:
                self.add_overload(self._compiler.compile(args, None))
        return self.overloads[args].entry_point

    def add_overload(self, cres: Any) -> None:
        """See Numba's dispatcher; this one is never called from Python."""
        self.overloads[tuple(cres.signature.args)] = cres


def _widened(kind: Any) -> Any:
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind


class Dispatcher(CPUDispatcher):
    """A compiled kernel as Python calls it.

    What is not on disk is left to another process as long as there is patience, and `interpreted` takes the
    call. `part` is what it is to the compiler of other kernels.
    """

    def __init__(self, function: Any, interpreted: Any, **options: bool) -> None:
        super().__init__(function, targetoptions=_OPTIONS, pipeline_class=KernelCompiler)
        self._cache = kernel_cache(function)
        self._interpreted = interpreted
        self._part_options = options

    @cached_property
    def part(self) -> _Part:
        """What compilers of other kernels see."""
        return _Part(self.py_func, **self._part_options)

    def compile(self, sig: Any) -> Any:
        """See Numba's dispatcher. Looking for garbage would take a sixth of the time, and find little."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            if collects:
                gc.enable()

    def codes(self) -> dict[Any, Any]:
        """All code that is on disk, by its key."""
        found: dict[Any, Any] = self._cache.codes()
        return found

    def receive(self, codes: Mapping[Any, Any]) -> None:
        """Takes code that was compiled elsewhere, by its key."""
        self._cache.receive(codes)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """See Numba's dispatcher, which asks this for a function to call."""
        if patience.is_left:
            signature = tuple(map(self.typeof_pyval, args))
            if signature not in self.overloads and not self._cache.has(signature, self.targetctx):
                BACKGROUND.compile(self.py_func, signature)
                return self._interpreted
        return super()._compile_for_args(*args, **kws)

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
