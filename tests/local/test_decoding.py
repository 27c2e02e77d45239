"""Texts of JSON → events: whether one is read, and as what, does not depend on those that came with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from estero.local.columns import texts_as, values_as
from estero.local.decoding import _MANY, Decoded, Decoder
from estero.local.raw import Raw

SCHEMA = pa.schema(
    [
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("f", pa.float64()),
        ("n", pa.int64()),
        ("small", pa.int8()),
        ("single", pa.float32()),
        ("b", pa.bool_()),
        ("d", pa.decimal128(10, 2)),
        ("day", pa.date32()),
    ]
)
DECODER = Decoder(SCHEMA, "t")
PLAIN = Decoder(pa.schema([SCHEMA.field(name) for name in ("s", "t", "f", "n", "b")]), "t")
"""Reads types of which a few values are not columns of Arrow at once."""
GOOD = (
    b'{"s": "x", "t": "2026-03-02T12:00:00Z", "f": 0.5, "n": 1, "b": true, "d": "1.50", "day": "2026-03-02"}'
)
NAMES = [*SCHEMA.names, "other"]
NUMBERS = st.one_of(
    st.integers(-(2**65), 2**65),
    st.integers(-200, 200),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, 2**63, 0.1, 1e308, float("nan"), float("inf"), -0.0]),
    st.floats(),
)
TEXTS = st.sampled_from(
    ["", "x", "é", "\0", "\ud800", "}\n{", "1", "1.5", "12345678901.5", "2026-03-02", "2026-03-02T12:00:00",
     "2026-03-02T12:00:00.123456Z", "2026-03-02T12:00:00+02:00", "2026-13-02", "1, Information"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4).map(
    lambda row: {"t": "2026-03-02T12:00:00Z", **row}
)
BROKEN = st.sampled_from(
    [b"", b" ", b"{", b"}", b"{}", b"[1]", b'{"n": 1} {"n": 2}', b'{"n": 1}\n{"n": 2}', b'{"n": 1,',
     b'"n": 2}', b"\xff", b'{"other": "\xff"}', b'\xef\xbb\xbf{"n": 1}', b'{"n": 1, "n": 2}', b'{"f": 1e400}',
     b'{"f": Inf}',
     b'{"other": [Inf]}', b'{"n": 01}', b'{"s": "a\nb"}', b'{"s": "a\tb"}', b'{"\\u006e": 3}', b"null",
     b'{"n": 1}}', b'{"other": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", b'{"other": ' + b"1" * 5_000 + b"}"]
)  # fmt: skip
LINES = st.lists(BROKEN | OBJECTS.map(lambda row: json.dumps(row).encode()), min_size=1, max_size=6)


def decoded(texts: Sequence[bytes], decoder: Decoder = DECODER) -> Decoded:
    return decoder.decoded(Raw({}, texts))


def told(batches: Sequence[Decoded]) -> tuple[str, list[tuple[str, bytes]]]:
    """Events and dead letters; by text, since NaN is not itself."""
    rows = [row for batch in batches for row in batch.table.to_pylist()]
    return repr(rows), sorted((letter.reason, letter.text) for batch in batches for letter in batch.dead)


@given(lines=LINES, place=st.integers(6, _MANY), by=st.sampled_from([DECODER, PLAIN]))
@example(
    lines=[b'{"t": "2026-03-02T12:00:00Z", "n": 1,', b'"n": 2}', b'{"n": 1} {"n": 2}'], place=3, by=DECODER
)
def test_texts_among_many_are_read_as_they_are_alone(lines: list[bytes], place: int, by: Decoder) -> None:
    before, behind = [GOOD] * place, [GOOD] * (_MANY - len(lines))
    whole = decoded([*before, *lines, *behind], by)
    alone = decoded([GOOD], by)
    assert told([whole]) == told(
        [alone] * len(before) + [decoded([text], by) for text in lines] + [alone] * len(behind)
    )


@given(rows=st.lists(OBJECTS, min_size=1, max_size=6), by=st.sampled_from([DECODER, PLAIN]))
def test_objects_of_json_among_many_are_read_as_they_are_alone(
    rows: list[dict[str, object]], by: Decoder
) -> None:
    texts = [json.dumps(row).encode() for row in rows]
    whole = decoded([*texts, *[GOOD] * _MANY], by)
    assert told([whole]) == told([decoded([text], by) for text in texts] + [decoded([GOOD], by)] * _MANY)


@given(
    st.lists(st.datetimes(timezones=st.timezones() | st.just(UTC)), min_size=1, max_size=3),
    st.sampled_from(["auto", "milliseconds", "microseconds", "seconds", "minutes"]),
    st.sampled_from(["T", " "]),
    st.sampled_from(
        [
            "",
            "2026-03-02T24:00:00+00:00",
            "2026-02-30T12:00:00+00:00",
            "2026-03-02T12:00:60+00:00",
            "0000-03-02T12:00:00+00:00",
            "2026-03-02T12:00:00.1234+00:00",
            "2026-W10-1T12:00:00+00:00",
            "2026-03-02T12:00:00+00:00:01",
            "2026-03-02T12:00:00-19:59",
            "\u0662026-03-02T12:00:00+00:00",
        ]
    ),
)
def test_few_times_are_read_as_many_are(times: list[datetime], to: str, between: str, odd: str) -> None:
    texts = [*(time.isoformat(between, to) for time in times), *([odd] if odd else [])]
    kind = pa.timestamp("us", "UTC")
    try:
        many = texts_as(pa.array(texts), kind)
    except pa.ArrowInvalid:
        with pytest.raises(pa.ArrowInvalid):
            values_as(texts, kind)
    else:
        assert values_as(texts, kind).equals(many)


def test_many_texts_are_read_in_blocks_and_broken_ones_keep_their_places() -> None:
    texts = [GOOD] * 9_000
    texts[5] = texts[8_500] = b"nothing"
    batch = DECODER.decoded(Raw({}, texts, place=str))
    assert [letter.place for letter in batch.dead] == ["5", "8500"]
    assert batch.size == len(texts) - 2


@pytest.mark.parametrize("zone", ["", "Z", "+01:00"])
def test_times_with_and_without_a_zone_are_read_together(zone: str) -> None:
    texts = [GOOD] * _MANY + [json.dumps({"t": f"2026-03-02T12:00:00{zone}"}).encode()]
    hour = 11 if zone.startswith("+") else 12
    assert decoded(texts).table["t"][-1].as_py().hour == hour
