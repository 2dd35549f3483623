"""Kafka as the store, kept bounded: what has ended goes from the topics, and a node that was away for longer than the journal
is kept begins again by itself from what is left."""
import itertools
import json
import os
import shutil
import signal
import threading
import time

import pytest
import requests

from events import backoff, batch, claim, end, put_type, schedule, state
from kafka_node import lent_broker, nodes
from server import wait_until

NAMES = itertools.count()
# Brokers look for what may go every few minutes, and compact only what is not written to any more.
HASTY = """\
log.retention.check.interval.ms=500
log.initial.task.delay.ms=500
log.segment.delete.delay.ms=100
transaction.remove.expired.transaction.cleanup.interval.ms=1000
"""
COMPACTED = {"cleanup_policy": "compact", "segment_ms": 500, "min_cleanable_dirty_ratio": 0.01, "delete_retention_ms": 2000,
             "min_compaction_lag_ms": 0}
JOURNAL = {"cleanup_policy": "delete", "retention_ms": -1, "retention_bytes": -1, "segment_ms": 500}
KEPT = {"kafka.journal_kept_seconds": 1}


@pytest.fixture(scope="module")
def kafka():
    """A hasty one."""
    yield from lent_broker(HASTY)


@pytest.fixture
def prefix(kafka):
    name = f"bounds{next(NAMES)}"
    kafka.create(f"{name}.journal", partitions=1, **JOURNAL)
    kafka.create(f"{name}.retry", partitions=2, **COMPACTED)
    kafka.create(f"{name}.circuit.open", partitions=1, **COMPACTED)
    return name


def bytes_of(kafka, topic):
    """On the broker's disk, of all partitions."""
    logs = os.path.join(kafka.folder, "log")
    total = 0
    for name in os.listdir(logs):
        if name.rpartition("-")[0] != topic:
            continue
        try:
            total += sum(file.stat().st_size for file in os.scandir(os.path.join(logs, name)) if file.name.endswith(".log"))
        except FileNotFoundError:
            pass  # it was just deleted
    return total


def offset(kafka, topic, where):
    """Of the topic's only partition: where it begins (-2), or where the next record will stand (-1)."""
    return int(kafka.kcat("-Q", "-t", f"{topic}:0:{where}").rsplit(" ", 1)[1])


def count(kafka, topic):
    """Records that are there, tombstones too."""
    return len(kafka.kcat("-C", "-t", topic, "-o", "beginning", "-e", "-f", "x"))


def holdings(node, names):
    """All that the API shows of these types."""
    shown = {name: state(node, name) for name in names}
    dead, attempts = node.dead(), node.get("/v1/attempts", params={"after": 0}).text.splitlines()
    jobs = sorted({json.loads(line)["job"] for line in attempts} | {job["id"] for job in dead})
    return shown, dead, attempts, {job: node.get(f"/v1/jobs/{job}").json() for job in jobs}


@pytest.fixture
def node(kafka, tmp_path, prefix):
    with nodes(tmp_path, kafka, prefix) as start:
        yield start


def work_off(node, name, events):
    """So many come and go."""
    batch(node, name, *[{"body": {"n": n}} for n in range(events)])
    while events > 0:
        for job in claim(node, name, limit=20, lease_s=60):
            end(node, job, "finish")
            events -= 1


def wait_cut_off(kafka, node, journal, name, line):
    """Until the journal has nothing any more of what is before this line."""
    def is_cut_off():
        work_off(node, name, 1)
        return offset(kafka, journal, -2) > line

    wait_until(is_cut_off, 60, f"the journal to begin behind line {line}")


# ---- compaction -----------------------------------------------------------------------------------------------------------


ROUNDS, EVENTS, HISTORY, STAY = 5, 200, 100, 20


