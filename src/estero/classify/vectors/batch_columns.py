"""The columns of one Arrow batch as NumPy arrays of the numbers that expressions compare, read in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import array_of, known_in, numbers_in
from estero.classify.vectors.arrow_types import is_converted, value_type
from estero.classify.vectors.taking import dictionary_decoded
from estero.engine.int64 import GREATEST

Mask = NDArray[np.bool_]

MICROSECONDS: Final[Mapping[str, int]] = {"s": 10**6, "ms": 10**3, "us": 1}
DAY: Final = 86_400 * 10**6


class OddValueError(Exception):
    """Raised for a batch with a value that only DuckDB can interpret."""


class BatchColumns:
    """The columns of a batch, each converted to an array once; `masks` are known results of conditions."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self._plain: dict[str, pa.Array] = {}
        self._known: dict[str, Mask | None] = {}
        self._nulls: dict[pa.DataType, pa.Array] = {}
        self.masks: dict[object, Mask] = {}

    def array(self, name: str) -> pa.Array:
        """The column as it came, except that views are converted."""
        array = self._plain.get(name)
        if array is None:
            array = self._plain[name] = without_views(self.batch.column(name))
        return array

    def is_null(self, name: str) -> bool:
        """Whether all values of the column are NULL."""
        array = self.batch.column(name)
        return bool(array.null_count == len(array))

    def nulls(self, kind: pa.DataType) -> pa.Array:
        """A column of NULLs of this type, the same object at each call."""
        if kind not in self._nulls:
            self._nulls[kind] = pa.nulls(self.batch.num_rows, kind)
        return self._nulls[kind]

    def decoded(self, name: str) -> pa.Array:
        """The column without a dictionary."""
        array = self.array(name)
        if isinstance(array, pa.DictionaryArray):
            array = self._plain[name] = dictionary_decoded(array)
        return array

    def known(self, name: str) -> Mask | None:
        """The mask of rows in which the column is not NULL; None if it never is."""
        if name not in self._known:
            array = self.array(name)
            encoded = isinstance(array, pa.DictionaryArray) and array.dictionary.null_count
            array = self.decoded(name) if encoded else array
            self._known[name] = known_in(array) if array.null_count else None
        return self._known[name]

    def checked(self, name: str) -> NDArray[Any]:
        """The numbers of a column; raises `OddValueError` if DuckDB has no 64-bit form of one."""
        array = self.decoded(name)
        numbers = stored(array)
        most = _most(array.type)
        if most is not None and numbers.size:
            odd = numbers.max() > most or (most < GREATEST and numbers.min() < -most)
            if odd:
                raise OddValueError
        return numbers

    def check_converted(self) -> None:
        """Raises `OddValueError` for a value that DuckDB could not read at all."""
        for field in self.batch.schema:
            if is_converted(field.type):
                self.checked(field.name)

    def ticks(self, name: str) -> NDArray[np.int64]:
        """The integers, or the instants in ticks, of a column as 64-bit integers.

        Raises `OddValueError` if one has none, because it is infinite or too large.
        """
        numbers, kind = self.checked(name), self.decoded(name).type
        if pa.types.is_timestamp(kind) and kind.unit in ("us", "ns"):
            if numbers.size and (numbers.max() == GREATEST or numbers.min() <= -GREATEST):
                raise OddValueError
            return numbers
        factor = 1
        if pa.types.is_timestamp(kind):
            factor = MICROSECONDS[kind.unit]
        elif pa.types.is_date(kind):
            factor = DAY
        wide = numbers.astype(np.int64, copy=False)
        return wide if factor == 1 else wide * factor


def stored(array: pa.Array) -> NDArray[Any]:
    """The stored numbers, instants and truth values, including those under NULL; read in place.

    >>> stored(pa.array([1, None, 3], pa.int8()))[::2].tolist(), stored(pa.array([True, False])).tolist()
    ([1, 3], [1, 0])
    """
    kind = array.type
    if pa.types.is_boolean(kind):
        bits = (
            array
            if not array.null_count
            else pa.Array.from_buffers(kind, len(array), [None, array.buffers()[1]], offset=array.offset)
        )
        return numbers_in(bits.cast(pa.uint8()))
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    dtype = np.dtype(f"{letter}{kind.bit_width // 8}")
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, array.offset + len(array))[array.offset :]


def without_views(array: pa.Array) -> pa.Array:
    """The strings in a form that Arrow's functions accept, unlike views; OddValueError for too many."""
    if isinstance(array, pa.DictionaryArray):
        if not pa.types.is_string_view(array.type.value_type):
            return array
        return pa.DictionaryArray.from_arrays(array.indices, without_views(array.dictionary))
    try:
        return array.cast(pa.string()) if pa.types.is_string_view(array.type) else array
    except pa.ArrowInvalid as error:
        raise OddValueError from error


def with_nulls(numbers: NDArray[Any], known: Mask | None) -> pa.Array:
    """The numbers as an array of Arrow, with NULL where they are not known.

    >>> with_nulls(np.array([1, 2]), np.array([True, False])).to_pylist()
    [1, None]
    """
    if known is None or known.all():
        return array_of(numbers)
    valid = pa.py_buffer(np.packbits(known, bitorder="little"))
    values = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), numbers.size, [valid, values])


def is_odd_number(kind: pa.DataType) -> bool:
    """Whether a type has numbers that DuckDB cannot hold in 64 bits."""
    return _most(value_type(kind)) is not None


def _most(kind: pa.DataType) -> int | None:
    """The largest number of a type, in absolute value, that DuckDB reads in 64 bits; None for any."""
    if pa.types.is_uint64(kind):
        return GREATEST
    if pa.types.is_timestamp(kind) and kind.unit in ("s", "ms"):
        return GREATEST // MICROSECONDS[kind.unit]
    if pa.types.is_date(kind):
        return GREATEST // DAY
    return None
