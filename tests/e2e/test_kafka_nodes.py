"""Several nodes on one store share a source's partitions, while they are killed, paused and restarted and the broker is too."""
import random
import signal
import threading
import time

import pytest

from postgres import Postgres
from server import Retryd, wait_until

TYPES, PARTITIONS, NODES = 6, 8, 3
EVENTS = 12000
TOPIC = "nodes.intake"


@pytest.fixture(scope="module")
def database():
    with Postgres() as postgres:
        yield postgres


class Node(Retryd):
    """One of several on the same database; its folder is only for its log."""

    def __init__(self, folder, number, database, settings):
        super().__init__(folder / f"node{number}", {**settings, "kafka.instance": f"node-{number}"})
        self.database = database

    def command(self, listen="127.0.0.1:0"):
        line = super().command(listen)
        where = line.index("--data") if "--data" in line else line.index("--store")
        return line[:where] + ["--store", self.database.url()] + line[where + 2:]


@pytest.fixture
def nodes(kafka, database, tmp_path):
    settings = {"kafka.brokers": kafka.address, "kafka.prefix": "nodes", "kafka.project": "p"}
    kafka.create(TOPIC, partitions=PARTITIONS)
    made = [Node(tmp_path, number, database, settings) for number in range(NODES)]
    try:
        yield [node.start() for node in made]
        assert [node.stop() for node in made] == [0] * NODES
    finally:
        for node in made:
            if node.process is not None:
                node.kill()


class Producer(threading.Thread):
    """Produces EVENTS events in small portions, over a minute or so. Who stops the broker takes `lock`: kcat would give up."""

    def __init__(self, kafka):
        super().__init__(daemon=True)
        self.kafka, self.failed, self.lock = kafka, None, threading.Lock()

    def run(self):
        portion = EVENTS // 60
        try:
            for first in range(0, EVENTS, portion):
                kind = (first // portion) % TYPES
                lines = [f"key{number % 97}:{number}" for number in range(first, first + portion)]
                with self.lock:
                    self.kafka.kcat("-P", "-t", TOPIC, "-K", ":", "-H", f"rtd-type=t{kind}",
                                    "-H", "content-type=text/plain", lines=lines, timeout=120)
                time.sleep(0.3)
        except Exception as why:  # noqa: BLE001 - told by the test's own thread
            self.failed = why


def waiting(node):
    total = 0
    for number in range(TYPES):
        answer = node.get(f"/v1/event-types/t{number}")
        assert answer.status_code == 200, answer.text
        total += answer.json()["state"]["waiting"]
    return total


def bodies(node, kind):
    """All bodies of a type, by claiming them."""
    found = []
    while True:
        answer = node.post(f"/v1/event-types/t{kind}/claim", json={"worker": "w", "limit": 20, "lease_s": 600})
        if answer.status_code == 204:
            return found
        assert answer.status_code == 200, answer.text
        found += [job["body"] for job in answer.json()["jobs"]]


@pytest.mark.slow
def test_every_record_is_one_event_whatever_happens_to_nodes_and_broker(kafka, nodes):
    for number in range(TYPES):
        answer = nodes[0].put(f"/v1/event-types/t{number}", json={"target": {"pull": True}, "limits": {"concurrency": EVENTS}})
        assert answer.status_code == 201, answer.text
    producer = Producer(kafka)
    producer.start()
    dice = random.Random(4)
    for round_no in range(6):
        node = dice.choice(nodes)
        if round_no % 3 == 2:  # longer than the group waits for it: others go on with its partitions
            node.process.send_signal(signal.SIGSTOP)
            time.sleep(13)
            node.process.send_signal(signal.SIGCONT)
        else:
            node.kill()
            time.sleep(dice.random())
            node.start()
        if round_no == 3:
            with producer.lock:
                kafka.stop()
                kafka.start()
        time.sleep(dice.random() * 2)
    producer.join(180)
    assert not producer.is_alive() and producer.failed is None, producer.failed
    wait_until(lambda: waiting(nodes[0]) >= EVENTS, 120, "all of them")
    time.sleep(1)  # for those that would be too many
    assert waiting(nodes[1]) == EVENTS
    everything = [body for kind in range(TYPES) for body in bodies(nodes[2], kind)]
    assert sorted(map(int, everything)) == list(range(EVENTS))
    fenced = sum(node.metric("retryd_kafka_batches_fenced_total") for node in nodes)
    print(f"fenced {fenced:.0f} times")
