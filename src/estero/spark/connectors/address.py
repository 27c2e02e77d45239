"""The source or sink of a Spark stream, and its trigger: ``parquet:events/`` → an `Address`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from estero.addresses import Address, address_of
from estero.arguments import checked
from estero.errors import DataError

SOURCES = ("parquet", "json", "csv", "kafka", "delta")
SINKS = ("parquet", "json", "csv", "kafka", "delta", "postgresql", "console")

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days"}
_WORDS = r"milliseconds?|seconds?|minutes?|hours?|days?"
_INTERVAL = re.compile(rf"(\d+)\s*({_WORDS}|{'|'.join(_UNITS)})", re.IGNORECASE)


@checked
def source_address(text: str) -> Address:
    """The address of a source: files of a format, a topic of Kafka, a Delta table.

    The format of a path without a scheme is given by its suffix. Raises `DataError` for other texts.

    >>> str(source_address("events/*.parquet"))
    'parquet:events/*.parquet'
    """
    return address_of(text, SOURCES, "source")


@checked
def sink_address(text: str) -> Address:
    """The address of a sink: any address of a source, or a table of PostgreSQL, or ``console``.

    >>> sink_address("parquet:found?compression=zstd").options
    {'compression': 'zstd'}
    """
    return address_of(text, SINKS, "sink")


def located(path: str) -> str:
    """A local path with a scheme, so that Spark's default file system does not matter; nothing is encoded.

    >>> located("s3a://bucket/events")
    's3a://bucket/events'
    >>> located("/data/100% here")
    'file:///data/100% here'
    """
    return path if "://" in path else f"file://{Path(path).absolute()}"


@checked
def trigger_of(text: str | None) -> dict[str, Any]:
    """The keyword argument of Spark's `trigger`; `DataError` for other texts.

    >>> trigger_of("10s"), trigger_of("available-now")
    ({'processingTime': '10 seconds'}, {'availableNow': True})
    """
    if text is None:
        return {"processingTime": "0 seconds"}
    plain = text.strip().lower()
    if plain.replace("_", "-").replace(" ", "-") in ("available-now", "availablenow"):
        return {"availableNow": True}
    match = _INTERVAL.fullmatch(plain)
    if match is None:
        raise DataError(
            f"{text!r} is not a trigger", hint="write available-now, or an interval such as 10 seconds"
        )
    return {"processingTime": f"{match[1]} {_UNITS.get(match[2], match[2])}"}
