"""Circuit breakers on the real binary: when they open, what they hold back, how they close, what survives."""
import json
import time

from events import ago, backoff, batch, circuit, put_type, schedule, state, wait_circuit, wait_state
from policies import quick, steady
from receiver import Answer
from server import wait_until

# Opens after 4 failures, sleeps a second, trusts again after 2 probes.
TIGHT = {"window_s": 60, "minimum_attempts": 4, "failure_rate": 0.5, "sleep_s": 1, "maximum_sleep_s": 2, "probes": 2,
         "release_per_s": 0}


def shown(retryd, name):
    return state(retryd, name)["circuit"]


def test_it_opens_on_failures_and_parks_what_waits(retryd, receiver):
    receiver.always(503)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=steady(1), circuit={**TIGHT, "sleep_s": 60, "maximum_sleep_s": 60})
    jobs = batch(retryd, "t", *[{"body": n} for n in range(50)])
    wait_circuit(retryd, "t", "open")
    time.sleep(0.3)  # what was under way ends
    seen = len(receiver.seen())
    assert 4 <= seen < 50
    attempts = [retryd.job(job)["attempts"] for job in jobs]
    assert sum(attempts) == seen
    time.sleep(2.5)  # the retries of those that failed would have been due
    assert len(receiver.seen()) == seen and [retryd.job(job)["attempts"] for job in jobs] == attempts
    now = shown(retryd, "t")
    assert now["forced"] is False and 0 < ago(now["opened"]) < 10 and -60 < ago(now["until"]) < -50
    assert state(retryd, "t")["waiting"] == 50 and state(retryd, "t")["dead"] == 0


def test_probes_close_it_and_all_are_released(retryd, receiver):
    receiver.always(503)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=steady(1), circuit=TIGHT)
    jobs = batch(retryd, "t", *[{"body": n} for n in range(40)])
    wait_circuit(retryd, "t", "open")
    receiver.always(200)
    wait_circuit(retryd, "t", "closed")
    for job in jobs:
        wait_state(retryd, job, "done")
    assert shown(retryd, "t")["opened"] is None


def test_a_failed_probe_doubles_the_sleep(retryd, receiver):
    receiver.always(503)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=backoff(1), circuit=TIGHT)
    batch(retryd, "t", *[{"body": n} for n in range(20)])
    wait_circuit(retryd, "t", "open")
    assert shown(retryd, "t")["sleep_ms"] == 1000
    wait_until(lambda: shown(retryd, "t")["sleep_ms"] == 2000)
    before = len(receiver.seen())
    time.sleep(2.5)  # one more round of probes
    assert 1 <= len(receiver.seen()) - before <= 4
    assert shown(retryd, "t")["sleep_ms"] == 2000  # maximum_sleep_s


def test_slow_answers_open_it(retryd, receiver):
    receiver.always(Answer(200, delay=0.3))
    put_type(retryd, "t", target={"url": receiver.url("/hook")},
             circuit={**TIGHT, "sleep_s": 60, "maximum_sleep_s": 60, "slow_call_s": 0.2, "slow_call_rate": 0.5})
    batch(retryd, "t", *[{"body": n} for n in range(30)])
    wait_circuit(retryd, "t", "open")


def test_few_failures_do_not_open_it(retryd, receiver):
    receiver.on("/hook", 500, 200, 200, 500, 200, 200, 200)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=quick(3), circuit={**TIGHT, "failure_rate": 0.6})
    for job in batch(retryd, "t", *[{"body": n} for n in range(6)]):
        wait_state(retryd, job, "done")
    assert circuit(retryd, "t") == "closed"


def test_without_a_circuit_nothing_opens(retryd, receiver):
    receiver.always(500)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=quick(1), circuit=None)
    batch(retryd, "t", *[{"body": n} for n in range(40)])
    retryd.wait_dead(40)
    assert circuit(retryd, "t") == "closed" and len(receiver.seen()) == 80


def test_it_survives_kill_9(start_retryd, receiver):
    receiver.always(503)
    retryd = start_retryd()
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=steady(1), circuit={**TIGHT, "sleep_s": 4, "maximum_sleep_s": 60})
    batch(retryd, "t", *[{"body": n} for n in range(20)])
    wait_circuit(retryd, "t", "open")
    time.sleep(0.3)
    before, seen = shown(retryd, "t"), len(receiver.seen())
    retryd.kill()
    retryd.start()
    assert shown(retryd, "t") == before
    receiver.always(200)
    time.sleep(1)
    assert len(receiver.seen()) == seen  # still asleep
    wait_circuit(retryd, "t", "closed")
    wait_until(lambda: state(retryd, "t")["waiting"] + state(retryd, "t")["leased"] == 0)


