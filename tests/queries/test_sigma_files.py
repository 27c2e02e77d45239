"""Directories with rules in Sigma: names, what is said of rules, and those that cannot be run."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import estero
from cli.commands import estero as command

ID = "11111111-2222-3333-4444-555555555555"
EVENTS = [
    {"Channel": "Security", "EventID": 1102, "User": "eve", "t": 0},
    {"Channel": "Security", "EventID": 4625, "User": "eve", "t": 1},
    {"Channel": "Security", "EventID": 4625, "User": "eve", "t": 2},
    {"Channel": "System", "EventID": 4625, "User": "eve", "t": 3},
]


def rule(number: int, more: str = "", source: str = "product: windows, service: security") -> str:
    detection = f"detection: {{s: {{EventID: {number}}}, condition: s}}"
    return f"title: Event {number}\nlogsource: {{{source}}}\n{detection}\n{more}\n"


REFUSED = pytest.mark.filterwarnings("ignore:.*rules cannot be run .all are in refused:estero.EsteroWarning")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "cleared.yml").write_text(rule(1102, "level: high\ntags: [attack.t1070.001]\n"))
    (tmp_path / "failed.yaml").write_text(
        f"{rule(4625, 'name: failed')}---\n"
        "title: Two failures\nname: twice\ncorrelation: {type: event_count, rules: [failed], "
        "group-by: [User], "
        "timespan: 5s, condition: {gte: 2}}\n"
        f"---\n{rule(1102, f'id: {ID}')}"
    )
    (tmp_path / "any.ceql").write_text("SELECT * WHERE Event FILTER Event[t = 3]")
    (tmp_path / "toast.yml").write_text(rule(1, source="product: toaster"))
    (tmp_path / "broken.yml").write_text("title: x\n  y: z\n")
    (tmp_path / "modifier.yml").write_text(
        "title: m\nlogsource: {category: test}\ndetection:\n  s:\n    a|sounds: b\n  condition: s\n"
    )
    (tmp_path / "other.yml").write_text(rule(4625, "name: twice"))
    return tmp_path


@REFUSED
def test_rules_are_named_and_found(rules: Path) -> None:
    found = estero.rules(rules)
    assert set(found) == {"any", "cleared", "twice", ID}
    alerts = [(alert.rule, alert.start, alert.end) for alert in found.run(EVENTS, time="t", time_unit="s")]
    assert sorted(alerts) == sorted([("any", 3, 3), ("cleared", 0, 0), (ID, 0, 0), ("twice", 1, 2)])


@REFUSED
def test_what_is_said_of_a_rule_is_metadata(rules: Path) -> None:
    found = estero.rules(rules)
    assert found.metadata["cleared"] == {
        "title": "Event 1102",
        "level": "high",
        "tags": "attack.t1070.001",
        "techniques": "T1070.001",
        "file": str(rules / "deep" / "cleared.yml"),
    }
    assert found.file_of("twice") == rules / "failed.yaml"
    assert found.metadata[ID]["id"] == ID


def test_rules_that_cannot_be_run_are_listed_with_the_reason(rules: Path) -> None:
    with pytest.warns(
        estero.EsteroWarning, match="4 of 8 rules cannot be run .all are in refused, .*broken.yml: this is"
    ):
        found = estero.rules(rules)
    said = {
        name: (error.rule, error.line_and_column[0], error.message) for name, error in found.refused.items()
    }
    assert said == {
        "twice-2": (
            str(rules / "other.yml"),
            4,
            f"there is a rule 'twice' already, in {rules / 'failed.yaml'}",
        ),
        "broken": (
            str(rules / "broken.yml"),
            2,
            "this is not YAML: mapping values are not allowed in this context",
        ),
        "modifier": (str(rules / "modifier.yml"), 5, "Unknown modifier 'sounds'"),
        "toast": (
            str(rules / "toast.yml"),
            2,
            "nothing says which events have this log source: product: toaster",
        ),
    }
    assert pickle.loads(pickle.dumps(found)).refused.keys() == found.refused.keys()
    assert found.bind({}).refused.keys() == found.refused.keys()


def _failures(found: estero.RuleSet) -> list[tuple[str | None, int]]:
    events = [{**one, "Event": place} for place, one in enumerate(EVENTS)]
    return [(one.rule, one.start) for one in found.run(events, time="t", time_unit="s")]


def test_a_filter_in_another_file_is_added_to_rules_also_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTERO_CACHE", str(tmp_path / "cache"))
    directory = tmp_path / "rules"
    directory.mkdir()
    (directory / "failed.yml").write_text(rule(4625, "name: failed"))
    (directory / "cleared.yml").write_text(rule(1102, "name: cleared"))
    assert _failures(estero.rules(directory)) == [("cleared", 0), ("failed", 1), ("failed", 2)]
    (directory / "later.yml").write_text(
        "title: Only later\nlogsource: {product: windows}\n"
        "filter: {rules: [failed], early: {t|lt: 2}, condition: not early}\n"
    )
    for _ in range(2):
        assert _failures(estero.rules(directory)) == [("cleared", 0), ("failed", 2)]
    (directory / "later.yml").unlink()
    assert _failures(estero.rules(directory)) == [("cleared", 0), ("failed", 1), ("failed", 2)]


@REFUSED
def test_filters_that_are_added_to_no_rule_are_listed(tmp_path: Path) -> None:
    (tmp_path / "failed.yml").write_text(rule(4625, "name: failed"))
    added = "condition: s, s: {t: 1}"
    (tmp_path / "a.yml").write_text(
        f"title: a\nlogsource: {{product: windows}}\nfilter: {{rules: [gone], {added}}}\n"
    )
    (tmp_path / "b.yml").write_text(
        f"title: b\nlogsource: {{product: linux}}\nfilter: {{rules: any, {added}}}\n"
    )
    found = estero.rules(tmp_path)
    assert {name: error.message for name, error in found.refused.items()} == {
        "a": "there is no rule gone",
        "b": "the filter is added to no rule: none of its rules has the log source product: linux",
    }


def test_an_aggregation_is_a_correlation_also_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTERO_CACHE", str(tmp_path / "cache"))
    directory = tmp_path / "rules"
    directory.mkdir()
    counted = rule(4625, "name: twice").replace(
        "condition: s}", "timeframe: 5s, condition: 's | count() by User >= 2'}"
    )
    (directory / "twice.yml").write_text(counted)
    for _ in range(2):
        assert _failures(estero.rules(directory)) == [("twice", 1)]
    text = "title: No eve\nlogsource: {}\nfilter: {rules: any, s: {User: eve}, condition: not s}\n"
    (directory / "eve.yml").write_text(text.replace("{}", "{product: windows}"))
    assert _failures(estero.rules(directory)) == []


def test_options_are_those_of_one_rule(rules: Path) -> None:
    found = estero.rules(rules / "toast.yml", sigma={"logsource": False, "fields": {"EventID": "id"}})
    assert [alert.start for alert in found.run([{"id": 2}, {"id": 1}])] == [1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"field": "ecs"}, "sigma takes fields, pipeline, placeholders and logsource, not 'field'"),
        ({"logsource": "no"}, "logsource"),
        ({"pipeline": 7}, "pipeline"),
    ],
)
def test_options_that_are_wrong_are_refused(rules: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        estero.rules(rules / "toast.yml", sigma=options)


def test_a_set_warns_once_of_fields_that_no_event_has(rules: Path) -> None:
    found = estero.rules([rules / "deep", rules / "any.ceql"])
    with pytest.warns(
        estero.EsteroWarning,
        match="1 rule cannot hold in full: cleared: no event tells that it is of the log ",
    ):
        found.run([{"EventID": 1, "t": 3}]).counts()


def test_a_rule_that_a_correlation_generates_is_a_rule_too(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(rule(1, "name: one"))
    (tmp_path / "b.yml").write_text(
        "title: b\nname: many\ncorrelation: {type: event_count, rules: [one], timespan: 1s, "
        "condition: {gt: 1}, "
        "generate: true}"
    )
    assert set(estero.rules(tmp_path)) == {"one", "many"}


@REFUSED
def test_files_that_are_no_text_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "large.yml").write_text("#" * ((1 << 20) + 1))
    (tmp_path / "latin.yml").write_bytes(b"title: \xe9")
    (tmp_path / "right.yml").write_text(rule(1))
    found = estero.rules(tmp_path)
    assert list(found) == ["right"]
    assert "larger than a megabyte" in found.refused["large"].message
    assert "is not UTF-8" in found.refused["latin"].message


def test_a_name_of_both_languages_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.ceql").write_text("SELECT * WHERE A")
    (tmp_path / "a.yml").write_text(rule(1))
    with pytest.raises(estero.DataError, match="two files have the rule 'a'"):
        estero.rules(tmp_path)


def test_check_gives_file_line_and_reason(rules: Path) -> None:
    result = command("check", str(rules))
    assert result.exit_code == 2
    lines = sorted(result.stdout.splitlines())
    assert any(line.startswith(f"{rules / 'modifier.yml'}:5:5: Unknown modifier 'sounds'") for line in lines)
    assert any(line.startswith(f"{rules / 'toast.yml'}:2:1: nothing says which events") for line in lines)
    assert len(lines) == 4
    right = command("check", str(rules / "deep"))
    assert (right.exit_code, right.output) == (0, f"{rules / 'deep'}: 1 rule: ok\n")
