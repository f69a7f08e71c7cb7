"""kafka-python 2.0.2, as old installations have it: it guesses the broker's version and then speaks protocol versions of 2019."""
import sys, time, uuid

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

assert kafka.__version__ == "2.0.2", kafka.__version__
address = sys.argv[1]
topic, group = f"old-python-{uuid.uuid4().hex[:8]}", f"group-{uuid.uuid4().hex[:8]}"
# Left alone it takes Metadata 1 and the like for its admin calls, which Kafka 4 serves too.
admin = KafkaAdminClient(bootstrap_servers=address)
admin.create_topics([NewTopic(name=topic, num_partitions=2, replication_factor=1)])
producer = KafkaProducer(bootstrap_servers=address, compression_type="gzip")
for n in range(10):
    producer.send(topic, str(n).encode()).get(20)
producer.close()
consumer = KafkaConsumer(topic, bootstrap_servers=address, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False)
messages, deadline = [], time.monotonic() + 30
while len(messages) < 10 and time.monotonic() < deadline:
    for batch in consumer.poll(timeout_ms=500).values():
        messages += batch
assert sorted(m.value for m in messages) == [str(n).encode() for n in range(10)]
consumer.commit()
assert sum(consumer.committed(TopicPartition(topic, p)) or 0 for p in range(2)) == 10
consumer.close()
