"""The layout of events that are pushed: what a user says of it, and what a snapshot keeps of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from estero.events.database import Connection, lent_cursor
from estero.events.scan import Scan
from estero.events.streams import stream_layout
from estero.events.streams.stream_layout import StreamLayout, layout_of
from estero.language.tree.schema import EventLayout
from events.reading import TRADES, write_csv


def test_a_layout_comes_back_from_a_state() -> None:
    columns = EventLayout.of("kind", "at", ["name"], "ms", ["SELL", "BUY"], only_type="Trade")
    layout = layout_of(Scan(TRADES, columns), "2 minutes")
    assert layout.lateness == 120_000
    arrays = layout.as_arrays()
    assert StreamLayout.of_state(layout.as_text(), arrays) == layout
    assert not arrays


def test_the_columns_of_a_file_are_read_on_a_cursor_that_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Connection] = []

    @contextmanager
    def noted() -> Iterator[Connection]:
        with lent_cursor() as cursor:
            opened.append(cursor)
            yield cursor

    monkeypatch.setattr(stream_layout, "lent_cursor", noted)
    layout = layout_of(Scan(write_csv(tmp_path / "t.csv", "kind,n", "A,1"), EventLayout("kind")))
    assert layout.schemas[""].types == [pa.string(), pa.int64()]
    (cursor,) = opened
    with pytest.raises(duckdb.ConnectionException, match="closed"):
        cursor.execute("SELECT 1")