def test_what_has_come_and_gone_leaves_nothing_behind_and_a_new_node_has_all_that_is_left(kafka, node, prefix):
    first = node(0, **KEPT, **{"history.maximum_events": HISTORY})
    put_type(first, "t")
    put_type(first, "stay", policy=backoff(0, attempts=1))
    stay = batch(first, "stay", *[{"body": {"stays": n}, "order_key": f"k{n}"} for n in range(STAY)])
    dead = [job["id"] for job in claim(first, "stay", limit=5, lease_s=60) if end(first, job, "fail")]
    for _ in range(ROUNDS):
        work_off(first, "t", EVENTS)
    # What there is: HISTORY attempts and at most as many finished jobs, STAY others with a body each, and a dozen of queues,
    # documents and the cut. What there was: 1000 jobs, bodies and attempts, each written, changed, and gone again.
    live, written = 2 * HISTORY + 2 * STAY + 20, 3 * ROUNDS * EVENTS
    retry, journal = f"{prefix}.retry", f"{prefix}.journal"

    def is_compacted():
        work_off(first, "t", 1)  # a segment ends when the next record comes
        return count(kafka, retry) < 2 * live

    wait_until(is_compacted, 90, "compaction")
    assert 2 * live < written
    tombstones = kafka.kcat("-C", "-t", retry, "-o", "beginning", "-e", "-f", "%S\\n").split().count("-1")
    assert tombstones < live, tombstones  # of what has just gone
    wait_cut_off(kafka, first, journal, "t", offset(kafka, journal, -1))
    assert offset(kafka, journal, -1) - offset(kafka, journal, -2) < 200
    wait_until(lambda: bytes_of(kafka, journal) < 200_000 and bytes_of(kafka, retry) < 500_000, 30, "deleted segments")
    # … and where it ended is where another node begins.
    second = node(1, **KEPT, **{"history.maximum_events": HISTORY})
    assert "it is made again from" in second.log()
    wait_until(lambda: holdings(second, ["t", "stay"]) == holdings(first, ["t", "stay"]), 20, "both to have the same")
    first.kill()
    shutil.rmtree(first.copy)
    assert sorted(job["id"] for job in second.dead()) == sorted(dead)
    left = claim(second, "stay", limit=20, lease_s=60)
    assert {job["id"]: job["body"] for job in left} == {job: {"stays": n} for n, job in enumerate(stay) if job not in dead}


# ---- away for too long ----------------------------------------------------------------------------------------------------


def test_a_node_that_was_paused_for_longer_than_the_journal_is_kept_begins_again_by_itself(kafka, node, prefix):
    first, second = node(0, **KEPT), node(1, **KEPT)
    put_type(first, "t")
    put_type(first, "seen")
    old = schedule(first, "seen", "old")
    wait_until(lambda: second.get(f"/v1/jobs/{old}").status_code == 200, what="the other node to see it")
    journal = f"{prefix}.journal"
    last = offset(kafka, journal, -1)
    begin = len(second.log())
    second.process.send_signal(signal.SIGSTOP)
    paused = time.monotonic()
    held, = claim(first, "seen", lease_s=60)
    end(first, held, "finish")
    wait_cut_off(kafka, first, journal, "t", last + 2)
    wait_until(lambda: time.monotonic() - paused > 6, what="the pause to be long")
    new = schedule(first, "seen", "new")
    second.process.send_signal(signal.SIGCONT)

    def answer():
        """Nothing, or the truth: never what was true before."""
        try:
            got = second.get(f"/v1/jobs/{old}", timeout=5)
        except requests.RequestException:
            return False
        assert got.status_code == 503 or got.json()["state"] == "done", got.text
        return got.status_code == 200

    wait_until(answer, 60, "the copy")
    said = second.log(begin)
    assert "away for longer than kafka.journal_kept_seconds" in said and "it is made again from" in said
    assert "up to date again" in said
    names = ["t", "seen"]
    wait_until(lambda: holdings(second, names) == holdings(first, names), 20, "both to have the same")
    held, = wait_until(lambda: claim(second, "seen", lease_s=60), 20, "the node to give out work again")
    assert held["id"] == new
    end(second, held, "finish")
    wait_until(lambda: first.job(new)["state"] == "done", 20, "the others to see what it does")
    wait_until(lambda: second.get("/readyz").status_code == 200, 20, "it to be ready")


