"""Rules in files that change while a stream runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero import DataError
from local.streams import (
    QUERY,
    RULES,
    abandon,
    events,
    expected,
    of_rule,
    often,
    put,
    read_lines,
    stream,
    told,
)

EVENTS = events(60)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    directory = tmp_path / "rules"
    directory.mkdir()
    for name, text in RULES.items():
        (directory / f"{name}.ceql").write_text(text)
    return directory


def test_rules_that_are_added_removed_and_replaced_count_from_then_on(
    tmp_path: Path, rules: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules, version=True) as running:
        running._settings = often(running._settings)
        assert running.step()
        first = running.metrics()["version"]
        (rules / "small.ceql").unlink()
        (rules / "large.ceql").write_text("SELECT * WHERE C AS y FILTER y[v > 50]")
        (rules / "new.ceql").write_text("SELECT * WHERE B")
        (rules / "broken.ceql").write_text("SELECT * WHERE")
        put(tmp_path / "in", 1, EVENTS[20:])
        for _ in range(3):
            running.step()
        second = running.metrics()["version"]
    assert "the rule broken is refused" in caplog.text
    rows = read_lines(tmp_path / "out")
    assert {row["version"] for row in rows} == {first, second}
    assert first != second
    assert told([row for row in rows if row["rule"] == "pairs"]) == of_rule("pairs", RULES, EVENTS)
    early = [row for row in rows if row["version"] == first]
    assert told(early) == expected(estero.rules(RULES), EVENTS[:20])
    late = {row["rule"]: row for row in rows if row["version"] == second}
    assert set(late) == {"pairs", "large", "new"}
    assert sum(row["rule"] == "new" for row in rows) == sum(event["kind"] == "B" for event in EVENTS[20:])


def test_a_stream_goes_on_with_the_rules_that_it_had_and_then_with_those_of_the_directory(
    tmp_path: Path, rules: Path
) -> None:
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules) as running:
        running.step()
    (rules / "small.ceql").unlink()
    put(tmp_path / "in", 1, EVENTS[20:])
    with stream(tmp_path, rules) as running:
        running.run(until_caught_up=True)
        assert running.metrics()["rules"] == 2
    rows = read_lines(tmp_path / "out")
    assert told([row for row in rows if row["rule"] == "pairs"]) == of_rule("pairs", RULES, EVENTS)
    assert {row["rule"] for row in rows if row["end"] >= 20} <= {"pairs", "large"}


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_rules_that_changed_before_a_failure_are_repeated_as_they_changed(tmp_path: Path, steps: int) -> None:
    def rows(directory: Path, *, killed: bool) -> list[str]:
        directory.mkdir()
        put(directory / "in", 0, EVENTS)
        (directory / "rules").mkdir()
        for name, text in RULES.items():
            (directory / "rules" / f"{name}.ceql").write_text(text)

        def opened() -> estero.LiveStream:
            running = stream(directory, directory / "rules", batch=9, checkpoint_every=3600)
            running._settings = often(running._settings)
            return running

        running = opened()
        for step in range(1, 5):
            running.step()
            if step == 1:
                (directory / "rules" / "small.ceql").unlink()
                (directory / "rules" / "large.ceql").write_text("SELECT * WHERE C AS y FILTER y[v > 50]")
            if step == 2:
                (directory / "rules" / "new.ceql").write_text("SELECT * WHERE B")
            if killed and step == steps:
                abandon(running)
                running = opened()
        (directory / "rules" / "large.ceql").unlink()
        running.run(until_caught_up=True)
        running.close()
        return told(read_lines(directory / "out"))

    whole = rows(tmp_path / "whole", killed=False)
    assert rows(tmp_path / "killed", killed=True) == whole
    assert whole != expected(estero.rules(RULES), EVENTS)


def test_a_new_rule_begins_with_a_replay_of_what_is_kept_also_after_a_failure(
    tmp_path: Path, rules: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def opened() -> estero.LiveStream:
        running = stream(tmp_path, rules, batch=9, checkpoint_every=3600, keep="10 seconds")
        running._settings = often(running._settings)
        return running

    put(tmp_path / "in", 0, EVENTS)
    running = opened()
    running.step()
    (rules / "again.ceql").write_text(RULES["pairs"])
    (rules / "endless.ceql").write_text("SELECT * WHERE A ; B PARTITION BY [user]")
    running.step()
    assert "the rule endless begins with the next event: the rule cannot begin with a replay" in caplog.text
    abandon(running)
    with opened() as running:
        running.run(until_caught_up=True)
    rows = read_lines(tmp_path / "out")
    ends = {
        name: [(row["start"], row["end"]) for row in rows if row["rule"] == name and row["end"] >= 9]
        for name in ("pairs", "again", "endless")
    }
    assert ends["again"] == ends["pairs"]
    assert min(start for start, _ in ends["again"]) < 9 <= min(start for start, _ in ends["endless"])
    with pytest.raises(ValueError, match="keep is for a set of rules: leave it out for one query"):
        stream(tmp_path, estero.query(QUERY), keep="10 seconds")


def test_rules_in_a_table_come_and_go(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "rules.parquet"

    def write(**rules: str) -> None:
        rows = [{"name": name, "query": text, "title": name.title()} for name, text in rules.items()]
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), file.with_suffix(".new"))
        file.with_suffix(".new").rename(file)

    write(**RULES, broken="SELECT")
    put(tmp_path / "in", 0, EVENTS[:20])
    table = estero.rule_table(file)
    with stream(tmp_path, table, metadata=["title"]) as running:
        running._settings = often(running._settings)
        running.step()
        file.unlink()
        put(tmp_path / "in", 1, EVENTS[20:40])
        running.step()
        write(pairs=RULES["pairs"], small="SELECT * WHERE B", unfit="SELECT * WHERE A FILTER A[zz > 1]")
        put(tmp_path / "in", 2, EVENTS[40:])
        running.step()
        assert running.metrics()["rules"] == 2
    for said in ("rule broken is refused", "table of rules cannot be read", "rule unfit is refused"):
        assert said in caplog.text
    rows = read_lines(tmp_path / "out")
    assert {row["rule_title"] for row in rows} == {"Pairs", "Large", "Small"}
    assert told([row for row in rows if row["rule"] == "pairs"]) == [
        json.dumps(json.loads(row) | {"rule_title": "Pairs"}, sort_keys=True)
        for row in of_rule("pairs", RULES, EVENTS)
    ]
    assert sum(row["rule"] == "small" for row in rows if row["end"] >= 40) == sum(
        event["kind"] == "B" for event in EVENTS[40:]
    )


def test_a_rule_that_becomes_broken_counts_as_it_was(tmp_path: Path, rules: Path) -> None:
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules) as running:
        running._settings = often(running._settings)
        running.step()
        (rules / "pairs.ceql").write_text("SELECT * WHERE A ;")
        put(tmp_path / "in", 1, EVENTS[20:])
        running.run(until_caught_up=True)
    assert told(read_lines(tmp_path / "out")) == expected(estero.rules(RULES), EVENTS)


def test_rules_in_other_languages_go_on_from_a_checkpoint(tmp_path: Path, rules: Path) -> None:
    (rules / "elastic.eql").write_text("B where v > 5")
    (rules / "sigma.yml").write_text(
        "{title: t, name: named, logsource: {category: c}, detection: {s: {kind: b}, condition: s}}"
    )
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules) as running:
        running.step()
        assert running.metrics()["rules"] == len(RULES) + 1
    put(tmp_path / "in", 1, EVENTS[20:])
    with stream(tmp_path, rules) as running:
        running.run(until_caught_up=True)
    ends = [row["end"] for row in read_lines(tmp_path / "out") if row["rule"] == "elastic"]
    assert ends == [
        place for place, event in enumerate(EVENTS) if event["kind"] == "B" and int(str(event["v"])) > 5
    ]


def test_a_rule_that_became_broken_meanwhile_goes_on_as_the_checkpoint_has_it(
    tmp_path: Path, rules: Path
) -> None:
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules) as running:
        running.step()
    (rules / "pairs.ceql").write_text("SELECT * WHERE A ;")
    put(tmp_path / "in", 1, EVENTS[20:])
    with stream(tmp_path, rules) as running:
        running.run(until_caught_up=True)
    assert told(read_lines(tmp_path / "out")) == expected(estero.rules(RULES), EVENTS)


def test_a_directory_without_a_rule_that_can_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    put(tmp_path / "in", 0, EVENTS)
    with (
        pytest.raises(DataError, match="there is no rule that can be used"),
        stream(tmp_path, tmp_path / "rules") as one,
    ):
        one.step()


def test_answers_have_what_files_say_of_their_rules_by_now(tmp_path: Path, rules: Path) -> None:
    (rules / "pairs.ceql").write_text(f"-- title: First\n{RULES['pairs']}")
    put(tmp_path / "in", 0, EVENTS[:20])
    with stream(tmp_path, rules, metadata=["title"]) as running:
        running.step()
    (rules / "pairs.ceql").write_text(f"-- title: Second\n{RULES['pairs']}")
    put(tmp_path / "in", 1, EVENTS[20:])
    with stream(tmp_path, rules, metadata=["title"]) as running:
        running.run(until_caught_up=True)
    titles = {(row["rule"], row["rule_title"]) for row in read_lines(tmp_path / "out")}
    assert {title for rule, title in titles if rule == "pairs"} == {"First", "Second"}
    assert {title for rule, title in titles if rule != "pairs"} == {None}


def test_metadata_that_no_rule_has_is_named(tmp_path: Path, rules: Path) -> None:
    put(tmp_path / "in", 0, EVENTS[:20])
    with (
        stream(tmp_path, rules, metadata=["owner"]) as running,
        pytest.raises(ValueError, match="no rule has"),
    ):
        running.step()
    with pytest.raises(ValueError, match="metadata is for a set of rules: leave it out for one query"):
        stream(tmp_path, estero.query(QUERY), metadata=["title"])


def test_several_rules_of_a_file_in_sigma_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    rule = (
        "{title: t%s, logsource: {product: windows, service: system}, detection: {s: {k: %s}, condition: s}}"
    )
    counted = "{type: event_count, rules: [one], timespan: 1h, condition: {gte: 2}}"
    several = [rule % (", name: named", "b"), rule % (", name: one", "a"), rule % ("", "c"), rule % ("", "d")]
    several.append(f"{{title: t, name: many, correlation: {counted}}}")
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "file.yml").write_text("\n---\n".join(several))
    events = [
        {"at": f"2026-01-01T00:00:{second:02}Z", "Channel": "System", "k": letter}
        for second, letter in enumerate("abcda")
    ]
    options: dict[str, Any] = {"checkpoint": tmp_path / "state", "checkpoint_every": 0, "time": "at"}
    for number, rows in enumerate((events[:1], events[1:])):
        put(tmp_path / "in", number, rows)
        with estero.live(
            tmp_path / "rules", f"json:{tmp_path}/in", f"json:{tmp_path}/out", **options
        ) as running:
            running.run(until_caught_up=True)
    alerts = {(row["rule"], row["start"], row["end"]) for row in read_lines(tmp_path / "out")}
    assert alerts == {("named", 1, 1), ("file", 2, 2), ("file-2", 3, 3)}  # many is open
