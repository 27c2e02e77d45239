"""Topics of Kafka: made, and read to their ends."""

from __future__ import annotations

import json
from typing import Any


def make_topic(broker: str, topic: str, partitions: int) -> None:
    """Makes a topic whose messages are kept."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    client = AdminClient({"bootstrap.servers": broker})
    made = client.create_topics([NewTopic(topic, partitions, 1, config={"retention.ms": "-1"})])
    made[topic].result(30)


def receive(broker: str, topic: str) -> list[dict[str, Any]]:
    """The values of all messages of a topic, once no transaction is open in it."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    settings = {"bootstrap.servers": broker, "group.id": "test", "enable.partition.eof": True}
    whole = Consumer(settings | {"isolation.level": "read_uncommitted"})
    partitions = [
        TopicPartition(topic, number, 0) for number in whole.list_topics(topic, 30).topics[topic].partitions
    ]
    left = {partition.partition: whole.get_watermark_offsets(partition, 30)[1] for partition in partitions}
    whole.close()
    consumer = Consumer(settings | {"isolation.level": "read_committed"})
    consumer.assign(partitions)
    rows = []
    while left:
        message: Any = consumer.poll(1)
        if message is None:
            continue
        if message.error() is None:
            rows.append(json.loads(message.value()))
            continue
        assert message.error().code() == KafkaError._PARTITION_EOF
        if message.offset() >= left[message.partition()]:
            del left[message.partition()]
        else:  # the markers of a transaction are still to come
            consumer.seek(TopicPartition(topic, message.partition(), message.offset()))
    consumer.close()
    return rows
