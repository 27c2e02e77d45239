"""Arrow files: whatever sound ones hold is read, and what is wrong with the others is said."""

from __future__ import annotations

import contextlib
import resource
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest

from estero.errors import DataError
from estero.events.files.arrow_files import arrow_batches, arrow_schema

MOST_GROWTH = 64 << 10
"""Kilobytes by which reading damaged files may let this process grow: pools of memory, and no claims."""

EVENTS = pa.table({"type": ["A", "B", "A"], "v": [1, None, 3]})
ENCODED = EVENTS.set_column(0, "type", EVENTS["type"].dictionary_encode())


def write(path: Path, *tables: pa.Table, stream: bool = True, **options: Any) -> Path:
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, tables[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for table in tables:
            writer.write_table(table)
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    table = pa.Table.from_batches(arrow_batches(str(path)), arrow_schema(str(path)))
    return list(table.to_pylist())


def refused(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        rows(path)
    assert caught.value.file == str(path)
    return caught.value.message.removeprefix("the Arrow file is damaged: ")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_sound_files_are_read(tmp_path: Path, stream: bool, compression: str | None) -> None:
    long = pa.table({"type": ["A"] * 100_000, "v": pa.array([0] * 100_000)})
    path = write(tmp_path / "x", long, long, stream=stream, compression=compression)
    assert rows(path) == long.to_pylist() * 2


@pytest.mark.parametrize("stream", [False, True])
def test_dictionaries_may_be_added_to_and_lie_in_other_columns(tmp_path: Path, stream: bool) -> None:
    inner = pa.array(["x", "y"]).dictionary_encode()
    first = pa.table(
        {
            "type": pa.DictionaryArray.from_arrays([0, 0], ["A"]),
            "list": pa.ListArray.from_arrays([0, 1, 2], inner),
            "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        }
    )
    longer = pa.DictionaryArray.from_arrays([0, 1], ["A", "B"])
    second = first.set_column(0, "type", longer)
    path = write(tmp_path / "x", first, second, stream=stream, emit_dictionary_deltas=True)
    assert rows(path) == first.to_pylist() + second.to_pylist()


@pytest.mark.parametrize("stream", [False, True])
def test_only_the_columns_that_are_asked_for_are_read(tmp_path: Path, stream: bool) -> None:
    path = write(tmp_path / "x", ENCODED.append_column("wrong", pa.array(["x", "yz", ""])), stream=stream)
    offsets, wrong = struct.pack("<4i", 0, 1, 3, 3), struct.pack("<4i", 0, 1 << 30, 3, 3)
    path.write_bytes(path.read_bytes().replace(offsets, wrong))
    assert refused(path).startswith("column 'wrong': ")
    (batch,) = arrow_batches(str(path), ["v", "type"])
    assert batch.to_pylist() == ENCODED.select(["v", "type"]).to_pylist()


def test_files_of_the_old_form_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "x", ENCODED, use_legacy_format=True)
    assert rows(path) == ENCODED.to_pylist()


def test_an_empty_stream_has_columns(tmp_path: Path) -> None:
    assert arrow_schema(str(write(tmp_path / "x", EVENTS.slice(0, 0)))) == EVENTS.schema


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x", EVENTS, stream=False)
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        assert refused(path)


def test_a_stream_that_is_cut_off_has_its_first_batches_or_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x", EVENTS, EVENTS)
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with contextlib.suppress(DataError):
            assert rows(path) in ([], EVENTS.to_pylist(), EVENTS.to_pylist() * 2)


def test_text_is_refused_before_it_is_taken_for_a_length(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(b"type,v\nA,1\n")
    assert refused(path) == "it is neither an Arrow file nor an Arrow stream"


CLAIMS = [(form, value) for form in ("<i", "<q") for value in (-1, 1 << 30, (1 << 31) - 8)] + [
    ("<q", 1 << 40)
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_what_a_file_claims_takes_no_memory(tmp_path: Path, stream: bool, compression: str | None) -> None:
    short, long = (pa.DictionaryArray.from_arrays([0, 1], values) for values in (["A", "B"], ["A", "B", "C"]))
    parts = [pa.table({"type": values, "v": [1, None]}) for values in (short, long)]
    options = {"compression": compression, "emit_dictionary_deltas": True}
    path = write(tmp_path / "x", *parts, stream=stream, **options)
    content = path.read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for form, value in CLAIMS:
        for place in range(0, len(content) - 8, struct.calcsize(form)):
            claimed = bytearray(content)
            struct.pack_into(form, claimed, place, value)
            path.write_bytes(claimed)
            with contextlib.suppress(DataError):
                rows(path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MOST_GROWTH


def test_values_that_are_not_there_are_refused_by_column(tmp_path: Path) -> None:
    path = write(tmp_path / "x", EVENTS)
    offsets, wrong = struct.pack("<4i", 0, 1, 2, 3), struct.pack("<4i", 0, 1, 1 << 30, 3)
    path.write_bytes(path.read_bytes().replace(offsets, wrong))
    assert refused(path).startswith("column 'type': Offset invariant failure: ")


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x", pa.table({"v": [{"wxyz": 1}]}))
    path.write_bytes(path.read_bytes().replace(b"wxyz", b"wx\xffz"))
    assert refused(path) == "the name of a column is not UTF-8"
