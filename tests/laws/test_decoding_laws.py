"""Whether an event of a live stream is read depends on itself alone, however the stream is cut."""

from __future__ import annotations

import json
import math
from base64 import b64decode
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from estero.local.decoding import Decoder, letters_table
from estero.local.raw import DeadLetter, Raw
from estero.local.sources.lines import LineSource

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", "UTC")),
        ("naive", pa.timestamp("us")),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("m", pa.decimal128(6, 2)),
    ]
)
PLAIN = pa.schema(
    [
        ("time", pa.timestamp("us", "UTC")),
        ("naive", pa.timestamp("us")),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
    ]
)
"""The types of which a few values are not columns of Arrow at once."""
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -5, 2**31 - 1, 2**31, 2**53 + 1, 2**70, 1.0, 1.5, 1e300]),
    st.sampled_from(["", "a", "ü", "\ud800", "1", "1.25", "true", "2026-01-01", "12:00", "2026-13-01"]),
    st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01 00:00:00.123456", "2026-01-01T02:00:00+02:00"]),
    st.sampled_from([[], {}, [1], {"a": None}]),
)
OBJECTS = st.dictionaries(st.sampled_from([*SCHEMA.names, "other"]), VALUES, max_size=6).map(json.dumps)
TIMED = OBJECTS.map(lambda text: json.dumps({"time": "2026-01-01T00:00:00Z", **json.loads(text)}))
GOOD = st.builds(lambda n: json.dumps({"time": "2026-01-01T00:00:00Z", "n": n}), st.integers(0, 9))
NONE = st.sampled_from(
    ["", "{", "null", "{}null{}", '{"n": 1} {}', '{"n": 1}, {"n": 2}', '{"a":[{}', "{}]}", "[]"]
)
TEXTS = st.lists(
    st.one_of(TIMED, GOOD, OBJECTS, NONE).map(str.encode) | st.just(b'{"s": "\xff"}'), max_size=12
)


def decoded(
    texts: list[bytes], first: int = 0, schema: pa.Schema = SCHEMA
) -> tuple[list[dict[str, Any]], list[DeadLetter]]:
    raw = Raw({}, texts, place=lambda row: str(first + row))
    batch = Decoder(schema, "time").decoded(raw)
    assert batch.table.schema == schema
    assert batch.skipped == 0
    assert batch.size == batch.table.num_rows
    return batch.table.to_pylist(), sorted(batch.dead, key=lambda letter: int(letter.place))


@given(TEXTS, st.sampled_from([SCHEMA, PLAIN]))
def test_each_text_is_an_event_or_a_dead_letter_as_it_is_alone(texts: list[bytes], schema: pa.Schema) -> None:
    events, dead = decoded(texts, schema=schema)
    alone = [decoded([text], place, schema) for place, text in enumerate(texts)]
    assert events == [event for rows, _ in alone for event in rows]
    assert dead == [letter for _, letters in alone for letter in letters]
    assert len(events) + len(dead) == len(texts)
    assert [texts[int(letter.place)] for letter in dead] == [letter.text for letter in dead]


@given(TEXTS, st.sampled_from([SCHEMA, PLAIN]))
def test_an_event_has_the_values_that_json_has(texts: list[bytes], schema: pa.Schema) -> None:
    for text in texts:
        rows, _ = decoded([text], schema=schema)
        for row in rows:
            said = json.loads(text)
            for name, value in row.items():
                assert value == meant(name, said.get(name))


def meant(name: str, value: Any) -> Any:
    """The value of a column, said in Python alone."""
    if value is None or name in {"n", "s", "b"}:
        return value
    if name in {"time", "naive"}:
        time = datetime.fromisoformat(value)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        return time if name == "time" else time.replace(tzinfo=None)
    if name == "d":
        return datetime.fromisoformat(value).date()
    if name == "m":
        return Decimal(value)
    return float(value) if math.isfinite(value) else value


@given(st.lists(st.binary(max_size=4)))
def test_dead_letters_keep_every_byte(texts: list[bytes]) -> None:
    rows = letters_table([DeadLetter("p", "r", text) for text in texts], "s").to_pylist()
    kept = [row["text"].encode() if row["base64"] is None else b64decode(row["base64"]) for row in rows]
    assert kept == texts


class Chunks(LineSource):
    """Lines in chunks that are given."""

    def __init__(self, chunks: list[bytes]) -> None:
        super().__init__("chunks")
        self._chunks = [chunk for chunk in chunks if chunk]

    def _is_ready(self, _seconds: float) -> bool:
        return True

    def _chunk(self) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""


@given(st.binary(max_size=40), st.lists(st.integers(0, 40), max_size=6), st.integers(1, 5))
def test_lines_are_the_same_however_they_arrive(content: bytes, cuts: list[int], most: int) -> None:
    places = sorted({0, *cuts, len(content)})
    source = Chunks([content[start:end] for start, end in pairwise(places)])
    source.seek(None)
    lines: list[bytes] = []
    while not source.ended:
        raw = source.poll(most, 0.0)
        if raw is not None:
            lines += raw.texts
            again = Chunks(source._chunks.copy())
            again.seek(raw.after)
            assert (again._lines, again._rest) == (len(lines), source._rest)
    assert lines == [line for line in map(bytes.strip, content.split(b"\n")) if line]