def test_a_node_that_was_stopped_for_longer_begins_again_when_it_is_started(kafka, node, prefix):
    first, second = node(0, **KEPT), node(1, **KEPT)
    put_type(first, "t")
    jobs = batch(first, "t", *[{"body": n} for n in range(10)])
    wait_until(lambda: second.get(f"/v1/jobs/{jobs[-1]}").status_code == 200, what="the other node to see it")
    journal = f"{prefix}.journal"
    second.kill()
    wait_cut_off(kafka, first, journal, "t", offset(kafka, journal, -1) + 2)
    second.start()
    assert "it is made again from" in second.log()
    wait_until(lambda: holdings(second, ["t"]) == holdings(first, ["t"]), 20, "both to have the same")


def test_what_was_under_way_in_a_node_that_was_paused_is_known_at_the_end(kafka, node, prefix):
    """Each event that it acknowledged is there, and what it has not acknowledged is there at most once."""
    first, second = node(0, **KEPT), node(1, **KEPT)
    put_type(first, "t")
    put_type(first, "seen")
    wait_until(lambda: second.get("/v1/event-types/seen").status_code == 200, what="the type")
    journal = f"{prefix}.journal"
    clients = [Poster(second, number) for number in range(8)]
    for client in clients:
        client.start()
    for least_s in (6, 0):  # the engine notices, or the broker has to tell it
        goal = sum(len(client.done) for client in clients) + 50
        wait_until(lambda goal=goal: sum(len(client.done) for client in clients) > goal, 60, "events")
        second.process.send_signal(signal.SIGSTOP)  # while it writes
        paused = time.monotonic()
        wait_cut_off(kafka, first, journal, "t", offset(kafka, journal, -1) + 2)
        wait_until(lambda: time.monotonic() - paused > least_s, what="the pause to be long")
        second.process.send_signal(signal.SIGCONT)
    goal = sum(len(client.done) for client in clients) + 50
    wait_until(lambda: sum(len(client.done) for client in clients) > goal, 60, "events again")
    for client in clients:
        client.stop.set()
    for client in clients:
        client.join(60)
    assert not any(client.failed for client in clients), [client.failed for client in clients]
    done = {name: job for client in clients for name, job in client.done}
    found = {}
    while jobs := claim(first, "seen", limit=20, lease_s=600):
        for job in jobs:
            name = job["body"]["name"]
            assert name not in found, f"{name} is there twice: {found[name]} and {job['id']}"
            found[name] = job["id"]
    assert done.items() <= found.items()
    assert set(found) <= {name for client in clients for name in client.asked}


class Poster(threading.Thread):
    """Posts events, each once: what was refused (503) is not there, and what got no answer may be."""

    def __init__(self, node, number):
        super().__init__(daemon=True)
        self.node, self.number, self.stop = node, number, threading.Event()
        self.asked, self.refused, self.done, self.failed = [], [], [], None

    def run(self):
        try:
            for i in itertools.count():
                if self.stop.is_set():
                    return
                self.post(f"{self.number}-{i}")
        except Exception as why:  # told by the test
            self.failed = why

    def post(self, name):
        try:
            answer = requests.post(f"{self.node.url}/v1/events/seen", json={"name": name}, timeout=60,
                                   headers={"X-Project-ID": "p"})
        except requests.RequestException:
            self.asked.append(name)
            return
        if answer.status_code == 202:
            self.asked.append(name)
            self.done.append((name, answer.json()["id"]))
            return
        assert answer.status_code == 503, answer.text
        time.sleep(0.02)
