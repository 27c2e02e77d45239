"""Many texts of JSON as columns of Arrow, without creating Python objects for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from estero.local.columns import texts_as

_SHORT: Final = 512
"""The largest size of texts that can contain neither deep nesting nor a number too long for Python."""
_DEEPEST: Final = 500
_LONG_NUMBER: Final = re.compile(rb"\d{4000}")
_INFINITE: Final = re.compile(rb"[:,\[]\s*-?Inf")
_EXACT: Final = 2.0**53
"""The number from which on not every integer is a float."""


def read_block(texts: Sequence[bytes], schema: pa.Schema) -> list[pa.Array] | None:
    """The columns of texts; None if each has to be read separately, or if reading them together is slower.

    Arrow accepts what Python's `json` accepts, value by value, or the whole block is refused; texts that only
    Arrow would accept are refused here. The result is thus that of reading them one by one, or None.
    """
    read = [_read_as(field.type) for field in schema]
    if None in read or len(set(schema.names)) < len(schema):
        return None
    block = b"\n".join(texts)
    if not _is_one_each(block, len(texts)) or not _is_plain(block, texts):
        return None
    try:
        block.decode()
        table = pa.json.read_json(
            pa.BufferReader(block),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pa.json.ParseOptions(
                explicit_schema=pa.schema(list(zip(schema.names, read, strict=True))),
                unexpected_field_behavior="ignore",
            ),
        )
        if table.num_rows != len(texts):
            return None
        return [_as(table.column(field.name).combine_chunks(), field.type) for field in schema]
    except (pa.ArrowException, ValueError):
        return None


def _is_one_each(block: bytes, number: int) -> bool:
    r"""Whether each text, between two newlines, begins and ends as an object.

    Then none can go on in the next one: what is open there is no array, object or string, since in none of
    these may ``}\n{`` stand. So with as many objects as texts, each text is one object.
    """
    return (
        block[:1] == b"{" and block[-1:] == b"}" and block.count(b"\n") == block.count(b"}\n{") == number - 1
    )


def _is_plain(block: bytes, texts: Sequence[bytes]) -> bool:
    """Whether a block contains nothing that Arrow accepts and Python refuses."""
    if b"Inf" in block and _INFINITE.search(block):
        return False
    return max(map(len, texts)) <= _SHORT or all(
        text.count(b"{") + text.count(b"[") <= _DEEPEST and not _LONG_NUMBER.search(text)
        for text in texts
        if len(text) > _SHORT
    )


def _read_as(kind: pa.DataType) -> pa.DataType | None:
    """The type in which Arrow reads values as strictly as `values_as`; None if there is none."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_boolean(kind):
        return pa.bool_()
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return pa.string() if texts or pa.types.is_temporal(kind) or pa.types.is_decimal(kind) else None


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in its own type; raises the errors of `values_as`, also if only in doubt."""
    if pa.types.is_floating(kind) and pc.any(pc.greater_equal(pc.abs(column), _EXACT)).as_py():
        raise ValueError("an integer may be among them that is no float")
    if column.type == kind:
        return column
    return texts_as(column, kind) if pa.types.is_string(column.type) else column.cast(kind)
