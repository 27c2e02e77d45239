"""Rules in tables: files of Parquet, and the files that count of a table of Delta."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero.queries.rules.rule_table import origin_of

RULES = {"reads": "SELECT * WHERE read", "pairs": "SELECT * WHERE read ; write"}
PROTOCOL: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
MARKED = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 4, "cardinality": 1}


class Delta:
    """A table of Delta that is written by hand."""

    def __init__(self, place: Path) -> None:
        self.place, self.log = place, place / "_delta_log"
        self.log.mkdir(parents=True)
        self.version = -1
        self.commit({"protocol": PROTOCOL})

    def commit(self, *actions: dict[str, Any]) -> None:
        """Adds a version."""
        self.version += 1
        lines = "\n".join(map(json.dumps, ({"commitInfo": {}}, *actions)))
        (self.log / f"{self.version:020}.json").write_text(lines)

    def file(self, name: str, rules: dict[str, str], **said: Any) -> dict[str, Any]:
        """The action that adds a file, which is written."""
        path = self.place / name.replace("%20", " ")
        path.parent.mkdir(exist_ok=True)
        columns = {
            "name": pa.array(rules.keys(), pa.string()),
            "query": pa.array(rules.values(), pa.string()),
        }
        pa.parquet.write_table(pa.table(columns), path)
        return {"add": {"path": name, "size": path.stat().st_size, "partitionValues": {}, **said}}

    def checkpoint(self, *actions: dict[str, Any], part: str = "") -> None:
        """Writes a checkpoint of the version, or a part of one, and drops the versions before it."""
        rows = [{"protocol": None, "add": None, "remove": None, **action} for action in actions]
        fields = [("path", pa.string()), ("size", pa.int64())]
        values = ("partitionValues", pa.map_(pa.string(), pa.string()))
        schema = pa.schema(
            [
                ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
                ("add", pa.struct([*fields, values])),
                ("remove", pa.struct(fields)),
            ]
        )
        name = f"{self.version:020}.checkpoint{part}.parquet"
        pa.parquet.write_table(pa.Table.from_pylist(rows, schema), self.log / name)
        for version in range(self.version):
            (self.log / f"{version:020}.json").unlink(missing_ok=True)

    def rules(self) -> dict[str, str]:
        """The rules now."""
        rules = estero.rule_table(self.place).rules()
        return {name: str(rules[name]) for name in rules}


def removed(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True}}


def test_of_a_table_of_delta_the_files_of_its_newest_version_count(tmp_path: Path) -> None:
    delta = Delta(tmp_path / "rules")
    assert delta.rules() == {}
    delta.commit(
        delta.file("a.parquet", {"old": "SELECT"}), delta.file("b c.parquet".replace(" ", "%20"), RULES)
    )
    delta.commit(removed("a.parquet"))
    assert delta.rules() == RULES
    delta.file("never.parquet", {"killed": "SELECT * WHERE write"})
    assert delta.rules() == RULES


def test_a_checkpoint_stands_for_the_versions_before_it(tmp_path: Path) -> None:
    delta = Delta(tmp_path / "rules")
    adds = [delta.file(f"{name}.parquet", {name: text}) for name, text in RULES.items()]
    delta.commit(*adds)
    delta.checkpoint({"protocol": PROTOCOL}, *adds)
    assert delta.rules() == dict(sorted(RULES.items()))
    delta.commit(removed("pairs.parquet"))
    assert delta.rules() == {"reads": RULES["reads"]}
    delta.checkpoint({"protocol": PROTOCOL}, part=".0000000001.0000000002")
    (delta.log / f"{delta.version:020}.checkpoint.0000000002.0000000002.parquet").touch()
    with pytest.raises(estero.DataError, match="the log of the table of Delta is damaged"):
        delta.rules()
    delta.checkpoint(adds[0], part=".0000000002.0000000002")
    assert delta.rules() == {"reads": RULES["reads"]}


def test_a_column_by_which_a_table_is_divided_is_one_of_it(tmp_path: Path) -> None:
    delta = Delta(tmp_path / "rules")
    values = {"language": "eql"}
    delta.commit(delta.file("language=eql/a.parquet", {"reads": "read where true"}, partitionValues=values))
    assert estero.rule_table(delta.place).rules()["reads"] == estero.eql("read where true")


def test_a_table_of_delta_is_read_where_there_is_a_new_version(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    delta = Delta(tmp_path / "rules")
    delta.commit(delta.file("a.parquet", RULES))
    origin = origin_of(estero.rule_table(delta.place))
    origin.texts = origin.look() or {}
    assert origin.texts == RULES
    assert origin.look() is None
    delta.file("never.parquet", {"killed": "SELECT * WHERE write"})
    assert origin.look() is None
    delta.commit(removed("a.parquet"), delta.file("b.parquet", {**RULES, "broken": "SELECT"}))
    assert origin.look() is None
    assert "the rule broken is refused" in caplog.text
    delta.commit(removed("b.parquet"), delta.file("c.parquet", {"pairs": RULES["pairs"]}))
    (delta.place / "c.parquet").unlink()
    assert origin.look(origin.texts) == RULES, "what cannot be read changes nothing"
    assert "a table of rules cannot be read" in caplog.text
    delta.file("c.parquet", {"pairs": RULES["pairs"]})
    assert origin.look() == {"pairs": RULES["pairs"]}


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({"protocol": {"minReaderVersion": 2}}, "not known here: version 2 of its protocol"),
        (
            {"protocol": {"minReaderVersion": 3, "readerFeatures": ["v2Checkpoint", "deletionVectors"]}},
            "the table of Delta is read in a way that is not known here: v2Checkpoint",
        ),
        (
            {"add": {"path": "a.parquet", "size": 1, "partitionValues": {}, "deletionVector": MARKED}},
            "the table of Delta has rows that are marked as deleted",
        ),
        ({"add": {"path": "s3://b/a.parquet", "size": 1}}, "the table of Delta has files of another one"),
        ({"add": {"size": 1}}, "the log of the table of Delta is damaged"),
        (
            {"add": {"path": "a.parquet", "size": 1 << 30, "partitionValues": {}}},
            "bytes are no table of rules",
        ),
    ],
)
def test_a_table_of_delta_that_is_read_in_other_ways_is_refused(
    tmp_path: Path, action: dict[str, Any], said: str
) -> None:
    delta = Delta(tmp_path / "rules")
    delta.commit(action)
    with pytest.raises(estero.DataError, match=said):
        delta.rules()


def test_rows_that_are_marked_as_deleted_and_written_anew_count(tmp_path: Path) -> None:
    delta = Delta(tmp_path / "rules")
    delta.commit(delta.file("a.parquet", RULES))
    delta.commit(delta.file("a.parquet", RULES, deletionVector=MARKED), removed("a.parquet"))
    gone = removed("a.parquet")
    gone["remove"]["deletionVector"] = MARKED
    delta.commit(gone, delta.file("b.parquet", RULES))
    assert delta.rules() == RULES


def test_a_log_without_some_version_is_refused(tmp_path: Path) -> None:
    delta = Delta(tmp_path / "rules")
    delta.commit(delta.file("a.parquet", RULES))
    (delta.log / f"{0:020}.json").unlink()
    with pytest.raises(estero.DataError, match="the log of the table of Delta lacks versions"):
        delta.rules()


def test_what_is_no_table_of_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(estero.DataError, match="there is no table of rules: no file of Parquet"):
        estero.rule_table(tmp_path).rules()
    (tmp_path / "metadata").mkdir()
    with pytest.raises(estero.DataError, match="a table of Iceberg has files that do not count any more"):
        estero.rule_table(tmp_path).rules()
    pa.parquet.write_table(pa.table({"name": ["a"], "text": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(estero.DataError, match="has the columns name and query, and this one has no query"):
        estero.rule_table(tmp_path / "a.parquet").rules()
