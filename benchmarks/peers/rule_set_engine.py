"""Estero with a set of rules: from an Arrow table with plain strings to the tables of all rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import estero
from benchmarks.peers.events import TYPES, load


@dataclass(frozen=True, slots=True)
class EsteroRules:
    """The stream as a table, and the rules."""

    rules: estero.RuleSet
    stream: pa.Table
    version: str

    def tables(self, events: int) -> Iterator[pa.Table]:
        """The rule and the positions of its labels, rule by rule."""
        answers = self.rules.run(self.stream.slice(0, events), type="type")
        for name, table in answers.tables().items():
            columns = {field.name: table.column(field.name) for field in table.schema if _marks(field)}
            numbers = pa.chunked_array([pa.repeat(int(name), table.num_rows)])
            yield pa.table({"rule": numbers, **{label: _position(marks) for label, marks in columns.items()}})


def _marks(field: pa.Field) -> bool:
    return bool(pa.types.is_list(field.type))


def _position(marks: pa.ChunkedArray) -> pa.ChunkedArray:
    """The position of the one event that a label of these rules has."""
    return pc.struct_field(pc.list_flatten(marks), "position")


def engine(folder: Path, _query: str, text: str) -> EsteroRules:
    """Estero with the events of a folder, and the rules of a file: texts by number."""
    columns = load(folder)
    types = pa.DictionaryArray.from_arrays(pa.array(columns["type"].astype("i4")), pa.array(TYPES))
    stream = pa.table({"type": types.dictionary_decode(), "key": columns["key"], "price": columns["price"]})
    texts = json.loads(Path(text.removeprefix("file:")).read_text(encoding="utf-8"))
    return EsteroRules(estero.rules(texts), stream, f"Estero {estero.__version__}")
