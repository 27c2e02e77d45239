"""A query over a stream without an end, its recognizer and its rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import estero
from estero.answers.answer import Answer
from estero.recognize.recognizers.continuous import ContinuousRecognizer

SCHEMA = pa.schema([("kind", pa.string()), ("ts", pa.int64()), ("n", pa.int64()), ("k", pa.string())])

QUERY = estero.query("SELECT * WHERE A AS a ; B AS b FILTER a[n >= 0] PARTITION BY [k] WITHIN 10 SECONDS")


def begun(**options: Any) -> ContinuousRecognizer:
    made: ContinuousRecognizer = QUERY.recognizer(SCHEMA, type="kind", time="ts", time_unit="s", **options)
    return made


def row(kind: str, ts: int, *, n: int = 0, k: str = "x") -> dict[str, object]:
    return {"kind": kind, "ts": ts, "n": n, "k": k}


def table(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def spans(answer: Answer) -> list[tuple[int, int]]:
    return sorted((each.start, each.end) for each in answer)


ROWS = [row("A", 1), row("B", 2), row("B", 3, k="y")]
