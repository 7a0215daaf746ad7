"""A group job with aiokafka: produce, consume as a group of two, commit, join again, look at the offsets."""
import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

address, name = sys.argv[1], sys.argv[2]


def check(ok, what):
    if not ok:
        sys.exit("aiokafka: " + what)


async def produce(first, last):
    p = AIOKafkaProducer(bootstrap_servers=address)
    await p.start()
    for f in [await p.send(name, str(i).encode(), partition=i % 4) for i in range(first, last)]:
        await f
    await p.stop()


async def consumer():
    c = AIOKafkaConsumer(name, bootstrap_servers=address, group_id=name, auto_offset_reset="earliest", enable_auto_commit=False)
    await c.start()
    return c


async def consume(consumers, first, until):
    seen = []
    while not all(len(c.assignment()) == 4 // len(consumers) for c in consumers):
        await asyncio.sleep(0.05)
    await produce(first, first + until)
    while len(set(seen)) < until:
        for c in consumers:
            got = await c.getmany(timeout_ms=50)
            seen += [int(r.value) for records in got.values() for r in records]
            if got:
                await c.commit()
    return seen


async def job():
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(name, 4, 1)])
    two = [await consumer(), await consumer()]
    await consume(two, 0, 1000)
    for c in two:
        await c.stop()
    again = await consumer()
    seen = await consume([again], 1000, 100)
    check(sorted(seen) == list(range(1000, 1100)), f"read again: {sorted(seen)[:3]}")
    await again.stop()
    offsets = [o.offset for o in (await admin.list_consumer_group_offsets(name)).values()]
    check(sum(offsets) == 1100, f"offsets {offsets}")
    check(name in [g[0] for g in await admin.list_consumer_groups()], "the group is not listed")
    await admin.close()


asyncio.run(asyncio.wait_for(job(), 120))
print("aiokafka: ok")
