"""Texts of users are plain data: strings, types and patterns with letters that engines interpret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from estero.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

TEXTS = [
    "${x}",
    "${env:HOME}",
    "${spark.app.name}",
    "${spark.sql.shuffle.partitions}",
    "$",
    "'; DROP TABLE events; --",
    "' OR '1' = '1",
    '"quoted"',
    "`backticks`",
    "\\",
    "\\n",
    "\\u0041",
    "\n\r\t",
    "nul \0 within",
    "\x1b[31m",
    "%_\\%",
    "/* no comment */ -- neither",
    "{0} %s $1 ? :x @y",
    "😀 é \u2028",
    "",
]
SETTINGS = [
    ("spark.sql.parser.escapedStringLiterals", "true"),
    ("spark.sql.parser.quotedRegexColumnNames", "true"),
    ("spark.sql.ansi.enabled", "false"),
    ("spark.sql.ansi.doubleQuotedIdentifiers", "true"),
    ("spark.sql.ansi.enforceReservedKeywords", "true"),
    ("spark.sql.caseSensitive", "true"),
    ("spark.sql.session.timeZone", "America/Santiago"),
]


def events() -> pa.Table:
    """For each text one event of which it is the type, and the value."""
    rows = [{"kind": text or "nothing", "s": text, "t": number} for number, text in enumerate(TEXTS)]
    return pa.Table.from_pylist(rows)


def string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def each_text() -> str:
    """A query that finds each event of `events` by its value, and by its type."""
    numbered = [(f"x{number}", text) for number, text in enumerate(TEXTS) if text]
    types = " OR ".join(f"{name(text)} AS {x}" for x, text in numbered)
    tests = " AND ".join(f"{x}[s = {string(text)}]" for x, text in numbered)
    return f"SELECT {', '.join(x for x, _ in numbered)} WHERE {types} FILTER {tests}"


def values_of(answer: pa.Table) -> list[str]:
    """The values of all events that an answer shows."""
    shown = [value for row in answer.to_pylist() for value in row.values() if isinstance(value, list)]
    return sorted(event["s"] for events in shown for event in events)


@pytest.fixture(params=SETTINGS, ids="=".join)
def session(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session with another setting of its parser."""
    setting, value = request.param
    before = spark.conf.get(setting)
    spark.conf.set(setting, value)
    yield spark
    spark.conf.set(setting, before or "")


def test_strings_and_types_are_what_they_are() -> None:
    found = estero.query(each_text()).run(events(), type="kind", time="t").to_arrow()
    assert values_of(found) == sorted(text for text in TEXTS if text)


@pytest.mark.spark
def test_texts_are_what_they_are_on_spark_with_any_setting(session: SparkSession) -> None:
    from estero.spark import recognize

    df = session.createDataFrame(events())
    found = recognize(df, each_text(), type="kind", time="t").toArrow()
    assert values_of(found) == sorted(text for text in TEXTS if text)


def patterned() -> str:
    """A query with patterns that Spark reads as they are, in another way, and not itself."""
    tests = (
        r"s LIKE '$%' OR s LIKE '\\' OR s LIKE '%\%' OR s LIKE '%{%}%s%$%' OR s ~ '^`|\x{0}|^(x|\x1b\[)+3'"
    )
    return f"SELECT a WHERE Event AS a FILTER a[{tests}]"


@pytest.mark.spark
def test_patterns_are_what_they_are_on_spark_with_any_setting(session: SparkSession) -> None:
    from estero.spark import recognize

    here = estero.query(patterned()).run(events(), time="t").to_arrow()
    there = recognize(session.createDataFrame(events()), patterned(), time="t").toArrow()
    assert values_of(there) == values_of(here)
    assert len(values_of(here)) == 11


@pytest.mark.spark
def test_a_value_of_the_configuration_does_not_escape_its_string(spark: SparkSession) -> None:
    from estero.spark import recognize

    spark.conf.set("spark.estero.test", "' OR true OR '' = '")
    df = spark.createDataFrame(events())
    query = "SELECT a WHERE Event AS a FILTER a[s = '${spark.estero.test}']"
    assert recognize(df, query, time="t").count() == 0
    spark.conf.unset("spark.estero.test")


@pytest.mark.spark
def test_a_string_that_is_written_in_digits_still_reaches_the_scan(
    spark: SparkSession, tmp_path: Any
) -> None:
    from estero.spark import recognize

    pa.parquet.write_table(events(), tmp_path / "events.parquet")
    df = spark.read.parquet(str(tmp_path / "events.parquet"))
    query = "SELECT a WHERE Event AS a FILTER a[s = '${x}' AND kind LIKE '$%']"
    found: Any = recognize(df, query, time="t")
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "EqualTo(s,${x})" in plan
    assert "StringStartsWith(kind,$)" in plan


@pytest.mark.spark
def test_the_function_of_sql_takes_strings_as_they_are(spark: SparkSession) -> None:
    from estero.spark import register

    register(spark)
    spark.createDataFrame(events()).createOrReplaceTempView("texts")
    for text in ("back\\slash", "'; DROP", "`"):
        query = f"SELECT a WHERE Event AS a FILTER a[s != {string(text)}]"
        written = query.replace("\\", "\\\\").replace("'", "\\'")
        table = "TABLE(texts) WITH SINGLE PARTITION ORDER BY (t)"
        assert spark.sql(f"SELECT * FROM recognize({table}, '{written}')").count() == len(TEXTS)


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(QueryError, match="is half of a surrogate pair, which is not a character") as caught:
        estero.query("SELECT a WHERE Event AS a FILTER a[s = '\ud800']")
    assert str(caught.value).encode()
