"""Columns of what files say of their rules, in all that answers become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from queries.test_eql_files import SHELL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGMA = """title: Cleared
id: 11111111-2222-3333-4444-555555555555
name: cleared
level: high
tags: [attack.t1070.001, attack.defense_evasion]
logsource: {category: test}
detection: {s: {name: cmd.exe}, condition: s}
"""
FILES = {
    "shell.toml": SHELL.replace("process where process.name", "any where name"),
    "commented.ceql": "-- title: Any\n-- tags: attack.t1001\nSELECT * WHERE Event",
    "silent.ceql": "SELECT * WHERE Event PARTITION BY [name]",
    "cleared.yml": SIGMA,
    "unfit.eql": "any where nowhere == 1",
}
EVENTS = pa.table({"name": ["sh", "cmd.exe", "x"], "t": [1, 2, 3]})
WORDS = ["title", "level", "tags", "techniques"]
SAID: dict[str, tuple[str | None, ...]] = {
    "shell": ("A shell", "low", "OS: any, attack.t1059, attack.t1059.004", "T1059, T1059.004"),
    "commented": ("Any", None, "attack.t1001", "T1001"),
    "silent": (None, None, None, None),
    "cleared": ("Cleared", "high", "attack.t1070.001, attack.defense_evasion", "T1070.001"),
}
COLUMNS = [f"rule_{word}" for word in WORDS]
pytestmark = pytest.mark.filterwarnings("ignore:1 rule does not fit these events:estero.EsteroWarning")


@pytest.fixture
def rules(tmp_path: Path) -> estero.RuleSet:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    return estero.rules(tmp_path, sigma={"logsource": False})


def said_in(rows: list[dict[str, Any]]) -> None:
    """Each rule says what its file says, and all of them are there."""
    assert {row["rule"] for row in rows} == set(SAID)
    for row in rows:
        assert tuple(row[name] for name in COLUMNS) == SAID[row["rule"]]


def test_metadata_is_in_all_that_answers_become(rules: estero.RuleSet, tmp_path: Path) -> None:
    answers = rules.run(EVENTS, time="t", metadata=WORDS)
    table = answers.to_arrow()
    assert table.schema == answers.schema
    assert table.column_names[:6] == ["rule", *COLUMNS, "start"]
    assert table.schema.field("rule_title").type == pa.dictionary(pa.int32(), pa.string())
    said_in(table.to_pylist())
    said_in(answers.to_dicts())
    frame = answers.to_pandas()
    said_in(frame.astype(object).where(frame.notna(), None).to_dict("records"))
    said_in(answers.to_polars().to_dicts())
    said_in(pa.RecordBatchReader.from_stream(answers).read_all().to_pylist())
    assert table.drop_columns(COLUMNS).equals(rules.run(EVENTS, time="t").to_arrow())


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl", "csv"])
def test_metadata_is_written(rules: estero.RuleSet, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"out.{ending}"
    assert rules.run(EVENTS, time="t", metadata=WORDS).write(file) == 9
    if ending == "jsonl":
        said_in([json.loads(line) for line in file.read_text().splitlines()])
    elif ending == "csv":
        import pyarrow.csv

        options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
        said_in(pyarrow.csv.read_csv(file, convert_options=options).to_pylist())
    else:
        import pyarrow.dataset

        said_in(pyarrow.dataset.dataset(file, format=ending).to_table().to_pylist())


def test_the_tables_of_rules_have_it_in_front(rules: estero.RuleSet) -> None:
    answers = rules.run(EVENTS.slice(0, 1), time="t", metadata=WORDS)
    tables = answers.tables()
    assert {name: table.num_rows for name, table in tables.items()} == {
        **dict.fromkeys(("shell", "commented", "silent"), 1),
        "cleared": 0,
    }
    for name, table in tables.items():
        assert table.column_names[: len(COLUMNS)] == COLUMNS
        for row in table.to_pylist():
            assert tuple(row[column] for column in COLUMNS) == SAID[name]


def test_a_recognizer_has_it_and_has_it_again_when_it_is_restored(rules: estero.RuleSet) -> None:
    recognizer = rules.recognizer(EVENTS.schema, time="t", metadata=WORDS)
    rows = recognizer.push(EVENTS.slice(0, 2)).to_dicts()
    other = estero.restore(rules, recognizer.snapshot(), metadata=WORDS)
    more = other.push(EVENTS.slice(2))
    assert more.schema == other.schema == recognizer.schema
    said_in(rows + more.to_dicts())
    recognizer.add("new", "SELECT * WHERE Event")
    assert {
        row["rule_title"] for row in recognizer.push(EVENTS.slice(2)).to_dicts() if row["rule"] == "new"
    } == {None}


def test_one_word_needs_no_list_and_a_file_is_a_word(rules: estero.RuleSet) -> None:
    (row, *_) = rules.run(EVENTS, time="t", metadata="file").to_dicts()
    assert row["rule_file"] == str(rules.file_of(row["rule"]))


def test_an_unknown_word_is_named_with_those_there_are(rules: estero.RuleSet) -> None:
    with pytest.raises(
        ValueError, match=r"no rule has the metadata 'titel': did you mean title\? there is file, id"
    ):
        rules.run(EVENTS, time="t", metadata=["titel"])
    with pytest.raises(ValueError, match="no rule has the metadata 'title': nothing is said of these rules"):
        estero.rules({"a": "SELECT * WHERE Event"}).run(EVENTS, metadata=["title"])
    with pytest.raises(ValueError, match="metadata is for a set of rules: leave it out for one query"):
        estero.restore(estero.query("SELECT * WHERE Event"), b"", metadata=["title"])  # type: ignore[call-overload]


def test_a_recognizer_leaves_the_rules_out_that_a_run_leaves_out(rules: estero.RuleSet) -> None:
    message = "1 rule does not fit these events, and the others run: unfit: no event has a field nowhere"
    with pytest.warns(estero.EsteroWarning, match=message):
        answers = rules.run(EVENTS, time="t")
    with pytest.warns(estero.EsteroWarning, match=message):
        recognizer = rules.recognizer(EVENTS.schema, time="t")
    assert recognizer.names == answers.names == tuple(name for name in rules.names if name != "unfit")
    assert recognizer.push(EVENTS).to_dicts() == answers.to_dicts()
    assert estero.restore(rules, recognizer.snapshot()).names == answers.names


@pytest.mark.spark
def test_on_spark_it_is_the_same(rules: estero.RuleSet, spark: SparkSession) -> None:
    from estero.spark import recognize

    frame = spark.createDataFrame(EVENTS)
    with pytest.warns(estero.EsteroWarning, match="unfit: no event has a field nowhere"):
        found = recognize(frame, rules, time="t", metadata=WORDS)
    assert found.columns[:6] == ["rule", *COLUMNS, "start"]
    rows = [row.asDict() for row in found.collect()]
    said_in(rows)
    assert len(rows) == rules.run(EVENTS, time="t").count()
    with pytest.raises(ValueError, match="metadata is for a set of rules: leave it out for one query"):
        recognize(frame, "SELECT * WHERE Event", metadata="title")
