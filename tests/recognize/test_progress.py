"""How many events are read is told while an answer is read."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import estero
from estero.events import sql_reading

EVENTS = pa.table({"kind": ["A", "B", "C", "A"] * 500, "t": list(range(2000))})
QUERY = estero.query("SELECT * WHERE A ; B WITHIN 1 EVENTS")
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t"}


def inputs(place: Path, kind: str) -> Any:
    """The events as something of this kind."""
    match kind:
        case "table":
            return EVENTS
        case "stream":
            return iter(EVENTS.to_batches(100))
        case "csv":
            pa.csv.write_csv(EVENTS, place / "events.csv")
            return place / "events.csv"
        case "jsonl":
            lines = EVENTS.to_pandas().to_json(orient="records", lines=True)
            (place / "events.jsonl").write_text(lines)
            return place / "events.jsonl"
        case "parquet":
            for number in range(2):
                part = EVENTS.slice(1000 * number, 1000)
                pa.parquet.write_table(part, place / f"{number}.parquet")
            return place
        case _:
            return {"A": EVENTS.filter(pa.compute.equal(EVENTS["kind"], "A")).drop("kind"), "B": EVENTS[:9]}


@pytest.mark.parametrize(
    ("kind", "size"),
    [("table", 2000), ("csv", 2000), ("jsonl", 2000), ("parquet", 2000), ("mapping", 1009), ("stream", None)],
)
def test_progress_ends_with_the_size_where_it_is_known(tmp_path: Path, kind: str, size: int | None) -> None:
    told: list[tuple[int, int | None]] = []
    layout = {"time": "t"} if kind == "mapping" else LAYOUT
    answer = QUERY.run(inputs(tmp_path, kind), **layout, progress=lambda *each: told.append(each))
    assert told == []
    list(answer.batches())
    assert {of for _, of in told} == {size}
    assert [read for read, _ in told] == sorted(read for read, _ in told)
    assert told[-1][0] == (1998 if size is None else size) or kind == "stream"


def test_it_is_told_behind_each_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_reading, "BATCH", 512)
    told: list[int] = []
    answer = QUERY.run(inputs(tmp_path, "csv"), **LAYOUT, progress=lambda read, _: told.append(read))
    list(answer.batches())
    assert len(told) > 2
    count = len(told)
    list(answer.batches())
    assert told == 2 * told[:count]


def test_an_answer_that_tells_can_be_pickled() -> None:
    answer = QUERY.run(EVENTS, **LAYOUT, progress=lambda *_: None)
    assert pickle.loads(pickle.dumps(answer)).count() == answer.count()


def test_it_is_told_while_whole_complex_events_are_sifted_and_may_end_that() -> None:
    sifted = estero.query(
        "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.t + b.t + c.t < 0 WITHIN 40 EVENTS"
    )
    told: list[int] = []

    def stop(read: int, _of: int | None) -> None:
        told.append(read)
        if len(told) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        sifted.run(EVENTS, **LAYOUT, progress=stop).count()
    assert told == [0, 0, 0]
