"""Events of JSON files as dicts, for keys that differ only in case, which DuckDB takes for one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa


def objects_in(files: Iterable[str]) -> list[dict[str, Any]]:
    """The objects of some files in memory: one per line, one after the other, or one array."""
    return [row for file in files for row in _objects(file)]


def _objects(file: str) -> Iterator[dict[str, Any]]:
    with pa.input_stream(file, compression="detect") as stream:
        text = stream.read().decode("utf-8-sig")
    decoder, place = json.JSONDecoder(), 0
    while text[place : place + 1].isspace():
        place += 1
    while place < len(text):
        value, place = decoder.raw_decode(text, place)
        yield from value if isinstance(value, list) else [value]
        while text[place : place + 1].isspace():
            place += 1
