"""Addresses: what users write, what it means, and what is said where it means nothing."""

from __future__ import annotations

import pytest

from estero import DataError
from estero.addresses import Address
from estero.spark.connectors.address import sink_address, source_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("parquet:events", Address("parquet", "events")),
        ("parquet:///data/events", Address("parquet", "/data/events")),
        ("PARQUET:events", Address("parquet", "events")),
        ("jsonl:events", Address("json", "events")),
        ("csv:in?sep=;&header=true", Address("csv", "in", options={"sep": ";", "header": "true"})),
        ("json:s3a://bucket/in", Address("json", "s3a://bucket/in")),
        ("s3a://bucket/in/*.parquet", Address("parquet", "s3a://bucket/in/*.parquet")),
        ("events/day-?.csv", Address("csv", "events/day-?.csv")),
        ("events.jsonl.gz", Address("json", "events.jsonl.gz")),
        ("delta:/tables/readings", Address("delta", "/tables/readings")),
        ("kafka://a:9092/t", Address("kafka", "a:9092", "t")),
        ("kafka:a:9092,b:9092/t,u", Address("kafka", "a:9092,b:9092", "t,u")),
        ("kafka://[::1]:9092/t", Address("kafka", "[::1]:9092", "t")),
        (
            "kafka://a:9092/t?startingOffsets=latest",
            Address("kafka", "a:9092", "t", options={"startingOffsets": "latest"}),
        ),
    ],
)
def test_a_source_is_read_as_it_is_meant(text: str, address: Address) -> None:
    assert source_address(text) == address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("console", Address("console")),
        ("postgresql://u@h:5432/d/t", Address("postgresql", "h:5432/d", "t", "u")),
        ("postgres://h/d/s.t", Address("postgresql", "h/d", "s.t")),
        ("postgresql:///d/t", Address("postgresql", "localhost/d", "t")),
        ("postgresql://u:a%40b@h/d/t", Address("postgresql", "h/d", "t", "u", "a@b")),
        (
            "postgresql://h/d/t?sslmode=require",
            Address("postgresql", "h/d", "t", options={"sslmode": "require"}),
        ),
    ],
)
def test_a_sink_is_read_as_it_is_meant(text: str, address: Address) -> None:
    assert sink_address(text) == address


SOURCES = "parquet:DIR, json:DIR, csv:DIR, kafka://HOST:PORT/TOPIC, delta:DIR"
SINKS = f"{SOURCES}, postgresql://USER@HOST:PORT/DATABASE/TABLE, console"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mqtt:readings", f"there is no source mqtt:\n  hint: the sources are {SOURCES}"),
        ("events", f"'events' does not say what kind of source it is\n  hint: the sources are {SOURCES}"),
        ("console", f"'console' does not say what kind of source it is\n  hint: the sources are {SOURCES}"),
        ("postgresql://h/d/t", f"there is no source postgresql:\n  hint: the sources are {SOURCES}"),
        ("parquet:", "parquet:: the directory is missing\n  hint: write parquet:DIR"),
        ("kafka:readings", "kafka:readings is not a Kafka topic\n  hint: write kafka://HOST:PORT/TOPIC"),
        ("kafka://h/t", "kafka://h/t is not a Kafka topic\n  hint: write kafka://HOST:PORT/TOPIC"),
    ],
)
def test_what_is_no_source_is_said_with_what_is(text: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        source_address(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("found", f"'found' does not say what kind of sink it is\n  hint: the sinks are {SINKS}"),
        ("redis:found", f"there is no sink redis:\n  hint: the sinks are {SINKS}"),
        ("console:x", "console:x: console stands alone, without a place"),
        (
            "postgresql://u:secret@h/d",
            "this is not a PostgreSQL table\n  hint: write postgresql://USER@HOST:PORT/DATABASE/TABLE",
        ),
    ],
)
def test_what_is_no_sink_is_said_with_what_is(text: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        sink_address(text)
    assert str(error.value) == message


def test_an_address_is_shown_without_its_password() -> None:
    address = sink_address("postgresql://u:secret@h/d/t")
    assert str(address) == "postgresql://u@h/d/t"
    assert "secret" not in repr(address)
