"""Rules in tables: Parquet files, and Delta tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake

import estero
from estero.queries.rules import rule_table
from estero.queries.rules.rule_table import origin_of

RULES = {"pairs": "SELECT * WHERE read ; write", "reads": "SELECT * WHERE read"}


def rows(rules: dict[str, str]) -> pa.Table:
    return pa.table({"name": list(rules), "query": list(rules.values())})


def read(place: Path) -> dict[str, str]:
    rules = estero.rule_table(place).rules()
    return {name: str(rules[name]) for name in rules}


def test_a_delta_table_has_the_rules_of_its_newest_version(tmp_path: Path) -> None:
    place = tmp_path / "rules"
    write_deltalake(place, rows({"old": "SELECT"}))
    write_deltalake(place, rows(RULES), mode="overwrite")
    assert read(place) == RULES
    pa.parquet.write_table(rows({"killed": "SELECT * WHERE write"}), place / "never.parquet")
    assert read(place) == RULES, "a file of no version does not count"
    table = DeltaTable(place)
    table.create_checkpoint()
    table.delete("name = 'pairs'")
    assert read(place) == {"reads": RULES["reads"]}


def test_a_partition_column_of_a_delta_table_is_a_column(tmp_path: Path) -> None:
    table = rows({"reads": "read where true"}).append_column("language", pa.array(["eql"]))
    write_deltalake(tmp_path / "rules", table, partition_by=["language"])
    assert estero.rule_table(tmp_path / "rules").rules()["reads"] == estero.eql("read where true")


def test_a_delta_table_is_read_again_when_it_has_a_new_version(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "rules"
    write_deltalake(place, rows(RULES))
    origin = origin_of(estero.rule_table(place))
    origin.texts = origin.look() or {}
    assert origin.texts == RULES
    assert origin.look() is None
    write_deltalake(place, rows({**RULES, "broken": "SELECT"}), mode="overwrite")
    assert origin.look() is None
    assert "the rule broken is refused" in caplog.text
    write_deltalake(place, rows({"pairs": RULES["pairs"]}), mode="overwrite")
    (file,) = DeltaTable(place).file_uris()
    kept = Path(file).read_bytes()
    Path(file).unlink()
    assert origin.look(origin.texts) == RULES, "a table that cannot be read changes nothing"
    assert "a table of rules cannot be read" in caplog.text
    Path(file).write_bytes(kept)
    assert origin.look() == {"pairs": RULES["pairs"]}


def test_a_delta_table_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "rules"
    write_deltalake(place, rows(RULES))
    monkeypatch.setattr(rule_table, "_MOST", 10)
    with pytest.raises(estero.DataError, match="more than 10 bytes are not a table of rules"):
        estero.rule_table(place).rules()
    (place / "_delta_log" / f"{0:020}.json").write_text('{"add": {"size": 1}}')
    with pytest.raises(estero.DataError, match="the Delta table cannot be read: ") as refused:
        estero.rule_table(place).rules()
    assert refused.value.file == str(place)


def test_what_is_not_a_table_of_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(estero.DataError, match="there is no table of rules: no file of Parquet"):
        estero.rule_table(tmp_path).rules()
    (tmp_path / "metadata").mkdir()
    with pytest.raises(estero.DataError, match="a table of Iceberg has files that do not count any more"):
        estero.rule_table(tmp_path).rules()
    pa.parquet.write_table(pa.table({"name": ["a"], "text": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(estero.DataError, match="has the columns name and query, and this one has no query"):
        estero.rule_table(tmp_path / "a.parquet").rules()
    (tmp_path / "b.parquet").write_text("no Parquet")
    with pytest.raises(estero.DataError, match="this is not a Parquet file"):
        estero.rule_table(tmp_path / "b.parquet").rules()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"name": "a", "query": None}, "the rule 'a' has no query: it is NULL"),
        ({"name": "a", "query": "x", "language": "java"}, "the rule 'a' is in an unknown language, 'java'"),
    ],
)
def test_the_error_of_a_row_names_its_table(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, row: dict[str, str | None], message: str
) -> None:
    place = tmp_path / "rules.parquet"
    columns = {name: pa.array([value], pa.string()) for name, value in row.items()}
    pa.parquet.write_table(pa.table(columns), place)
    with pytest.raises(estero.DataError, match=message) as refused:
        estero.rule_table(place).rules()
    assert refused.value.file == str(place)
    origin_of(estero.rule_table(place)).look()
    assert f"the rule a is refused: {place}: {message}" in caplog.text
