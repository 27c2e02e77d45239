"""Conditions on one event as masks over the rows of a batch, with the same meaning as in SQL.

A condition is compiled for the rows in which it is true, and for those in which it is false; if it is
unknown, it is in neither. So masks express three-valued logic: NOT changes which of the two is needed, and
for falsehood AND and OR are exchanged. Floats have one order, with NaN last and equal to itself.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.classify.arrays import numbers_in, texts_of
from estero.classify.vectors.batch_columns import BatchColumns, Mask
from estero.language.tree.expressions import COMPARED, ComparisonOperator


class Condition(ABC):
    """A condition that selects rows."""

    @abstractmethod
    def rows(self, columns: BatchColumns) -> Mask:
        """The rows in which it holds."""


def rows_of(condition: Condition, columns: BatchColumns) -> Mask:
    """The rows in which a condition holds, evaluated once per batch; not to be modified."""
    mask = columns.masks.get(condition)
    if mask is None:
        mask = columns.masks[condition] = condition.rows(columns)
    return mask


@dataclass(frozen=True, slots=True)
class Constant(Condition):
    """All rows, or none."""

    holds: bool

    def rows(self, columns: BatchColumns) -> Mask:
        return np.full(columns.batch.num_rows, self.holds)


@dataclass(frozen=True, slots=True)
class Joined(Condition):
    """The rows in which all `parts` hold, or some (`some`)."""

    parts: tuple[Condition, ...]
    some: bool

    def rows(self, columns: BatchColumns) -> Mask:
        join = operator.or_ if self.some else operator.and_
        return reduce(join, (rows_of(part, columns) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Known(Condition):
    """The rows in which a column is not NULL, or is NULL (`missing`)."""

    column: str
    missing: bool = False

    def rows(self, columns: BatchColumns) -> Mask:
        known = columns.known(self.column)
        if known is None:
            return np.full(columns.batch.num_rows, not self.missing)
        return ~known if self.missing else known


@dataclass(frozen=True, slots=True)
class NumberTest(Condition):
    """The rows in which this comparison of the number stored in a column with a constant holds."""

    column: str
    operator: ComparisonOperator
    constant: Any

    def rows(self, columns: BatchColumns) -> Mask:
        numbers = columns.checked(self.column)
        if isinstance(self.constant, float):
            test = _FLOAT_TESTS[self.operator](numbers, np.float64(self.constant))
        else:
            test = COMPARED[self.operator](numbers, numbers.dtype.type(self.constant))
        known = columns.known(self.column)
        return test if known is None else test & known


@dataclass(frozen=True, slots=True)
class NumberList(Condition):
    """The rows in which the number stored in a column is one of a list, or none of it (`without`)."""

    column: str
    numbers: tuple[Any, ...]
    without: bool

    def rows(self, columns: BatchColumns) -> Mask:
        numbers = columns.checked(self.column)
        kind = np.float64 if numbers.dtype.kind == "f" else numbers.dtype  # floats are compared as doubles
        test = np.isin(numbers, np.array(self.numbers, kind), invert=self.without)
        known = columns.known(self.column)
        return test if known is None else test & known


class TextCondition(Condition):
    """A condition on a column of strings, evaluated once for each string of a dictionary."""

    __slots__ = ()

    column: str

    def rows(self, columns: BatchColumns) -> Mask:
        array = columns.array(self.column)
        if not isinstance(array, pa.DictionaryArray):
            return self.of_texts(array)
        if len(array.dictionary) > len(array):
            return self.of_texts(columns.decoded(self.column))
        test = np.append(self.of_texts(array.dictionary), False)
        mask: Mask = test.take(indices_of(array))
        return mask

    @abstractmethod
    def of_texts(self, texts: pa.Array) -> Mask:
        """The strings that satisfy the condition; NULL never does."""


@dataclass(frozen=True, slots=True)
class TextTest(TextCondition):
    """The rows in which this comparison of a string with a constant holds, in the order of code points."""

    column: str
    operator: ComparisonOperator
    text: str

    def of_texts(self, texts: pa.Array) -> Mask:
        (constant,) = texts_of([self.text], texts.type)
        return mask_of(ARROW_TESTS[self.operator](texts, constant))


@dataclass(frozen=True, slots=True)
class TextList(TextCondition):
    """The rows in which a string is one of a list, or none of it (`without`)."""

    column: str
    texts: frozenset[str]
    without: bool = False

    def of_texts(self, texts: pa.Array) -> Mask:
        test = mask_of(pc.is_in(texts, value_set=texts_of(sorted(self.texts), texts.type)))
        return mask_of(pc.is_valid(texts)) & ~test if self.without else test


def indices_of(values: pa.DictionaryArray) -> Any:
    """The index of each value; for NULL, the one after the last."""
    indices = values.indices
    if indices.null_count:
        (beyond,) = pa.Array.from_buffers(
            pa.int64(), 1, [None, pa.py_buffer(np.array([len(values.dictionary)]))]
        )
        indices = pc.fill_null(indices.cast(pa.int64()), beyond)
    return numbers_in(indices)


def mask_of(test: pa.Array) -> Mask:
    """The mask of the indexes at which a test is true."""
    if test.null_count:
        test = pc.and_(pc.is_valid(test), _without_nulls(test))
    return numbers_in(test.cast(pa.uint8())).view(np.bool_)


def _without_nulls(test: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(test.type, len(test), [None, test.buffers()[1]], offset=test.offset)


_FLOAT_TESTS: Final[Mapping[str, Callable[[Any, Any], Mask]]] = {
    **COMPARED,
    ">": lambda numbers, constant: ~(numbers <= constant),
    ">=": lambda numbers, constant: ~(numbers < constant),
}
"""The comparisons of floats; NaN, which is greater than every constant, is neither less nor equal."""
ARROW_TESTS: Final[Mapping[str, Callable[[pa.Array, pa.Scalar], pa.Array]]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
"""The comparisons of Arrow, which are NULL for NULL."""
