"""retryctl for event types, events, circuits and dead letters."""
import json
import os
import subprocess

import pytest

from events import batch, circuit, claim, put_type, state
from policies import quick
from server import BINARY, wait_until

CTL = os.path.join(os.path.dirname(BINARY), "retryctl")
pytestmark = pytest.mark.skipif(not os.path.exists(CTL), reason="retryctl is not built")


def run(retryd, *arguments, **more):
    return subprocess.run([CTL, "--url", retryd.url, "--project", "p", *arguments], capture_output=True, text=True, timeout=30,
                          **more)


def ctl(retryd, *arguments, **more):
    done = run(retryd, *arguments, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_types_are_put_shown_listed_and_deleted(retryd):
    assert "version 1" in ctl(retryd, "event-types", "put", "card", '{"target": {"pull": true}}')
    assert "version 2" in ctl(retryd, "event-types", "put", "card", "-", input='{"target": {"url": "http://h/x"}}')
    assert "http://h/x" in ctl(retryd, "event-types")
    assert json.loads(ctl(retryd, "event-types", "show", "card", "--json"))["version"] == 2
    assert run(retryd, "event-types", "put", "card", "{").returncode == 2
    refused = run(retryd, "event-types", "put", "card", "{}")
    assert refused.returncode == 1 and "target" in refused.stderr
    ctl(retryd, "event-types", "delete", "card")
    assert "no event types" in ctl(retryd, "event-types")


def test_events_are_scheduled(retryd):
    put_type(retryd, "t")
    job = ctl(retryd, "events", "schedule", "t", '{"n": 1}', "--reason", "api1-5xx", "--key", "k", "--order-key", "o").strip()
    assert ctl(retryd, "events", "schedule", "t", '{"n": 1}', "--reason", "api1-5xx", "--key", "k", "--order-key", "o").strip() == job
    assert job in ctl(retryd, "events", "list", "t", "--reason", "api1-5xx")
    assert "Nothing waits" in ctl(retryd, "events", "list", "t", "--reason", "other")
    got, = claim(retryd, "t")
    assert got["id"] == job and got["body"] == {"n": 1} and got["reason"] == "api1-5xx" and got["order_key"] == "o"
    ctl(retryd, "events", "schedule", "t", "plain words")
    assert claim(retryd, "t")[0]["body"] == "plain words"
    assert run(retryd, "events", "schedule", "none", "{}").returncode == 1


def test_circuits_are_forced(retryd):
    put_type(retryd, "t")
    assert "is open" in ctl(retryd, "circuit", "open", "t") and circuit(retryd, "t") == "open"
    ctl(retryd, "circuit", "close", "t")
    assert state(retryd, "t")["circuit"] == {**state(retryd, "t")["circuit"], "state": "closed", "forced": True}
    ctl(retryd, "circuit", "auto", state_queue(retryd, "t"))
    assert state(retryd, "t")["circuit"]["forced"] is False


def state_queue(retryd, name):
    return retryd.get(f"/v1/event-types/{name}").json()["queue"]


def test_dead_letters_are_listed_counted_exported_redriven_and_deleted(retryd, receiver):
    receiver.on("/hook", 503)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=quick(1), circuit=None)
    ids = batch(retryd, "t", *[{"body": {"n": n}, "reason": "r%d" % (n % 2)} for n in range(30)])
    retryd.wait_dead(30)
    assert ids[0] in ctl(retryd, "dead", "list", "--type", "t", "--reason", "r0")
    assert ctl(retryd, "dead", "count", "--reason", "r1").split() == ["15"]
    assert "15  r0" in ctl(retryd, "dead", "count", "--by", "retry_reason")
    assert "of 30" in ctl(retryd, "dead", "sample", "--limit", "3")
    lines = [json.loads(line) for line in ctl(retryd, "dead", "export", "--failure", "503").splitlines()]
    assert [line["id"] for line in lines] == ids and lines[7]["body"] == {"n": 7}
    assert "1 would be redriven" in ctl(retryd, "dead", "redrive", "--text", '"n": 7', "--dry-run")
    receiver.on("/hook", 200)
    ctl(retryd, "dead", "redrive", "--reason", "r0", "--type", "t", "--rate", "1000")
    wait_until(lambda: len(retryd.dead()) == 15)
    assert run(retryd, "dead", "delete").returncode == 2
    ctl(retryd, "dead", "delete", "--after", "1h")
    wait_until(lambda: retryd.dead() == [])


def test_queues_of_every_kind_are_paused_by_name(start_retryd, receiver):
    retryd = start_retryd()
    put_type(retryd, "card")
    retryd.put("/v1/order-types/bytes", json={"target": {"url": receiver.url("/x")}})
    retryd.put("/v1/processes/install", json={})
    retryd.put("/v1/entities/m1", json={"kind": "machine"})
    retryd.make_queue("q")
    retryd.subscribe("q", receiver.url("/hook"))
    names = {queue["name"]: queue for queue in retryd.get("/v1/queues").json()["queues"]}
    assert {"p/card", "p/bytes", "p/machine/install", "p/q/" + receiver.url("/hook")} <= set(names)

    def paused(name):
        return retryd.get("/v1/queues/" + names[name]["id"]).json()["paused"]

    for said, name in (("card", "p/card"), ("p/card", "p/card"), ("bytes", "p/bytes"), ("machine/install", "p/machine/install"),
                       ("p/q/" + receiver.url("/hook"), "p/q/" + receiver.url("/hook")), (names["p/bytes"]["id"], "p/bytes")):
        assert ctl(retryd, "queue", "pause", said) == f"{said} paused\n" and paused(name), said
        assert ctl(retryd, "queue", "resume", said) == f"{said} resumed\n" and not paused(name), said
    nobody = run(retryd, "queue", "pause", "nobody")
    assert nobody.returncode == 1 and "no such queue" in nobody.stderr
    # Another project's is not meant; one name for two is refused.
    assert retryd.post("/v1/queues/bytes/pause", headers={"X-Project-ID": "other"}).status_code == 404
    for project in ("a", "b"):
        retryd.put("/v1/order-types/same", json={"target": {"plugin": "x"}}, headers={"X-Project-ID": project})
    assert retryd.post("/v1/queues/same/pause", headers={"X-Project-ID": None}).status_code == 409
    assert retryd.post("/v1/queues/a%2Fsame/pause", headers={"X-Project-ID": None}).status_code == 200
