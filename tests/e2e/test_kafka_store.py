"""Kafka as the store: several nodes share the work, while they are killed, paused, added, and lose their folders, and the broker
is stopped."""
import itertools
import json
import random
import shutil
import signal
import threading
import time

import pytest
import requests

from events import backoff, claim, end, moment, put_type, schedule, state, wait_circuit, wait_state
from kafka_node import nodes, rows
from server import wait_until

NAMES = itertools.count()


@pytest.fixture
def prefix():
    return f"store{next(NAMES)}"


@pytest.fixture
def node(kafka, tmp_path, prefix):
    with nodes(tmp_path, kafka, prefix) as start:
        yield start


# ---- one node -----------------------------------------------------------------------------------------------------------


def test_a_node_without_its_folder_has_everything_again(node):
    first = node(0)
    put_type(first, "t")
    jobs = [schedule(first, "t", str(i)) for i in range(50)]
    held = claim(first, "t", limit=5, lease_s=60)
    end(first, held[0], "finish")
    first.kill()
    shutil.rmtree(first.copy)
    again = node(1)
    wait_state(again, jobs[0], "done")
    assert end(again, held[1], "finish") is not None
    assert len(claim(again, "t", limit=20, lease_s=60) + claim(again, "t", limit=20, lease_s=60)
               + claim(again, "t", limit=20, lease_s=60)) == 45


def test_a_folder_with_the_copy_of_another_store_is_not_taken_for_this_ones(node, kafka):
    first = node(0)
    put_type(first, "t")
    job = schedule(first, "t")
    assert first.stop() == 0
    home, first.store = first.store, f"kafka://{kafka.address}/another{next(NAMES)}"
    first.start()
    assert first.get("/v1/event-types/t").status_code == 404
    put_type(first, "u")
    assert first.stop() == 0
    first.store = home
    first.start()
    assert first.job(job)["state"] == "free" and first.get("/v1/event-types/u").status_code == 404


def test_a_kill_and_a_start_go_on_where_it_was(node, receiver):
    only = node(0)
    put_type(only, "t", target={"url": receiver.url("/hook")}, policy=backoff(1))
    receiver.on("/hook", 500, 500, 200)
    job = schedule(only, "t", "0")
    receiver.wait(1)
    only.kill()
    only.start()
    wait_state(only, job, "done", timeout=40)
    assert len(receiver.seen()) >= 3


def test_while_no_broker_answers_nothing_is_acknowledged_and_it_says_why(kafka, node):
    only = node(0)
    put_type(only, "t")
    kafka.stop()
    try:
        def is_refused():
            try:
                return only.post("/v1/events/t", data="1", timeout=10).status_code == 503
            except requests.RequestException:
                return False  # it was on its way when the broker went, and nobody knows yet

        wait_until(is_refused, 60, "a refusal")
        wait_until(lambda: only.get("/readyz").status_code == 503, what="trouble")
        assert "Kafka" in only.get("/readyz").text or "batch" in only.get("/readyz").text
        assert only.get("/v1/event-types/t").status_code == 200  # what is there can be read
    finally:
        kafka.start()
    wait_until(lambda: only.post("/v1/events/t", data="2").status_code == 202, 60, "the broker to be found again")


# ---- topics for other tools -----------------------------------------------------------------------------------------------


def test_the_retry_topic_says_what_there_is_in_headers_that_other_tools_read(kafka, node, prefix):
    only = node(0)
    put_type(only, "t", policy=backoff(600))
    waits, gone = schedule(only, "t", "first"), schedule(only, "t", "second")
    held = {job["id"]: job for job in claim(only, "t", limit=2, lease_s=60)}
    end(only, held[waits], "fail")
    end(only, held[gone], "finish")

    def told():
        jobs = {headers["rtd-id"]: headers for key, (headers, _) in rows(kafka, f"{prefix}.retry").items()
                if key.startswith("job/") and headers}
        done = jobs.get(gone, {}).get("rtd-state") == "done"
        return jobs if done and jobs.get(waits, {}).get("rtd-attempt") == "1" else None

    jobs = wait_until(told, 30, "the retry topic")
    assert jobs[waits]["rtd-state"] == "scheduled"
    assert jobs[waits]["rtd-type"] == "p/t"
    assert int(jobs[waits]["rtd-due"]) > time.time() * 1000 + 500_000
    bodies_there = [value for key, (_, value) in rows(kafka, f"{prefix}.retry").items() if key.startswith("body/") and value]
    assert len(bodies_there) == 1 and "first" in bodies_there[0]  # that of the finished one is a tombstone


