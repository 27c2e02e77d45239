"""Estero: from the text of the query and an Arrow table with plain strings to the last record batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import estero
from benchmarks.peers.events import TYPES, load


@dataclass(frozen=True, slots=True)
class Estero:
    """The stream as a table."""

    text: str
    stream: pa.Table
    version: str

    def tables(self, events: int) -> Iterator[pa.Table]:
        """The positions of each label, batch by batch.

        A query ``FROM S`` reads the type as an attribute: all events are of one type.
        """
        typed = " FROM " not in self.text
        answer = estero.query(self.text).run(
            self.stream.slice(0, events), type="type" if typed else None, types=TYPES if typed else ()
        )
        for batch in answer.batches():
            labels = [field.name for field in batch.schema if pa.types.is_list(field.type)]
            yield pa.table({name: _positions(batch.column(name)) for name in labels})


def _positions(marked: pa.Array) -> pa.Array:
    positions = pc.struct_field(marked.values, "position")
    return pa.ListArray.from_arrays(marked.offsets, positions)


def engine(folder: Path, _query: str, text: str) -> Estero:
    """Estero with the events of a folder."""
    columns = load(folder)
    types = pa.DictionaryArray.from_arrays(pa.array(columns["type"].astype("i4")), pa.array(TYPES))
    stream = pa.table({"type": types.dictionary_decode(), "key": columns["key"], "price": columns["price"]})
    return Estero(text, stream, f"Estero {estero.__version__}")
