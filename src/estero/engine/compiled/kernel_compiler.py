"""What compiling a kernel is: fewer passes than Numba makes of any function, and one library of code for all.

A kernel calls smaller ones. Numba compiles each of these to machine code as if it was called from Python,
too, and then links it into its callers and optimises everything again. Here a *part* stays what it is after
lowering, and is optimised where it is linked. Passes are left out that are for what kernels have not:
closures, generators, objects, references that are counted, exceptions.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, _LowerResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

_OPTIMISATION: dict[str, Any] = {"opt": 2, "loop_vectorize": False, "slp_vectorize": False}
"""Kernels are branches and look-ups, of which nothing can be vectorised."""


_SIGNATURES: dict[tuple[Any, tuple[Any, ...]], Any] = {}
"""Of operators and functions that Numba brings, by the types of their arguments."""


class _Typing:
    """Numba's typing context, which remembers what it was asked.

    Numba tries everything that is ever meant by an operator, from sets to ufuncs, each time it sees one.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """See Numba's context."""
        if kws or not isinstance(func, types.Function):
            return self._context.resolve_function_type(func, args, kws)
        call = func, tuple(args)
        if call not in _SIGNATURES:
            _SIGNATURES[call] = self._context.resolve_function_type(func, args, kws)
        return _SIGNATURES[call]


@register_pass(mutates_CFG=True, analysis_only=False)
class _TypeInference(NopythonTypeInference):
    """Numba IR → typed Numba IR."""

    _name = "kernel_types"

    def run_pass(self, state: Any) -> bool:
        """See Numba's pass."""
        context = state.typingctx
        state.typingctx = _Typing(context)
        try:
            return bool(super().run_pass(state))
        finally:
            state.typingctx = context


class _WholeLibrary(JITCodeLibrary):
    """The code of a kernel that is called from Python, with all its parts: optimised in one go."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout  # noqa: SLF001 - as the method that this replaces

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager(**_OPTIMISATION)  # noqa: SLF001 - as above
        with self._recorded_timings.record("Module passes", builder):
            passes.run(self._final_module, builder)


class _PartLibrary(_WholeLibrary):
    """The code of a part, for other libraries; there is nothing in it to be called."""

    def finalize(self) -> None:
        """Links what the part calls; nothing is optimised, and no machine code made."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """Typed Numba IR → LLVM IR in a library, and for whole kernels → machine code."""

    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        """See Numba's pass; what is not called from Python (`no_cpython_wrapper`) is a part."""
        is_part = state.flags.no_cpython_wrapper
        library = _PartLibrary if is_part else _WholeLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        if is_part:
            state.flags = state.flags.copy()
            state.flags.no_compile = True
        super().run_pass(state)
        if is_part:
            lowered, name = state["cr"], object()
            state.library.finalize()
            state.targetctx.insert_user_function(name, lowered.fndesc, [state.library])
            state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=name, env=lowered.env)
        return True


class KernelCompiler(CompilerBase):
    """The passes from a Python function to the code of a kernel."""

    def define_pipelines(self) -> list[PassManager]:
        """One pipeline."""
        passes = PassManager("kernel")
        for each, what in (
            (TranslateByteCode, "bytecode to Numba IR"),
            (FixupArgs, "arguments"),
            (IRProcessing, "Numba IR"),
            (DeadBranchPrune, "what is not compiled where an argument is None"),
            (GenericRewrites, "constant indices"),
            (ReconstructSSA, "single assignments"),
            (_TypeInference, "types"),
            (PreLowerStripPhis, "no phi nodes"),
            (_Lowering, "LLVM IR"),
            (NoPythonBackend, "the result"),
        ):
            passes.add_pass(each, what)
        passes.finalize()
        return [passes]
