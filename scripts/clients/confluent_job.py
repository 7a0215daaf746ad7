"""A group job with confluent-kafka: produce, consume as a group of two, commit, join again, look at the offsets."""
import sys
import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

address, name = sys.argv[1], sys.argv[2]
deadline = time.time() + 120


def check(ok, what):
    if not ok:
        sys.exit("confluent-kafka: " + what)


def produce(first, last):
    p = Producer({"bootstrap.servers": address})
    failed = []
    for i in range(first, last):
        p.produce(name, str(i).encode(), partition=i % 4, on_delivery=lambda err, _: failed.append(err) if err else None)
    check(p.flush(60) == 0 and not failed, f"not produced: {failed[:3]}")


def consumer():
    c = Consumer({"bootstrap.servers": address, "group.id": name, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    c.subscribe([name])
    return c


def consume(consumers, first, until):
    seen = []
    while not all(len(c.assignment()) == 4 // len(consumers) for c in consumers):
        check(time.time() < deadline, "the partitions are not shared out")
        for c in consumers:
            c.poll(0.1)  # nothing yet but, perhaps, that the new topic is not known everywhere
    produce(first, first + until)
    while len(set(seen)) < until:
        check(time.time() < deadline, f"{len(set(seen))} of {until} records came")
        for c in consumers:
            m = c.poll(0.05)
            if m is None:
                continue
            check(m.error() is None, str(m.error()))
            seen.append(int(m.value()))
            c.commit(m, asynchronous=False)
    return seen


admin = AdminClient({"bootstrap.servers": address})
admin.create_topics([NewTopic(name, 4, 1)])[name].result(60)
two = [consumer(), consumer()]
consume(two, 0, 1000)
for c in two:
    c.close()
again = consumer()
seen = consume([again], 1000, 100)
check(sorted(seen) == list(range(1000, 1100)), f"read again: {sorted(seen)[:3]}")
again.close()
result = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result(60)
offsets = [p.offset for p in result.topic_partitions]
check(sum(offsets) == 1100, f"offsets {offsets}")
check(name in [g.group_id for g in admin.list_consumer_groups().result(60).valid], "the group is not listed")
print("confluent-kafka: ok")
