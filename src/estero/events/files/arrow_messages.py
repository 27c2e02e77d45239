"""What the messages of an Arrow file claim, compared with the bytes that are there before Arrow reads them.

Arrow allocates as many bytes as a message claims for its body, or a compressed buffer for what it unpacks to,
and it joins dictionaries that nobody has looked at. Here the metadata (flatbuffers, of which only what is
needed is read) is compared with the size of the file, and each dictionary is validated by itself.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from estero.events.tables.shown_types import has_within

MAGIC = b"ARROW1"
"""How a file begins and ends that has a footer; a stream does not."""

SCHEMA, DICTIONARY, RECORDS = 1, 2, 3
"""Kinds of messages."""

_CONTINUATION = -1
_PAIR = np.dtype([("first", "<i8"), ("second", "<i8")])
_BLOCK = np.dtype([("offset", "<i8"), ("metadata", "<i4"), ("", "<i4"), ("body", "<i8")])
_NOT_COMPRESSED = -1
_MOST_OF_A_BYTE = (255, 1 << 15)
"""What a byte unpacks to at most: by LZ4, by Zstandard (a block of 128 KB in four bytes)."""

_START = 1 << 17
"""What little there is may unpack to in any case."""


NOT_THERE = "its metadata refers to bytes outside of it"


class DamagedError(ValueError):
    """A file of Arrow claims something that cannot be."""


class _Table(NamedTuple):
    """A table of a flatbuffer; whatever lies outside of the buffer raises struct.error or ValueError."""

    data: bytes
    at: int

    def place(self, slot: int) -> int:
        """Where a field is; 0 where it is left out."""
        fields = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        if fields < 0:
            raise DamagedError(NOT_THERE)
        (size,) = struct.unpack_from("<H", self.data, fields)
        if 4 + 2 * slot >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self.data, fields + 4 + 2 * slot)
        return self.at + offset if offset else 0

    def number(self, slot: int, form: str) -> int:
        """A number, 0 where it is left out."""
        place = self.place(slot)
        return int(struct.unpack_from(form, self.data, place)[0]) if place else 0

    def table(self, slot: int) -> _Table | None:
        """A table of its own."""
        place = self.place(slot)
        return _Table(self.data, _followed(self.data, place)) if place else None

    def items(self, slot: int, kind: np.dtype[Any]) -> NDArray[Any]:
        """A vector of numbers or structs."""
        place = self.place(slot)
        if not place:
            return np.empty(0, kind)
        at = _followed(self.data, place)
        (count,) = struct.unpack_from("<I", self.data, at)
        if count * kind.itemsize > len(self.data) - at - 4:
            raise DamagedError(NOT_THERE)
        return np.frombuffer(self.data, kind, count, at + 4)

    def tables(self, slot: int) -> list[_Table]:
        """A vector of tables."""
        offsets = self.items(slot, np.dtype("<u4")).tolist()
        begin = _followed(self.data, self.place(slot)) + 4 if offsets else 0
        places = (begin + 4 * number for number in range(len(offsets)))
        return [_Table(self.data, place + offset) for place, offset in zip(places, offsets, strict=True)]


def _followed(data: bytes, place: int) -> int:
    return place + int(struct.unpack_from("<I", data, place)[0])


def _root(data: bytes) -> _Table:
    return _Table(data, _followed(data, 0))


class Message(NamedTuple):
    """One message: its `kind`, its metadata, and where its body begins and ends."""

    kind: int
    metadata: _Table
    body: int
    end: int

    @property
    def header(self) -> _Table:
        """What is said of its kind."""
        header = self.metadata.table(2)
        if header is None:
            raise DamagedError("a message says nothing")
        return header


class Pieces:
    """The bytes of a file, or of something like one, read piece by piece."""

    def __init__(self, opened: BinaryIO) -> None:
        self._opened = opened
        self.size = opened.seek(0, os.SEEK_END)

    def read(self, offset: int, count: int) -> bytes:
        """Some bytes; raises `DamagedError` where they are not all there."""
        if not 0 <= offset <= self.size or not 0 <= count <= self.size - offset:
            raise DamagedError(
                f"it is cut off: {offset + count:,} bytes are expected, and {self.size:,} are there"
            )
        self._opened.seek(offset)
        return self._opened.read(count)

    def number(self, offset: int, form: str) -> int:
        """One number."""
        return int(struct.unpack(form, self.read(offset, struct.calcsize(form)))[0])

    def begins_a_stream(self) -> bool:
        """Whether the first bytes can be those of a stream."""
        return self.size >= 8 and (
            self.number(0, "<i") == _CONTINUATION or 0 < self.number(0, "<i") < self.size
        )

    def message(self, offset: int) -> Message | None:
        """The message that begins there; None at the end of a stream."""
        if offset >= self.size:
            return None
        length, begin = self.number(offset, "<i"), offset + 4
        if length == _CONTINUATION:
            length, begin = self.number(begin, "<i"), begin + 4
        if length == 0:
            return None
        metadata = _root(self.read(begin, length))
        body, length = begin + length, metadata.number(3, "<q")
        self._check_there(body, length)
        return Message(metadata.number(1, "<B"), metadata, body, body + length)

    def footer(self) -> _Table:
        """The footer of a file that has one."""
        end = self.size - len(MAGIC) - 4
        length = self.number(end, "<i")
        return _root(self.read(end - length, length))

    def _check_there(self, offset: int, length: int) -> None:
        if not 0 <= length <= self.size - offset:
            raise DamagedError(
                f"a message says that it has {length:,} bytes, and {self.size - offset:,} are left"
            )

    def check_records(self, records: _Table, message: Message) -> None:
        """Raises `DamagedError` unless the buffers that a batch claims are inside its body."""
        rows = records.number(0, "<q")
        nodes, buffers = records.items(1, _PAIR), records.items(2, _PAIR)
        if rows < 0 or (nodes["second"] < 0).any() or (nodes["first"] < nodes["second"]).any():
            raise DamagedError("a batch has an impossible number of rows or NULLs")
        offsets, lengths = buffers["first"], buffers["second"]
        size = message.end - message.body
        if (offsets < 0).any() or (lengths < 0).any() or (lengths > size - np.minimum(offsets, size)).any():
            raise DamagedError("a batch refers to bytes outside of it")
        views = records.items(4, np.dtype("<i8"))
        if (views < 0).any() or (views > buffers.size).any():
            raise DamagedError("a batch says that it has more buffers than it has")
        compression = records.table(3)
        if compression is not None:
            most = _MOST_OF_A_BYTE[min(compression.number(0, "<B"), 1)]
            for offset, length in buffers[lengths > 0].tolist():
                self._check_unpacked(message.body + offset, length, most)

    def _check_unpacked(self, offset: int, length: int, most: int) -> None:
        """Raises `DamagedError` where a buffer claims to unpack to more than it can."""
        unpacked = self.number(offset, "<q")
        if not _NOT_COMPRESSED <= unpacked <= most * length + _START:
            raise DamagedError(f"{length:,} bytes are said to unpack to {unpacked:,}")

    def check_dictionary(self, message: Message, values: dict[int, pa.DataType]) -> None:
        """Raises `DamagedError` or Arrow's error unless a dictionary is sound; `values` are the types by id.

        Arrow adds to a dictionary what comes later without a look at either.
        """
        records = message.header.table(1)
        if records is None:
            raise DamagedError("a dictionary is empty")
        self.check_records(records, message)
        kind = values.get(message.header.number(0, "<q"))
        if kind is None:
            raise DamagedError("a dictionary belongs to no column")
        if has_within(kind, pa.types.is_dictionary):
            if message.header.number(2, "<B"):
                raise DamagedError("dictionaries are added to a nested dictionary, which is not supported")
            return  # the batches that use it are validated with it
        metadata = bytearray(message.metadata.data)
        metadata[message.metadata.place(1)] = RECORDS
        place = message.metadata.place(2)
        struct.pack_into("<I", metadata, place, records.at - place)
        body = self.read(message.body, message.end - message.body)
        alone = b"".join((struct.pack("<ii", _CONTINUATION, len(metadata)), metadata, body))
        batch = pa.ipc.read_record_batch(pa.py_buffer(alone), pa.schema([pa.field("value", kind)]))
        batch.validate(full=True)


def blocks(footer: _Table, kind: int) -> Iterator[int]:
    """Where the messages of a kind begin, by the footer of a file."""
    yield from footer.items(2 if kind == DICTIONARY else 3, _BLOCK)["offset"].tolist()


def dictionary_types(schema: _Table, columns: pa.Schema) -> dict[int, pa.DataType]:
    """The type of the values of each dictionary, by its id, where `schema` is how `columns` are written."""
    found: dict[int, pa.DataType] = {}
    for field, column in zip(schema.tables(1), columns, strict=True):
        _note_types(field, column.type, found)
    return found


def _note_types(field: _Table, kind: pa.DataType, found: dict[int, pa.DataType]) -> None:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    encoding = field.table(4)
    if encoding is not None and pa.types.is_dictionary(kind):
        kind = kind.value_type
        found[encoding.number(0, "<q")] = kind
    children = field.tables(5)
    if len(children) == kind.num_fields:
        for place, child in enumerate(children):
            _note_types(child, kind.field(place).type, found)
