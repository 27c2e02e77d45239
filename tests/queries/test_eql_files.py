"""Rules in EQL from files: texts, and Elastic's rules in TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

import estero
from queries.test_eql import table

SHELL = '''
[rule]
name = "A shell"
rule_id = "r-1"
severity = "low"
risk_score = 21
language = "eql"
tags = ["OS: any"]
query = """
process where process.name : ("sh", "cmd.exe")
"""
[[rule.threat]]
framework = "MITRE ATT&CK"
[[rule.threat.technique]]
id = "T1059"
[[rule.threat.technique.subtechnique]]
id = "T1059.004"
'''
FILES = {
    "shell.toml": SHELL,
    "deep/text.eql": '// a note\nfile where process.name == "a.txt"',
    "deep/wrong.eql": "any where a = 1",
    "piped.eql": "any where true | tail 1",
    "other.toml": '[rule]\nlanguage = "kuery"\nquery = "a:b"',
    "none.toml": "[metadata]\nmaturity = 1",
    "broken.toml": "[rule",
    "lost.eql": "any where nowhere == 1",
}


BROKEN = "this is not TOML: Expected ']' at the end of a table declaration (at end of document)"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    return tmp_path


def test_rules_run_and_the_others_say_why_not(directory: Path) -> None:
    with pytest.warns(estero.EsteroWarning, match="5 of 8 rules cannot be run"):
        rules = estero.rules(directory)
    assert set(rules.names) == {"shell", "text", "lost"}
    assert {name: error.message for name, error in rules.refused.items()} == {
        "wrong": "= is not expected here",
        "piped": "tail takes a part of a whole answer, and here is none",
        "other": "this rule is in kuery, not in EQL",
        "none": "there is no rule with a query here",
        "broken": BROKEN,
    }
    with pytest.warns(estero.EsteroWarning, match="1 rule does not fit these events, .*: lost: no event"):
        answers = rules.run(table(), time="@timestamp")
    assert [(ce.rule, ce.all_positions) for ce in answers] == [
        ("shell", (0,)),
        ("shell", (1,)),
        ("text", (3,)),
    ]


def test_what_a_file_says_of_its_rule(directory: Path) -> None:
    assert estero.rules(directory / "shell.toml").metadata["shell"] == {
        "title": "A shell",
        "id": "r-1",
        "level": "low",
        "risk": "21",
        "tags": "OS: any, attack.t1059, attack.t1059.004",
        "techniques": "T1059, T1059.004",
        "file": str(directory / "shell.toml"),
    }
