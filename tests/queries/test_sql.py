"""Statements with MATCH_RECOGNIZE over tables of this process."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import estero
from estero import DataError, EsteroWarning, LimitExceeded, QueryError
from notebooks import shown_by

TIDE = pa.table(
    {
        "gauge": ["north"] * 6 + ["south"] * 4,
        "hour": [1, 2, 3, 4, 5, 6, 1, 2, 3, 4],
        "level": [5, 3, 2, 4, 6, 1, 7, 7, 2, 9],
    }
)
EBB = "DEFINE ebb AS level < PREV(level), flood AS level > PREV(level)"


def rows(text: str, **tables: object) -> list[tuple[Any, ...]]:
    """The rows of a statement over the tide, or over other tables."""
    table = estero.sql(text, connection=None, **(tables or {"tide": TIDE})).to_arrow()
    return list(zip(*table.to_pydict().values(), strict=True)) if table.num_columns else []


def matched(inner: str, select: str = "*", behind: str = "") -> list[tuple[Any, ...]]:
    return rows(f"SELECT {select} FROM tide MATCH_RECOGNIZE ({inner}) {behind}")


def refused(text: str, **tables: object) -> QueryError:
    with pytest.raises(QueryError) as raised:
        estero.sql(text, connection=None, **(tables or {"tide": TIDE})).to_arrow()
    return raised.value


# ------------------------------------------------------------------------------- rows and columns


def test_one_row_for_each_match_has_the_partition_and_the_measures() -> None:
    assert matched(
        f"""PARTITION BY gauge ORDER BY hour
        MEASURES FIRST(hour) AS first, LAST(ebb.level) AS low, LAST(flood.hour) AS last, count(*) AS n
        PATTERN (high ebb+ flood+) {EBB}"""
    ) == [("north", 1, 2, 5, 5), ("south", 2, 2, 4, 3)]


def test_all_rows_have_keys_measures_and_the_rest() -> None:
    table = estero.sql(
        f"""SELECT * FROM tide MATCH_RECOGNIZE (PARTITION BY gauge ORDER BY hour
        MEASURES CLASSIFIER() AS phase, RUNNING count(*) AS n, FINAL LAST(level) AS at_last
        ALL ROWS PER MATCH PATTERN ({{- high -}} ebb+ flood) {EBB})""",
        tide=TIDE,
    ).to_arrow()
    assert table.column_names == ["gauge", "hour", "phase", "n", "at_last", "level"]
    assert table.column("phase").to_pylist() == ["ebb", "ebb", "flood", "ebb", "flood"]
    assert table.column("n").to_pylist() == [2, 3, 4, 2, 3]
    assert table.column("at_last").to_pylist() == [4, 4, 4, 9, 9]


@pytest.mark.parametrize(
    ("rows_per_match", "hours"),
    [
        ("ALL ROWS PER MATCH", [(1, None), (2, "ebb"), (3, "ebb"), (4, None), (5, None), (6, "ebb")]),
        ("ALL ROWS PER MATCH OMIT EMPTY MATCHES", [(2, "ebb"), (3, "ebb"), (6, "ebb")]),
    ],
)
def test_empty_matches_are_shown_or_omitted(rows_per_match: str, hours: list[tuple[int, str | None]]) -> None:
    found = matched(
        f"ORDER BY gauge, hour MEASURES CLASSIFIER() AS c {rows_per_match} PATTERN (ebb*) DEFINE "
        f"ebb AS level < "
        "PREV(level)",
        "hour, c",
        "WHERE gauge = 'north'",
    )
    assert found == hours


def test_unmatched_rows_have_no_measures() -> None:
    found = matched(
        """PARTITION BY gauge ORDER BY hour MEASURES MATCH_NUMBER() AS n, 1 AS one
        ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (a b) DEFINE b AS level > 5""",
        "hour, n, one",
        "WHERE gauge = 'north'",
    )
    assert found == [(1, None, None), (2, None, None), (3, None, None), (4, 1, 1), (5, 1, 1), (6, None, None)]


def test_an_empty_match_has_a_number_and_counts_nothing() -> None:
    found = matched(
        """PARTITION BY gauge ORDER BY hour MEASURES MATCH_NUMBER() AS n, count(*) AS rows, sum(level) AS s
        PATTERN (a?) DEFINE a AS level > 6""",
        "n, rows, s",
        "WHERE gauge = 'south'",
    )
    assert found == [(1, 1, 7), (2, 1, 7), (3, 0, None), (4, 1, 9)]


def test_a_table_without_rows_has_the_columns() -> None:
    text = (
        f"SELECT * FROM tide MATCH_RECOGNIZE (PARTITION BY gauge ORDER BY hour MEASURES "
        f"sum(level) AS s PATTERN (ebb) {EBB.split(', flood', maxsplit=1)[0]})"
    )
    table = estero.sql(text, tide=TIDE.slice(0, 0)).to_arrow()
    assert (table.column_names, table.num_rows) == (["gauge", "s"], 0)


# ------------------------------------------------------------------------------------- preferences


@pytest.mark.parametrize(
    ("pattern", "labels"),
    [
        ("a+ b", ["a", "a", "a", "a", "a", "b"]),
        ("a+? b", ["a", "b"]),
        ("a? b", ["a", "b"]),
        ("a?? b", ["b"]),
        ("(b | a) c", ["b", "c"]),
        ("a{2,4}? c", ["a", "a", "c"]),
        ("PERMUTE(c, a, b)", ["c", "a", "b"]),
        ("(a | b c){2}", ["a", "a"]),
        ("(() | a) b", ["b"]),
        ("^ a b", ["a", "b"]),
        ("a+ $", ["a", "a", "a", "a", "a", "a"]),
    ],
)
def test_the_preferred_match_is_found(pattern: str, labels: list[str]) -> None:
    text = f"""SELECT labels FROM tide MATCH_RECOGNIZE (
        PARTITION BY gauge ORDER BY hour MEASURES array_agg(CLASSIFIER()) AS labels
        PATTERN ({pattern}) DEFINE a AS TRUE) WHERE gauge = 'north' LIMIT 1"""
    assert rows(text) == [(labels,)]


@pytest.mark.parametrize(
    ("skip", "starts"),
    [
        ("PAST LAST ROW", [1, 4]),
        ("TO NEXT ROW", [1, 2, 3, 4]),
        ("TO FIRST b", [1, 2, 3, 4]),
        ("TO LAST b", [1, 3]),
        ("TO ends", [1, 3]),
    ],
)
def test_the_search_goes_on_where_skip_says(skip: str, starts: list[int]) -> None:
    found = matched(
        f"""PARTITION BY gauge ORDER BY hour MEASURES FIRST(hour) AS first AFTER MATCH SKIP {skip}
        PATTERN (a b b) SUBSET ends = (a, b) DEFINE a AS TRUE""",
        "first",
        "WHERE gauge = 'north'",
    )
    assert [first for (first,) in found] == starts


def test_a_skip_that_does_not_go_on_says_where() -> None:
    inner = (
        "PARTITION BY gauge ORDER BY hour MEASURES 1 AS x AFTER MATCH SKIP TO FIRST a "
        "PATTERN (a b) DEFINE a AS level < 4"
    )
    with pytest.raises(DataError, match="the match starts at row 2 of the partition north"):
        matched(inner)
    with pytest.raises(DataError, match="found a match with no row matched to b"):
        matched(
            inner.replace("FIRST a", "b").replace("(a b)", "(a b?)").replace("level < 4", "TRUE, b AS FALSE")
        )


# ------------------------------------------------------------------------------ the match so far


def test_define_may_look_at_the_match_so_far() -> None:
    found = matched(
        """PARTITION BY gauge ORDER BY hour MEASURES count(*) AS n, sum(a.level) AS total
        PATTERN (a+ b) DEFINE a AS sum(a.level) <= 10, b AS level > LAST(a.level)""",
        "n, total",
    )
    assert found == [(4, 10), (3, 9)]


def test_a_search_ends_at_its_limit_with_the_name_of_its_define(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("estero.recognize.row_patterns.search.MOST_STEPS", 1000)
    numbers = pa.table({"x": range(40)})
    text = """SELECT * FROM numbers MATCH_RECOGNIZE (ORDER BY x MEASURES 1 AS one
        PATTERN ((a | b)* c) DEFINE c AS array_agg(CLASSIFIER())[1] = 'c' AND x < 0 + sum(a.x) - sum(a.x))"""
    with pytest.raises(LimitExceeded, match="DEFINE of c looks at the match so far, and the limit of 1,000"):
        rows(text, numbers=numbers)


def test_what_failed_is_remembered() -> None:
    numbers = pa.table({"x": range(60)})
    text = """SELECT * FROM numbers MATCH_RECOGNIZE (ORDER BY x MEASURES 1 AS one
        PATTERN ((a | b)* c) DEFINE c AS count(a.*) > 100 OR FIRST(x) < 0 OR LAST(b.x, 70) > 0)"""
    assert rows(text.replace("OR LAST(b.x, 70) > 0", ""), numbers=numbers) == []


def test_explain_says_which_way_matches_are_found() -> None:
    def line(define: str) -> str:
        text = (
            f"SELECT * FROM tide MATCH_RECOGNIZE (ORDER BY hour MEASURES 1 AS x PATTERN (a+ "
            f"b) DEFINE {define})"
        )
        return estero.sql(text, tide=TIDE).explain()

    assert line("a AS level > PREV(level, 2)").startswith("MATCH_RECOGNIZE 1: linear")
    assert line("a AS level > FIRST(level)").startswith("MATCH_RECOGNIZE 1: backtracking that remembers")
    assert "because DEFINE refers to the match so far" in line("b AS level > sum(a.level)")


def test_within_is_inclusive_and_applied_during_the_search() -> None:
    start = datetime(2024, 5, 1, tzinfo=UTC)
    times = pa.table({"t": [start + timedelta(minutes=m) for m in (0, 10, 20, 31)], "v": [1, 2, 3, 4]})
    text = """SELECT * FROM times MATCH_RECOGNIZE (ORDER BY t MEASURES FIRST(v) AS f, LAST(v) AS l
        PATTERN (a b+) WITHIN INTERVAL '20' MINUTE DEFINE a AS TRUE)"""
    assert rows(text, times=times) == [(1, 3)]


# --------------------------------------------------------------------------- the statement around


def test_the_rest_of_the_statement_is_that_of_duckdb() -> None:
    text = """
        WITH calm AS (SELECT * FROM tide WHERE level < 9),
             falls AS (SELECT gauge, n FROM calm MATCH_RECOGNIZE (
                 PARTITION BY gauge ORDER BY hour MEASURES count(*) AS n
                 PATTERN (ebb+) DEFINE ebb AS level < PREV(level)) AS m)
        SELECT f.gauge, sum(n) AS falls, max(r.top) AS top
        FROM falls AS f JOIN (SELECT * FROM calm MATCH_RECOGNIZE (
                 PARTITION BY gauge ORDER BY hour MEASURES max(level) AS top PATTERN (a+) DEFINE a AS
                 TRUE)) AS r
             ON f.gauge = r.gauge
        GROUP BY ALL ORDER BY 1"""
    assert rows(text) == [("north", 3, 6), ("south", 1, 7)]


def test_a_clause_reads_the_result_of_another_one() -> None:
    text = """SELECT count(*) AS n FROM tide MATCH_RECOGNIZE (
            PARTITION BY gauge ORDER BY hour ALL ROWS PER MATCH PATTERN (a) DEFINE a AS level > 2)
        MATCH_RECOGNIZE (ORDER BY gauge, hour MEASURES count(*) AS k PATTERN (b b) DEFINE b AS TRUE)"""
    assert rows(text) == [(3,)]


def test_statements_without_the_clause_are_statements_too() -> None:
    assert rows("SELECT max(level) AS top FROM tide") == [(9,)]
    assert estero.sql("SELECT 1").explain() == "no MATCH_RECOGNIZE: the statement is DuckDB's"


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "lazy", "dicts", "relation", "file"])
def test_tables_come_in_any_form(kind: str, tmp_path: Any) -> None:
    file = tmp_path / "tide.parquet"
    duckdb.connect().from_arrow(TIDE).write_parquet(str(file))
    forms: dict[str, object] = {
        "arrow": TIDE,
        "pandas": TIDE.to_pandas(),
        "polars": pl.from_arrow(TIDE),
        "lazy": pl.LazyFrame(TIDE.to_pydict()),
        "dicts": TIDE.to_pylist(),
        "relation": duckdb.connect().from_arrow(TIDE),
        "file": file,
    }
    text = (
        "SELECT * FROM tide MATCH_RECOGNIZE (PARTITION BY gauge ORDER BY hour MEASURES "
        "count(*) AS n PATTERN (a+) DEFINE a AS TRUE)"
    )
    assert rows(text, tide=forms[kind]) == [("north", 6), ("south", 4)]


def test_tables_may_have_the_names_of_arguments_and_need_not_be_used() -> None:
    text = "SELECT x FROM text MATCH_RECOGNIZE (ORDER BY x ALL ROWS PER MATCH PATTERN (a) DEFINE a AS TRUE)"
    result = estero.sql(text, text=pa.table({"x": [1]}), self=pa.table({"y": [2]}), other=3)
    assert result.to_arrow().to_pylist() == [{"x": 1}]


def test_a_connection_gives_its_names() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE hours AS SELECT * FROM range(4) t(hour)")
    text = (
        "SELECT * FROM hours MATCH_RECOGNIZE (ORDER BY hour MEASURES count(*) AS n "
        "PATTERN (a+) DEFINE a AS hour > 0)"
    )
    result = estero.sql(text, connection=connection)
    assert result.to_duckdb().fetchall() == [(3,)]
    assert connection.execute("SELECT count(*) FROM hours").fetchall() == [(4,)]


def test_results_are_frames_and_have_a_schema() -> None:
    text = (
        "SELECT * FROM tide MATCH_RECOGNIZE (ORDER BY gauge, hour MEASURES count(*) AS n "
        "PATTERN (a+) DEFINE a AS TRUE)"
    )
    result = estero.sql(text, tide=TIDE)
    assert result.schema.names == ["n"]
    assert isinstance(result.to_pandas(), pd.DataFrame)
    assert result.to_polars().equals(pl.DataFrame({"n": [10]}))
    assert repr(result) == "<SqlResult of 1 MATCH_RECOGNIZE>"


def test_a_notebook_shows_the_first_rows_of_a_result() -> None:
    every = "PARTITION BY gauge ORDER BY hour MEASURES last(hour) AS h PATTERN (a) DEFINE a AS TRUE"
    result = estero.sql(f"SELECT h, h AS again, '<i>' AS t FROM tide MATCH_RECOGNIZE ({every})", tide=TIDE)
    page = shown_by(result)
    assert page.texts("p") == [f"{TIDE.num_rows} rows"]
    assert page.texts("th") == ["hi64", "againi64", "tstr"]
    assert [row[0] for row in page.rows()] == [str(hour) for hour in result.to_arrow()["h"].to_pylist()]
    long = shown_by(estero.sql("SELECT * FROM range(25) AS t (n)"))
    assert (len(long.rows()), long.texts("p")) == (10, ["25 rows", "… 15 more"])


# --------------------------------------------------------------------------------- names and types


def test_names_ignore_case_and_labels_are_as_the_pattern_writes_them() -> None:
    found = matched(
        """PARTITION BY gauge ORDER BY HOUR MEASURES last("Low".LEVEL) AS l, classifier() AS c
        PATTERN (LOW+) DEFINE low AS Level < 3""",
        "l, c",
    )
    assert found == [(2, "LOW"), (1, "LOW"), (2, "LOW")]


def test_variables_may_be_called_as_keywords_and_in_any_language() -> None:
    found = matched(
        """PARTITION BY gauge ORDER BY hour MEASURES LAST(LAST.level) AS l, count("höhe x".*) AS n
        PATTERN (LAST DROP "höhe x") DEFINE DROP AS DROP.level < PREV(DROP.level),
            "höhe x" AS "höhe x".level > 3""",
        "l, n",
    )
    assert found == [(3, 1), (7, 1)]


def test_fields_of_structs_and_items_of_lists_are_read() -> None:
    nested = pa.table({"t": [1, 2, 3], "s": [{"v": 1}, {"v": 5}, {"v": 2}], "l": [[1], [2, 3], []]})
    text = """SELECT * FROM nested MATCH_RECOGNIZE (ORDER BY t
        MEASURES LAST(a.s.v) AS v, FIRST(a.l[1]) AS i, sum(len(a.l)) AS items, array_agg(a.s) AS all_s
        PATTERN (a+) DEFINE a AS s.v > 0 AND nested.s.v < 6)"""
    assert rows(text, nested=nested) == [(2, 1, 3, [{"v": 1}, {"v": 5}, {"v": 2}])]


def test_types_of_time_and_money_pass() -> None:
    day = date(2024, 2, 28)
    table = pa.table(
        {
            "day": [day + timedelta(days=n) for n in range(3)],
            "price": pa.array([Decimal("1.10"), Decimal("1.05"), Decimal("1.20")], pa.decimal128(9, 2)),
            "at": pa.array(
                [datetime(2024, 2, 28 + n % 2, n, tzinfo=UTC) for n in range(3)], pa.timestamp("us", "UTC")
            ),
        }
    )
    text = """SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY day
        MEASURES LAST(up.price) - LAST(down.price) AS rise, LAST(day) - FIRST(day) AS days, max(at) AS latest
        PATTERN (s down up) DEFINE down AS price < s.price, up AS up.price > s.price AND sum(price) < 3.40)"""
    ((rise, days, latest),) = rows(text, prices=table)
    assert (rise, days, latest.day) == (Decimal("0.15"), 2, 29)


def test_columns_may_have_any_name() -> None:
    table = pa.table({"s0": [2, 1], "c0": [5, 6], "match": ["x", "y"], "estero__c0": [7, 8]})
    text = """SELECT * FROM odd MATCH_RECOGNIZE (ORDER BY s0
        MEASURES sum(c0) AS place, FIRST("match") AS variable,
        PREV(estero__c0) AS p ALL ROWS PER MATCH PATTERN (a+) DEFINE a AS s0 > 0)"""
    assert rows(text, odd=table) == [(1, 6, "y", None, 6, "y", 8), (2, 11, "y", 8, 5, "x", 7)]


def test_keys_may_be_called_as_words_of_sql() -> None:
    table = pa.table({"user": ["b", "a", "b"], "at": [2, 1, 1]})
    text = """SELECT * FROM visits MATCH_RECOGNIZE (PARTITION BY user ORDER BY visits.at DESC NULLS LAST
        MEASURES FIRST(at) AS newest PATTERN (v+) DEFINE v AS at > 0)"""
    assert rows(text, visits=table) == [("a", 1), ("b", 2)]


def test_without_order_a_warning_says_what_the_order_is() -> None:
    with pytest.warns(EsteroWarning, match="without ORDER BY"):
        assert matched("MEASURES count(*) AS n PATTERN (a+) DEFINE a AS TRUE") == [(10,)]


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("measure", "define", "message"),
    [
        ("a.nothing", "TRUE", "there is no column 'nothing' in the input"),
        ("z.level", "TRUE", "'z' is not a variable of PATTERN, a subset or a column"),
        ("CLASSIFIER(z)", "TRUE", "'z' is not a variable of PATTERN or a subset"),
        ("sum(a.level + b.level)", "TRUE", "SUM reads the rows of one pattern variable"),
        ("sum(a.level + level)", "TRUE", "it cannot also read the whole match"),
        ("PREV(PREV(level))", "TRUE", "Nested row pattern navigation"),
        ("PREV(sum(level))", "TRUE", "an aggregate reads the rows of the match and cannot be nested in PREV"),
        ("PREV(level, -1)", "TRUE", "the offset of PREV must be a non-negative integer"),
        ("PREV(level, hour)", "TRUE", "the offset of PREV must be a constant"),
        ("FIRST()", "TRUE", "FIRST takes an expression and an optional offset"),
        ("FIRST(1)", "TRUE", "FIRST must read a column or CLASSIFIER()"),
        ("FINAL PREV(level)", "TRUE", "FINAL is for FIRST, LAST and aggregates"),
        ("lower(a.*)", "TRUE", "A.* is for count(A.*) only"),
        ("row_number() OVER ()", "TRUE", "a window function cannot stand in MEASURES"),
        ("m", "TRUE", "the measure 'm' cannot be referenced before it is defined"),
        ("1 +", "TRUE", "this expression cannot be read"),
        ("1", "FINAL sum(level) > 0", "FINAL cannot stand in DEFINE"),
        ("1", "level", "the condition of a has the type BIGINT, not BOOLEAN"),
        ("1", "(SELECT TRUE)", "a subquery cannot stand in DEFINE"),
        ("1", "MATCH_NUMBER(a) > 0", "MATCH_NUMBER takes no argument"),
        ("1", "nosuch(level) > 0", "Scalar Function with name nosuch does not exist"),
    ],
)
def test_mistakes_in_expressions(measure: str, define: str, message: str) -> None:
    error = refused(
        f"""SELECT * FROM tide MATCH_RECOGNIZE (ORDER BY gauge, hour MEASURES {measure} AS m
        PATTERN (a b) DEFINE a AS {define})"""
    )
    assert message in error.message


def test_mistakes_in_expressions_are_found_at_once_and_have_a_place() -> None:
    error = refused(
        """SELECT * FROM tide MATCH_RECOGNIZE (ORDER BY gauge, hour MEASURES
           x.level AS m, lvel AS n PATTERN (a) DEFINE a AS PREV(level, level) > 0)"""
    )
    assert [error.found, *(other.found for other in error.others)] == ["x.level", "lvel", "level"]
    assert "its columns are gauge, hour, level" in str(error)


ANY = "1 AS x PATTERN (a) DEFINE a AS TRUE"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"SELECT y FROM tide MATCH_RECOGNIZE (ORDER BY hour MEASURES {ANY})", "the statement around"),
        (
            f"SELECT * FROM nowhere MATCH_RECOGNIZE (ORDER BY hour MEASURES {ANY})",
            "give a table of that name: estero.sql(text, nowhere=table)",
        ),
        (f"SELECT * FROM tide MATCH_RECOGNIZE (ORDER BY y MEASURES {ANY})", "there is no column 'y'"),
        (f"SELECT * FROM tide MATCH_RECOGNIZE (ORDER BY FIRST(hour) MEASURES {ANY})", "part of ORDER BY"),
        (
            f"SELECT * FROM tide MATCH_RECOGNIZE (PARTITION BY hour MEASURES {ANY})".replace(
                "AS x", "AS hour"
            ),
            "'hour' is ambiguous",
        ),
        (
            f"SELECT * FROM tide JOIN tide t ON t.hour = 1 MATCH_RECOGNIZE (MEASURES {ANY})",
            "a join before it",
        ),
        (
            f"""SELECT * FROM tide MATCH_RECOGNIZE (MEASURES 1 AS x PATTERN (a)
            DEFINE a AS EXISTS (SELECT 1 FROM tide MATCH_RECOGNIZE (MEASURES {ANY})))""",
            "nested row pattern recognition",
        ),
        (
            f"WITH RECURSIVE r AS (SELECT * FROM tide MATCH_RECOGNIZE (MEASURES {ANY})) SELECT * FROM r",
            "in recursive query",
        ),
        (f"SELECT * FROM tide MATCH_RECOGNIZE (MEASURES {ANY}", "is not closed"),
        (
            f"SELECT * FROM tide, LATERAL (SELECT 1) MATCH_RECOGNIZE (MEASURES {ANY})",
            "LATERAL is not supported",
        ),
    ],
)
def test_mistakes_in_the_statement(text: str, message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EsteroWarning)
        error = refused(text)
    assert message in str(error)


def test_an_explanation_reads_no_rows() -> None:
    """Some rows end in an error, which only an answer meets."""
    rows = pa.table({"t": [1, 2], "v": ["1", "one"]})
    result = estero.sql(
        "SELECT * FROM q MATCH_RECOGNIZE "
        "(ORDER BY t MEASURES A.t AS x PATTERN (A) DEFINE A AS CAST(v AS INT) > 0)",
        q=rows,
    )
    assert result.explain().startswith("MATCH_RECOGNIZE 1: linear")
    with pytest.raises(estero.EsteroError, match="one"):
        result.to_arrow()
