"""Kernels → LLVM IR, by Numba's public extension API.

A pool, a column and a cursor are each one address to a kernel (see `estero.engine.kernels`); this module
defines how their fields and items are read. To Numba itself a named tuple is all of its fields, and an array
is seven numbers: a kernel over thirty arrays would have more than two hundred arguments.
"""

from __future__ import annotations

import operator
import os
from types import FunctionType
from typing import Any

os.environ["NUMBA_OPT"] = "0"  # optimized once, with all functions that it calls, for the target processors

from llvmlite import ir
from numba import cfunc, from_dtype, njit, types
from numba.core.typing.templates import AttributeTemplate  # what `infer_getattr` asks for
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    type_callable,
)

from estero.engine import kernels

_WORD = ir.IntType(64)


class ColumnType(types.Type):
    """An array: `dtype`, a Numba type, and the number of dimensions."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(f"Column({dtype}, {ndim})")


class PoolType(types.BaseTuple):
    """A pool's class; it is also a tuple, to be unpacked."""

    def __init__(self, fields: Any) -> None:
        self.places: dict[str, tuple[int, Any]] = {}
        place = 0
        for name, kind in kernels.kinds_of(fields).items():
            self.places[name] = place, type_of(kind)
            place += kind.words if isinstance(kind, kernels.Column) else 1
        self.types = tuple(kind for _, kind in self.places.values())
        super().__init__(f"{fields.__module__}.{fields.__qualname__}")

    def __getitem__(self, number: int) -> Any:
        return self.types[number]

    def __len__(self) -> int:
        return len(self.types)

    def __iter__(self) -> Any:
        return iter(self.types)


class CursorType(types.Type):
    """A cursor's class."""

    def __init__(self, places: tuple[str, ...]) -> None:
        self.places = {name: place for place, name in enumerate(places)}
        super().__init__(f"Cursor({', '.join(places)})")


_SCALARS = {
    kernels.INT: types.int64,
    kernels.UINT: types.uint64,
    kernels.FLAG: types.boolean,
    None: types.none,
}


def type_of(kind: Any) -> Any:
    """The Numba type of an argument or a field."""
    if isinstance(kind, kernels.Column):
        return ColumnType(from_dtype(kind.dtype), kind.ndim)
    if kind in _SCALARS:
        return _SCALARS[kind]
    return CursorType(kind.places) if issubclass(kind, kernels.Cursor) else PoolType(kind)


