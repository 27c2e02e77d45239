"""Rules that were read before: the same rules, whatever became of the files and of the cache."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import estero
from estero.language.eql import parser
from estero.language.eql import tree as eql
from estero.language.eql.tree import EventQuery
from estero.language.sigma import log_sources, read
from estero.language.sigma import tree as sigma
from estero.language.tree.as_data import TreeData, TreeWriter
from estero.queries.eql_statement import eql_statement
from estero.queries.rules import eql_files, rule_cache
from estero.queries.rules.read_rules import read_files
from estero.queries.rules.rule_cache import VARIABLE, eql_trees, sigma_trees
from queries.test_eql_files import SHELL
from queries.test_sigma_files import EVENTS, rule
from strategies.eql_conditions import queries

SEQUENCE = "sequence by User with maxspan=5s [any where EventID == 4625] ![any where t > 9] [any where true]"
CORRELATION = (
    "---\ntitle: Two\nname: twice\ncorrelation: {type: event_count, rules: [failed], group-by: [User], "
    "timespan: 5s, condition: {gte: 2}}\n"
)


AGAIN = ["sigma"]
"""Read each time: the rule that a correlation is about."""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "rules"
    place.mkdir()
    (place / "shell.toml").write_text(SHELL)
    (place / "sequence.eql").write_text(SEQUENCE)
    (place / "cleared.yml").write_text(rule(1102, "level: high\ntags: [attack.t1070.001]"))
    (place / "failed.yml").write_text(rule(4625, "name: failed"))
    (place / "twice.yml").write_text(CORRELATION.removeprefix("---\n"))
    (place / "both.yml").write_text(f"{rule(1, 'name: one')}---\n{rule(2, 'name: two')}")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return place


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read of texts, and not of a cache."""
    known: list[str] = []
    of_eql, of_sigma = eql_statement.__wrapped__, read.detection_of_rule

    def read_eql(text: str) -> object:
        known.append("eql")
        return of_eql(text)

    def read_sigma(*arguments: object) -> object:
        known.append("sigma")
        return of_sigma(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(eql_files, "eql_statement", read_eql)
    monkeypatch.setattr(read, "detection_of_rule", read_sigma)
    return known


def same(one: estero.RuleSet, other: estero.RuleSet) -> None:
    """Both sets have the same rules, texts, places in them and metadata, and find the same."""
    assert one == other
    assert one.names == other.names
    assert one.metadata == other.metadata
    assert [one.text_of(name) for name in one] == [other.text_of(name) for name in other]
    for name in ("shell", "sequence"):
        trees = [getattr(rules[name].statement, "eql", None) for rules in (one, other)]
        assert repr_of(trees[0]) == repr_of(trees[1])
    found = [rules.run(EVENTS, time="t", time_unit="s").to_dicts() for rules in (one, other)]
    assert found[0] == found[1]
    assert found[0]


def repr_of(tree: object) -> object:
    """A tree with its spans and its text, which are no part of ==."""
    return written([tree], eql_trees())


def written(trees: list[Any], kinds: TreeData) -> Any:
    """Trees as data that was text in between."""
    writer = TreeWriter(kinds)
    for tree in trees:
        writer.add(tree)
    return json.loads(json.dumps(writer.data()))


IGNORED = pytest.mark.filterwarnings(
    "ignore:.*do not fit these events:estero.EsteroWarning", "ignore:.*does not fit"
)


@IGNORED
def test_what_is_in_the_cache_is_not_read_again_and_is_the_same(directory: Path, readings: list[str]) -> None:
    first = estero.rules(directory)
    assert sorted(readings) == ["eql"] * 2 + ["sigma"] * 4
    readings.clear()
    same(first, estero.rules(directory))
    assert readings == AGAIN
    readings.clear()
    (directory / "sequence.eql").write_text("any where EventID == 1102")
    assert str(estero.rules(directory)["sequence"]) == "any where EventID == 1102"
    assert readings.count("eql") == 1


@IGNORED
@pytest.mark.parametrize("damage", ["other", "cut", "bent", "empty", "number"])
def test_a_cache_that_is_damaged_or_of_another_version_is_read_anew(
    directory: Path, readings: list[str], damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = estero.rules(directory)
    file = Path(os.environ[VARIABLE]) / "rules.json"
    head, _, body = file.read_bytes().partition(b"\n")
    if damage == "other":
        monkeypatch.setattr(rule_cache, "_reader", lambda: "another")
    else:
        bent = body.replace(b"cmd.exe", b"bad.exe")
        file.write_bytes({"cut": head, "bent": head + b"\n" + bent, "empty": b"", "number": b"1\n2"}[damage])
    readings.clear()
    same(first, estero.rules(directory))
    assert len(readings) == 6
    readings.clear()
    estero.rules(directory)
    assert readings == AGAIN


@IGNORED
@pytest.mark.parametrize(
    "odd",
    [
        {"values": [[]], "blocks": [], "trees": [0]},
        {"values": ["a"], "blocks": [[99, [0]]], "trees": [1]},
        {"values": ["a"], "blocks": [[0, [0]]], "trees": [1]},
        {"values": ["a"], "blocks": [[0, [0], [1]]], "trees": [1]},
        {"values": ["a"], "blocks": [[0, [0], [0, 0]]], "trees": [1]},
        {"values": ["a"], "blocks": [[-1, [2], [0]]], "trees": [1]},
        {"values": ["a"], "blocks": [], "trees": [1]},
        {"values": ["a"], "blocks": [], "trees": []},
        {"values": 5, "blocks": 5, "trees": 5},
        {"values": ["a"], "blocks": [], "trees": [0], "said": [7]},
        {},
    ],
)
def test_entries_that_are_no_trees_are_read_anew(
    directory: Path, readings: list[str], odd: dict[str, Any]
) -> None:
    first = estero.rules(directory)
    file = Path(os.environ[VARIABLE]) / "rules.json"
    bent = []
    for line in lines_of(file.read_bytes()):
        name, _, data = line.partition(b" ")
        keys = json.loads(data)["keys"][:1]
        bent.append(name + b" " + json.dumps({"keys": keys, "said": [{}], **odd}).encode())
    body = b"\n".join([*bent, b"eql", b"eql 5", b"eql [", b"\xff\x00 {}"])
    file.write_bytes(rule_cache._head(body) + b"\n" + body)
    readings.clear()
    same(first, estero.rules(directory))
    assert len(readings) == 6
    readings.clear()
    same(first, estero.rules(directory))
    assert readings == AGAIN


def lines_of(content: bytes) -> list[bytes]:
    return content.split(b"\n")[1:]


@IGNORED
def test_rules_that_come_one_by_one_are_lines_until_they_are_too_many(
    directory: Path, readings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_cache, "_MOST_LINES", 3)
    file = Path(os.environ[VARIABLE]) / "rules.json"
    lines = []
    for number in range(5):
        (directory / f"more{number}.eql").write_text(f"any where EventID == {number}")
        first = estero.rules(directory)
        lines.append(sum(line.startswith(b"eql ") for line in lines_of(file.read_bytes())))
        readings.clear()
        same(first, estero.rules(directory))
        assert readings == AGAIN
    assert lines == [1, 2, 3, 1, 2]


@IGNORED
def test_where_entries_are_too_many_those_are_kept_that_were_asked_for(
    directory: Path, readings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_cache, "_MOST", 3)
    file = Path(os.environ[VARIABLE]) / "rules.json"
    kept = []
    for number in range(4):
        (directory / "sequence.eql").write_text(f"any where EventID == {number}")
        estero.rules(directory)
        lines = [line for line in lines_of(file.read_bytes()) if line.startswith(b"eql ")]
        kept.append([len(json.loads(line.partition(b" ")[2])["keys"]) for line in lines])
    assert kept == [[2], [2, 1], [2], [2, 1]]


@IGNORED
def test_what_log_sources_tell_is_remembered(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = log_sources.known_sources()
    (tree,) = sigma_trees().read(written([known.tree], sigma_trees()))
    assert log_sources.KnownSources.of_tree(tree) == known
    first = estero.rules(directory)
    monkeypatch.setattr(log_sources, "known_sources", None)
    same(first, estero.rules(directory))


def test_there_is_no_cache_unless_it_is_asked_for(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    estero.rules(directory)
    assert not (directory.parent / "cache").exists()
    monkeypatch.setenv(VARIABLE, str(directory / "shell.toml"))
    with pytest.raises(estero.DataError, match="ESTERO_CACHE names no directory"):
        estero.rules(directory)


def test_other_options_read_rules_anew(directory: Path, readings: list[str]) -> None:
    estero.rules(directory)
    readings.clear()
    estero.rules(directory, sigma={"placeholders": {"x": ["y"]}})
    assert readings == ["sigma"] * 4


def test_the_cache_is_for_its_owner(directory: Path) -> None:
    estero.rules(directory)
    place = Path(os.environ[VARIABLE])
    assert [path.name for path in place.iterdir()] == ["rules.json"]
    if os.name == "posix":
        assert stat.S_IMODE((place / "rules.json").stat().st_mode) == 0o600


@given(st.lists(queries, min_size=1, max_size=2))
@settings(max_examples=50)
def test_trees_are_what_they_were_when_they_were_data(drawn: list[EventQuery]) -> None:
    trees = [parser.parse_eql(str(query)) for query in drawn]
    data = written(trees, eql_trees())
    again = eql_trees().read(data)
    assert again == trees
    assert list(map(in_full, again)) == list(map(in_full, trees))
    assert written(again, eql_trees()) == data


def in_full(tree: Any) -> object:
    """A tree with the classes, spans and all values of its nodes."""
    if isinstance(tree, tuple):
        return tuple(map(in_full, tree))
    if not is_dataclass(tree):
        return type(tree), repr(tree)
    return type(tree), *(in_full(getattr(tree, field.name)) for field in fields(tree))


DOCUMENTS = {
    "right": rule(1102),
    "named": rule(4625, "name: failed"),
    "wrong": rule(1).replace("condition: ", "condition: not_there and "),
    "old": rule(2, "action: global"),
    "unknown": rule(3, source="product: toaster"),
    "empty": "",
    "correlation": CORRELATION.removeprefix("---\n"),
}
FILES = st.lists(st.lists(st.sampled_from(list(DOCUMENTS)), min_size=1, max_size=4), min_size=1, max_size=3)


@given(FILES)
@example([["right", "empty", "unknown"], ["unknown", "wrong"]])
@settings(max_examples=25)
def test_files_with_any_documents_are_the_same_from_the_cache(files: list[list[str]]) -> None:
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        (directory := Path(place) / "rules").mkdir()
        for number, names in enumerate(files):
            text = "---\n".join(DOCUMENTS[name] for name in names)
            (directory / f"{number}.yml").write_text(text)
        patch.delenv(VARIABLE, raising=False)
        alone, _ = read_files(directory)
        patch.setenv(VARIABLE, place)
        for _ in range(2):
            again, _ = read_files(directory)
            assert again == alone
            assert again.metadata == alone.metadata
            assert list(again.refused) == list(alone.refused)
            assert list(map(str, again.refused.values())) == list(map(str, alone.refused.values()))


def test_equal_parts_are_written_once_and_what_only_looks_equal_is_not() -> None:
    about = sigma.About(tags=("a", "b"))
    numbers = [sigma.Number("x", value) for value in (1, 1.0, 0.0, -0.0, 1)]
    trees = [*numbers, sigma.Truth("x", True), about, about]
    data = written(trees, sigma_trees())
    assert list(map(in_full, sigma_trees().read(data))) == list(map(in_full, trees))
    assert data["trees"][0] == data["trees"][4]
    assert data["trees"][6] == data["trees"][7]
    assert len(set(data["trees"])) == 6


def test_every_class_of_trees_is_written() -> None:
    nodes = {
        kind for kind in vars(eql).values() if isinstance(kind, type) and kind.__module__ == eql.__name__
    }
    nodes |= {
        kind for kind in vars(sigma).values() if isinstance(kind, type) and kind.__module__ == sigma.__name__
    }
    kinds = {*eql_trees().classes, *sigma_trees().classes}
    assert {kind.__name__ for kind in nodes - kinds} == {"EqlNode"}
