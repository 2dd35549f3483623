"""A node whose store is Kafka, and what it leaves in topics for other tools."""
import json
import signal
from contextlib import contextmanager

import pytest

from kafka_broker import Broker, Unreachable
from server import Retryd


class Node(Retryd):
    """One of several on the same topics."""

    def __init__(self, folder, number, kafka, prefix, settings=None):
        self.copy = str(folder / f"copy{number}")
        super().__init__(folder / f"node{number}", {"kafka.copy": self.copy, **(settings or {})})
        self.store = f"kafka://{kafka.address}/{prefix}"

    def command(self, listen="127.0.0.1:0"):
        line = super().command(listen)
        where = line.index("--data") if "--data" in line else line.index("--store")
        return line[:where] + ["--store", self.store] + line[where + 2:]


def rows(kafka, topic):
    """The last record of each key: {key: (headers, value)}; what is no text is bent into some."""
    found = {}
    for line in kafka.kcat("-C", "-t", topic, "-e", "-o", "beginning", "-J").splitlines():
        record = json.loads(line, strict=False)
        words = record.get("headers") or []
        found[record["key"]] = (dict(zip(words[::2], words[1::2])), record["payload"])
    return found


@contextmanager
def nodes(folder, kafka, prefix):
    """start(number, settings…): a node of that number, made and started; all go quietly at the end."""
    made = []

    def start(number, **settings):
        made.append(Node(folder, number, kafka, prefix, settings))
        return made[-1].start()

    yield start
    codes = []
    for each in made:
        try:
            if each.running():
                each.process.send_signal(signal.SIGCONT)
                codes.append(each.stop())
        finally:
            each.kill()
    assert not any(codes), [each.log()[-3000:] for each in made]


def lent_broker(*settings):
    """A broker for as long as a fixture lasts. Where Kafka cannot be had its tests are skipped, and counted as such."""
    try:
        broker = Broker(*settings)
    except Unreachable as why:
        pytest.skip(f"no Apache Kafka: {why}")
    try:
        yield broker.start()
    finally:
        broker.close()
