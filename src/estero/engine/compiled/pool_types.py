"""Named tuples of arrays as kernels see them: one pointer, to a block of addresses and lengths.

To Numba a named tuple is all of its fields, and an array is seven numbers: a kernel over thirty arrays would
have more than two hundred arguments, which every call of a small step hands on; compiling takes half as long
again that way. Here a named tuple is a *pool*: the address of a block that is filled when a kernel is called
from Python, with a word for each integer and, for each array, its address and its lengths. A field that is a
named tuple itself is a part of its block. The arrays have their items side by side (order C).

Indices are not counted from the end: a kernel must not have negative ones, and nothing checks that.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.extending import NativeValue, lower_builtin, lower_getattr_generic, register_model, unbox
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.np.numpy_support import from_dtype

_WORD = ir.IntType(64)
_BYTE = ir.IntType(8)
_HEAD = object.__basicsize__
"""Bytes before the address of the items in an array, which the lengths follow (`PyArrayObject`)."""
_LENGTHS = _HEAD + 16


class ColumnType(types.Type):
    """An array in a pool: `dtype`, a Numba type, and so many dimensions."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(f"Column({dtype}, {ndim})")

    @property
    def words(self) -> int:
        """What it takes of the block."""
        return 1 + self.ndim


class PoolType(types.BaseTuple):
    """A named tuple of arrays, integers and other such tuples."""

    def __init__(self, name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = fields
        self.types = tuple(kind for _, kind in fields)
        self.places: dict[str, tuple[int, Any]] = {}
        place = 0
        for field, kind in fields:
            self.places[field] = place, kind
            place += getattr(kind, "words", 1)
        self.words = place
        super().__init__(f"{name}({', '.join(f'{field}: {kind}' for field, kind in fields)})")

    def __getitem__(self, number: int) -> Any:
        return self.types[number]

    def __len__(self) -> int:
        return len(self.types)

    def __iter__(self) -> Any:
        return iter(self.types)


def pool_type(pool: Any) -> PoolType:
    """The type of a named tuple. Raises TypeError for a field that no pool can have."""
    fields = zip(pool._fields, map(_type_of, pool), strict=True)
    return PoolType(type(pool).__qualname__, tuple(fields))


def is_pool(value: Any) -> bool:
    """Whether kernels see a value as a pool."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _type_of(value: Any) -> Any:
    if is_pool(value):
        return pool_type(value)
    if isinstance(value, bool):
        return types.boolean
    if isinstance(value, int | np.integer):
        return types.int64
    if isinstance(value, np.ndarray) and value.flags.c_contiguous:
        return ColumnType(from_dtype(value.dtype), value.ndim)
    raise TypeError(f"a pool has no {type(value).__name__}")


@register_model(PoolType)
@register_model(ColumnType)
class _Address(models.PrimitiveModel):
    """A place in the block."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD.as_pointer())


# ------------------------------------------------------------------------------------------ from Python


@unbox(PoolType)
def _unboxed(kind: Any, pool: Any, context: Any) -> Any:
    block = cgutils.alloca_once(context.builder, _WORD, size=max(kind.words, 1))
    _fill(kind, pool, context, block, 0)
    return NativeValue(block)


def _fill(kind: PoolType, pool: Any, context: Any, block: Any, first: int) -> None:
    builder = context.builder
    for number, (name, field) in enumerate(kind.fields):
        place = first + kind.places[name][0]
        value = context.pyapi.tuple_getitem(pool, number)
        if isinstance(field, PoolType):
            _fill(field, value, context, block, place)
        elif isinstance(field, ColumnType):
            _put(builder, block, place, _read(builder, value, _HEAD))
            if field.ndim:
                lengths = builder.inttoptr(_read(builder, value, _LENGTHS), _WORD.as_pointer())
                for axis in range(field.ndim):
                    _put(builder, block, place + 1 + axis, builder.load(_at(builder, lengths, axis)))
        elif field == types.boolean:
            _put(builder, block, place, builder.zext(context.pyapi.object_istrue(value), _WORD))
        else:
            _put(builder, block, place, context.pyapi.long_as_longlong(value))


def _read(builder: Any, value: Any, offset: int) -> Any:
    """The word at so many bytes of a Python object."""
    place = builder.gep(builder.bitcast(value, _BYTE.as_pointer()), [_WORD(offset)])
    return builder.load(builder.bitcast(place, _WORD.as_pointer()))


def _at(builder: Any, block: Any, place: int) -> Any:
    return builder.gep(block, [_WORD(place)], inbounds=True)


def _put(builder: Any, block: Any, place: int, value: Any) -> None:
    builder.store(value, _at(builder, block, place))


# ------------------------------------------------------------------------------------------ in kernels


def _word(builder: Any, block: Any, place: int) -> Any:
    """A word of the block, which nothing changes while a kernel runs."""
    word = builder.load(_at(builder, block, place))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


@infer_getattr
class _PoolAttribute(AttributeTemplate):
    key = PoolType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return kind.places[name][1] if name in kind.places else None


@lower_getattr_generic(PoolType)
def _field(context: Any, builder: Any, kind: Any, block: Any, name: str) -> Any:  # noqa: ARG001
    place, field = kind.places[name]
    if isinstance(field, PoolType | ColumnType):
        return _at(builder, block, place)
    word = _word(builder, block, place)
    return builder.trunc(word, ir.IntType(1)) if field == types.boolean else word


@lower_builtin("static_getitem", PoolType, types.IntegerLiteral)
def _numbered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    return _field(context, builder, kind, args[0], kind.fields[args[1]][0])


@infer_getattr
class _ColumnAttribute(AttributeTemplate):
    key = ColumnType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        if name == "size":
            return types.intp
        return types.UniTuple(types.intp, kind.ndim) if name == "shape" else None


@lower_getattr_generic(ColumnType)
def _lengths(context: Any, builder: Any, kind: Any, column: Any, name: str) -> Any:  # noqa: ARG001
    lengths = [_word(builder, column, 1 + axis) for axis in range(kind.ndim)]
    if name == "shape":
        return cgutils.pack_array(builder, lengths)
    size = lengths[0]
    for length in lengths[1:]:
        size = builder.mul(size, length)
    return size


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:  # noqa: ARG002
        column, index = args
        if isinstance(column, ColumnType) and _is_index(column, index):
            return signature(column.dtype, column, types.unliteral(index))
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:  # noqa: ARG002
        column, index, value = args
        if isinstance(column, ColumnType) and _is_index(column, index):
            return signature(types.none, column, types.unliteral(index), types.unliteral(value))
        return None


def _is_index(column: ColumnType, index: Any) -> bool:
    if column.ndim == 1:
        return isinstance(index, types.Integer)
    return (
        isinstance(index, types.BaseTuple)
        and len(index) == column.ndim
        and all(isinstance(each, types.Integer) for each in index)
    )


def _item(builder: Any, context: Any, kind: ColumnType, column: Any, index_kind: Any, index: Any) -> Any:
    """The address of an item."""
    if kind.ndim == 1:
        place = _as_word(builder, index_kind, index)
    else:
        parts = cgutils.unpack_tuple(builder, index, kind.ndim)
        place = _as_word(builder, index_kind[0], parts[0])
        for axis in range(1, kind.ndim):
            place = builder.mul(place, _word(builder, column, 1 + axis))
            place = builder.add(place, _as_word(builder, index_kind[axis], parts[axis]))
    data = context.get_data_type(kind.dtype)
    items = _word(builder, builder.bitcast(column, data.as_pointer().as_pointer()), 0)
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
