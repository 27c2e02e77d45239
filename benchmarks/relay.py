"""``python -m benchmarks.relay BROKER SOURCE SINK WHOLE``: sends on what ends a rule, until it is terminated.

The floor of `benchmarks.live`: the clients, the settings and the requests of the engine between two topics,
and nothing between reading and writing.
"""

from __future__ import annotations

import json
import sys

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.live import ends_a_rule


def main(broker: str, source: str, sink: str, whole: str) -> None:
    """Reads, and sends on, in transactions if `whole` is "True"."""
    servers = {"bootstrap.servers": broker}
    consumer = Consumer({"group.id": "relay", "isolation.level": "read_committed", **servers})
    consumer.assign([TopicPartition(source, 0, 0)])
    settings = {"linger.ms": 0, "retry.backoff.ms": 2, "socket.nagle.disable": True}
    producer = Producer({**settings, **servers, **({"transactional.id": source} if whole == "True" else {})})
    if whole == "True":
        producer.init_transactions()
    number = 0
    while True:
        first = consumer.poll(0.1)
        messages = [] if first is None else [first, *consumer.consume(1_000, 0)]
        values = [message.value() for message in messages if message.error() is None]
        ends = [value for value in values if value is not None and ends_a_rule(json.loads(value))]
        if not ends:
            continue
        if whole == "True":
            producer.begin_transaction()
        for value in ends:
            producer.produce(sink, value)
        producer.poll(0)
        if whole == "True":
            number += 1
            producer.send_offsets_to_transaction(
                [TopicPartition(sink, 0, number)], consumer.consumer_group_metadata()
            )
            producer.commit_transaction()


if __name__ == "__main__":
    main(*sys.argv[1:])
