"""A directory of rules on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.commands import estero

FROST = """-- title: Frost
SELECT calm, frost WHERE Wind AS calm ; Temperature AS frost
FILTER calm[value < 0.5] AND frost[value < 0] PARTITION BY [station] WITHIN 20 MINUTES
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """Two rules that are right."""
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "frost.ceql").write_text(FROST)
    (folder / "colder.ceql").write_text(FROST.replace("value < 0]", "value < -1]"))
    return folder


def events(night: Path) -> list[str]:
    return ["--events", str(night / "events.parquet"), "--type", "kind", "--time", "time", "--order", "id"]


def test_they_are_run_together(rules: Path, night: Path, tmp_path: Path) -> None:
    counted = estero("run", str(rules), *events(night), "--count")
    assert counted.exit_code == 0
    assert "frost" in counted.stdout
    out = tmp_path / "alerts.jsonl"
    assert estero("run", str(rules), *events(night), "--out", str(out)).exit_code == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert {line["rule"] for line in lines} == {"frost", "colder"}
    assert all(set(line["positions"]) >= {"calm", "frost"} for line in lines)
    shown = estero("run", str(rules), *events(night))
    assert "station=" in shown.stdout
    assert "shared automaton: colder, frost" in estero("explain", str(rules), *events(night)).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--param", "x=1"], "--param: no rule has the parameter $x"),
        (["--until", "end"], "--until: until is for rules that end with NOT(…) FOR, and there is none"),
        (["--count", "--format", "csv"], "--format: has no effect with --count, which prints a number"),
    ],
)
def test_what_no_rule_can_use_is_wrong_usage(
    rules: Path, night: Path, arguments: list[str], message: str
) -> None:
    result = estero("run", str(rules), *events(night), *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


def test_one_file_with_a_rule_in_eql_is_run_checked_and_explained(tmp_path: Path, night: Path) -> None:
    file = tmp_path / "cold.eql"
    file.write_text("Temperature where value < 0")
    counted = estero("run", str(file), *events(night), "--count")
    assert counted.exit_code == 0
    assert "cold" in counted.stdout
    assert "1 rule: ok" in estero("check", str(file)).stdout
    assert "1 rule" in estero("explain", str(file), *events(night)).stdout


def test_what_files_say_of_their_rules_is_a_column_that_is_asked_for(
    rules: Path, night: Path, tmp_path: Path
) -> None:
    out = tmp_path / "alerts.csv"
    assert estero("run", str(rules), *events(night), "--metadata", "title", "--out", str(out)).exit_code == 0
    assert out.read_text().startswith('"rule","rule_title","start"')
    assert '"frost","Frost"' in out.read_text()
    assert "rule_tit" in estero("run", str(rules), *events(night), "--metadata", "title").stdout
    unknown = estero("run", str(rules), *events(night), "--metadata", "owner")
    assert unknown.exit_code == 2
    assert "no rule has the metadata 'owner': there is file and title" in unknown.stderr
    query = estero("run", str(rules / "frost.ceql"), *events(night), "--metadata", "title")
    assert "is for a directory of rules, not for one query" in query.stderr


def test_all_errors_of_all_files_are_lines_that_editors_jump_to(rules: Path, night: Path) -> None:
    assert estero("check", str(rules)).stdout == f"{rules}: 2 rules: ok\n"
    (rules / "broken.ceql").write_text("SELECT * WHERE A ; ; B")
    (rules / "wrong.ceql").write_text(FROST.replace("frost[value", "frost[valu"))
    checked = estero("check", str(rules), *events(night))
    assert checked.exit_code == 2
    broken, wrong = checked.stdout.splitlines()
    assert broken.startswith(f"{rules / 'broken.ceql'}:1:20: there is no part between ; and ;")
    assert wrong.startswith(f"{rules / 'wrong.ceql'}:3:")
    assert "did you mean value?" in wrong
    assert checked.stderr == "2 errors, 2 rules without\n"
    assert estero("run", str(rules), *events(night)).exit_code == 2


def test_of_many_rules_those_are_counted_that_find_something(rules: Path, night: Path) -> None:
    few = estero("run", str(rules), *events(night), "--count", "--metadata", "title")
    assert "no complex events" not in few.stderr
    for number in range(20):
        (rules / f"never{number}.ceql").write_text(FROST.replace("value < 0]", "value < -1000]"))
    many = estero("run", str(rules), *events(night), "--count", "--metadata", "title")
    assert "rule_title" in many.stdout
    assert "frost" in many.stdout
    assert "never" not in many.stdout
    assert "rules have no complex events" in many.stderr


def test_a_run_of_rules_none_of_which_can_be_run_fails(tmp_path: Path, night: Path) -> None:
    (tmp_path / "broken.yml").write_text("title: [")
    result = estero("run", str(tmp_path), *events(night))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "broken.yml: this is not YAML" in result.stderr


def test_a_check_warns_of_what_no_event_has(tmp_path: Path, night: Path) -> None:
    (tmp_path / "odd.yml").write_text(
        "title: odd\nname: odd\nlogsource: {category: process_creation, product: windows}\n"
        "detection: {s: {Gone: x}, condition: s}\n"
    )
    checked = estero("check", str(tmp_path / "odd.yml"), "--events", str(night / "events.parquet"))
    assert checked.exit_code == 0
    assert "1 rule cannot hold in full: odd: no event tells that it is of" in checked.stderr


@pytest.mark.parametrize("option", [("--limit", "3"), ("--positions",), ("--partials",)])
def test_options_of_one_query_are_refused(rules: Path, night: Path, option: tuple[str, ...]) -> None:
    result = estero("run", str(rules), *events(night), *option)
    assert result.exit_code == 2
    assert "is for one query, not for a directory of rules" in " ".join(result.stderr.split())
