"""The statements that write a batch to PostgreSQL, on a real server and without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.servers import postgresql, run_sql
from estero.spark.connectors.address import sink_address
from estero.spark.connectors.postgresql import Table, table_of

STAGED = '"s"."estero_stream"'
COLUMNS = ["farm", "frost"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as address:
        run_sql(address, 'CREATE SCHEMA "s"')
        run_sql(
            address,
            'CREATE TABLE "s"."estero_streams" (stream text PRIMARY KEY, batch bigint, noted timestamptz)',
        )
        staged = f"CREATE TABLE {STAGED} (farm text, frost text, estero_task bigint, estero_run bigint)"
        first, again = (f"('x', '[1]', 0, {run}), ('y', '[2]', 0, {run})" for run in (10, 14))
        rows = f"{first}, {again}, ('z', NULL, 1, 11)"
        run_sql(address, f"{staged}; INSERT INTO {STAGED} VALUES {rows}")
        yield address


@pytest.fixture
def table() -> Table:
    return table_of(sink_address("postgresql://estero@h/weather/s.found"), ("frost",))


def changed(server: str, statement: str) -> int:
    """How many rows a statement changes."""
    return len(run_sql(server, f"{statement} RETURNING 1"))


def test_the_table_is_made_once_with_json_where_there_are_lists(server: str, table: Table) -> None:
    run_sql(server, table.creating(STAGED, COLUMNS))
    run_sql(server, table.creating(STAGED, COLUMNS))
    types = (
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'found' ORDER BY 1"
    )
    assert run_sql(server, types) == ["farm|text", "frost|jsonb"]


def test_rows_of_a_task_that_ran_twice_are_taken_once(server: str, table: Table) -> None:
    run_sql(server, table.creating(STAGED, COLUMNS))
    run_sql(server, table.inserting(STAGED, COLUMNS))
    assert run_sql(server, 'SELECT farm, frost FROM "s"."found" ORDER BY 1') == ["x|[1]", "y|[2]", "z|"]


def test_a_batch_is_noted_once_and_never_after_a_later_one(server: str, table: Table) -> None:
    assert changed(server, table.noting("a", 0)) == 1
    assert changed(server, table.noting("a", 0)) == 0
    assert changed(server, table.noting("a", 1)) == 1
    assert changed(server, table.noting("a", 0)) == 0
    assert changed(server, table.noting("b", 0)) == 1


def test_the_password_comes_from_the_environment_where_the_address_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGUSER", "ann")
    monkeypatch.setenv("PGPASSWORD", "secret")
    found = table_of(sink_address("postgresql://h:1/d/t?sslmode=require"), ())
    assert found.url == "jdbc:postgresql://h:1/d"
    assert found.properties == {"user": "ann", "password": "secret", "sslmode": "require"}
    named = table_of(sink_address("postgresql://eve:other@h:1/d/t"), ())
    assert named.properties == {"user": "eve", "password": "other"}
