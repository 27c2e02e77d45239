"""Runs commands of `estero` one after the other in one process, so that Spark starts once: JSON in, JSON out.

Standard input has a list of steps, each a list: ["estero", argument, …] runs a command; ["send", server,
topic, directory] puts the events in Parquet files of a directory into a topic of Kafka; ["receive", server,
topic] reads all of its messages, ["headers", server, topic] their headers; ["table", directory, place] adds
the events in Parquet files to a Delta table; ["forget", checkpoint] makes it look as if the process had been
killed just before it noted that the last batch was done; ["resume", directory, format] goes on with a stream
of `stopped_stream`. Standard output gets a list with what each step had to say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from pyspark.sql import Row

from estero.cli.commands import app
from estero.spark import local_session
from spark import stopped_stream


def main() -> None:
    """Standard input → standard output."""
    said = [_STEPS[name](*arguments) for name, *arguments in json.load(sys.stdin)]
    json.dump(said, sys.stdout)


def _estero(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, arguments)
    return {"exit": result.exit_code, "out": result.stdout, "err": result.stderr}


def _send(server: str, topic: str, directory: str) -> None:
    events = local_session().read.parquet(directory).selectExpr("to_json(struct(*)) AS value")
    writer = events.write.format("kafka").option("kafka.bootstrap.servers", server)
    writer.option("topic", topic).save()


def _receive(server: str, topic: str) -> list[tuple[str | None, str]]:
    rows = _messages(server, topic, "CAST(key AS STRING)", "CAST(value AS STRING)")
    return [(row["key"], row["value"]) for row in rows]


def _headers(server: str, topic: str) -> list[list[tuple[str, str]]]:
    rows = _messages(server, topic, "headers")
    return [[(header["key"], header["value"].decode()) for header in row["headers"] or ()] for row in rows]


def _messages(server: str, topic: str, *columns: str) -> list[Row]:
    reader = local_session().read.format("kafka").option("kafka.bootstrap.servers", server)
    messages = reader.option("subscribe", topic).option("includeHeaders", "true").load()
    return messages.orderBy("partition", "offset").selectExpr(*columns).collect()


def _forget(checkpoint: str) -> str:
    last = max(Path(checkpoint, "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    return last.name


def _table(directory: str, place: str) -> None:
    local_session().read.parquet(directory).write.format("delta").mode("append").save(place)


def _resume(directory: str, form: str) -> None:
    place = Path(directory)
    stopped_stream.written(stopped_stream.recognized(place, form), place, form)


_STEPS: dict[str, Callable[..., Any]] = {
    "estero": _estero,
    "send": _send,
    "receive": _receive,
    "headers": _headers,
    "table": _table,
    "forget": _forget,
    "resume": _resume,
}

if __name__ == "__main__":
    main()
