"""Databases are lent from one source of events to the next, and nothing of the one shows in the other."""

from __future__ import annotations

import gc
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from estero.events import database
from estero.events.database import Database, connect, lent_cursor, own_cursor
from estero.events.sources import Source, open_source
from estero.events.tables.shown_types import occurs
from estero.language.tree.schema import EventLayout
from estero.plan.plan import Classification


def source_of(table: pa.Table) -> Source:
    return open_source(table, EventLayout.of(type="type"))


def test_a_database_goes_from_one_source_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()  # what earlier tests left would give its databases back below
    monkeypatch.setattr("estero.events.database._idle", {})  # as many as are kept may be idle already
    first = source_of(pa.table({"type": ["A"]}))
    assert first._sql.rows("SELECT type FROM events") == [("A",)]
    used = first._databases.here
    with first._sql.threads(alone=True):
        assert first._sql.rows("SELECT current_setting('threads')") == [(1,)]
    del first
    gc.collect()
    second = source_of(pa.table({"type": ["B"], "n": [1]}))
    assert second._databases.here is used
    default = source_of(pa.table({"type": ["C"]}))._sql.rows("SELECT current_setting('threads')")
    assert second._sql.rows("SELECT current_setting('threads')") == default
    assert second._sql.rows("SELECT * FROM events") == [("B", 1)]


def test_two_sources_have_databases_of_their_own() -> None:
    one, other = source_of(pa.table({"type": ["A"]})), source_of(pa.table({"type": ["B"]}))
    assert one._databases.here is not other._databases.here


def test_a_cursor_is_of_an_idle_database_and_of_all_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("estero.events.database._idle", {})
    with connect() as fresh:
        threads = fresh.execute("SELECT current_setting('threads')").fetchall()
    with lent_cursor() as one, lent_cursor() as other:
        one.execute("CREATE TEMP TABLE events AS SELECT 1")
        assert other.execute("SHOW TABLES").fetchall() == []
    (idle, _) = _idle_here()
    idle.use_threads(alone=True)
    with lent_cursor(), lent_cursor() as again:
        assert again.execute("SELECT current_setting('threads')").fetchall() == threads
        assert again.execute("SHOW TABLES").fetchall() == []
    assert len(_idle_here()) == 2


@pytest.mark.parametrize("opened", [lent_cursor, own_cursor])
def test_a_cursor_has_the_settings_of_its_database(opened: Callable[[], Any]) -> None:
    variable = pa.table({"n": [1]})
    with opened() as cursor:
        assert cursor.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
        with pytest.raises(duckdb.CatalogException):
            cursor.execute("FROM variable")
    assert variable.num_rows == 1


def test_what_is_prepared_on_one_cursor_is_not_on_another() -> None:
    with own_cursor() as one, own_cursor() as other:
        one.register("events", pa.table({"n": [1]}))
        one.execute("PREPARE asked AS FROM events")
        assert one.execute("SELECT current_setting('threads')").fetchall() == [(1,)]
        with pytest.raises(duckdb.Error):
            other.execute("EXECUTE asked")


def _idle_here() -> list[Database]:
    return database._idle[os.getpid()]


def test_where_nothing_can_be_written_a_database_spills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses() -> Path:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr("estero.events.database.temporary_directory", refuses)
    assert _spills() == ""


def test_nobody_else_can_write_or_read_what_is_spilled() -> None:
    """A directory with a name that can be told could be there before, as a link or as somebody else's."""
    folder = Path(_spills()).parent
    assert folder.is_dir()
    assert folder.parent == Path(tempfile.gettempdir())
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU
    assert folder.stat().st_uid == os.geteuid()


def _spills() -> str:
    ((found,),) = connect().execute("SELECT current_setting('temp_directory')").fetchall()
    return str(found)


STRINGS = pa.chunked_array([pa.array(["a", "b", None]), pa.array([], pa.string()), pa.array(["c"])])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("encoded", [False, True])
def test_a_text_occurs_where_a_value_is_it(kind: pa.DataType, encoded: bool) -> None:
    column = STRINGS.cast(kind)
    column = column.dictionary_encode() if encoded else column
    assert [occurs(column, text) for text in "abcd"] == [True, True, True, False]


def test_a_text_that_only_a_dictionary_has_does_not_occur() -> None:
    column = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), ["x", "y"])])
    assert (occurs(column, "x"), occurs(column, "y")) == (True, False)
    twice = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([1], pa.int8()), ["x", "x", "y"])])
    assert (occurs(twice, "x"), occurs(twice, "y")) == (True, False)
    assert occurs(STRINGS.cast(pa.string_view()), "a") is None


def test_columns_of_the_last_classification_are_remembered() -> None:
    source = source_of(pa.table({"type": ["A"], "n": [1]}))
    one, other = (Classification((), source.schema, "type", payload=(name,)) for name in ("type", "n"))
    assert source.classified_schema(one) is source.classified_schema(one)
    assert source.classified_schema(other).names != source.classified_schema(one).names
