"""confluent-kafka: topics, an idempotent producer, a group, commits, times, configs."""
import sys, time, uuid

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType

address = {"bootstrap.servers": sys.argv[1], "broker.address.family": "v4"}
topic, group = f"confluent-{uuid.uuid4().hex[:8]}", f"group-{uuid.uuid4().hex[:8]}"
admin = AdminClient(address)
admin.create_topics([NewTopic(topic, 3, 1, config={"retention.ms": "3600000"})])[topic].result(20)
while len(admin.list_topics(topic, 10).topics[topic].partitions) < 3:
    time.sleep(0.05)

delivered = []
for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    producer = Producer(address | {"enable.idempotence": True, "compression.type": codec, "linger.ms": 5})
    for n in range(100):
        producer.produce(topic, key=f"{codec}-{n}", value=f"value {n}", headers=[("codec", codec.encode())],
                         on_delivery=lambda error, message: delivered.append((error, message.partition(), message.offset())))
    assert producer.flush(20) == 0
assert len(delivered) == 500 and all(error is None for error, _, _ in delivered), delivered[:3]


def consume(count, **settings):
    consumer = Consumer(address | {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False} | settings)
    consumer.subscribe([topic])
    messages, deadline = [], time.monotonic() + 30
    while len(messages) < count and time.monotonic() < deadline:
        for message in consumer.consume(100, 1.0):
            assert message.error() is None, message.error()
            messages.append(message)
    consumer.commit(asynchronous=False)
    consumer.close()
    return messages


seen = consume(500)
assert len({(m.partition(), m.offset()) for m in seen}) == 500
assert all(m.headers() == [("codec", m.key().split(b"-")[0])] for m in seen)
producer = Producer(address)
producer.produce(topic, b"after the commit", partition=0)
producer.flush(20)
assert consume(1)[0].value() == b"after the commit", "the group goes on where it committed"

partitions = [TopicPartition(topic, p) for p in range(3)]
committed = Consumer(address | {"group.id": group}).committed(partitions, timeout=10)
ends = {tp: f.result(10).offset for tp, f in admin.list_offsets({tp: OffsetSpec.latest() for tp in partitions}).items()}
assert sum(c.offset for c in committed) in range(500, 503) and sum(ends.values()) >= 501, (committed, ends)

consumer = Consumer(address | {"group.id": "times"})
future = consumer.offsets_for_times([TopicPartition(topic, 0, int(time.time() * 1000) + 3_600_000)], timeout=10)
assert future[0].offset == -1, "nothing that new is the end"  # trap 10
past = consumer.offsets_for_times([TopicPartition(topic, 0, 1)], timeout=10)
assert past[0].offset == 0
assert consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)[0] == 0
consumer.close()

resource = ConfigResource(ResourceType.TOPIC, topic)
described = admin.describe_configs([resource])[resource].result(10)
assert described["retention.ms"].value == "3600000" and len(described) >= 30
admin.create_partitions([NewPartitions(topic, 5)])[topic].result(20)
groups = admin.list_consumer_groups(request_timeout=10).result(10)
assert group in {g.group_id for g in groups.valid}, groups.valid
assert admin.describe_consumer_groups([group], request_timeout=10)[group].result(10).group_id == group
deadline = time.monotonic() + 15
while True:
    try:
        admin.delete_consumer_groups([group], request_timeout=10)[group].result(10)
        break
    except Exception as e:
        assert e.args[0].code() == KafkaError.NON_EMPTY_GROUP and time.monotonic() < deadline, e
        time.sleep(0.2)
admin.delete_topics([topic])[topic].result(20)
