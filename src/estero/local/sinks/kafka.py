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
_SETTINGS: Final = {"linger.ms": 0, "retry.backoff.ms": 2, "socket.nagle.disable": True}
"""A transaction is begun as soon as the last one is closed, which is asked for again and again."""


class KafkaTopic(Sink):
    """Writes a batch that has rows in one transaction, with its number as the offset of a group of its own.

    So whoever reads what is committed has each row once. A second process with the same stream makes the
    first one fail. With the option ``transactions=false`` of the address rows are there some milliseconds
    earlier, and after a failure those of the last batch may be there twice, with the same id. The option
    ``key`` names the column that is the key of messages; settings of librdkafka stand behind ``kafka.``.
    """

    def __init__(self, address: Address) -> None:
        super().__init__()
        require("kafka", "a stream to Kafka")
        self._address = address
        self._whole = address.options.get("transactions", "true").lower() != "false"
        self._key = address.options.get("key")
        self._producer: Any = None
        self._lost: list[Any] = []

    def open(self, stream: str, schema: pa.Schema) -> None:
        """Ends transactions that were left open, and asks for the number of the last batch."""
        from confluent_kafka import KafkaException, Producer

        if self._key is not None and self._key not in schema.names:
            raise DataError(
                f"{self._address}: there is no column {self._key!r} to use as the key",
                hint=f"the columns are {', '.join(schema.names)}",
            )
        own = {name[6:]: value for name, value in self._address.options.items() if name.startswith("kafka.")}
        servers = {"bootstrap.servers": self._address.place, "log_level": 2, **own}
        group = f"estero-{stream}"
        identity = (
            {"transactional.id": group, "transaction.timeout.ms": 300_000}
            if self._whole
            else {"enable.idempotence": True}
        )
        try:
            self._producer = Producer({**_SETTINGS, **identity, **servers})
            if self._whole:
                self._producer.init_transactions(_TIMEOUT)
                self.delivered = self._noted(group, servers) - 1
        except KafkaException as error:
            raise self._failure(error.args[0]) from error

    def _noted(self, group: str, servers: dict[str, Any]) -> int:
        """The offset of the group: the number of the batch behind the last one."""
        from confluent_kafka import Consumer, TopicPartition

        consumer: Any = Consumer({"group.id": group, "isolation.level": "read_committed", **servers})
        (noted,) = consumer.committed([TopicPartition(self._address.name, 0)], timeout=_TIMEOUT)
        self._group = consumer.consumer_group_metadata()
        consumer.close()
        return max(int(noted.offset), 0)

    def write(self, number: int, rows: Iterator[pa.RecordBatch]) -> int:
        """Sends the rows, and commits them."""
        from confluent_kafka import KafkaException

        first = next(rows, None)
        written = 0
        if first is not None:
            try:
                if self._whole:
                    self._producer.begin_transaction()
                written = self._send(first) + sum(map(self._send, rows))
                self.reached("sent")
                if self._whole:
                    self._commit(number)
                elif self._producer.flush(_TIMEOUT) or self._lost:
                    lost = self._lost[0].str() if self._lost else "messages were not taken in time"
                    raise DataError(f"Kafka says: {lost}", file=str(self._address))
            except KafkaException as error:
                raise self._failure(error.args[0]) from error
            self.reached("committed")
        self.delivered = number
        return written

    def _commit(self, number: int) -> None:
        from confluent_kafka import TopicPartition

        noted = TopicPartition(self._address.name, 0, number + 1)
        self._producer.send_offsets_to_transaction([noted], self._group, _TIMEOUT)
        self.reached("numbered")
        self._producer.commit_transaction(_TIMEOUT)

    def _send(self, batch: pa.RecordBatch) -> int:
        keys = None if self._key is None else shown_values(batch.column(self._key))
        ids = batch.column(ID).to_pylist() if ID in batch.schema.names else None
        for row, line in enumerate(json_lines(batch)):
            key = None if keys is None or keys[row] is None else str(keys[row]).encode()
            headers = None if ids is None else [(ID, ids[row].encode())]
            while True:
                try:
                    self._producer.produce(
                        self._address.name, line, key, headers=headers, on_delivery=self._answered
                    )
                except BufferError:  # what waits is sent first
                    self._producer.poll(0.1)
                else:
                    break
        self._producer.poll(0)
        return int(batch.num_rows)

    def _answered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._lost.append(error)

    def _failure(self, error: Any) -> EsteroError:
        return DataError(f"Kafka says: {error.str()}", file=str(self._address))
