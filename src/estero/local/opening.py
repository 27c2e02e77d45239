"""Addresses of the local engine → sources and sinks."""

from __future__ import annotations

import sys
from typing import Final

from estero.addresses import Address, address_of
from estero.errors import DataError
from estero.local.sinks.console import Console
from estero.local.sinks.sink import Sink
from estero.local.sources.source import Source

SOURCES: Final = ("parquet", "json", "csv", "kafka", "tcp", "stdin")
SINKS: Final = ("parquet", "json", "kafka", "postgresql", "http", "https", "console")


def local_source(text: str) -> Address:
    """The address of a source of the local engine; raises `DataError` for other texts."""
    return address_of(text, SOURCES, "source")


def local_sink(text: str) -> Address:
    """The address of a sink of the local engine; raises `DataError` for other texts."""
    address = address_of(text, SINKS, "sink")
    if address.scheme == "kafka" and "," in address.name:
        raise DataError(f"{address} names several topics", hint="name one: answers go to one topic")
    return address


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
