"""Names of users are plain data, whatever letters they have; names that engines confuse are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NAMES = [
    "${x}",
    "${env:HOME}",
    "'; DROP TABLE events; --",
    '"quoted"',
    "`",
    "back\\slash",
    "\n",
    "a.b",
    "*",
    "a b,c;d{e}(f)=g\t",
    "😀",
    "SELECT",
    "events",
    "rowid",
    "position",
    "__keyword",
    "__bitsy",
    "__values",
    "__column0",
    "__payload0",
    "__clock",
    "__range",
    "__ordinal_",
    "$1",
    "?",
]
WORKING = [
    "__position",
    "__Time",
    "__POSITION",
    "__value0",
    "__key1",
    "__bits0",
    "__screen0",
    "__ordinal",
    "__arrival",
    "__type",
    "__held_time",
]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def one_column(name: str) -> pa.Table:
    """Events whose column of that name is 0, 1, 0, 1, …, of the type `name`, at the times 0, 1, …"""
    return pa.table({name: [0, 1] * 3, "kind": [name] * 6, "t": range(6), "nested": [{name: name}] * 6})


def used_everywhere(name: str) -> str:
    """A query with the name as type, in a label, as attribute, in a predicate, a comparison and a key."""
    x, label = quoted(name), quoted(f"{name}'s")
    return (
        f"SELECT {label}, b[{x}] WHERE {x} AS {label} ; {x} AS b FILTER {label}[{x} < 2] AND b[{x} >= 0] "
        f"AND {label}.{x} = b.{x} PARTITION BY [{x}] WITHIN 3 [t]"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_letters_is_a_name(name: str) -> None:
    found = estero.query(used_everywhere(name)).run(one_column(name), type="kind", time="t").to_arrow()
    assert found.num_rows == 4
    if name != "position":  # the place of the event is called so, too
        assert {event[name] for row in found.to_pylist() for event in row["b"]} == {0, 1}


@pytest.mark.spark
def test_names_of_any_letters_are_names_on_spark(spark: SparkSession) -> None:
    """All of them at once: as types, labels, attributes, in predicates, as keys, and inside of values."""
    from estero.spark import collect, recognize

    numbers = dict.fromkeys(NAMES, 0)
    rows = [{**numbers, "kind": name, "t": t, "nested": numbers} for t, name in enumerate(NAMES)]
    table = pa.Table.from_pylist(rows)
    marked = [(quoted(name), quoted(f"{name}'s")) for name in NAMES]
    query = (
        f"SELECT {', '.join(label for _, label in marked)} "
        f"WHERE {' OR '.join(f'{x} AS {label}' for x, label in marked)} "
        f"FILTER {' AND '.join(f'{label}[{x} = 0]' for x, label in marked)} "
        f"PARTITION BY {', '.join(f'[{x}]' for x, _ in marked)}"
    )
    here = estero.query(query).run(table, type="kind", time="t").to_arrow().to_pylist()
    df = spark.createDataFrame(table)
    found = collect(recognize(df, query, type="kind", time="t", positions=True))
    there = pa.Table.from_batches(found.batches(), found.schema).to_pylist()
    assert sorted(map(str, there)) == sorted(map(str, here))
    assert len(here) == len(NAMES)


@pytest.mark.spark
def test_a_name_of_any_letters_is_a_name_in_a_join(spark: SparkSession) -> None:
    from estero.spark import recognize

    tables = {"A": "${x}", "B": "`"}
    rows = [{"kind": kind, name: n, "t": n} for kind, name in tables.items() for n in range(4)]
    kinds = {"kind": pa.string(), "${x}": pa.int64(), "`": pa.int64(), "t": pa.int64()}
    table = pa.Table.from_pylist(rows, pa.schema(kinds))
    query = 'Q(k) <- A("${x}": k), B("`": k) WITHIN 9 [t]'
    here = estero.conjunctive(query).run(table, type="kind", time="t", order=["kind"])
    found = recognize(spark.createDataFrame(table), query, type="kind", time="t", order=["kind"])
    assert found.count() == here.count() == 4


@pytest.mark.parametrize("name", WORKING)
def test_names_of_working_columns_are_refused_in_any_case(name: str) -> None:
    with pytest.raises(DataError, match=f"the column name '{name}' is used by Estero itself"):
        estero.query("SELECT * WHERE Event").run(pa.table({name: [1]}))


@pytest.mark.spark
def test_names_of_working_columns_are_refused_on_spark(spark: SparkSession) -> None:
    from estero.spark import recognize

    for name in WORKING:
        df = spark.createDataFrame(pa.table({name: [1]}))
        with pytest.raises(DataError, match=f"the column name '{name}' is used by Estero itself"):
            recognize(df, "SELECT * WHERE Event")


def test_a_name_with_a_nul_is_refused() -> None:
    with pytest.raises(DataError, match=r"the column name 'n\\x00m' holds a NUL character"):
        estero.query("SELECT * WHERE Event").run(pa.table({"n\0m": [1]}))


LIKE_EACH_OTHER = pa.table({"v": [1], "V": [2]})
DIFFER = "the columns 'v' and 'V' differ in case only"


def test_columns_that_differ_in_case_only_are_both_named() -> None:
    query = estero.query("SELECT * WHERE Event")
    with pytest.raises(DataError, match=DIFFER):
        query.run(LIKE_EACH_OTHER)
    with pytest.raises(DataError, match=DIFFER):
        query.run(LIKE_EACH_OTHER.to_pandas())
    with pytest.raises(DataError, match=DIFFER):
        query.recognizer(LIKE_EACH_OTHER.schema)


def test_columns_of_two_types_that_differ_in_case_only_are_both_named() -> None:
    tables = {"A": pa.table({"v": [1]}), "B": pa.table({"V": [2]})}
    message = "the columns 'v' in the table of A and 'V' in that of B differ in case only"
    query = estero.query("SELECT * WHERE A ; B")
    with pytest.raises(DataError, match=message):
        query.run(tables)
    with pytest.raises(DataError, match=message):
        query.recognizer({name: table.schema for name, table in tables.items()})


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "json", "csv"])
def test_columns_of_files_that_differ_in_case_only_are_both_named(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"events.{ending}"
    if ending == "parquet":
        pa.parquet.write_table(LIKE_EACH_OTHER, file)
    else:
        texts = {"json": '[{"v": 1, "V": 2}]', "jsonl": '{"v": 1, "V": 2}\n', "csv": "v,V\n1,2\n"}
        file.write_text(texts[ending])
    with pytest.raises(DataError, match=r"the columns '[vV]' and '[vV]' differ in case only"):
        estero.query("SELECT * WHERE Event").run(file)


def test_columns_of_files_with_numbers_at_their_ends_are_what_they_are(tmp_path: Path) -> None:
    table = pa.table({"v": [1], "v_1": [2], "n": [{"v": 1, "V": 2}]})
    pa.parquet.write_table(table, tmp_path / "events.parquet")
    assert estero.query("SELECT * WHERE Event").run(tmp_path / "events.parquet").count() == 1


@pytest.mark.spark
def test_columns_that_differ_in_case_only_are_both_named_on_spark(spark: SparkSession) -> None:
    from estero.spark import recognize

    df = spark.createDataFrame([(1, 2)], "v INT, V INT")
    with pytest.raises(DataError, match=DIFFER):
        recognize(df, "SELECT * WHERE Event")


@pytest.mark.spark
def test_the_function_of_sql_says_which_name_it_cannot_read(spark: SparkSession) -> None:
    from pyspark.errors import AnalysisException

    from estero.spark import register

    register(spark)
    spark.createDataFrame(pa.table({"${x}": [1], "`": [1], "t": [1]})).createOrReplaceTempView("named")
    table = "TABLE(named) WITH SINGLE PARTITION ORDER BY (t)"
    found: Any = spark.sql(f"SELECT * FROM recognize({table}, 'SELECT a[\"`\"] WHERE Event AS a')")
    assert found.count() == 1
    with pytest.raises(AnalysisException, match=r"for a variable, also in the name of a column"):
        spark.sql(f"SELECT * FROM recognize({table}, 'SELECT a WHERE Event AS a')")


@pytest.mark.spark
def test_columns_of_any_name_break_ties_on_spark(spark: SparkSession) -> None:
    from estero.spark import recognize

    table = pa.table({"kind": ["B", "A"], "t": [1, 1], "${x}": [2, 1]})
    found = recognize(
        spark.createDataFrame(table), "SELECT * WHERE A ; B", type="kind", time="t", order=["${x}"]
    )
    assert found.count() == 1
