"""Topics of Kafka: JSON in the values of their messages."""

from __future__ import annotations

import time
from typing import Any, Final

from estero.addresses import Address
from estero.errors import DataError, require
from estero.local.raw import Offsets, Raw
from estero.local.sources.source import Source

_SETTINGS: Final = {
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "queued.max.messages.kbytes": 32_768,  # of each partition: what is read ahead
    "fetch.queue.backoff.ms": 5,
    "log_level": 2,
}
_TIMEOUT: Final = 10.0
"""Seconds in which a broker answers."""
_LOOK: Final = 30.0
"""Seconds between two looks for new partitions."""


class KafkaTopics(Source):
    """All partitions of some topics, read by this process alone; the checkpoint, not a group, has offsets.

    The events of a batch are in order of partitions and offsets. Messages without a value are left out. After
    a ``?`` the address may say ``startingOffsets=latest``, and settings of librdkafka behind ``kafka.``.
    """

    def __init__(self, address: Address) -> None:
        require("kafka", "a stream from Kafka")
        from confluent_kafka import Consumer

        self._address = address
        own = {name[6:]: value for name, value in address.options.items() if name.startswith("kafka.")}
        settings = {"bootstrap.servers": address.place, "group.id": "estero", **_SETTINGS, **own}
        self._consumer: Any = Consumer(settings)
        self._next: dict[tuple[str, int], int] = {}
        self._at_end: set[tuple[str, int]] = set()
        self._looked = 0.0

    def seek(self, offsets: Offsets | None) -> None:
        """Goes to the offsets of partitions; to the beginning of those that are not said."""
        self._next = {_partition(name): int(offset) for name, offset in (offsets or {}).items()}
        latest = self._address.options.get("startingOffsets") == "latest" and offsets is None
        for partition in self._partitions():
            if partition not in self._next:
                self._next[partition] = self._end_of(partition, 1 if latest else 0)
        self._assign()

    def poll(self, most: int, seconds: float) -> Raw | None:
        """What has arrived: it waits for a first message only."""
        self._look_for_partitions()
        first = self._consumer.poll(seconds)
        if first is None:
            self.caught_up = len(self._at_end) == len(self._next)
            return None
        return self._raw([first, *self._consumer.consume(most - 1, 0)] if most > 1 else [first])

    def replay(self, after: Offsets) -> Raw:
        """The messages up to these offsets."""
        wanted = {_partition(name): int(offset) for name, offset in after.items()}
        for partition in wanted.keys() - self._next.keys():
            self._next[partition] = self._end_of(partition, 0)
        self._assign()
        messages: list[Any] = []
        missing = {partition for partition, offset in wanted.items() if self._next[partition] < offset}
        until = time.monotonic() + _TIMEOUT
        while missing:
            for message in self._consumer.consume(10_000, 0.1):
                partition = message.topic(), message.partition()
                if message.error() is None and message.offset() < wanted.get(partition, 0):
                    messages.append(message)
                    if message.offset() == wanted[partition] - 1:
                        missing.discard(partition)
                elif message.error() is not None and not _is_end(message):
                    raise self._error(message.error())
            if time.monotonic() > until:
                raise DataError(
                    "messages that were read before are not there any more", file=str(self._address)
                )
        raw = self._raw(messages)
        self._next |= wanted
        self._assign()  # what was read ahead comes again
        return Raw(after) if raw is None else Raw(after, raw.texts, place=raw.place)

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def _raw(self, messages: list[Any]) -> Raw | None:
        """The messages that have a value, in order; None where there is none."""
        from confluent_kafka import KafkaException

        try:
            good = [message for message in messages if message.error() is None]
            if self._at_end or len(good) < len(messages):
                self._take_notice(messages)
            if len(self._next) > 1:
                good.sort(key=_place)
            for message in good if len(self._next) > 1 else good[-1:]:
                self._next[message.topic(), message.partition()] = message.offset() + 1
            if not good:
                return None
            valued = [message for message in good if message.value() is not None]
            texts = [message.value() for message in valued]
        except KafkaException as error:
            raise self._error(error.args[0]) from error
        self.caught_up = len(self._at_end) == len(self._next)

        def place(row: int) -> str:
            message = valued[row]
            return f"{message.topic()}/{message.partition()}@{message.offset()}"

        return Raw(
            {f"{topic}/{number}": offset for (topic, number), offset in self._next.items()},
            texts,
            place=place,
        )

    def _take_notice(self, messages: list[Any]) -> None:
        """Which partitions are read to their ends; raises `DataError` for what Kafka complains of."""
        for message in messages:
            if message.error() is None:
                self._at_end.discard(_place(message))
            elif _is_end(message):
                self._at_end.add(_place(message))
            else:
                raise self._error(message.error())

    def _partitions(self) -> list[tuple[str, int]]:
        from confluent_kafka import KafkaException

        self._looked = time.monotonic()
        partitions: list[tuple[str, int]] = []
        for topic in self._address.name.split(","):
            try:
                there = self._consumer.list_topics(topic, timeout=_TIMEOUT).topics[topic]
            except KafkaException as error:
                raise self._error(error.args[0]) from error
            if there.error is not None:
                raise self._error(there.error)
            partitions += [(topic, number) for number in sorted(there.partitions)]
        return partitions

    def _look_for_partitions(self) -> None:
        if time.monotonic() - self._looked < _LOOK:
            return
        new = [partition for partition in self._partitions() if partition not in self._next]
        if new:
            self._next |= {partition: self._end_of(partition, 0) for partition in new}
            self._assign()

    def _end_of(self, partition: tuple[str, int], end: int) -> int:
        """The first offset of a partition, or the next one that it will have."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            ends = self._consumer.get_watermark_offsets(TopicPartition(*partition), timeout=_TIMEOUT)
        except KafkaException as error:
            raise self._error(error.args[0]) from error
        return int(ends[end])

    def _assign(self) -> None:
        from confluent_kafka import TopicPartition

        self._at_end = set()
        self._consumer.assign(
            [TopicPartition(*partition, offset) for partition, offset in self._next.items()]
        )

    def _error(self, error: Any) -> DataError:
        return DataError(f"Kafka says: {error.str()}", file=str(self._address))


def _partition(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("/")
    return topic, int(number)


def _place(message: Any) -> tuple[str, int]:
    return message.topic(), message.partition()


def _is_end(message: Any) -> bool:
    from confluent_kafka import KafkaError

    return bool(message.error().code() == KafkaError._PARTITION_EOF)  # noqa: SLF001 (its public name)
