"""The bytes of a snapshot: arrays by name in one Arrow record batch, with a heading that is checked first.

A state is a heading of 24 bytes (a word that says what it is, the version of this form, the length and the
CRC-32 of the rest) and an Arrow IPC stream with one record batch: name, type and shape of each array, and its
bytes, compressed by LZ4. Integers are written as narrow as they fit. Its schema's metadata says what the
state is of. Equal states have equal bytes.

A checksum detects accidents. A state that is written with a key has, after the heading, the HMAC-SHA256 of
heading and stream, which cannot be forged without the key. All content is checked nevertheless: no content
crashes the process.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.errors import DataError
from estero.events.files.arrow_readers import sound_batch

FORMAT = 2
"""The version of this form. A state of another one is refused."""

_MAGIC, _KEYED = b"EsteroSt", b"EsteroSk"
_HEADING = struct.Struct("<8sIIQ")
_SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("written", pa.string(), nullable=False),
        pa.field("shape", pa.list_(pa.int64()), nullable=False),
        pa.field("bytes", pa.large_binary(), nullable=False),
    ]
)
_KINDS = {np.dtype(f"{kind}{width}").str for kind in "iu" for width in (1, 2, 4, 8)}
_MAC = hashlib.sha256().digest_size
_SHORTEST_KEY = 16

_SMALL = 1 << 12
"""Arrays of fewer bytes in all are not compressed: headings of compressed blocks would outweigh it."""

_SIGNED = [np.dtype(f"i{width}") for width in (1, 2, 4)]
_UNSIGNED = [np.dtype(f"u{width}") for width in (1, 2, 4)]


class State(NamedTuple):
    """The content of a state: `about`, texts by name, and the arrays."""

    about: dict[str, str]
    arrays: dict[str, NDArray[Any]]


def written(state: State, key: bytes | None = None) -> bytes:
    """The bytes of a state; with a `key`, they can only be written by those who have it.

    Raises ValueError for an invalid key.
    """
    check_key(key)
    body = _body(state)
    checked = zlib.crc32(body), body.size
    if key is None:
        return b"".join((_HEADING.pack(_MAGIC, FORMAT, *checked), body))
    heading = _HEADING.pack(_KEYED, FORMAT, *checked)
    return b"".join((heading, _mac(key, heading, body), body))


def check_key(key: bytes | None) -> None:
    """Raises TypeError for a key that is not bytes, and ValueError for one that is too short."""
    if key is None:
        return
    hint = "secrets.token_bytes(32) makes one"
    if not isinstance(key, bytes):
        raise TypeError(f"a key is bytes, and this is a {type(key).__name__}: {hint}")
    if len(key) < _SHORTEST_KEY:
        raise ValueError(f"a key has at least {_SHORTEST_KEY} bytes, and this one has {len(key)}: {hint}")


def _mac(key: bytes, heading: bytes, body: memoryview | pa.Buffer) -> bytes:
    made = hmac.new(key, heading, hashlib.sha256)
    made.update(body)
    return made.digest()


def _body(state: State) -> pa.Buffer:
    narrowed = {name: np.ascontiguousarray(_narrow(array)) for name, array in state.arrays.items()}
    offsets = np.cumsum([0, *(array.nbytes for array in narrowed.values())], dtype=np.int64)
    content = pa.py_buffer(
        b"".join(array.data.cast("B") if array.size else b"" for array in narrowed.values())
    )
    columns = [
        pa.array(list(narrowed), pa.string()),
        pa.array([array.dtype.str for array in state.arrays.values()], pa.string()),
        pa.array([array.dtype.str for array in narrowed.values()], pa.string()),
        pa.array([array.shape for array in narrowed.values()], pa.list_(pa.int64())),
        pa.Array.from_buffers(pa.large_binary(), len(narrowed), [None, pa.py_buffer(offsets), content]),
    ]
    schema = _SCHEMA.with_metadata(state.about)
    compression = "lz4" if content.size >= _SMALL else None
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)  # one column is large
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return sink.getvalue()


def read(state: bytes, key: bytes | None = None) -> State:
    """The content of the bytes of a state; the arrays are writable and not shared.

    Raises `DataError` for bytes that are not a state, are of another version, truncated or damaged, or were
    not written with this `key`; ValueError for an invalid key.
    """
    check_key(key)
    if not isinstance(state, bytes | bytearray | memoryview):
        raise DataError(f"a state is bytes, and this is a {type(state).__name__}")
    state = bytes(state)
    if len(state) < _HEADING.size or not state.startswith((_MAGIC, _KEYED)):
        raise DataError("these bytes are not a state that Estero has written")
    magic, version, checksum, length = _HEADING.unpack_from(state)
    if version != FORMAT:
        raise DataError(
            f"the state has format {version}, and this version of Estero reads format {FORMAT}",
            hint="a state is for the version that wrote it: go back to that version, or start over",
        )
    _refuse_other_key(keyed=magic == _KEYED, key=key)
    begin = _HEADING.size + (_MAC if magic == _KEYED else 0)
    body = memoryview(state)[begin:]
    if length != len(body):
        raise DataError(f"the state is cut off: it says {length:,} bytes, and {len(body):,} are there")
    heading, mac = state[: _HEADING.size], state[_HEADING.size : begin]
    if key is not None and not hmac.compare_digest(mac, _mac(key, heading, body)):
        raise DataError("the state was not written with this key, or it was changed since")
    if zlib.crc32(body) != checksum:
        raise DataError("the state is damaged: its checksum does not match")
    with sound_content():
        return _content(sound_batch(pa.py_buffer(body)))


def _refuse_other_key(*, keyed: bool, key: bytes | None) -> None:
    if keyed and key is None:
        raise DataError("the state was written with a key, and none is given", hint="restore(…, key=…)")
    if key is not None and not keyed:
        raise DataError(
            "the state was written without a key, so that anybody may have written it",
            hint="trust it by leaving out key=, or take one of snapshot(key=…)",
        )


@contextmanager
def sound_content() -> Iterator[None]:
    """Reports a state whose content makes no sense, although its checksum is right, as damaged."""
    try:
        yield
    except (
        ValueError,
        LookupError,
        TypeError,
        OverflowError,
        OSError,
        RecursionError,
        struct.error,
        pa.ArrowException,
    ) as error:
        raise DataError("the state is damaged: its contents are inconsistent") from error


def _content(batch: pa.RecordBatch) -> State:
    if not batch.schema.equals(_SCHEMA):
        raise ValueError("other columns")
    names, types, narrow, shapes = (batch.column(place).to_pylist() for place in range(4))
    if not _KINDS.issuperset((*types, *narrow)):
        raise ValueError("arrays of other types")
    about = {name.decode(): text.decode() for name, text in (batch.schema.metadata or {}).items()}
    arrays = {}
    for place, (name, wanted, there, shape) in enumerate(zip(names, types, narrow, shapes, strict=True)):
        held = np.frombuffer(batch.column(4)[place].as_buffer(), there)
        arrays[name] = held.reshape(shape).astype(wanted)
    return State(about, arrays)


def batch_as_array(batch: pa.RecordBatch) -> NDArray[np.uint8]:
    """A record batch as an array of bytes, regardless of the memory under NULLs."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch.take(pa.array(np.arange(batch.num_rows))))
    return np.frombuffer(sink.getvalue(), np.uint8)


def batch_of_array(array: NDArray[np.uint8]) -> pa.RecordBatch:
    """Restores the record batch; raises as `sound_batch` does if it is damaged."""
    return sound_batch(pa.py_buffer(array))


def refuse_other(about: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """Raises `DataError` unless a state is of the kind, the query and the plan that are expected."""
    if about.get("kind") != expected["kind"]:
        raise DataError(f"the state is of {about.get('kind')}, and {expected['kind']} was expected")
    if about.get("query") != expected["query"]:
        raise DataError(
            f"the state is of another query: {about.get('query')}",
            hint=f"it cannot go on with {expected['query']}",
        )
    if about.get("plan") != expected["plan"]:
        raise DataError(
            "the state is of this query, but it was planned otherwise: for other columns or other settings, "
            "or by another version of Estero",
            hint="events must come with the columns and types that they had when the state was written",
        )


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    """The same integers in the narrowest type that holds them."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize == 1 or array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    for narrower in _UNSIGNED if array.dtype.kind == "u" else _SIGNED:
        limits = np.iinfo(narrower)
        if narrower.itemsize < array.dtype.itemsize and limits.min <= low and high <= limits.max:
            return array.astype(narrower)
    return array
