"""DuckDB relations whose order is declared: they number their rows, and leave out what cannot be relevant."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.errors import DataError
from estero.events.tables.relations import Relation

ROWS = 300_000
"""More than one batch, so that some are made ahead of what is fetched."""
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t", "order": ["k"]}
QUERY = estero.query("SELECT a[v], b[name] WHERE A AS a ; B AS b FILTER a[name = 'n7'] WITHIN 20 [t]")
ONE_OF = ({"kind": frozenset({"A"}), "name": frozenset({"n7"})}, {"kind": frozenset({"B"})})


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A user's connection with events in order, one in a hundred of them an A or a B."""
    with duckdb.connect() as opened:
        kind = "CASE range % 200 WHEN 7 THEN 'A' WHEN 11 THEN 'B' ELSE 'other' END AS kind"
        columns = f"range // 2 AS t, range AS k, {kind}, 'n' || (range % 1000) AS name, range * 0.5 AS v"
        opened.execute(f"CREATE TEMP TABLE events AS SELECT {columns} FROM range({ROWS})")
        yield opened


def read_of(events: object, query: estero.Query = QUERY, **layout: Any) -> str:
    """What `explain` says of the rows that are read."""
    said = dict(query.explain(events, **(LAYOUT | layout)).sections())["Read"]
    return said.partition("; ")[2]


BY_RELATION = (
    "the relation numbers the rows and keeps only those with kind = 'A' AND name = 'n7' or kind = 'B'"
)
BY_US = BY_RELATION.replace("the relation", "a first scan")
ALL = "all rows, because every row has a position"


