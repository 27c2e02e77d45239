"""A small stream of trades, and what a source makes of it: for tests of sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from estero.events.sources import Source
from estero.plan.plan import Classification

TRADES = pa.table(
    {
        "kind": ["SELL", "BUY", "SELL", "BUY"],
        "name": ["INTC", "RIMM", "QQQ", "INTC"],
        "volume": [10, 20, 30, 40],
        "price": [1.5, 2.5, None, 4.5],
        "at": [0, 10, 10, 30],
    }
)


def everything(source: Source, *payload: str, **more: Any) -> Classification:
    """A classification that keeps all events of all types."""
    settings = {"type_column": source.type_column, "only_type": source.only_type, "order": source.order}
    return Classification((), source.schema, keep_all=True, payload=payload, **(settings | more))


def rows(source: Source, *payload: str) -> list[dict[str, Any]]:
    """The classified events as dicts, without their bits."""
    batches = list(source.read(everything(source, *payload)))
    return [{k: v for k, v in row.items() if k != "__bits0"} for b in batches for row in b.to_pylist()]


def column(source: Source, name: str) -> list[Any]:
    return [row[name] for row in rows(source, name)]


def write_csv(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)
