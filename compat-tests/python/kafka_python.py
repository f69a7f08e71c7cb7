"""kafka-python: topics, every codec, a group, commits, times, configs."""
import sys, time, uuid

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

address = sys.argv[1]
topic, group = f"kafka-python-{uuid.uuid4().hex[:8]}", f"group-{uuid.uuid4().hex[:8]}"
admin = KafkaAdminClient(bootstrap_servers=address)
admin.create_topics([NewTopic(name=topic, num_partitions=3, replication_factor=1)])

offsets = set()
for acks in (0, 1, "all"):
    producer = KafkaProducer(bootstrap_servers=address, acks=acks, compression_type="gzip" if acks == 1 else None, enable_idempotence=acks == "all")
    futures = [producer.send(topic, key=str(n).encode(), value=f"{acks}-{n}".encode(), headers=[("h", b"1")]) for n in range(100)]
    producer.flush(20)
    if acks != 0:
        offsets |= {(m.partition, m.offset) for m in (f.get(20) for f in futures)}
    producer.close()
assert len(offsets) == 200, len(offsets)


def consume(count):
    consumer = KafkaConsumer(topic, bootstrap_servers=address, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False)
    messages, deadline = [], time.monotonic() + 30
    while len(messages) < count and time.monotonic() < deadline:
        for batch in consumer.poll(timeout_ms=500).values():
            messages += batch
    consumer.commit()
    consumer.close()
    return messages


seen = consume(300)
assert len({(m.partition, m.offset) for m in seen}) == 300, len(seen)
assert all(m.headers == [("h", b"1")] for m in seen)
producer = KafkaProducer(bootstrap_servers=address)
producer.send(topic, b"after", partition=1).get(20)
producer.close()
assert [m.value for m in consume(1)] == [b"after"]

consumer = KafkaConsumer(bootstrap_servers=address)
all_partitions = [TopicPartition(topic, p) for p in range(3)]
assert sum(consumer.end_offsets(all_partitions).values()) == 301
assert set(consumer.beginning_offsets(all_partitions).values()) == {0}
assert consumer.offsets_for_times({all_partitions[0]: int(time.time() * 1000) + 3_600_000})[all_partitions[0]] is None  # trap 10
assert consumer.offsets_for_times({all_partitions[0]: 1})[all_partitions[0]].offset == 0
consumer.close()

assert topic in admin.list_topics()
assert group in str(admin.list_groups())
admin.delete_topics([topic])
admin.close()