def test_not_closed_in_time_is_dead(retryd, receiver):
    receiver.always(503)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=steady(1), circuit={**TIGHT, "max_open_s": 2})
    jobs = batch(retryd, "t", *[{"body": n} for n in range(30)])
    dead = retryd.wait_dead(30)  # those that were its probes, too
    assert {job["id"] for job in dead} == set(jobs)
    assert {job["reason"] for job in dead} == {"circuit_open"}
    assert len(receiver.seen()) < 30


def test_operators_force_it_open_and_closed(start_retryd, receiver):
    retryd = start_retryd()
    made = put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=quick(3), circuit=TIGHT)
    queue = f"/v1/queues/{made['queue']}"

    def force(word, status=200):
        answer = retryd.post(f"{queue}/circuit", json={"state": word})
        assert answer.status_code == status, answer.text
        return answer.json()

    force("open")
    assert retryd.get(queue).json()["circuit"]["state"] == "open" and shown(retryd, "t")["forced"] is True
    job = schedule(retryd, "t", b"x")
    time.sleep(1.5)  # longer than it would sleep
    assert receiver.seen() == []
    retryd.kill()
    retryd.start()
    time.sleep(0.3)
    assert receiver.seen() == [] and shown(retryd, "t")["forced"] is True
    force("auto")
    wait_state(retryd, job, "done")
    assert shown(retryd, "t")["forced"] is False
    force("closed")
    receiver.always(503)
    batch(retryd, "t", *[{"body": n} for n in range(10)])
    retryd.wait_dead(10)
    assert circuit(retryd, "t") == "closed"
    force("ajar", 400)
    assert retryd.post("/v1/queues/t/circuit", json={"state": "auto"}).status_code == 200  # by name, too
    assert retryd.post("/v1/queues/none/circuit", json={"state": "auto"}).status_code == 404


def test_release_is_a_trickle_at_first(retryd, receiver):
    receiver.always(503)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=backoff(1),
             circuit={**TIGHT, "release_per_s": 10})
    batch(retryd, "t", *[{"body": n} for n in range(45)])
    wait_circuit(retryd, "t", "open")
    receiver.always(200)
    wait_circuit(retryd, "t", "closed")
    began = time.monotonic()
    wait_until(lambda: state(retryd, "t")["waiting"] + state(retryd, "t")["leased"] == 0)
    assert time.monotonic() - began > 2


def test_one_circuit_says_nothing_about_another(retryd, receiver):
    receiver.on("/bad", 503)
    put_type(retryd, "bad", target={"url": receiver.url("/bad")}, policy=steady(1), circuit=TIGHT)
    put_type(retryd, "good", target={"url": receiver.url("/good")}, circuit=TIGHT)
    batch(retryd, "bad", *[{"body": n} for n in range(20)])
    wait_circuit(retryd, "bad", "open")
    for job in batch(retryd, "good", *[{"body": n} for n in range(20)]):
        wait_state(retryd, job, "done")
    assert circuit(retryd, "good") == "closed"


def test_changing_the_type_to_no_circuit_lets_all_go(retryd, receiver):
    receiver.always(503)
    settings = {"target": {"url": receiver.url("/hook")}, "policy": steady(1)}
    put_type(retryd, "t", **settings, circuit={**TIGHT, "sleep_s": 60, "maximum_sleep_s": 60})
    batch(retryd, "t", *[{"body": n} for n in range(10)])
    wait_circuit(retryd, "t", "open")
    receiver.always(200)
    put_type(retryd, "t", **settings, circuit=None)
    wait_until(lambda: state(retryd, "t")["waiting"] + state(retryd, "t")["leased"] == 0)
    assert circuit(retryd, "t") == "closed"


def test_transitions_are_in_the_audit(retryd, receiver):
    receiver.always(503)
    made = put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=backoff(1), circuit=TIGHT)
    batch(retryd, "t", *[{"body": n} for n in range(10)])
    wait_circuit(retryd, "t", "open")
    receiver.always(200)
    wait_circuit(retryd, "t", "closed")
    lines = [json.loads(line) for line in retryd.get("/v1/attempts", params={"limit": 1000}).text.splitlines()]
    states = [line["text"] for line in lines if line["event"] == "circuit" and line["job"] == made["queue"]]
    assert [s.split()[0] for s in states] == ["open", "half_open", "closed"], states
