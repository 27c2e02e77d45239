"""Sets of rules: their files, their errors, their tables, and changes of them."""

from __future__ import annotations

import pickle
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero.testing import events

TEXT = "SELECT * WHERE A AS a ; B AS b FILTER b[k > {}] PARTITION BY [g] WITHIN 9 EVENTS"
STREAM = events("A(k=1, g='x') A(k=1, g='y') B(k=5, g='x') B(k=9, g='y')")


def written(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"{name}.ceql").write_text(text, "utf-8")
    return folder


def test_the_names_of_files_are_those_of_rules_and_their_comments_say_more(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    written(tmp_path / "below", second=f"\n-- severity : high\n{TEXT.format(8)}\n-- title: too late")
    written(tmp_path, first=f"-- title: One: two\n-- no word\n{TEXT.format(4)}")
    rules = estero.rules(tmp_path)
    assert rules.names == ("second", "first")  # in order of their paths
    assert rules.metadata == {
        "first": {"title": "One: two", "file": str(tmp_path / "first.ceql")},
        "second": {"severity": "high", "file": str(tmp_path / "below" / "second.ceql")},
    }
    assert rules.run(STREAM, type="type").counts() == {"second": 1, "first": 2}
    assert estero.rules([tmp_path / "first.ceql"]).names == ("first",)
    assert rules.replace("first", TEXT.format(5)).metadata["first"] == {}


def test_what_is_wrong_with_files_is_said_with_their_names(tmp_path: Path) -> None:
    with pytest.raises(estero.DataError, match=r"there are no rules in .*: their files end in \.ceql"):
        estero.rules(tmp_path)
    with pytest.raises(estero.DataError, match="there is no file or directory"):
        estero.rules(tmp_path / "none")
    (tmp_path / "odd.ceql").write_bytes(b"\xff\xff")
    with pytest.raises(estero.DataError, match=r"odd\.ceql is not UTF-8"):
        estero.rules(tmp_path)
    (tmp_path / "odd.ceql").write_bytes(b" " * (2 << 20))
    with pytest.raises(estero.DataError, match=r"odd\.ceql is larger than a megabyte"):
        estero.rules(tmp_path)
    (tmp_path / "odd.ceql").unlink()
    (tmp_path / "more").mkdir()
    written(tmp_path, twice=TEXT.format(1))
    written(tmp_path / "more", twice=TEXT.format(1))
    with pytest.raises(estero.DataError, match="two files have the rule 'twice'"):
        estero.rules(tmp_path)


def test_all_errors_of_all_rules_are_told_with_their_places(tmp_path: Path) -> None:
    written(
        tmp_path, one="SELECT * WHERE A ; ; B", two="SELECT *\nWHERE A FILTER x[k > 1]", three=TEXT.format(1)
    )
    with pytest.raises(estero.QueryError) as raised:
        estero.rules(tmp_path)
    errors = [raised.value, *raised.value.others]
    assert [(Path(str(error.rule)).name, error.line_and_column) for error in errors] == [
        ("one.ceql", (1, 20)),
        ("two.ceql", (2, 16)),
    ]
    assert "two.ceql: " in str(raised.value)
    with pytest.raises(estero.QueryError, match="rule one: "):
        estero.rules({"one": "SELECT * WHERE A ; ; B"})


def test_a_rule_that_does_not_fit_the_events_is_named() -> None:
    rules = estero.rules({"right": TEXT.format(1), "wrong": "SELECT * WHERE A AS a FILTER a[none > 1]"})
    with pytest.raises(estero.QueryError, match=r"rule wrong: A"):
        rules.run(STREAM, type="type")
    assert list(rules.check(STREAM, type="type")) == ["wrong"]
    assert rules.check() == {}
    recognizer = estero.rules({"right": TEXT.format(1)}).recognizer(STREAM.schema, type="type")
    with pytest.raises(estero.QueryError, match=r"rule wrong: A"):
        recognizer.add("wrong", "SELECT * WHERE A AS a FILTER a[none > 1]")
    with pytest.raises(estero.QueryError, match=r"rule endless: SELECT LONGEST needs a window"):
        recognizer.add("endless", "SELECT LONGEST * WHERE A+")
    assert recognizer.names == ("right",)
    assert recognizer.push(STREAM).counts() == {"right": 2}


def test_names_are_kept_apart_and_never_empty() -> None:
    rules = estero.rules({"one": TEXT.format(1)})
    for name in ("one", "  "):
        with pytest.raises(ValueError, match=r"already|not empty"):
            rules.add(name, TEXT.format(2))
    for unknown in (rules.remove, rules.__getitem__, rules.run(STREAM, type="type").__getitem__):
        with pytest.raises(KeyError, match=r"there is no rule 'on'.*one"):
            unknown("on")
    assert rules.add("two", TEXT.format(8)).remove("one").names == ("two",)


def test_a_run_keeps_the_rules_that_it_began_with() -> None:
    rules = estero.rules({"one": TEXT.format(1)})
    answers = rules.run(STREAM, type="type")
    rules.add("two", TEXT.format(8))
    assert answers.counts() == {"one": 2}
    assert rules.run(STREAM, type="type").counts() == {"one": 2, "two": 1}


def test_parameters_are_given_to_the_rules_that_have_them() -> None:
    rules = estero.rules({"open": TEXT.format("$least"), "closed": TEXT.format(8)}).bind(least=4)
    assert rules.run(STREAM, type="type").counts() == {"open": 2, "closed": 1}
    with pytest.raises(ValueError, match=r"no rule has the parameter \$leest.*least"):
        estero.rules({"open": TEXT.format("$least")}).bind(leest=4)


def test_the_common_table_is_the_same_in_every_form(tmp_path: Path) -> None:
    answers = estero.rules({"one": TEXT.format(1), "two": TEXT.format(8)}).run(STREAM, type="type")
    wanted = [
        {"rule": "one", "start": 0, "end": 2, "keys": {"g": "x"}, "positions": {"a": [0], "b": [2]}},
        {"rule": "one", "start": 1, "end": 3, "keys": {"g": "y"}, "positions": {"a": [1], "b": [3]}},
        {"rule": "two", "start": 1, "end": 3, "keys": {"g": "y"}, "positions": {"a": [1], "b": [3]}},
    ]
    rows = answers.to_dicts()
    for row, expected in zip(rows, wanted, strict=True):
        labelled = {label: row["positions"][label] for label in ("a", "b")}
        assert {**row, "positions": labelled} == expected
    assert answers.to_pandas()["rule"].tolist() == ["one", "one", "two"]
    assert answers.to_polars()["end"].to_list() == [2, 3, 3]
    assert pa.table(answers).num_rows == 3
    for suffix in ("parquet", "arrow", "csv", "jsonl"):
        assert answers.write(tmp_path / f"alerts.{suffix}") == 3
    assert pyarrow.parquet.read_table(tmp_path / "alerts.parquet").schema.equals(answers.schema)
    (line, *_) = (tmp_path / "alerts.jsonl").read_text().splitlines()
    assert line.startswith('{"rule":"one","start":0,"end":2')
    assert '"keys":{"g": "x"}' in line


def test_sets_and_answers_are_sent_to_processes_and_used_by_threads() -> None:
    rules = pickle.loads(pickle.dumps(estero.rules({f"over {n}": TEXT.format(n) for n in range(20)})))
    answers = pickle.loads(pickle.dumps(rules.run(STREAM, type="type")))
    told: list[dict[str, int]] = []
    threads = [Thread(target=lambda: told.append(answers.counts())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [{f"over {n}": (n < 5) + (n < 9) for n in range(20)}] * 4


def test_a_stream_that_passes_once_is_held_where_keys_differ() -> None:
    texts = {
        "by g": TEXT.format(1),
        "by k": TEXT.format(1).replace("[g]", "[k]"),
        "all": "SELECT * WHERE A ; B",
    }
    batches = iter(STREAM.to_batches(max_chunksize=1))
    answers = estero.rules(texts).run(batches, type="type")
    assert answers.counts() == {"by g": 2, "by k": 0, "all": 4}


def test_answers_of_a_push_end_with_the_next_one_or_a_change() -> None:
    recognizer = estero.rules({"one": TEXT.format(1)}).recognizer(STREAM.schema, type="type")
    told: list[int] = []
    recognizer.on_match(lambda answers: told.append(answers.count()))
    first = recognizer.push(STREAM)
    recognizer.add("two", TEXT.format(8))
    with pytest.raises(estero.EsteroError, match="this answer is of an earlier push"):
        first.to_arrow()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(recognizer.push(STREAM))
    assert told == [2, 5]
    with pytest.raises(ValueError, match="needs a rule to begin with"):
        estero.rules({}).recognizer(STREAM.schema, type="type")
    recognizer.close()
    with pytest.raises(estero.EsteroError, match="the recognizer is closed"):
        recognizer.push(STREAM)


def test_rules_that_come_and_go_leave_no_conditions_behind() -> None:
    rules = estero.rules({f"rule {number}": TEXT.format(number) for number in range(10)})
    recognizer = rules.recognizer(STREAM.schema, type="type")
    (reading,) = recognizer._readings
    for number in range(10, 300):
        recognizer.add(f"rule {number}", TEXT.format(number))
        recognizer.remove(f"rule {number - 10}")
        assert len(reading._dispatch.places) <= 150
    recognizer.replace("rule 299", TEXT.format(4))
    assert recognizer.push(STREAM).counts()["rule 299"] == 2