def test_dead_calls_and_attempts_are_told_to_other_tools(kafka, node, prefix):
    only = node(0)
    put_type(only, "t", policy=backoff(0, attempts=1))
    job = schedule(only, "t", "hello")
    end(only, claim(only, "t")[0], "fail")
    found = wait_until(lambda: rows(kafka, f"{prefix}.dlq").get(job), 30, "the dead-letter topic")
    assert found[0]["rtd-state"] == "dead" and found[0]["rtd-reason"] == "exhausted"
    assert found[0]["kafka_dlt-exception-message"] == "exhausted"
    assert "hello" in found[1]
    attempts = [json.loads(value) for _, _, key, _, value in kafka.records(f"{prefix}.audit") if key == job]
    assert [attempt["id"] for attempt in attempts] == [f"{job}-1"]


def test_a_queue_whose_circuit_is_open_is_told_with_what_waits_and_leaves_when_it_closes(kafka, node, prefix, receiver):
    receiver.always(503)
    only, topic = node(0), f"{prefix}.circuit.open"
    put_type(only, "t", target={"url": receiver.url("/hook")}, policy=backoff(0.5),
             circuit={"minimum_attempts": 2, "failure_rate": 0.5, "sleep_s": 3600, "maximum_sleep_s": 3600, "probes": 1,
                      "release_per_s": 0})
    put_type(only, "other")
    schedule(only, "other")
    jobs = [schedule(only, "t", str(i)) for i in range(5)]
    wait_circuit(only, "t", "open")

    def told():
        """{queue: value}; null: its circuit has closed."""
        return {key: json.loads(value) if value else None for key, (_, value) in rows(kafka, topic).items()}

    def parked(count):
        value = told().get("p/t")
        return value if value and value["parked"] == count else None

    value = wait_until(lambda: parked(5), 30, "the open circuit")
    shown = state(only, "t")["circuit"]
    assert value == {"opened_ms": round(moment(shown["opened"]) * 1000), "until_ms": round(moment(shown["until"]) * 1000),
                     "forced": False, "parked": 5}
    assert 3590_000 < value["until_ms"] - time.time() * 1000 < 3600_000
    jobs += [schedule(only, "t", str(i)) for i in range(5, 12)]  # they wait too
    wait_until(lambda: parked(12), 30, "the others to be counted")
    waits = [headers for key, (headers, value) in rows(kafka, f"{prefix}.retry").items() if key.startswith("job/") and value]
    assert {each["rtd-id"] for each in waits if each["rtd-type"] == "p/t" and each["rtd-state"] == "scheduled"} <= set(jobs)
    receiver.always(200)
    assert only.post("/v1/queues/t/circuit", json={"state": "closed"}).status_code == 200
    wait_until(lambda: not any(told().values()), 30, "it to be told as closed")
    for job in jobs:
        wait_state(only, job, "done")
    assert only.post("/v1/queues/t/circuit", json={"state": "open"}).status_code == 200
    wait_until(lambda: told().get("p/t", {}) and told()["p/t"]["forced"] is True, 30, "it to be told as forced open")


def test_a_new_node_begins_from_the_retry_topic_when_the_journal_is_gone(kafka, node, prefix, receiver):
    first = node(0, **{"kafka.journal_kept_seconds": 1})
    put_type(first, "t")
    put_type(first, "push", target={"url": receiver.url("/hook")})
    jobs = [schedule(first, "t", str(i), Order_Key=f"k{i % 3}") for i in range(30)]
    done = claim(first, "t", limit=3, lease_s=60)
    for job in done:
        end(first, job, "finish")

    def is_trimmed():
        schedule(first, "push", "x")
        # Where the beginning goes away while it is looked for, kcat would wait for the next record.
        first_record = kafka.kcat("-C", "-t", f"{prefix}.journal", "-o", "beginning", "-X", "auto.offset.reset=earliest",
                                  "-c", "1", "-f", "%o")
        return int(first_record) > 30

    wait_until(is_trimmed, 40, "the journal to be trimmed")
    second = node(1)
    for job in jobs:
        assert second.get(f"/v1/jobs/{job}").json()["state"] == first.get(f"/v1/jobs/{job}").json()["state"]
    ends = 3
    while ends < 30:  # what is in line comes in order, whichever node is asked
        for job in claim(second, "t", limit=3, lease_s=60, wait_ms=2000):
            end(second, job, "finish")
            ends += 1
    wait_until(lambda: all(second.get(f"/v1/jobs/{job}").json()["state"] == "done" for job in jobs), 20, "all to be done")
    states = [each.get("/v1/event-types/t").json()["state"] for each in (first, second)]
    assert states[0] == states[1]


# ---- several nodes ------------------------------------------------------------------------------------------------------


def test_what_one_node_did_counts_at_the_next_at_once(node):
    """Behind a load balancer each request goes to another node."""
    first, second = node(0), node(1)
    for i in range(30):
        put_type(first, f"t{i}")
        job = schedule(second, f"t{i}")
        held, = claim(first, f"t{i}", lease_s=60)
        assert held["id"] == job
        end(second, held, "finish")
        end(first, held, "finish")  # the same again: the same answer
        assert claim(second, f"t{i}") == []



