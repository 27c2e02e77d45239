"""The stream of the demo in a folder, with queries over it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest

from cli.commands import ALL_PAIRS, FROST
from estero import demo


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the stream of the demo, a query that fits it, and some that do not."""
    directory = tmp_path_factory.mktemp("night")
    events = demo.events()
    pyarrow.parquet.write_table(events, directory / "events.parquet")
    texts = {
        "frost": FROST,
        "endless": ALL_PAIRS,
        "syntax": "SELECT * WHERE Wind ; ; Humidity",
        "unknown": "SELECT * WHERE Wnd AS w FILTER w[value > 'a'] AND v[value > 3] WITHIN 0 EVENTS",
        "kinds": "SELECT * WHERE Wind AS w FILTER w[station > 3]",
    }
    for name, text in texts.items():
        (directory / f"{name}.ceql").write_text(text)
    return directory
