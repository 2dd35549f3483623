"""Several nodes on one store share a source's partitions and the work, while they are killed, paused and restarted and the
broker is too: every record is one event, delivered in the order of its key, and every pause has a reason.

RETRYD_KAFKA_EVENTS=100000 makes it the long run; -s shows where the time went."""
import itertools
import os
import random
import signal
import time

import pytest

from events import put_type, state
from kafka_account import Producer, Sink, Troubles, check_all_are_there_once, check_order, circuits, report
from policies import steady
from postgres import Postgres
from server import Retryd, wait_until

EVENTS = int(os.environ.get("RETRYD_KAFKA_EVENTS", "6000"))
TYPES, PARTITIONS, NODES, KEYS, PORTIONS = 6, 8, 3, 499, 60
ROUNDS = 4             # of trouble, at least; more for as long as a fifth of the events is still to come
PEACE_S = 3            # after each
LONGER_THAN_LEASES = 13
PATIENCE_S = 120 + EVENTS / 100


@pytest.fixture(params=["postgresql", "kafka"])
def nodes(request, kafka, tmp_path):
    """NODES of them on one store, with a source."""
    prefix = f"nodes.{request.param}"
    kafka.create(f"{prefix}.intake", partitions=PARTITIONS)
    database = Postgres().__enter__() if request.param == "postgresql" else None
    store = database.url() if database else f"kafka://{kafka.address}/{prefix}.store"
    made = [Retryd(tmp_path / f"node{number}", store=store, settings={
        "kafka.brokers": kafka.address, "kafka.prefix": prefix, "kafka.project": "p", "kafka.order_by_record_key": "true",
        "kafka.instance": f"{request.param}-{number}",
        "kafka.copy": None if database else tmp_path / f"copy{number}"}) for number in range(NODES)]
    try:
        yield [node.start() for node in made]
        assert [node.stop() for node in made] == [0] * NODES
    finally:
        for node in made:
            if node.process is not None:
                node.kill()
        if database:
            database.__exit__(None, None, None)


def make_trouble(round_no, nodes, kafka, producer, troubles, dice):
    number = dice.randrange(NODES)
    node = nodes[number]
    if round_no % 4 == 1:  # others go on with its partitions and its work
        with troubles(f"node {number} paused"):
            node.process.send_signal(signal.SIGSTOP)
            time.sleep(LONGER_THAN_LEASES)
            node.process.send_signal(signal.SIGCONT)
        return
    with troubles(f"node {number} killed"):
        node.kill()
        time.sleep(dice.random())
        node.start()
    if round_no % 4 == 2:
        with producer.lock, troubles("broker restarted"):
            kafka.stop()
            kafka.start()


@pytest.mark.slow
def test_every_record_is_delivered_once_and_in_order_whatever_happens(kafka, nodes):
    sink = Sink()
    for number in range(TYPES):
        put_type(nodes[0], f"t{number}", target={"url": sink.url("/")}, limits={"concurrency": 64}, buckets=PARTITIONS,
                 policy={**steady(1), "retries_with_no_delay": 1, "attempt_timeout": 5})
    producer = Producer(kafka, nodes[0].settings["kafka.prefix"] + ".intake", EVENTS, PORTIONS, TYPES, KEYS)
    troubles, dice = Troubles(), random.Random(4)
    producer.start()
    for round_no in itertools.count():
        time.sleep(PEACE_S)
        if round_no >= ROUNDS and len(sink.delivered) > EVENTS * 4 // 5 or producer.failed is not None:
            break
        make_trouble(round_no, nodes, kafka, producer, troubles, dice)
    producer.join(PATIENCE_S)
    assert not producer.is_alive() and producer.failed is None, producer.failed
    wait_until(lambda: len(sink.delivered) == EVENTS, PATIENCE_S, "all of them to be delivered")
    time.sleep(1)  # for those that would be too many
    unexplained = report(sink, producer, troubles, circuits(nodes[1], [f"t{number}" for number in range(TYPES)]))
    print(f"batches of late nodes that were refused: {sum(n.metric('retryd_kafka_batches_fenced_total') for n in nodes):.0f}")
    check_all_are_there_once(sink, EVENTS)
    check_order(sink, producer)
    assert not unexplained
    ended = [state(nodes[1], f"t{number}") for number in range(TYPES)]
    assert sum(each["done"] for each in ended) == EVENTS, ended
    assert all(each["waiting"] == each["leased"] == each["dead"] == 0 for each in ended), ended
    sink.close()
