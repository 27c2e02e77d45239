"""DuckDB relations on the user's own connection, which stays free whatever is asked of an answer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import estero
from estero.errors import DataError
from estero.events.tables.relations import Relation

ROWS = 250_000
"""More than DuckDB makes ahead of what is fetched."""
QUERY = estero.query("SELECT * WHERE A AS a ; B AS b FILTER a[v >= 10] WITHIN 1 [t]")


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A user's connection with events in a temporary table, a view over it, and a registered frame."""
    with duckdb.connect() as opened:
        events = "SELECT range AS v, range AS t, if(range % 2 = 0, 'A', 'B') AS kind FROM range({})"
        opened.execute(f"CREATE TEMP TABLE events AS {events.format(ROWS)}")
        opened.execute("CREATE TEMP VIEW seen AS SELECT * FROM events")
        opened.execute("CREATE TEMP TABLE few AS FROM events LIMIT 100")
        opened.register("registered", opened.table("events").to_arrow_table())
        yield opened


def is_free(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the user can go on with this connection."""
    return connection.execute("SELECT 42").fetchall() == [(42,)]


@pytest.mark.parametrize("name", ["events", "seen", "registered"])
def test_the_connection_is_free_while_an_answer_is_read_and_after_it_was_left(
    connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    answer = QUERY.run(connection.table(name), type="kind", time="t")
    found = iter(answer)
    assert next(found).positions["a"] == (10,)
    assert is_free(connection)
    assert next(found).positions["a"] == (12,)
    del found
    assert is_free(connection)
    assert answer.count() == (ROWS - 10) // 2
    assert answer.limit(3).to_arrow().column("start").to_pylist() == [10, 12, 14]


@pytest.mark.parametrize("name", ["events", "few"])
def test_relations_of_any_size_answer_as_their_tables_do(
    connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    relation = connection.sql(f"FROM {name} ORDER BY t DESC")
    found = QUERY.run(relation, type="kind", time="t").to_arrow()
    assert found.equals(QUERY.run(relation.to_arrow_table(), type="kind", time="t").to_arrow())


def test_relations_of_one_connection_are_tables_of_types(connection: duckdb.DuckDBPyConnection) -> None:
    tables = {name: connection.sql(f"SELECT v, t FROM events WHERE kind = '{name}'") for name in "AB"}
    answer = QUERY.run(tables, time="t")
    assert next(iter(answer)).positions["a"] == (10,)
    assert is_free(connection)
    assert answer.count() == (ROWS - 10) // 2


def test_a_relation_is_run_once_for_an_answer(connection: duckdb.DuckDBPyConnection) -> None:
    answer = QUERY.run(connection.table("events"), type="kind", time="t")
    assert connection.table("events").count("v").fetchall() == [(ROWS,)]
    assert answer.count() == (ROWS - 10) // 2
    connection.execute("DELETE FROM events")
    assert answer.limit(1).to_arrow().num_rows == 1


WIDE = "SELECT *, if(v >= 0, error('it was read'), '') AS wide FROM events"
FEW = "SELECT a[v], b[t] WHERE A AS a ; B AS b FILTER a[v >= 10] WITHIN 1 [t]"


def test_a_relation_is_run_for_the_columns_that_a_query_needs(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    answer = estero.query(FEW).run(connection.sql(WIDE), type="kind", time="t")
    assert answer.count() == (ROWS - 10) // 2
    assert answer.limit(1).to_arrow().column("b").to_pylist() == [[{"t": 11, "position": 11}]]
    said = dict(estero.query(FEW).explain(connection.sql(WIDE), type="kind", time="t").sections())["Read"]
    assert said.startswith("v, t, kind (3 of 4 columns); ")
    with pytest.raises(DataError, match="it was read"):
        QUERY.run(connection.sql(WIDE), type="kind", time="t").count()


def test_relations_of_types_are_run_for_the_columns_that_a_query_needs(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    tables = {name: connection.sql(f"SELECT v, wide, t FROM ({WIDE}) WHERE kind = '{name}'") for name in "AB"}
    assert estero.query(FEW).run(tables, time="t").count() == (ROWS - 10) // 2


def test_a_relation_is_run_again_for_columns_that_were_not_expected(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    relation = Relation(connection.table("few"))
    relation.expect(["kind"])
    assert relation(["kind"]).read_all().column_names == ["kind"]
    assert relation.columns == ["kind"]
    assert relation(["t", "kind"]).read_all().column("t").to_pylist() == list(range(100))
    assert relation.columns == ["v", "t", "kind"]
    assert relation().read_all().column_names == ["v", "t", "kind"]


def test_odd_names_of_columns_are_asked_for(connection: duckdb.DuckDBPyConnection) -> None:
    names = """v AS "a.b", t AS "c""d", 'A' AS kind, error('it was read') AS e"""
    odd = connection.sql(f"SELECT {names} FROM few")
    query = estero.query('SELECT x[`a.b`, `c"d`] WHERE A AS x')
    assert query.run(odd, type="kind").to_arrow().column("x")[7].as_py() == [
        {"a.b": 7, 'c"d': 7, "position": 7}
    ]


def test_what_is_large_waits_in_a_file(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    relation = Relation(connection.sql("SELECT *, kind::ENUM('A', 'B') AS e FROM events"), in_memory=1)
    for _ in range(2):
        assert relation().read_all().column("v").to_pylist() == list(range(ROWS))
    assert [each.suffix for each in tmp_path.iterdir()] == [".arrows"]
    del relation
    assert not list(tmp_path.iterdir())


def test_an_open_result_of_the_user_is_named(connection: duckdb.DuckDBPyConnection) -> None:
    relation = connection.table("events")
    rows = connection.execute("FROM events")
    rows.fetchone()
    with pytest.raises(DataError) as caught:
        QUERY.run(relation, type="kind", time="t").count()
    assert str(caught.value) == (
        "the connection of this relation has a result that has not been read to its end\n"
        "  hint: fetch the rest of that result first, or make the relation on a cursor of its own: "
        "connection.cursor()"
    )
    rows.fetchall()
    assert QUERY.run(relation, type="kind", time="t").count() == (ROWS - 10) // 2


def test_a_relation_that_fails_leaves_its_connection_free(connection: duckdb.DuckDBPyConnection) -> None:
    failing = connection.sql("SELECT if(v = 200000, error('no such reading'), v) AS v, t, kind FROM events")
    with pytest.raises(DataError, match="no such reading"):
        QUERY.run(failing, type="kind", time="t").count()
    assert is_free(connection)


def test_relations_are_pushed(connection: duckdb.DuckDBPyConnection) -> None:
    relation = connection.table("events")
    recognizer = QUERY.recognizer(relation, type="kind", time="t")
    assert recognizer.push(relation).count() == (ROWS - 10) // 2
    assert is_free(connection)
    assert recognizer.push(pa.table({"v": [ROWS], "t": [ROWS], "kind": ["B"]})).count() == 0


@pytest.mark.parametrize("shape", ["rows", "complex events"])
def test_a_statement_of_its_connection_may_read_an_answer_that_nobody_has_read(
    connection: duckdb.DuckDBPyConnection, shape: str
) -> None:
    """Without a type column nothing has looked at the events before."""
    few = connection.sql("SELECT v, t FROM events WHERE v < 1000")
    answer = estero.query("SELECT x WHERE Event AS x FILTER x[v < 5]").run(few)
    found = answer.rows() if shape == "rows" else answer  # noqa: F841  (DuckDB finds it by its name)
    assert connection.sql("SELECT count(*) FROM found").fetchall() == [(5,)]
    assert connection.execute("SELECT count(*) FROM found, few WHERE few.v < 2").fetchall() == [(10,)]
