"""The layout of events that are pushed: what a user says of it, and what a snapshot keeps of it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from estero.events.database import Connection, connect
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


def test_the_columns_of_a_file_are_read_on_a_connection_that_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Connection] = []

    def noted() -> Connection:
        opened.append(connect())
        return opened[-1]

    monkeypatch.setattr(stream_layout, "connect", noted)
    layout = layout_of(Scan(write_csv(tmp_path / "t.csv", "kind,n", "A,1"), EventLayout("kind")))
    assert layout.schemas[""].types == [pa.string(), pa.int64()]
    (connection,) = opened
    with pytest.raises(duckdb.ConnectionException, match="closed"):
        connection.execute("SELECT 1")
