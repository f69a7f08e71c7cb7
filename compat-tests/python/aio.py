"""aiokafka: an idempotent producer, a group of two, seek, commits."""
import asyncio, sys, time, uuid

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

address = sys.argv[1]
topic, group = f"aiokafka-{uuid.uuid4().hex[:8]}", f"group-{uuid.uuid4().hex[:8]}"


def member():
    return AIOKafkaConsumer(topic, bootstrap_servers=address, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False,
                            heartbeat_interval_ms=300, session_timeout_ms=6000, metadata_max_age_ms=1000)


async def read(consumers, count):
    messages, deadline = [], time.monotonic() + 30
    while len(messages) < count and time.monotonic() < deadline:
        for consumer in consumers:
            for batch in (await consumer.getmany(timeout_ms=200)).values():
                messages += batch
    return messages


async def main():
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 4, 1)])
    producer = AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True, compression_type="gzip")
    await producer.start()
    sent = [await producer.send_and_wait(topic, str(n).encode(), key=str(n).encode()) for n in range(200)]
    assert len({(m.partition, m.offset) for m in sent}) == 200

    members = [member(), member()]
    await asyncio.gather(*(m.start() for m in members))
    deadline = time.monotonic() + 30
    while sorted(len(m.assignment()) for m in members) != [2, 2] and time.monotonic() < deadline:
        await asyncio.gather(*(m.getmany(timeout_ms=100, max_records=1) for m in members))
    assert sorted(len(m.assignment()) for m in members) == [2, 2], [m.assignment() for m in members]
    for m in members:
        await m.seek_to_beginning()
    messages = await read(members, 200)
    assert {(m.partition, m.offset) for m in messages} == {(m.partition, m.offset) for m in sent}
    for m in members:
        await m.commit()
    await asyncio.gather(*(m.stop() for m in members))

    await producer.send_and_wait(topic, b"after", partition=0)
    last = member()
    await last.start()
    assert [m.value for m in await read([last], 1)] == [b"after"]
    ends = await last.end_offsets([TopicPartition(topic, p) for p in range(4)])
    assert sum(ends.values()) == 201, ends
    missing = await last.offsets_for_times({TopicPartition(topic, 0): int(time.time() * 1000) + 3_600_000})
    assert missing[TopicPartition(topic, 0)] is None  # trap 10
    await last.stop()
    await producer.stop()
    await admin.delete_topics([topic])
    await admin.close()


asyncio.run(main())
