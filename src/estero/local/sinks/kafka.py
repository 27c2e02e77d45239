"""A topic of Kafka: one message of JSON per row, in transactions that include the number of the batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa

from estero.addresses import Address
from estero.answers.answer_ids import ID
from estero.answers.shown_values import shown_values
from estero.errors import DataError, EsteroError, legible, require
from estero.local.rows import json_lines
from estero.local.sinks.group_commit import GroupCommit
from estero.local.sinks.sink import Sink

_TIMEOUT: Final = 60.0
"""The seconds within which a broker has to answer."""
_SETTINGS: Final = {"linger.ms": 0, "retry.backoff.ms": 2, "socket.nagle.disable": True}
"""Settings with which a transaction begins as soon as the previous one is closed, by polling."""


_LONGEST: Final = 60_000
"""The largest number of milliseconds between two transactions."""


class _Message(NamedTuple):
    line: bytes
    key: bytes | None
    headers: list[tuple[str, bytes]] | None


class KafkaTopic(Sink):
    """Writes the rows of batches in transactions, with the last batch's number as the offset of a group.

    Consumers that read committed messages thus get each row once. A second process with the same stream
    makes the first one fail. A transaction is committed while later batches are recognized, and the next
    one contains all their rows; the option ``commitIntervalMs`` of the address is the least time between two
    of them. With ``transactions=false``, rows are visible as soon as the broker has them, and some may be
    sent twice, with the same id, after a failure. The option ``key`` names the column with the keys of
    messages; settings of librdkafka begin with ``kafka.``.
    """

    def __init__(self, address: Address) -> None:
        super().__init__()
        require("kafka", "a stream to Kafka")
        self._address = address
        self._whole = address.options.get("transactions", "true").lower() != "false"
        self._interval = _interval(address)
        self._key = address.options.get("key")
        self._producer: Any = None
        self._commits: GroupCommit[_Message] | None = None
        self._sent: dict[int, int] = {}
        self._lost: list[Any] = []

    def open(self, stream: str, schema: pa.Schema) -> None:
        """Aborts transactions that were left open, and reads the number of the last batch."""
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
                self._commits = GroupCommit(self._commit, self.delivered, self._interval)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error

    def _noted(self, group: str, servers: dict[str, Any]) -> int:
        """The offset of the group: the number of the batch after the last one."""
        from confluent_kafka import Consumer, TopicPartition

        consumer: Any = Consumer({"group.id": group, "isolation.level": "read_committed", **servers})
        (noted,) = consumer.committed([TopicPartition(self._address.name, 0)], timeout=_TIMEOUT)
        self._group = consumer.consumer_group_metadata()
        consumer.close()
        return max(int(noted.offset), 0)

    def write(self, number: int, rows: Iterator[pa.RecordBatch]) -> int:
        """Sends the rows, at once or in the next transaction."""
        messages = [message for batch in rows for message in self._messages(batch)]
        if self._commits is not None:
            self._commits.put(number, messages)
        else:
            self._sent[number] = len(messages)
            self._send(messages, number)
            if messages:
                self.reached("sent")
        return len(messages)

    def update(self) -> None:
        """Finds out which batches are committed, or acknowledged by the broker."""
        if self._commits is not None:
            self._commits.check()
            self.delivered = max(self.delivered, self._commits.committed)
        elif self._producer is not None:
            self._see_answers()

    def _see_answers(self) -> None:
        self._producer.poll(0)
        if self._lost:
            raise self._failure(self._lost[0])
        for number in list(self._sent):
            if self._sent[number]:
                break
            del self._sent[number]
            self.delivered = number

    def flush(self, number: int) -> None:
        """Waits until all rows up to a batch are committed, or acknowledged by the broker."""
        if self._commits is not None:
            self._commits.wait()
        elif self._sent and self._producer.flush(_TIMEOUT):
            raise DataError("Kafka says: messages were not taken in time", file=str(self._address))
        self.update()
        self.delivered = max(self.delivered, number)

    def close(self) -> None:
        """Closes the producer; rows that are not committed are sent again by the next process."""
        if self._commits is not None:
            self._commits.close()

    def _commit(self, messages: Sequence[_Message], number: int) -> None:
        """Commits a transaction with messages and the number of their last batch."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            self._producer.begin_transaction()
            self._send(messages, number)
            self.reached("sent")
            noted = TopicPartition(self._address.name, 0, number + 1)
            self._producer.send_offsets_to_transaction([noted], self._group, _TIMEOUT)
            self.reached("numbered")
            self._producer.commit_transaction(_TIMEOUT)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error
        self.reached("committed")

    def _messages(self, batch: pa.RecordBatch) -> Iterator[_Message]:
        keys = None if self._key is None else shown_values(batch.column(self._key))
        ids = batch.column(ID).to_pylist() if ID in batch.schema.names else None
        for row, line in enumerate(json_lines(batch)):
            key = None if keys is None or keys[row] is None else str(keys[row]).encode()
            yield _Message(line, key, None if ids is None else [(ID, ids[row].encode())])

    def _send(self, messages: Iterable[_Message], number: int) -> None:
        topic, answered = self._address.name, partial(self._answered, number)
        for line, key, headers in messages:
            while True:
                try:
                    self._producer.produce(topic, line, key, headers=headers, on_delivery=answered)
                except BufferError:  # waiting rows are sent first
                    self._producer.poll(0.1)
                else:
                    break
        self._producer.poll(0)

    def _answered(self, number: int, error: Any, _message: Any) -> None:
        if error is not None:
            self._lost.append(error)
        elif number in self._sent:
            self._sent[number] -= 1

    def _failure(self, error: Any) -> EsteroError:
        return DataError(f"Kafka says: {error.str()}", file=str(self._address))


def _interval(address: Address) -> float:
    """The seconds between two transactions, from an address."""
    text = address.options.get("commitIntervalMs", "0")
    if not text.isdecimal() or int(text) > _LONGEST:
        raise DataError(
            f"{address}: commitIntervalMs is from 0 to {_LONGEST:,} milliseconds, not {legible(text)}"
        )
    return int(text) / 1000