def test_a_relation_in_order_numbers_its_rows_and_leaves_some_out(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    relation = Relation(connection.sql("FROM events LIMIT 1500"))
    relation.expect(["t", "k", "kind", "name"], order=("t", "k"), one_of=ONE_OF)
    numbered = relation.numbered(["k", "kind"], ONE_OF).read_all()
    kept = [7, 11, 211, 411, 611, 811, 1007, 1011, 1211, 1411, 1499]  # the last row tells how many there are
    assert numbered["k"].to_pylist() == numbered["__position"].to_pylist() == kept
    assert numbered.column_names == ["k", "kind", "__position"]
    found = relation.in_order()
    assert found is not None
    assert found.rows == 1500
    assert relation.numbered(["k"], ONE_OF[1:]).read_all().num_rows == len(kept)
    assert relation.numbered(["k"], [{"kind": frozenset({"C"})}]).read_all().column_names == ["k"]


@pytest.mark.parametrize(
    "name", ["FROM events", "FROM events ORDER BY t, k", "FROM events UNION ALL FROM events LIMIT 0"]
)
def test_positions_are_those_of_all_rows(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    relation = connection.sql(name)
    found = QUERY.run(relation, **LAYOUT)
    expected = QUERY.run(relation.to_arrow_table(), **LAYOUT).to_arrow()
    assert found.to_arrow().equals(expected)
    assert found.count() == expected.num_rows
    assert read_of(relation) == BY_RELATION


@pytest.mark.parametrize(
    ("changed", "layout", "said"),
    [
        ("FROM events", {"order": ()}, BY_US),
        ("FROM events", {"order": ["name"]}, BY_US),  # strings may have a collation
        ("SELECT * REPLACE (0 AS k) FROM events", {}, BY_US),
        (f"SELECT * REPLACE (least(k, {ROWS - 2}) AS k) FROM events", {}, BY_US),
        ("SELECT * REPLACE (nullif(k, 5) AS k) FROM events", {}, BY_US),
        ("FROM events ORDER BY k DESC", {}, ALL),
        (f"SELECT * REPLACE (if(k = {ROWS - 1}, 0, t) AS t) FROM events", {}, ALL),
    ],
)
def test_what_is_not_in_a_total_order_is_read_as_without_one(
    connection: duckdb.DuckDBPyConnection, changed: str, layout: dict[str, Any], said: str
) -> None:
    relation = connection.sql(changed)
    asked = LAYOUT | layout
    expected = QUERY.run(relation.to_arrow_table(), **asked).to_arrow()
    assert expected.num_rows
    assert QUERY.run(relation, **asked).to_arrow().equals(expected)
    assert read_of(relation, **layout) == said
    assert connection.execute("SELECT 42").fetchall() == [(42,)]


def test_a_time_that_is_null_is_named_where_an_order_is_declared(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    relation = connection.sql(f"SELECT * REPLACE (nullif(t, {ROWS // 2 - 1}) AS t) FROM events")
    with pytest.raises(DataError, match=rf"row {ROWS - 1}, column 't': the time is NULL"):
        QUERY.run(relation, **LAYOUT).count()


KINDS = ["A", "B", "C", None]
NAMES = ["n", "m", "it's", "", None]
QUERIES = [
    "SELECT A[v], B[v] WHERE A ; B WITHIN 3 EVENTS",
    "SELECT x[v], y[v] WHERE A AS x ; B AS y FILTER x[name = 'n'] AND y[name = 'it''s' OR name = 'm']",
    "SELECT x[v] WHERE A AS x ; B AS y FILTER x[name = 'n' OR v > 2]",
    "SELECT A[v], B[v] WHERE A : B",
    "SELECT A[v], B[v] WHERE A : B PARTITION BY [name]",
    "SELECT A[v], B[v] WHERE A ; B PARTITION BY [name] CONSUME BY ANY",
    "SELECT A[v] WHERE A ; NOT(B) FOR 3 [t]",
]


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.one_of(st.integers(0, 9), st.none()),
            st.sampled_from(KINDS),
            st.sampled_from(NAMES),
        ),
        max_size=8,
    ),
    st.sampled_from(QUERIES),
    st.sampled_from(["VARCHAR", "ENUM('A', 'B', 'C')"]),
    st.sampled_from(["as it is", "sorted", "numbered"]),
    st.sampled_from([["k"], ["k", "v"]]),
)
def test_relations_with_an_order_answer_as_their_tables(
    rows: list[tuple[int, int | None, str | None, str | None]],
    query: str,
    kind: str,
    order: str,
    ties: list[str],
) -> None:
    rows = [*rows, (2, 3, "A", "n"), (2, 4, "B", "m")]
    if order == "numbered":
        rows = [(place // 2, place, *row[2:]) for place, row in enumerate(rows)]
    names = ["t", "k", "kind", "name"]
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) | {"v": range(len(rows))}
    table = pa.table({name: list(values) for name, values in columns.items()})
    asked = estero.query(query)
    with duckdb.connect() as connection:
        relation = connection.from_arrow(table).project(f"* REPLACE (CAST(kind AS {kind}) AS kind)")
        if order == "sorted":
            relation = relation.order("t, k")
        layout = LAYOUT | {"order": ties}
        assert outcome(asked, relation, layout) == outcome(asked, relation.to_arrow_table(), layout)


def outcome(query: estero.Query, events: object, layout: dict[str, Any]) -> object:
    """The answer in full, or the error that says why there is none."""
    try:
        answer = query.run(events, **layout)
        return answer.to_arrow().to_pylist(), answer.count()
    except DataError as error:
        return str(error)


def test_the_connection_is_free_and_its_statements_may_read_the_answer(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    answer = QUERY.run(connection.table("events"), **LAYOUT)
    count = ROWS // 1000
    assert connection.sql("SELECT count(*) FROM answer").fetchall() == [(count,)]
    rows = answer.rows()  # noqa: F841  (DuckDB finds it by its name)
    assert connection.sql("SELECT count(*) FROM rows JOIN events ON position = k").fetchall() == [
        (2 * count,)
    ]
    connection.execute("DELETE FROM events")
    assert answer.count() == count  # it was run once


def test_types_whose_events_are_left_out_occur(connection: duckdb.DuckDBPyConnection) -> None:
    nobody = estero.query("SELECT a WHERE A AS a FILTER a[name = 'nobody']")
    assert nobody.run(connection.table("events"), **LAYOUT).count() == 0  # a warning would be an error
    with pytest.warns(estero.EsteroWarning, match="there are no events of type D"):
        assert estero.query("SELECT D WHERE D").run(connection.table("events"), **LAYOUT).count() == 0


def test_the_time_of_the_last_event_is_known_where_it_is_left_out(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    absence = estero.query("SELECT a[k] WHERE A AS a ; NOT(B) FOR 96 [t] FILTER a[name = 'n807']")
    assert read_of(connection.table("events"), absence).startswith("the relation")
    found = [absence.run(events, **LAYOUT).to_arrow() for events in (connection.table("events"),)]
    assert found[0].equals(absence.run(connection.table("events").to_arrow_table(), **LAYOUT).to_arrow())


def test_questions_about_other_events_run_it_once_more_in_order(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    relation = Relation(connection.table("events"))
    relation.expect(["t", "k", "kind", "name"], order=("t", "k"), one_of=ONE_OF)
    assert relation.in_order() is not None
    connection.execute("CREATE TEMP TABLE turned AS FROM events ORDER BY k DESC")
    connection.execute("DELETE FROM events; INSERT INTO events FROM turned")
    assert relation(["k"]).read_all()["k"].to_pylist() == list(range(ROWS))
    assert relation(["v", "k"]).read_all()["k"].to_pylist() == list(range(ROWS))


@pytest.mark.parametrize(
    "setting", ["preserve_insertion_order = false", "default_collation = NOCASE", "default_order = 'DESC'"]
)
def test_settings_of_the_connection_do_not_matter(
    connection: duckdb.DuckDBPyConnection, setting: str
) -> None:
    expected = QUERY.run(connection.table("events").to_arrow_table(), **LAYOUT).to_arrow()
    connection.execute(f"SET {setting}")
    assert QUERY.run(connection.table("events"), **LAYOUT).to_arrow().equals(expected)
    lower = estero.query("SELECT a WHERE a")
    with pytest.warns(estero.EsteroWarning, match="there are no events of type a"):
        assert lower.run(connection.table("events"), **LAYOUT).count() == 0


def test_rows_that_are_many_wait_in_a_file(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    relation = Relation(connection.table("events"), in_memory=1)
    one_of = [{"kind": frozenset({"other"})}]
    relation.expect(["t", "k", "kind"], order=("t", "k"), one_of=one_of)
    for _ in range(2):
        found = relation.numbered(["k"], one_of).read_all()
        assert found["k"].equals(found["__position"])
        assert found.num_rows == ROWS - ROWS // 100
    assert [each.suffix for each in tmp_path.iterdir()] == [".arrows"]


def test_columns_may_be_called_as_those_that_number_rows(connection: duckdb.DuckDBPyConnection) -> None:
    names = "*, k AS __position, k AS __relation_unsure, k AS __relation_last"
    relation = connection.sql(f"SELECT {names} FROM events LIMIT 3000")
    query = estero.query("SELECT * WHERE A AS a ; B AS b FILTER a[name = 'n7'] WITHIN 20 [t]")
    expected = query.run(relation.to_arrow_table(), **LAYOUT).to_arrow()
    assert query.run(relation, **LAYOUT).to_arrow().equals(expected)
