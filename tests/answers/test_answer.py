"""What users do with an answer, over a run made of literal rows."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import estero
from estero.answers.answer import Answer
from estero.answers.answer_schema import answer_schema
from estero.engine.walk.share import Share
from estero.language.tree.selection import Shown
from notebooks import shown_by

EVENTS = pa.schema(
    {"__position": pa.int64(), "__time": pa.int64(), "name": pa.string(), "price": pa.float64()}
)
SHOWN = [Shown("a", ("name",)), Shown("b", ("name", "price"))]
ENDS = [4, 4, 7, 9, 9, 9]


class FakeRun:
    """A run whose complex events are given; it notes what is asked of it."""

    query = "SELECT * WHERE SELL AS a ; BUY AS b"
    whole_answer = "the whole answer"
    counts_quickly = False

    def __init__(self, batch: pa.RecordBatch, *, huge: int = 0) -> None:
        self.batch = batch
        self.schema = batch.schema
        self.huge = huge
        self.asked: list[str] = []

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        self.asked.append(f"tables {limit}")
        rows = self.batch.num_rows if limit is None else min(limit, self.batch.num_rows)
        for i in range(0, rows, 2):
            yield self.batch.slice(i, min(2, rows - i))

    def count(self, *, enough: int | None = None) -> Any:
        self.asked.append("count" if enough is None else f"count {enough}")
        return self.batch.num_rows + self.huge

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        self.asked.append("at")
        for i in indexes:
            if self.huge:
                yield self.batch.slice(i % 6, 1)
            elif i < self.batch.num_rows:
                yield self.batch.slice(i, 1)

    def undecided(self) -> FakeRun:
        return FakeRun(self.batch.slice(0, 0))

    def funnel(self, *, by_partition: bool, by: Sequence[str], chosen: bool) -> pa.Table:  # noqa: ARG002
        self.asked.append(f"funnel {by_partition} {chosen}")
        return pa.table({"step": [1], "starts": [self.batch.num_rows]})

    def values(self, attribute: str, first: int, last: int) -> pa.Table:
        raise NotImplementedError

    def why_not(self, sample: int | None, seconds: float | None) -> NoReturn:  # noqa: ARG002
        raise ValueError("there is nothing to ask less of")

    def partials(self, *, chosen: bool) -> FakeRun:
        raise NotImplementedError

    def shared(self, share: Share) -> FakeRun:
        self.asked.append(f"share {share.number} of {share.of}")
        first, after = share.range_of(self.batch.num_rows)
        return FakeRun(self.batch.slice(first, after - first))


def rows() -> list[dict[str, Any]]:
    return [
        {
            "start": i,
            "end": end,
            "start_time": datetime(2024, 5, 1, 9, i, tzinfo=UTC),
            "end_time": datetime(2024, 5, 1, 10, end, tzinfo=UTC),
            "name": "INTC",
            "a": [{"name": "INTC", "position": i}],
            "b": [{"name": "QQQ", "price": 0.5 * k, "position": k} for k in range(i + 1, end + 1)],
        }
        for i, end in enumerate(ENDS)
    ]


def run(**options: Any) -> FakeRun:
    schema = answer_schema(SHOWN, EVENTS, keys=[["name"]], time=pa.timestamp("us", "UTC"))
    return FakeRun(pa.RecordBatch.from_pylist(rows(), schema=schema), **options)


@pytest.fixture
def answer() -> Answer:
    return Answer(run())


def starts(answer: Answer) -> list[int]:
    return [ce.start for ce in answer]


def test_a_complex_event_gives_places_times_events_and_positions(answer: Answer) -> None:
    ce = next(iter(answer))
    assert (ce.start, ce.end) == (0, 4)
    assert ce.start_time == datetime(2024, 5, 1, 9, 0, tzinfo=UTC)
    assert ce.end_time == datetime(2024, 5, 1, 10, 4, tzinfo=UTC)
    assert ce.labels == ("a", "b")
    assert ce["a"] == [{"name": "INTC", "position": 0}]
    assert ce["b"][1] == {"name": "QQQ", "price": 1.0, "position": 2}
    assert ce.positions["b"] == (1, 2, 3, 4)
    assert ce.partition == {"name": "INTC"}


def test_a_complex_event_prints_its_places_and_positions(answer: Answer) -> None:
    text = "ComplexEvent(2–7, 2024-05-01 09:02:00+00:00 – 2024-05-01 10:07:00+00:00, name='INTC', a=[2], "
    assert repr(answer[2]) == text + "b=[3, 4, 5, 6, 7])"


def test_an_unknown_label_is_refused_with_those_that_there_are(answer: Answer) -> None:
    with pytest.raises(KeyError, match="c is not among the selected labels: a, b"):
        answer[0]["c"]


def test_complex_events_are_equal_when_their_places_and_positions_are(answer: Answer) -> None:
    assert answer[1] == answer[1]
    assert answer[1] != answer[2]
    assert len({answer[1], answer[1], answer[2]}) == 2
    assert answer[1] != "something else"


def test_without_a_time_the_times_are_none() -> None:
    batch = pa.RecordBatch.from_pylist([{"start": 1, "end": 2}], schema=answer_schema([], EVENTS))
    ce = Answer(FakeRun(batch))[0]
    assert (ce.start_time, ce.end_time, ce.labels) == (None, None, ())
    assert repr(ce) == "ComplexEvent(1–2)"


def test_nothing_runs_until_something_is_asked() -> None:
    source = run()
    answer = Answer(source)
    assert "not counted yet" in repr(answer)
    assert answer.schema.names == ["start", "end", "start_time", "end_time", "name", "a", "b"]
    batches = answer.limit(3)[1:].batches()
    assert source.asked == []
    assert next(batches).num_rows == 1
    assert source.asked == ["tables 3"]


def test_a_limit_is_handed_to_the_run_and_the_smaller_one_counts() -> None:
    source = run()
    assert starts(Answer(source).limit(4).limit(9)) == [0, 1, 2, 3]
    assert starts(Answer(source).limit(3).limit(2)) == [0, 1]
    assert starts(Answer(source).limit(0)) == []
    assert source.asked == ["tables 4", "tables 2"]
    with pytest.raises(ValueError, match="a limit is at least 0, not -1"):
        Answer(source).limit(-1)


def test_counting_never_enumerates_and_is_remembered() -> None:
    source = run(huge=10**30)
    answer = Answer(source)
    assert answer.count() == answer[:].count() == 10**30 + 6
    assert answer.limit(5).count() == 5
    assert source.asked == ["count"]
    assert "; 1,000,000,000,000,000,000,000,000,000,006 complex events)\nSELECT * WHERE" in repr(answer)


def test_counting_a_limited_answer_stops_when_it_knows() -> None:
    answer = Answer(run(huge=10**30)).limit(3)
    assert answer.count() == 3
    assert "not counted yet" in repr(answer)


def test_an_index_finds_one_complex_event_from_either_end(answer: Answer) -> None:
    assert [answer[i].start for i in (0, 5, -1, -6)] == [0, 5, 5, 0]
    for i in (6, -7):
        with pytest.raises(IndexError, match=f"there is no complex event {i}: the answer has 6"):
            answer[i]
    with pytest.raises(IndexError, match="there is no complex event 2: the answer has 2"):
        answer.limit(2)[2]
    assert Answer(run(huge=10**30))[10**29].start == 10**29 % 6


@pytest.mark.parametrize(
    "part",
    [
        slice(2, 4),
        slice(4, None),
        slice(-2, None),
        slice(None, -4),
        slice(3, 99),
        slice(4, 2),
        slice(9, None),
    ],
)
def test_a_slice_is_the_same_slice_of_the_list(answer: Answer, part: slice) -> None:
    assert starts(answer[part]) == [0, 1, 2, 3, 4, 5][part]
    assert answer[part].count() == len([0, 1, 2, 3, 4, 5][part])
    assert starts(answer[1:5][part]) == [1, 2, 3, 4][part]
    assert starts(answer.sample(6)[part]) == [0, 1, 2, 3, 4, 5][part]


def test_a_slice_with_steps_is_refused(answer: Answer) -> None:
    with pytest.raises(ValueError, match="a slice of an answer takes no step"):
        answer[::2]


def test_a_slice_far_inside_goes_there_by_the_counts() -> None:
    source = run(huge=10**30)
    assert starts(Answer(source)[10**20 : 10**20 + 3]) == [(10**20 + i) % 6 for i in range(3)]
    assert "tables" not in " ".join(source.asked)


@pytest.mark.parametrize("of", [1, 2, 4, 7])
def test_shares_are_the_whole_and_each_complex_event_is_in_one(answer: Answer, of: int) -> None:
    for part in (answer, answer[1:5], answer.sample(5, seed=1)):
        shares = [part.share(number, of) for number in range(of)]
        assert sorted(each for share in shares for each in starts(share)) == starts(part)
        assert sum(share.count() for share in shares) == part.count()
    for number in (-1, of):
        with pytest.raises(
            ValueError, match=f"there is no share {number}: shares are numbered from 0 to {of - 1}"
        ):
            answer.share(number, of)


def test_the_whole_is_shared_by_its_run() -> None:
    source = run()
    Answer(source).share(1, 3).to_arrow()
    assert source.asked == ["share 1 of 3"]


def test_a_share_is_not_shared_again() -> None:
    events = pa.table({"type": ["A", "B"]})
    share = estero.query("SELECT * WHERE A ; B").run(events, type="type").share(0, 2)
    with pytest.raises(
        ValueError, match=r"^this is a share already: divide the whole answer into more shares$"
    ):
        share.share(0, 2)


def test_a_sample_is_seeded_uniform_and_without_replacement(answer: Answer) -> None:
    drawn = [tuple(starts(answer.sample(2, seed=seed))) for seed in range(600)]
    assert drawn[7] == tuple(starts(answer.sample(2, seed=7)))
    pairs = {(i, j) for i in range(6) for j in range(i + 1, 6)}
    assert set(drawn) == pairs
    assert all(20 <= drawn.count(pair) <= 64 for pair in pairs)
    assert starts(answer.sample(99, seed=1)) == [0, 1, 2, 3, 4, 5]
    assert starts(answer[2:4].sample(2)) == [2, 3]
    with pytest.raises(ValueError, match="a sample has at least 0 complex events, not -3"):
        answer.sample(-3)


def test_a_sample_of_a_huge_answer_is_drawn_by_its_counts() -> None:
    source = run(huge=10**30)
    sample = Answer(source).sample(5, seed=3)
    assert sample.count() == len(starts(sample)) == 5
    assert source.asked == ["count", "at"]


def test_an_answer_is_true_when_it_has_a_complex_event(answer: Answer) -> None:
    assert answer
    assert not answer.limit(0)


def test_the_answer_is_the_same_in_every_library(answer: Answer) -> None:
    table = answer.to_arrow()
    assert table.to_pylist() == rows()
    assert pa.table(answer).equals(table)
    assert answer.to_polars().to_dicts() == rows()
    assert pl.DataFrame(answer[2:]).height == 4
    frame = answer.to_pandas()
    assert frame["end"].tolist() == ENDS
    assert frame["a"][3][0] == {"name": "INTC", "position": 3}


def read_csv(path: Path) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = pyarrow.csv.read_csv(path).to_pylist()
    return [row | {label: json.loads(row[label]) for label in "ab"} for row in content]


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "x.parquet": lambda path: pyarrow.parquet.read_table(path).to_pylist(),
    "x.arrow": lambda path: pa.ipc.open_file(path).read_all().to_pylist(),
    "x.csv": read_csv,
}


@pytest.mark.parametrize("name", READERS)
def test_a_written_answer_reads_back(answer: Answer, tmp_path: Path, name: str) -> None:
    answer.write(tmp_path / name)
    assert READERS[name](tmp_path / name) == rows()
    answer.limit(0).write(str(tmp_path / name))
    assert READERS[name](tmp_path / name) == []
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_json_lines_hold_labels_apart_from_places(answer: Answer, tmp_path: Path) -> None:
    answer[1:2].write(tmp_path / "x.jsonl")
    (line,) = (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {
        "start": 1,
        "end": 4,
        "start_time": "2024-05-01T09:01:00+00:00",
        "end_time": "2024-05-01T10:04:00+00:00",
        "name": "INTC",
        "labels": {
            "a": [{"name": "INTC", "position": 1}],
            "b": [{"name": "QQQ", "price": 0.5 * k, "position": k} for k in (2, 3, 4)],
        },
    }


def test_json_lines_of_positions_hold_start_end_and_labels() -> None:
    file = io.BytesIO()
    Answer(run())[1:3].write(file, format="jsonl", positions=True)
    assert file.getvalue().decode().splitlines() == [
        '{"start": 1, "end": 4, "labels": {"a": [1], "b": [2, 3, 4]}}',
        '{"start": 2, "end": 7, "labels": {"a": [2], "b": [3, 4, 5, 6, 7]}}',
    ]


def test_nan_is_null_in_json() -> None:
    content = rows()[:1]
    content[0]["b"] = [{"name": "é", "price": float("nan"), "position": 1}]
    file = io.BytesIO()
    Answer(FakeRun(pa.RecordBatch.from_pylist(content, schema=run().schema))).write(file, format="jsonl")
    assert '"b": [{"name": "é", "price": null, "position": 1}]' in file.getvalue().decode()


def test_a_format_that_is_not_said_or_not_known_is_refused(answer: Answer, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x.out does not say its format: use one of .parquet, .csv, .jsonl"):
        answer.write(tmp_path / "x.out")
    with pytest.raises(ValueError, match="there is no format 'xls': use one of parquet, csv, jsonl, arrow"):
        answer.write(tmp_path / "x.out", format="xls")
    with pytest.raises(ValueError, match="an open file does not say its format: give format="):
        answer.write(io.BytesIO())
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    source = run()
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        Answer(source).write(tmp_path / "no" / "x.csv")
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a directory, not a file to write to"):
        Answer(source).write(tmp_path / "x.csv")
    assert source.asked == []


def test_an_interrupted_write_leaves_what_was_there(tmp_path: Path) -> None:
    class Interrupted(FakeRun):
        def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
            yield from super().tables(limit=min(2, limit or 2))
            raise KeyboardInterrupt

    path = tmp_path / "x.jsonl"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt):
        Answer(Interrupted(run().batch)).write(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_notebook_shows_the_first_ten(answer: Answer) -> None:
    page = shown_by(answer)
    assert page.texts("th")[:2] == ["starti64", "endi64"]
    assert page.texts("p") == ["6 complex events"]
    assert [row[-3] for row in page.rows()[:4]][::3] == ["#1#2#3#4", "#4#5#6#7… 2 more"]
    assert len(page.rows()) == 6
    assert shown_by(Answer(run()).limit(0)).text == "No complex events."


def test_a_notebook_reads_what_it_shows_and_one_more() -> None:
    many = FakeRun(pa.RecordBatch.from_pylist(rows() * 2, schema=run().schema))
    page = shown_by(Answer(many))
    assert page.texts("p") == ["More than 10 complex events, not counted yet", "… more"]
    assert len(page.rows()) == 10
    assert many.asked == ["tables 11"]
