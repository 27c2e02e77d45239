"""Topics of Kafka with JSON in the values of messages."""

from __future__ import annotations

import time
from typing import Any, Final

from estero.addresses import Address
from estero.errors import DataError, require
from estero.local.raw import Offsets, Raw
from estero.local.sources.alignment import Alignment
from estero.local.sources.source import Source

_SETTINGS: Final = {
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "queued.max.messages.kbytes": 32_768,  # of each partition: what is read ahead
    "fetch.queue.backoff.ms": 5,
    "fetch.wait.max.ms": 50,  # after which an end is known where transactions wrote
    "socket.nagle.disable": True,
    "log_level": 2,
}
_TIMEOUT: Final = 30.0
"""The seconds within which a broker has to answer."""
_SHORT: Final = 1.0
"""The seconds within which a broker answers that is running."""
_CROWD: Final = 50_000
"""The largest number of messages of a partition that wait for other partitions; reading it then pauses."""
_LOOK: Final = 30.0
"""The seconds between two checks for new partitions."""


class KafkaTopics(Source):
    """All partitions of some topics, read by this process alone; offsets are in the checkpoint.

    Partitions are read in parallel, in order of the times of messages. Messages without a value are skipped.
    Options of the address are ``startingOffsets=latest`` and settings of librdkafka that begin with
    ``kafka.``.
    """

    def __init__(self, address: Address) -> None:
        require("kafka", "a stream from Kafka")
        from confluent_kafka import Consumer, KafkaException

        self._address = address
        own = {name[6:]: value for name, value in address.options.items() if name.startswith("kafka.")}
        settings = {"bootstrap.servers": address.place, "group.id": "estero", **_SETTINGS, **own}
        try:
            self._consumer: Any = Consumer(settings)
        except KafkaException as error:  # a setting that is none, or a value that it cannot have
            raise self._error(error.args[0]) from error
        self._next: dict[tuple[str, int], int] = {}
        self._at_end: set[tuple[str, int]] = set()
        self._read: dict[tuple[str, int], int] = {}
        self._paused: set[tuple[str, int]] = set()
        self._aligned: Alignment[Any] = Alignment(_time)
        self._looked = 0.0

    def seek(self, offsets: Offsets | None) -> None:
        """Moves to the offsets of partitions, and to the beginning of all others."""
        self._next = {_partition(name): int(offset) for name, offset in (offsets or {}).items()}
        latest = self._address.options.get("startingOffsets") == "latest" and offsets is None
        for partition in self._partitions():
            if partition not in self._next:
                self._next[partition] = self._end_of(partition, 1 if latest else 0)
        self._assign()

    def place(self) -> Offsets:
        """The next offsets of all partitions."""
        return {f"{topic}/{number}": offset for (topic, number), offset in self._next.items()}

    def poll(self, most: int, seconds: float) -> Raw | None:
        """The messages that have arrived; it waits only for the first one."""
        self._look_for_partitions()
        first = self._consumer.poll(0.0 if len(self._aligned) else seconds)
        messages = [] if first is None else [first]
        if messages and most > 1:
            messages += self._consumer.consume(most - 1, 0)
        good = self._good(messages)
        if len(self._next) > 1:
            for message in good:
                self._aligned.add(_place(message), message)
            good = self._aligned.take(self._next, self._ends(), most)
            self._pause()
        self.caught_up = not good and not len(self._aligned) and len(self._ends()) == len(self._next)
        return self._raw(good) if good else None

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
                partition = _place(message)
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
        self._assign()  # messages that were read ahead come again
        return Raw(after, raw.texts, place=raw.place)

    def is_silent(self) -> bool:
        """Whether all messages of the broker have been read; False if it does not answer."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            for partition in self._next:
                self._consumer.get_watermark_offsets(TopicPartition(*partition), timeout=_SHORT)
        except KafkaException:
            return False
        return self.caught_up

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def _good(self, messages: list[Any]) -> list[Any]:
        """The messages that are not events of Kafka; raises `DataError` for errors among them."""
        good = [message for message in messages if message.error() is None]
        if self._at_end or len(good) < len(messages):
            for message in messages:
                if message.error() is None:
                    self._at_end.discard(_place(message))
                elif _is_end(message):
                    self._at_end.add(_place(message))
                else:
                    raise self._error(message.error())
        for message in good if len(self._next) > 1 else good[-1:]:
            self._read[_place(message)] = message.offset() + 1
        return good

    def _raw(self, messages: list[Any]) -> Raw:
        """The messages with a value, in order of partitions and offsets."""
        if len(self._next) > 1:
            messages.sort(key=_order)
        for message in messages if len(self._next) > 1 else messages[-1:]:
            self._next[_place(message)] = message.offset() + 1
        values = [message.value() for message in messages]
        valued = messages
        if None in values:
            valued = [message for message in messages if message.value() is not None]
            values = [value for value in values if value is not None]

        def place(row: int) -> str:
            message = valued[row]
            return f"{message.topic()}/{message.partition()}@{message.offset()}"

        return Raw(self.place(), values, place=place)

    def _ends(self) -> set[tuple[str, int]]:
        """The partitions that are read to their known ends."""
        from confluent_kafka import TopicPartition

        ends = set(self._at_end)
        for partition in self._next.keys() - ends:
            offsets = self._consumer.get_watermark_offsets(TopicPartition(*partition), cached=True)
            read = self._read.get(partition, self._next[partition])
            if offsets is not None and 0 <= offsets[1] <= read:
                ends.add(partition)
        return ends

    def _pause(self) -> None:
        """Pauses the partitions with many waiting messages, and resumes the others."""
        from confluent_kafka import TopicPartition

        crowded = self._aligned.crowded(_CROWD)
        if crowded != self._paused:
            self._consumer.resume([TopicPartition(*partition) for partition in self._paused - crowded])
            self._consumer.pause([TopicPartition(*partition) for partition in crowded - self._paused])
            self._paused = crowded

    def _partitions(self) -> list[tuple[str, int]]:
        from confluent_kafka import KafkaException

        self._looked = time.monotonic()
        partitions: list[tuple[str, int]] = []
        for topic in self._address.name.split(","):
            try:
                listed = self._consumer.list_topics(topic, timeout=_TIMEOUT).topics[topic]
            except KafkaException as error:
                raise self._error(error.args[0]) from error
            if listed.error is not None:
                raise self._error(listed.error)
            partitions += [(topic, number) for number in sorted(listed.partitions)]
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


def _order(message: Any) -> tuple[str, int, int]:
    return message.topic(), message.partition(), message.offset()


def _time(message: Any) -> int:
    """The time of a message in milliseconds, from the producer or the broker."""
    return int(message.timestamp()[1])


def _is_end(message: Any) -> bool:
    from confluent_kafka import KafkaError

    return bool(message.error().code() == KafkaError._PARTITION_EOF)  # noqa: SLF001 (its public name)
