"""Several nodes on one PostgreSQL: work goes round, nodes die and stand still, the database goes away and comes back."""
import signal
import threading
import time

import pytest

import events
from postgres import Postgres
from receiver import HANG, Answer
from server import wait_until

pytestmark = pytest.mark.postgres
FREE_AGAIN_S = 10  # the promise: what a node that died had under way


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        yield server


@pytest.fixture
def nodes(database, start_retryd, request):
    """nodes(2): so many nodes on a database of the test's own."""
    name = request.node.name.replace("[", "_").replace("]", "")
    database.sql(f'CREATE DATABASE "{name}"', database="postgres")

    def start(count, settings=None):
        return [start_retryd(settings, name=f"node-{i}", store=database.url(name)) for i in range(count)]

    return start


def claim(node, queue, limit=20):
    answer = node.post(f"/v2/queues/{queue}/claims", json={"ttl": 300, "grace": 60}, params={"limit": limit})
    assert answer.status_code in (201, 204), answer.text
    return answer.json()["messages"] if answer.status_code == 201 else []


def test_what_one_node_takes_in_another_hands_out_once(nodes):
    first, second, third = nodes(3)
    first.make_queue("q")
    sent = {i for batch in range(10) for i in first.send("q", *range(10))}
    got, lock = [], threading.Lock()

    def drain(node):
        while True:
            messages = claim(node, "q")
            with lock:
                got.extend(message["body"] for message in messages)
                if len(got) >= len(sent):
                    return

    threads = [threading.Thread(target=drain, args=(node,)) for node in (first, second, third)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(got) == sorted(list(range(10)) * 10)


def test_what_a_node_had_under_way_when_it_died_is_tried_by_another(nodes, receiver):
    receiver.on("/hook", HANG, 200)
    victim, = nodes(1)
    victim.make_queue("q")
    victim.subscribe("q", receiver.url("/hook"))
    victim.send("q", "hello")
    receiver.wait(1, "/hook")
    heir = nodes(2)[1]
    victim.kill()
    died = time.monotonic()
    receiver.wait(2, "/hook", timeout=FREE_AGAIN_S + 5)
    assert time.monotonic() - died <= FREE_AGAIN_S
    assert heir.dead() == []


def test_an_attempt_that_takes_longer_than_a_lease_is_not_made_twice(nodes, receiver):
    receiver.on("/slow", Answer(status=200, delay=14))
    first, second = nodes(2)
    first.make_queue("q")
    first.subscribe("q", receiver.url("/slow"))
    first.send("q", "hello")
    receiver.wait(1, "/slow")
    time.sleep(16)  # nothing to wait for: that nothing happens
    assert len(receiver.seen("/slow")) == 1
    assert second.dead() == []


def test_a_node_that_stood_still_changes_nothing_when_it_wakes(nodes, receiver):
    receiver.on("/hook", Answer(status=503, delay=2), 200)
    sleeper, = nodes(1)
    sleeper.make_queue("q")
    sleeper.subscribe("q", receiver.url("/hook"))
    sleeper.send("q", "hello")
    receiver.wait(1, "/hook")
    other = nodes(2)[1]
    sleeper.process.send_signal(signal.SIGSTOP)
    try:
        receiver.wait(2, "/hook", timeout=FREE_AGAIN_S + 5)
        time.sleep(1)
    finally:
        sleeper.process.send_signal(signal.SIGCONT)
    wait_until(lambda: sleeper.get("/readyz").status_code == 200)
    time.sleep(3)  # its outcome is refused; nothing more is sent
    assert len(receiver.seen("/hook")) == 2
    assert other.dead() == []


def test_what_a_node_remembers_of_an_event_that_another_ended_does_no_harm(nodes):
    """It claimed an event that ended, was redriven and stands in line at another node; then it ends the one before it."""
    first, second = nodes(2)
    events.put_type(first, "t", policy=events.backoff(1, attempts=1))
    ids = [events.schedule(first, "t", Order_Key="k") for _ in range(2)]
    for teller, job in zip((first, second), ids):
        claimed, = events.claim(first, "t", wait_ms=5000)
        assert claimed["id"] == job
        assert events.end(teller, claimed, "fail")["state"] == "dead"
    for job in ids:
        assert second.post(f"/v1/dead/{job}/redrive").status_code == 200
    for job in ids:
        claimed, = events.claim(first, "t", wait_ms=5000)
        assert claimed["id"] == job
        assert events.end(first, claimed, "finish")["state"] == "done"


def test_nothing_acknowledged_is_lost_when_the_database_crashes(nodes, database):
    node, = nodes(1)
    node.make_queue("q")
    acknowledged, stop = [], threading.Event()

    def post():
        number = 0
        while not stop.is_set():
            answer = node.post("/v2/queues/q/messages", json={"messages": [{"body": number, "ttl": 3600}]})
            assert answer.status_code in (201, 503), answer.text
            if answer.status_code == 201:
                acknowledged.append(number)
            else:
                assert int(answer.headers["Retry-After"]) > 0
            number += 1

    thread = threading.Thread(target=post)
    thread.start()
    wait_until(lambda: len(acknowledged) > 50)
    database.stop("immediate")
    wait_until(lambda: node.get("/readyz").status_code == 503)
    assert "PostgreSQL" in node.get("/readyz").text
    database.start()
    wait_until(lambda: node.get("/readyz").status_code == 200)
    before = len(acknowledged)
    wait_until(lambda: len(acknowledged) > before + 50)
    stop.set()
    thread.join()
    got = []
    while messages := claim(node, "q"):
        got += [message["body"] for message in messages]
    assert set(acknowledged) <= set(got)
    assert len(got) == len(set(got))
