"""Files, states and kernels that were damaged: an error that says so, or other values, and never a crash.

What might end the process is done in another one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pytest

import estero
from estero.errors import DataError
from hostile import mended_states

FLIPPED = """
import random, resource, sys
from estero.errors import DataError
from estero.events.inputs import open_input

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
sound = open(sys.argv[1], "rb").read()
path = sys.argv[1] + ".arrow"
refused = 0
for bit in sorted(random.Random(7).sample(range(8 * len(sound)), 400)):
    damaged = bytearray(sound)
    damaged[bit >> 3] ^= 1 << (bit & 7)
    with open(path, "wb") as file:
        file.write(damaged)
    try:
        for batch in open_input(path).stream(None):
            for column in batch.columns:
                str(column)
    except DataError:
        refused += 1
print(refused)
"""


def damaged_tables() -> pa.Table:
    """Columns of every layout that Arrow has."""
    return pa.table(
        {
            "type": ["A", "B", "A", None],
            "d": pa.array(["x", "y", None, "x"]).dictionary_encode(),
            "v": [1, 2, None, 4],
            "s": pa.array(
                [{"a": 1, "b": "q"}] * 3 + [None], pa.struct([("a", pa.int32()), ("b", pa.string())])
            ),
            "l": pa.array([[1, 2], [], None, [3]], pa.list_(pa.int16())),
            "m": pa.array([[("k", 1)], [], None, []], pa.map_(pa.string(), pa.int64())),
            "w": pa.array(["a text that is longer than twelve letters", "b", None, ""], pa.string_view()),
            "f": pa.array([[1, 2], [3, 4], None, [5, 6]], pa.list_(pa.int8(), 2)),
            "n": pa.nulls(4),
        }
    )


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("form", ["file", "stream"])
def test_no_flipped_bit_of_an_arrow_file_ends_the_process(
    tmp_path: Path, form: str, compression: str | None
) -> None:
    sound = tmp_path / "sound"
    table = damaged_tables()
    new = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with new(sound, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    program = [sys.executable, "-c", FLIPPED, str(sound)]
    ran = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout) > 50


def without_sense(path: Path) -> Path:
    """An Arrow file whose first text ends where no text is."""
    with pa.ipc.new_stream(path, pa.schema([("type", pa.string())])) as writer:
        writer.write_table(pa.table({"type": ["A", "B", "AA"]}))
    content = path.read_bytes()
    offsets = b"".join(offset.to_bytes(4, "little") for offset in (0, 1, 2, 4))
    wrong = b"".join(offset.to_bytes(4, "little") for offset in (0, 1 << 30, 2, 4))
    path.write_bytes(content.replace(offsets, wrong))
    return path


DAMAGED = "the Arrow file is damaged: column 'type': Offset invariant failure: "


def test_a_query_says_that_an_arrow_file_is_damaged(tmp_path: Path) -> None:
    path = without_sense(tmp_path / "events.arrow")
    with pytest.raises(DataError) as caught:
        estero.query("SELECT * WHERE A ; B").run(path, type="type").count()
    assert caught.value.message.startswith(DAMAGED)
    assert caught.value.file == str(path)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_says_that_an_arrow_file_is_damaged(tmp_path: Path) -> None:
    from estero.spark import read_events

    path = without_sense(tmp_path / "events.arrow")
    with pytest.raises(DataError) as caught:
        read_events(path)
    assert caught.value.message.startswith(DAMAGED)


def test_no_content_of_a_state_ends_the_process() -> None:
    program = [sys.executable, mended_states.__file__, "11"]
    ran = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "answered refused"), ran.stderr
