"""The marked events of an answer, one row for each event and label."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given

import estero
from estero.answers.answer import Answer
from estero.answers.answer_schema import label_of
from estero.errors import DataError
from estero.language.tree.query import QueryTree
from estero.reference.queries import Event
from estero.testing import events
from laws.evaluators import planned
from notebooks import shown_by
from strategies.patterns import queries, streams, to_table

STREAM = events("A(k=1, v=2.5)@0s B(k=1, s=x)@1s B(k=2)@2s A(k=2)@3s B(k=1)@4s")


def answer(query: str, stream: pa.Table = STREAM) -> Answer:
    return estero.query(query).run(stream, type="type", time="time")


def test_each_marked_event_has_a_row_for_each_label() -> None:
    rows = answer("SELECT x[v], B[s] WHERE A AS x ; B PARTITION BY [k]").rows()
    assert rows.schema.names == ["match", "label", "position", "k", "v", "s"]
    assert [tuple(row.values()) for row in rows] == [
        (0, "x", 0, 1, 2.5, None),
        (0, "B", 1, 1, None, "x"),
        (1, "x", 0, 1, 2.5, None),
        (1, "B", 4, 1, None, None),
    ]


def test_an_event_with_two_labels_has_two_rows_in_the_order_of_the_labels() -> None:
    rows = answer("SELECT * WHERE A AS x ; B PARTITION BY [k]").limit(1).rows().to_arrow()
    assert rows["label"].to_pylist() == ["A", "x", "B"]
    assert rows["position"].to_pylist() == [0, 0, 1]


def test_names_that_are_taken_get_an_underscore() -> None:
    stream = events("A(match=7, label=l, position=9)")
    rows = estero.query("SELECT * WHERE A").run(stream, type="type").rows()
    assert rows.schema.names == ["match", "label", "position", "type", "match_", "label_", "position_"]
    assert next(iter(rows)) == {
        "match": 0,
        "label": "A",
        "position": 0,
        "type": "A",
        "match_": 7,
        "label_": "l",
        "position_": 9,
    }


@pytest.mark.parametrize("key", ["match", "label", "position"])
def test_a_key_whose_name_is_taken_gets_an_underscore_and_is_not_repeated(key: str) -> None:
    stream = events(f"A({key}=7) B({key}=7) A({key}=8) B({key}=8)")
    found = estero.query(f"SELECT A, B[type] WHERE A ; B PARTITION BY [{key}]").run(stream, type="type")
    rows = found.rows()
    assert rows.schema.names == ["match", "label", "position", f"{key}_", "type"]
    assert [tuple(row.values()) for row in rows] == [
        (0, "A", 0, 7, "A"),
        (0, "B", 1, 7, "B"),
        (1, "A", 2, 8, "A"),
        (1, "B", 3, 8, "B"),
    ]
    for by_partition in (False, True):
        taking_part = found.participation(by_partition=by_partition).to_dicts()
        assert [row[f"{key}_"] for row in taking_part] == [7, 7, 8, 8]


def test_what_is_computed_of_a_complex_event_is_no_attribute_of_its_events() -> None:
    rows = answer("SELECT x[v], count(B) AS n, 2 * x.v AS v WHERE A AS x ; B PARTITION BY [k]").rows()
    assert rows.schema.names == ["match", "label", "position", "k", "v"]
    assert {row["v"] for row in rows} == {2.5}


def test_without_labels_there_are_no_rows() -> None:
    assert answer("SELECT NONE WHERE A ; B PARTITION BY [k]").rows().to_arrow().num_rows == 0


def test_types_with_tables_of_their_own_give_one_column_that_holds_both() -> None:
    tables = {"A": pa.table({"t": [1], "v": [1]}), "B": pa.table({"t": [2], "v": [0.5]})}
    rows = estero.query("SELECT * WHERE A ; B").run(tables, time="t").rows().to_arrow()
    assert rows["v"].to_pylist() == [1.0, 0.5]


def test_rows_are_frames_and_files() -> None:
    rows = answer("SELECT * WHERE A ; B PARTITION BY [k]").rows()
    table = rows.to_arrow()
    assert pa.table(rows) == table
    assert rows.to_pandas().shape == rows.to_polars().shape == table.shape
    assert pl.DataFrame(rows).shape == table.shape
    file = io.BytesIO()
    rows.write(file, format="parquet")
    assert pa.parquet.read_table(file)["position"] == table["position"]
    lines = io.BytesIO()
    rows.write(lines, format="jsonl")
    assert json.loads(lines.getvalue().splitlines()[0])["label"] == "A"
    assert "labels" not in json.loads(lines.getvalue().splitlines()[0])


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2), pa.dictionary(pa.int8(), pa.binary())],
)
def test_bytes_are_written_to_csv_as_to_json(kind: pa.DataType) -> None:
    values = pa.array([b"\xff\xfe", None], pa.binary())
    encoded = pa.types.is_dictionary(kind)
    column = values.dictionary_encode().cast(kind) if encoded else values.cast(kind)
    rows = (
        estero.query("SELECT A[b] WHERE A")
        .run(pa.table({"type": ["A", "A"], "b": column}), type="type")
        .rows()
    )
    csv, lines = io.BytesIO(), io.BytesIO()
    rows.write(csv, format="csv")
    rows.write(lines, format="jsonl")
    assert csv.getvalue() == b'"match","label","position","b"\n0,"A",0,"//4="\n1,"A",1,\n'
    assert [json.loads(line)["b"] for line in lines.getvalue().splitlines()] == ["//4=", None]


def test_a_type_that_parquet_does_not_have_is_an_error_that_says_so(tmp_path: Path) -> None:
    intervals = pa.array([pa.MonthDayNano([1, 2, 3])])
    found = estero.query("SELECT * WHERE A").run(pa.table({"type": ["A"], "i": intervals}), type="type")
    for written in (found, found.rows()):
        with pytest.raises(DataError, match=r"Parquet does not have the types of all columns.*interval"):
            written.write(tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_rows_come_in_batches_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    all_rows = answer("SELECT * WHERE (A OR B)+ AS x").rows()
    whole = all_rows.to_arrow()
    monkeypatch.setattr("estero.answers.rows.ROWS_OF_A_BATCH", 5)
    cut = list(all_rows.batches())
    assert pa.Table.from_batches(cut).equals(whole)
    most = max(whole["match"].value_counts().field("counts").to_pylist())
    assert max(batch.num_rows for batch in cut) <= 5 + most
    assert len(cut) > 5


@pytest.mark.parametrize("most", [0, 1, 4, 100])
def test_the_first_rows_are_taken(most: int) -> None:
    rows = answer("SELECT * WHERE A ; B PARTITION BY [k]").rows()
    assert rows.limit(most).to_arrow() == rows.to_arrow().slice(0, most)
    assert rows.limit(most).limit(2).to_arrow() == rows.to_arrow().slice(0, min(most, 2))


def test_a_limit_is_not_negative() -> None:
    with pytest.raises(ValueError, match="a limit is at least 0, not -1"):
        answer("SELECT * WHERE A").rows().limit(-1)


def test_notebooks_show_rows_and_complex_events_with_nothing_of_them_read_as_html() -> None:
    stream = events("A(v='<b>')@0s").append_column("w", pa.array([None], pa.int64()))
    found = estero.query('SELECT * WHERE A AS "<i>"').run(stream, type="type", time="time")
    page = shown_by(found.rows())
    assert page.texts("th")[:2] == ["matchi64", "labelstr"]
    assert [row[1] for row in page.rows()] == ["A", "<i>"]
    assert {"<b>", "null"} <= set(page.rows()[0])
    assert "<i>" in shown_by(found[0]).texts("th")
    assert "<b>" in shown_by(found[0]).texts("td")
    query = shown_by(estero.query('SELECT * WHERE A+ AS "<i>"'))
    assert query.texts("pre") == ['SELECT *\nWHERE A+ AS "<i>"']
    assert query.texts("li")[0].startswith("A+ may")


def test_long_rows_say_that_there_are_more() -> None:
    page = shown_by(answer("SELECT * WHERE (A OR B)+ AS x").rows())
    assert len(page.rows()) == 20
    assert page.texts("p") == ["… more"]


def test_dicts_are_complex_events() -> None:
    (first, *_) = answer("SELECT B[s] WHERE A ; B PARTITION BY [k]").to_dicts()
    assert (first["start"], first["end"], first["k"]) == (0, 1, 1)
    assert first["B"] == [{"s": "x", "position": 1}]


@given(queries(), streams())
def test_rows_are_the_marks_of_the_answer(tree: QueryTree, stream: list[Event]) -> None:
    found = Answer(planned(tree, to_table(stream)))
    labels = [name for field in found.schema if (name := label_of(field)) is not None]
    wanted = [
        (number, position, labels.index(label), label)
        for number, each in enumerate(found)
        for label, positions in each.positions.items()
        for position in positions
    ]
    rows = found.rows().to_arrow()
    columns = (rows[name].to_pylist() for name in ("match", "position", "label"))
    assert list(zip(*columns, strict=True)) == [
        (number, position, label) for number, position, _, label in sorted(wanted)
    ]


def test_complex_events_without_a_shown_event_have_no_rows() -> None:
    stream = pa.table({"type": list("AC"), "time": [1, 2]})
    with pytest.warns(estero.EsteroWarning, match="there are no events of type B"):
        hidden = answer("SELECT b WHERE A AS a ; (B AS b OR C AS c)", stream)
    assert hidden.count() == 1
    assert hidden.rows().to_arrow().num_rows == 0
    assert hidden.participation().to_arrow().num_rows == 0
