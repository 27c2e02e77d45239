"""Regular expressions on which Java's matcher calls itself, or tries all ways: engines answer alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import estero
from estero.errors import QueryError
from estero.language.regex.java import for_java, like_for_java

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

LENGTH = 100_000
VALUES = {
    "a": "a" * LENGTH,
    "ab": "ab" * (LENGTH // 2),
    "a😀": "a😀aa" * (LENGTH // 4),
    "a!": "a" * LENGTH + "!",
    "short": "ab",
    "nothing": None,
}
RECURSIVE = ["^(a|b)*$", "^(a|bc)*$", "^(ab|ba)+$", "^(a.)*$", "^(.a?)+$", "(a|😀|aa){2,}$", "^((a|b)+,?)*$"]
EXPONENTIAL = ["(a*)*b", "^(a|aa)+$", "^(a+)+$", "^(a?){30}a{30}$", "^([a-z]+)*!?$", "(x+x+)+y|(a|a)*!$"]
CUBIC = ["a.*a.*b.*c", "(?i)A*.*a*b+c"]


def events() -> pa.Table:
    return pa.table({"name": list(VALUES), "s": list(VALUES.values()), "t": range(len(VALUES))})


def query_of(test: str) -> str:
    return f"SELECT a[name] WHERE Event AS a FILTER a[s {test}]"


def names_in(answer: pa.Table) -> set[str]:
    return {row["a"][0]["name"] for row in answer.to_pylist()}


@pytest.mark.parametrize(
    ("regex", "written"),
    [
        ("(a|b)*c", "c"),
        ("^(a|b)*c", r"\A[a-b]{0,}c"),
        ("^(a*)*b", r"\Aa{0,}b"),
        ("^((x+)*)+y", r"\Ax{0,}y"),
        ("a+b", "a{1,1}b"),
        (".*a.*", "a"),
        ("a.*b", r"a[^\x{a}]{0,}b"),
        (r"(\d{1,3}\.){3}\d{1,3}", r"(?:[0-9]{1,3}\x{2e}){3,3}[0-9]{1,1}"),
        ("foo|(?:ba|be)r", "foo|(?:ba|be)r"),
        ("", ""),
    ],
)
def test_java_gets_an_equal_expression_that_is_flat(regex: str, written: str) -> None:
    assert for_java(regex) == written


@pytest.mark.parametrize(
    "regex",
    [
        "^(a|bc)*$",
        "^(ab|ba)+$",
        "^(a.)*$",
        "^(.a?)+$",
        "^(a|aa)+$",
        "^(a?){30}a{30}$",
        CUBIC[0],
        "^(a{1,9}b?){5}$",
    ],
)
def test_java_does_not_get_what_it_would_not_end_with(regex: str) -> None:
    assert for_java(regex) is None


def test_groups_within_groups_have_a_limit() -> None:
    assert for_java("(" * 100 + "a" + ")" * 100) == "a"
    query = query_of(f"~ '{'(' * 3000}a{')' * 3000}'")
    with pytest.raises(QueryError, match="groups are nested more than 100 levels deep"):
        estero.query(query)


def test_like_takes_one_pass_in_java() -> None:
    assert like_for_java("a%b%c") == r"\Aa(?>[\x{0}-\x{10ffff}]*?b)[\x{0}-\x{10ffff}]*c\z"
    assert like_for_java("a_") == r"\Aa[\x{0}-\x{10ffff}]\z"


@pytest.mark.spark
def test_long_texts_match_on_spark_as_in_process(spark: SparkSession) -> None:
    """One query with all expressions: each event tells which of them it matches."""
    from estero.spark import recognize

    tests = [f"~ '{regex}'" for regex in (*RECURSIVE, *EXPONENTIAL, *CUBIC)]
    tests += ["LIKE '%a%b%c%d%'", "LIKE '%a%a_%b'", "LIKE 'a%\\%%%a%!'"]
    names = [f"x{number}" for number in range(len(tests))]
    query = (
        f"SELECT {', '.join(f'{name}[name]' for name in names)} "
        f"WHERE {' OR '.join(f'Event AS {name}' for name in names)} "
        f"FILTER {' AND '.join(f'{name}[s {test}]' for name, test in zip(names, tests, strict=True))}"
    )
    df = spark.createDataFrame(events())
    found = recognize(df, query, time="t").drop("start_time", "end_time").toArrow().to_pylist()
    here = estero.query(query).run(events(), time="t").to_arrow().drop_columns(["start", "end"])
    here = here.drop_columns([name for name in here.column_names if name.endswith("_time")]).to_pylist()
    for row in here:
        for shown in row.values():
            for event in shown:
                event.pop("position")
    assert sorted(map(str, found)) == sorted(map(str, here))
    assert len(here) > len(tests)


@pytest.mark.spark
def test_the_function_of_sql_matches_long_texts(spark: SparkSession) -> None:
    from estero.spark import register

    register(spark)
    spark.createDataFrame(events()).createOrReplaceTempView("long_texts")
    table = "TABLE(long_texts) WITH SINGLE PARTITION ORDER BY (t)"
    query = query_of("~ '^(a|bc)*$'")
    found = spark.sql(f'SELECT * FROM recognize({table}, "{query}")')
    assert names_in(found.toArrow()) == {"a"}


@pytest.mark.spark
def test_a_stream_matches_long_texts(spark: SparkSession, tmp_path: Path) -> None:
    from estero.spark import recognize

    source = tmp_path / "events"
    spark.createDataFrame(events()).write.parquet(str(source))
    df = spark.readStream.schema("name STRING, s STRING, t BIGINT").parquet(str(source))
    found = recognize(df, query_of("~ '^(a|bc)*$'"), time="t")
    started = (
        found.writeStream.format("memory")
        .queryName("long_texts_found")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    started.awaitTermination()
    assert names_in(spark.table("long_texts_found").toArrow()) == {"a"}
