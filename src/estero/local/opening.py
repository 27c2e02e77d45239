"""The sources and sinks at addresses of the local engine."""

from __future__ import annotations

import logging
import sys
from glob import has_magic
from pathlib import Path
from typing import Final

from estero.addresses import Address, address_of
from estero.errors import DataError
from estero.local.address_options import check_sink_options, check_source_options
from estero.local.sinks.console import Console
from estero.local.sinks.sink import Sink
from estero.local.sources.source import Source

_log: Final = logging.getLogger("estero.live")
SOURCES: Final = ("parquet", "json", "csv", "kafka", "tcp", "stdin")
FILES: Final = ("parquet", "json", "csv")
SINKS: Final = ("parquet", "json", "kafka", "postgresql", "http", "https", "console")


def local_source(text: str) -> Address:
    """The address of a source of the local engine; raises `DataError` for other texts."""
    address = address_of(text, SOURCES, "source")
    check_source_options(address)
    return address


def local_sink(text: str) -> Address:
    """The address of a sink of the local engine; raises `DataError` for other texts."""
    address = address_of(text, SINKS, "sink")
    if address.scheme == "kafka" and "," in address.name:
        raise DataError(f"{address} names several topics", hint="name one: answers go to one topic")
    check_sink_options(address)
    return address


def check_apart(source: Address, sink: Address) -> None:
    """Raises `DataError` if the sink would write into the source."""
    if source.scheme == "kafka":
        same = sink.scheme == "kafka" and source.place == sink.place and sink.name in source.name.split(",")
    else:
        of_files = source.scheme in FILES and sink.scheme in FILES
        same = of_files and Path(source.place).resolve() == Path(sink.place).resolve()
    if same:
        raise DataError(f"{sink} is the source, too", hint="write elsewhere what is not to be read again")


def opened_source(address: Address) -> Source:
    """The source at an address; raises `MissingPackage` without the package that reads it."""
    match address.scheme:
        case "stdin":
            from estero.local.sources.lines import StandardInput

            return StandardInput()
        case "tcp":
            from estero.local.sources.lines import TcpSocket

            return TcpSocket(address.place)
        case "kafka":
            from estero.local.sources.kafka import KafkaTopics

            return KafkaTopics(address)
        case _:
            from estero.local.sources.files import AppearingFiles

            if not has_magic(address.place) and not Path(address.place).exists():
                _log.warning("there is no directory %s yet: files are waited for", address.place)
            return AppearingFiles(address)


def opened_sink(address: Address) -> Sink:
    """The sink at an address; raises `MissingPackage` without the package that writes to it."""
    match address.scheme:
        case "console":
            return Console(sys.stdout.buffer)
        case "kafka":
            from estero.local.sinks.kafka import KafkaTopic

            return KafkaTopic(address)
        case "postgresql":
            from estero.local.sinks.postgresql import PostgresTable

            return PostgresTable(address)
        case "http" | "https":
            from estero.local.sinks.webhook import Webhook

            return Webhook(address)
        case _:
            from estero.local.sinks.files import Files

            return Files(address)