@register_model(PoolType)
@register_model(ColumnType)
@register_model(CursorType)
class _Address(models.PrimitiveModel):
    """The address of a block."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD.as_pointer())


def _at(builder: Any, block: Any, place: int) -> Any:
    return builder.gep(block, [_WORD(place)], inbounds=True)


def _word(builder: Any, block: Any, place: int) -> Any:
    """A word of a block, which does not change while a kernel runs."""
    word = builder.load(_at(builder, block, place))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


# --------------------------------------------------------------------------------------------- fields


@infer_getattr
class _PoolAttribute(AttributeTemplate):
    key = PoolType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return kind.places[name][1] if name in kind.places else None


@lower_getattr_generic(PoolType)
def _field(context: Any, builder: Any, kind: Any, block: Any, name: str) -> Any:  # noqa: ARG001
    place, field = kind.places[name]
    if isinstance(field, ColumnType):
        return _at(builder, block, place)
    word = _word(builder, block, place)
    if isinstance(field, PoolType):
        return builder.inttoptr(word, _WORD.as_pointer())
    return builder.trunc(word, ir.IntType(1)) if field == types.boolean else word


@lower_builtin("static_getitem", PoolType, types.IntegerLiteral)
def _numbered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    return _field(context, builder, kind, args[0], list(kind.places)[args[1]])


@infer_getattr
class _CursorAttribute(AttributeTemplate):
    key = CursorType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return types.int64 if name in kind.places else None


@lower_getattr_generic(CursorType)
def _place(context: Any, builder: Any, kind: Any, block: Any, name: str) -> Any:  # noqa: ARG001
    return builder.load(_at(builder, block, kind.places[name]))


@lower_setattr_generic(CursorType)
def _put_place(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    kind, value_kind = sig.args
    value = context.cast(builder, args[1], value_kind, types.int64)
    builder.store(value, _at(builder, args[0], kind.places[name]))


# -------------------------------------------------------------------------------------------- columns


@infer_getattr
class _ColumnAttribute(AttributeTemplate):
    key = ColumnType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        if name == "size":
            return types.intp
        return types.UniTuple(types.intp, kind.ndim) if name == "shape" else None


@lower_getattr_generic(ColumnType)
def _lengths(context: Any, builder: Any, kind: Any, column: Any, name: str) -> Any:
    lengths = [_word(builder, column, 1 + axis) for axis in range(kind.ndim)]
    if name == "shape":
        return context.make_tuple(builder, types.UniTuple(types.intp, kind.ndim), lengths)
    size = lengths[0]
    for length in lengths[1:]:
        size = builder.mul(size, length)
    return size


@type_callable(operator.getitem)
def _type_of_item(context: Any) -> Any:  # noqa: ARG001
    def item(column: Any, index: Any) -> Any:
        return column.dtype if _is_index(column, index) else None

    return item


@type_callable(operator.setitem)
def _type_of_put_item(context: Any) -> Any:  # noqa: ARG001
    def put_item(column: Any, index: Any, value: Any) -> Any:  # noqa: ARG001
        return types.none if _is_index(column, index) else None

    return put_item


def _is_index(column: Any, index: Any) -> bool:
    if not isinstance(column, ColumnType):
        return False
    if column.ndim == 1:
        return isinstance(index, types.Integer)
    return (
        isinstance(index, types.BaseTuple)
        and len(index) == column.ndim
        and all(isinstance(part, types.Integer) for part in index)
    )


def _item(builder: Any, context: Any, kind: ColumnType, column: Any, index_kind: Any, index: Any) -> Any:
    """The address of an item."""
    if kind.ndim == 1:
        place = _as_word(builder, index_kind, index)
    else:
        parts = [builder.extract_value(index, axis) for axis in range(kind.ndim)]
        place = _as_word(builder, index_kind[0], parts[0])
        for axis in range(1, kind.ndim):
            place = builder.mul(place, _word(builder, column, 1 + axis))
            place = builder.add(place, _as_word(builder, index_kind[axis], parts[axis]))
    data = context.get_data_type(kind.dtype)
    items = builder.inttoptr(_word(builder, column, 0), data.as_pointer())
    return builder.gep(items, [place], inbounds=True)


def _as_word(builder: Any, kind: Any, index: Any) -> Any:
    if index.type == _WORD:
        return index
    return builder.sext(index, _WORD) if kind.signed else builder.zext(index, _WORD)


@lower_builtin(operator.getitem, ColumnType, types.Any)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind, index_kind = sig.args
    place = _item(builder, context, kind, args[0], index_kind, args[1])
    return context.data_model_manager[kind.dtype].from_data(builder, builder.load(place))


@lower_builtin(operator.setitem, ColumnType, types.Any, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind, index_kind, value_kind = sig.args
    place = _item(builder, context, kind, args[0], index_kind, args[1])
    value = context.cast(builder, args[2], value_kind, kind.dtype)
    builder.store(context.data_model_manager[kind.dtype].as_data(builder, value), place)
    return context.get_dummy_value()


# ------------------------------------------------------------------------------------------ functions


class Lowering:
    """The functions in Numba's form, each made once."""

    def __init__(self) -> None:
        self._steps: dict[Any, Any] = {}

    def lower(self, kernel: kernels.Variant) -> tuple[str, str]:
        """The IR of a kernel with all that it calls, and its name in it."""
        kinds = tuple(map(type_of, kernel.kinds))
        returned = types.int64 if returns_a_value(kernel.function) else types.void
        lowered = cfunc(returned(*kinds), error_model="numpy")(self._linked(kernel.function))
        return lowered.inspect_llvm(), lowered.native_name

    def _step(self, function: Any) -> Any:
        if function not in self._steps:
            left_out = getattr(function, "is_left_out", False)
            self._steps[function] = njit(
                _nothing if left_out else self._linked(function),
                error_model="numpy",
                forceinline=function.is_inlined,
                no_cpython_wrapper=True,
                no_cfunc_wrapper=True,
            )
        return self._steps[function]

    def _linked(self, function: Any) -> Any:
        """The function, linked to Numba's forms of the functions that it calls."""
        names = dict(function.__globals__)
        for name in function.__code__.co_names:
            called = names.get(name)
            if isinstance(called, kernels.Kernel):
                called = called.function
                called.is_inlined = getattr(called, "is_inlined", False)
            if hasattr(called, "is_inlined"):
                names[name] = self._step(called)
        return FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )


def _nothing(*arguments: Any) -> None:
    """Replaces the checks that machine code leaves out."""


def returns_a_value(function: Any) -> bool:
    """Whether a function returns anything but None."""
    import ast
    import inspect
    import textwrap

    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return any(isinstance(part, ast.Return) and part.value is not None for part in ast.walk(tree))