def test_what_one_node_writes_another_shows_and_starts(node, receiver):
    nodes = [node(0), node(1)]
    put_type(nodes[0], "t", target={"url": receiver.url("/hook")}, buckets=16)
    wait_until(lambda: nodes[1].get("/v1/event-types/t").status_code == 200, what="the other node to see it")
    # Until the group has shared it out.
    def both_work():
        for each in nodes:
            schedule(each, "t", "0")
        return all(each.metric("retryd_attempts_started_total") > 0 for each in nodes)

    wait_until(both_work, 30, "both nodes to work")


class Client(threading.Thread):
    """Schedules events of a few order keys, on whichever node answers, until told to stop; remembers what was acknowledged."""

    def __init__(self, nodes, number):
        super().__init__(daemon=True)
        self.nodes, self.number, self.stop = nodes, number, threading.Event()
        self.done, self.failed = [], None
        self.shunned = None  # a node that would only keep it waiting
        self.random = random.Random(number)

    def run(self):
        try:
            for i in itertools.count():
                if self.stop.is_set():
                    return
                self.hand_over(f"{self.number}-{i}")
        except Exception as why:  # told by the test
            self.failed = why

    def hand_over(self, name):
        """The same id each time, so that what was acknowledged to nobody is not there twice."""
        key = f"k{self.number}-{self.random.randrange(4)}"
        while not self.stop.is_set():
            each = self.random.choice(self.nodes)
            if not each.running() or each is self.shunned:
                time.sleep(0.05)
                continue
            try:
                answer = requests.post(f"{each.url}/v1/events/t", data=f"{key} {name}", timeout=3,
                                       headers={"Idempotency-Key": name, "Order-Key": key, "X-Project-ID": "p"})
            except requests.RequestException:
                continue
            if answer.status_code == 202:
                self.done.append((key, name))
                time.sleep(0.02)
                return
            assert answer.status_code in (503, 409, 507), answer.text
            time.sleep(0.05)


def wait_handed_over(clients, more, timeout=90):
    goal = sum(len(client.done) for client in clients) + more
    wait_until(lambda: sum(len(client.done) for client in clients) >= goal, timeout, f"{more} more events")
    assert not any(client.failed for client in clients), [client.failed for client in clients]


def test_nothing_is_lost_and_keys_stay_in_order_whatever_happens(kafka, node, receiver):
    nodes = [node(0), node(1), node(2)]
    put_type(nodes[0], "t", target={"url": receiver.url("/hook")}, buckets=8, policy=backoff(0.2))
    receiver.on("/hook", *[random.Random(1).choice([200, 200, 200, 500]) for _ in range(200)], 200)
    for each in nodes:
        wait_until(lambda each=each: each.get("/v1/event-types/t").status_code == 200, what="the type")
    clients = [Client(nodes, number) for number in range(4)]
    for client in clients:
        client.start()
    wait_handed_over(clients, 150)
    nodes[0].kill()                                  # kill -9
    wait_handed_over(clients, 150)
    nodes[0].start()
    nodes[1].process.send_signal(signal.SIGSTOP)     # longer than its leases, and than the group waits
    wait_handed_over(clients, 5)                     # some of them to the paused one: they time out
    for client in clients:
        client.shunned = nodes[1]
    time.sleep(12)
    wait_handed_over(clients, 100)
    nodes[1].process.send_signal(signal.SIGCONT)
    for client in clients:
        client.shunned = None
    wait_handed_over(clients, 150)
    kafka.stop()                                     # the broker
    kafka.start()
    wait_handed_over(clients, 150)
    nodes[2].kill()
    shutil.rmtree(nodes[2].copy)                     # a folder
    nodes[2].start()
    wait_handed_over(clients, 150)
    nodes.append(node(3))                            # one more
    wait_handed_over(clients, 150)
    for client in clients:
        client.stop.set()
    for client in clients:
        client.join(60)
    wanted = {f"{key} {name}" for client in clients for key, name in client.done}

    def delivered():
        return {request.body.decode() for request in receiver.seen()}

    wait_until(lambda: wanted <= delivered(), 90, "all that was acknowledged")
    counts = [each.get("/v1/event-types/t").json()["state"] for each in nodes]
    wait_until(lambda: all(each.get("/v1/event-types/t").json()["state"] == nodes[0].get("/v1/event-types/t").json()["state"]
                           for each in nodes), 30, f"all nodes to say the same: {counts}")
    # A call's first attempt comes after the last success of the one before it.
    for client in clients:
        for key in {key for key, _ in client.done}:
            order = [f"{k} {name}" for k, name in client.done if k == key]
            seen = [(request.body.decode(), round(request.at, 2)) for request in receiver.seen()
                    if request.body.decode() in order]
            first = [body for at, (body, _) in enumerate(seen) if body not in [b for b, _ in seen[:at]]]
            assert first == order, (key, seen, order)
