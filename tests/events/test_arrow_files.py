"""Arrow files: whatever sound ones hold is read, and what is wrong with the others is said."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest

from estero.errors import DataError
from estero.events.files.arrow_files import arrow_batches, arrow_schema
from estero.events.files.arrow_messages import MAGIC, Pieces

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


def patched(path: Path, place: int, form: str, value: int) -> Path:
    """Writes a number into the metadata of the last message, whose table has it at `place`."""
    content = bytearray(path.read_bytes())
    struct.pack_into(form, content, place, value)
    path.write_bytes(content)
    return path


def message(path: Path, number: int) -> Any:
    """Message number `number` of a stream, and where its metadata begins in the file."""
    with path.open("rb") as opened:
        pieces = Pieces(opened)
        found = pieces.message(0)
        for _ in range(number):
            assert found is not None
            found = pieces.message(found.end)
    assert found is not None
    return found, found.body - len(found.metadata.data)


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


def test_a_message_that_ends_behind_the_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x", EVENTS)
    found, begin = message(path, 1)
    size = path.stat().st_size
    patched(path, begin + found.metadata.place(3), "<q", 1 << 40)
    left = size - found.body
    assert refused(path) == f"a message says that it has 1,099,511,627,776 bytes, and {left:,} are left"


def test_a_file_that_ends_inside_of_metadata_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x", EVENTS)
    found, _ = message(path, 1)
    path.write_bytes(path.read_bytes()[: found.body - 8])
    assert (
        refused(path) == f"it is cut off: {found.body:,} bytes are expected, and {found.body - 8:,} are there"
    )


def test_what_is_no_arrow_at_all_asks_for_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(b"type,v\nA,1\n")
    assert refused(path) == "it begins neither like a file nor like a stream of Arrow"


@pytest.mark.parametrize(
    ("slot", "offset", "value", "said"),
    [
        (0, 0, -1, "a batch has an impossible number of rows or NULLs"),
        (1, 12, 4, "a batch has an impossible number of rows or NULLs"),
        (2, 20, 1 << 40, "a batch refers to bytes outside of it"),
        (2, 12, 1 << 40, "a batch refers to bytes outside of it"),
        (2, 0, 0xFFFFFFFF, "its metadata refers to bytes outside of it"),
    ],
)
def test_a_batch_with_impossible_numbers_is_refused(
    tmp_path: Path, slot: int, offset: int, value: int, said: str
) -> None:
    path = write(tmp_path / "x", EVENTS)
    found, begin = message(path, 1)
    place = found.header.place(slot)
    if slot:  # a vector: its length, then the numbers
        place += struct.unpack_from("<I", found.metadata.data, place)[0]
    patched(path, begin + place + offset, "<q", value)
    assert refused(path) == said


def test_what_cannot_unpack_to_so_much_is_not_unpacked(tmp_path: Path) -> None:
    path = write(tmp_path / "x", pa.table({"type": ["A"] * 1000}), compression="zstd")
    found, _ = message(path, 1)
    patched(path, found.body, "<q", 1 << 40)
    said = refused(path)
    assert said.endswith(" bytes are said to unpack to 1,099,511,627,776")


def test_values_that_are_not_there_are_refused_by_column(tmp_path: Path) -> None:
    path = write(tmp_path / "x", EVENTS)
    found, _ = message(path, 1)
    offsets = [path.read_bytes().index(struct.pack("<4i", 0, 1, 2, 3)) + 8]
    patched(path, offsets[0], "<i", 1 << 30)
    assert refused(path).startswith("column 'type': Offset invariant failure: ")
    assert found.body < offsets[0] < found.end


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x", pa.table({"v": [{"wxyz": 1}]}))
    path.write_bytes(path.read_bytes().replace(b"wxyz", b"wx\xffz"))
    assert refused(path) == "the name of a column is not UTF-8"


def test_a_dictionary_of_no_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x", ENCODED.append_column("other", ENCODED["type"]))
    found, begin = message(path, 2)
    patched(path, begin + found.header.place(0), "<q", 7)
    assert refused(path) == "a dictionary belongs to no column"


def test_a_message_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x", EVENTS)
    found, begin = message(path, 1)
    patched(path, begin + found.metadata.place(1), "<B", 4)
    assert refused(path) == "a message is neither a batch nor a dictionary"


def test_a_footer_that_names_another_message_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x", ENCODED, stream=False)
    with path.open("rb") as opened:
        pieces = Pieces(opened)
        footer = pieces.footer()
        begin = pieces.size - len(MAGIC) - 4 - len(footer.data)
    places = [slot + struct.unpack_from("<I", footer.data, slot)[0] + 4 for slot in map(footer.place, (2, 3))]
    of_dictionary = struct.unpack_from("<q", footer.data, places[0])[0]
    patched(path, begin + places[1], "<q", of_dictionary)
    assert refused(path) == "its footer names a message that is not there"
