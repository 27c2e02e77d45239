"""A topic of Kafka: a message of JSON for each row, in transactions that hold the batch's number, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from estero.addresses import Address
from estero.answers.shown_values import shown_values
from estero.errors import DataError, EsteroError, require
from estero.local.rows import ID, json_lines
from estero.local.sinks.sink import Sink

_TIMEOUT: Final = 60.0
"""Seconds in which a broker answers."""


class KafkaTopic(Sink):
    """Writes a batch that has rows in one transaction, with its number as the offset of a group of its own.

    So whoever reads what is committed has each row once. A second process with the same stream makes the
    first one fail. The option ``key`` of the address names the column that is the key of messages; settings
    of librdkafka stand behind ``kafka.``.
    """

    def __init__(self, address: Address) -> None:
        super().__init__()
        require("kafka", "a stream to Kafka")
        self._address = address
        self._producer: Any = None

    def open(self, stream: str, schema: pa.Schema) -> None:
        """Ends transactions that were left open, and asks for the number of the last batch."""
        from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

        own = {name[6:]: value for name, value in self._address.options.items() if name.startswith("kafka.")}
        servers = {"bootstrap.servers": self._address.place, "log_level": 2, **own}
        self._key = self._address.options.get("key")
        if self._key is not None and self._key not in schema.names:
            raise DataError(
                f"{self._address}: there is no column {self._key!r} to use as the key",
                hint=f"the columns are {', '.join(schema.names)}",
            )
        group = f"estero-{stream}"
        self._place = TopicPartition(self._address.name, 0)
        try:
            self._producer = Producer({"transactional.id": group, "linger.ms": 0, **servers})
            self._producer.init_transactions(_TIMEOUT)
            consumer = Consumer({"group.id": group, "isolation.level": "read_committed", **servers})
            (noted,) = consumer.committed([self._place], timeout=_TIMEOUT)
            self._group = consumer.consumer_group_metadata()
            consumer.close()
        except KafkaException as error:
            raise self._failure(error) from error
        self.delivered = max(noted.offset, 0) - 1

    def write(self, number: int, rows: Iterator[pa.RecordBatch]) -> int:
        """Sends the rows, and commits them."""
        from confluent_kafka import KafkaException, TopicPartition

        first = next(rows, None)
        written = 0
        if first is not None:
            try:
                self._producer.begin_transaction()
                written = self._send(first) + sum(map(self._send, rows))
                self.reached("sent")
                noted = TopicPartition(self._place.topic, 0, number + 1)
                self._producer.send_offsets_to_transaction([noted], self._group, _TIMEOUT)
                self.reached("numbered")
                self._producer.commit_transaction(_TIMEOUT)
            except KafkaException as error:
                raise self._failure(error) from error
            self.reached("committed")
        self.delivered = number
        return written

    def _send(self, batch: pa.RecordBatch) -> int:
        keys = None if self._key is None else shown_values(batch.column(self._key))
        ids = batch.column(ID).to_pylist() if ID in batch.schema.names else None
        for row, line in enumerate(json_lines(batch)):
            key = None if keys is None or keys[row] is None else str(keys[row]).encode()
            headers = None if ids is None else [(ID, ids[row].encode())]
            while True:
                try:
                    self._producer.produce(self._place.topic, line, key, headers=headers)
                except BufferError:  # what waits is sent first
                    self._producer.poll(0.1)
                else:
                    break
        self._producer.poll(0)
        return int(batch.num_rows)

    def _failure(self, error: Any) -> EsteroError:
        return DataError(f"Kafka says: {error.args[0].str()}", file=str(self._address))
