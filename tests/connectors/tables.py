"""Tables of Delta, read without Delta: by the log, as files of a batch that was killed do not count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset


def delta_log(table: Path, action: str) -> list[dict[str, Any]]:
    """What the log of a table has of an action, in order."""
    texts = [each.read_text() for each in sorted((table / "_delta_log").glob("*.json"))]
    actions = [json.loads(line) for text in texts for line in text.splitlines()]
    return [each[action] for each in actions if action in each]


def delta_rows(table: Path) -> list[dict[str, Any]]:
    """The rows of the files that the log has."""
    assert not delta_log(table, "remove")
    paths = [str(table / unquote(each["path"])) for each in delta_log(table, "add")]
    rows = pyarrow.dataset.dataset(paths, format="parquet").to_table()
    return list(rows.cast(pa.schema([_in_utc(each) for each in rows.schema])).to_pylist())


def _in_utc(field: pa.Field) -> pa.Field:
    """Spark's files leave the time zone of instants out, and have nanoseconds."""
    return field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
