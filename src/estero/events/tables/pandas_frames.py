"""Pandas frames → Arrow tables, or an error that names the first row which does not fit.

Arrow would change some values: a truth value among floats becomes 1.0, a string among bytes becomes bytes, a
datetime among dates loses its hour. So values of several kinds in one column are an error. NaN, None, NaT and
NA, which pandas calls missing, become NULL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_ALIKE = frozenset({"string", "integer", "floating", "boolean", "bytes", "empty", "mixed-integer-float"})
"""The pandas names for columns of objects in which Arrow finds one kind of values, or none."""
_TIMES = frozenset({"datetime", "datetime64", "timedelta", "timedelta64"})
_KINDS: Mapping[str, tuple[type, ...]] = {
    "a truth value": (bool, np.bool_),
    "a number": (Real, Decimal, np.integer, np.floating),
    "a string": (str,),
    "bytes": (bytes,),
    "a date": (dt.date,),
    "a time": (np.datetime64,),
    "a duration": (dt.timedelta, np.timedelta64),
    "a struct": (dict,),
    "a list": (list, tuple, set, frozenset, np.ndarray),
}
"""The names of values, each by the first of these types that it has; datetimes mention their zone."""
_MISFITS = (pa.ArrowException, OverflowError, TypeError, ValueError)
_LETTERS = 40
_SAMPLE, _FEW = 1024, 64
"""The length of the sample, and the most distinct strings in it for a column to be encoded."""


def table_of_frame(frame: pd.DataFrame) -> pa.Table:
    """The named levels of the index of a frame, then its columns.

    Names are made strings; sparse columns are made dense. Raises `DataError` for columns with names of
    several levels, and for values that are of several kinds or unknown to Arrow.
    """
    import pandas as pd

    if isinstance(frame.columns, pd.MultiIndex):
        raise DataError(
            f"the columns of this frame have names of {frame.columns.nlevels} levels",
            hint="give each one name: frame.columns = ['_'.join(map(str, each)) for each in frame.columns]",
        )
    columns = [*_of_index(frame), *((str(name), column) for name, column in frame.items())]
    names = [name for name, _ in columns]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise DataError(f"two columns are named {name!r}", hint="rename one of them")
    return pa.Table.from_arrays([_array(name, column) for name, column in columns], names=names)


def hint_at_index(frame: pd.DataFrame) -> str:
    """A hint if a missing column may be an index without a name; else ""."""
    import pandas as pd

    if frame.index.nlevels > 1 or frame.index.name is not None or isinstance(frame.index, pd.RangeIndex):
        return ""
    return "the index of the frame has no name: frame.rename_axis('name') makes it a column"


def _of_index(frame: pd.DataFrame) -> list[tuple[str, pd.Series[Any]]]:
    """The levels of the index that have names; a column of the same name takes precedence."""
    taken = set(map(str, frame.columns))
    named = [(place, str(name)) for place, name in enumerate(frame.index.names) if name is not None]
    return [
        (name, frame.index.get_level_values(place).to_series()) for place, name in named if name not in taken
    ]


def _array(name: str, column: pd.Series[Any]) -> pa.Array | pa.ChunkedArray:
    import pandas as pd

    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    if isinstance(column.dtype, pd.CategoricalDtype) and _inferred(column.cat.categories) not in _ALIKE:
        column = column.astype(object)
    if column.dtype == np.dtype(object):
        if (encoded := _encoded(column.to_numpy())) is not None:
            return encoded
        inferred = _inferred(column)
        if inferred not in _ALIKE:
            _check_kinds(name, column)
        if inferred in _TIMES:  # Arrow would truncate their nanoseconds in objects
            column = column.infer_objects()
    try:
        return pa.array(column, from_pandas=True)
    except _MISFITS as error:
        raise _misfit(name, column) from error


def _encoded(values: NDArray[np.object_]) -> pa.DictionaryArray | None:
    """Strings with few distinct values, as a dictionary; None for other values.

    Measured for 50,000 strings, four of them different: 0.6 ms, and 1.5 ms as plain strings. Looking for one
    of them is faster, too.
    """
    import pandas as pd

    sample = values[:_SAMPLE]
    if len(values) == len(sample) or _inferred(sample) != "string" or len(pd.unique(sample)) > _FEW:
        return None
    try:
        indices, distinct = pd.factorize(values)
        if _inferred(distinct) == "string":
            places = pa.array(indices.astype(np.int32), mask=indices < 0)
            return pa.DictionaryArray.from_arrays(places, pa.array(distinct))
    except _MISFITS:  # a value without a hash, or half a character: it is named with its row, as ever
        return None
    return None


def _inferred(values: Any) -> str:
    import pandas as pd

    kind: str = pd.api.types.infer_dtype(values, skipna=True)
    return kind


def _check_kinds(name: str, column: pd.Series[Any]) -> None:
    """Raises `DataError` if a column holds values of several kinds."""
    first = ""
    for row, (value, missing) in enumerate(zip(column, column.isna(), strict=True), 1):
        kind = first if missing else _kind(value)
        first = first or kind
        if kind != first:
            raise DataError(
                f"{_shown(value)} is {kind}, but the value above it is {first}",
                row=row,
                column=name,
                hint=f"give the column values of one kind, such as frame[{name!r}].astype(str)",
            )


def _kind(value: object) -> str:
    """The kind of a value, in words."""
    if isinstance(value, dt.datetime):
        return "a time without a zone" if value.tzinfo is None else "a time with a zone"
    for kind, types in _KINDS.items():
        if isinstance(value, types):
            return kind
    return f"a value of type {type(value).__name__}"


def _misfit(name: str, column: pd.Series[Any]) -> DataError:
    """The error for a column that Arrow rejects, naming the first row without which it would not."""
    good, bad = 0, len(column)  # this many rows from the top can be read, and cannot
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            pa.array(column.iloc[:middle], from_pandas=True)
            good = middle
        except _MISFITS:
            bad = middle
    value = column.iloc[good]
    if isinstance(value, int):
        why = "does not fit into 64 bits" if good == 0 or abs(value) >= 1 << 63 else "is not exact as a float"
        return DataError(f"{_shown(value)} {why}", row=bad, column=name)
    return DataError(
        f"{_shown(value)} cannot be read with the values above it: it is {_kind(value)}",
        row=bad,
        column=name,
        hint="leave the column out, or make it numbers, strings or times",
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}…"
