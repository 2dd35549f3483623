"""Workers that fetch events: claim, finish, fail, release, extend, and what happens when they die."""
import socket
import threading
import time

import pytest

from events import backoff, batch, claim, end, moment, put_type, schedule, state, wait_state
from policies import quick
from server import wait_until


def test_claim_gives_all_that_a_worker_needs(retryd):
    put_type(retryd, "t")
    job = schedule(retryd, "t", b'{"n": 1}', Content_Type="application/json", Retry_Reason="api1-5xx", Order_Key="k")
    got, = claim(retryd, "t", lease_s=30)
    assert got["id"] == job and got["type"] == "t" and got["body"] == {"n": 1} and got["content_type"] == "application/json"
    assert got["reason"] == "api1-5xx" and got["order_key"] == "k" and got["attempt"] == 1
    assert 28 < moment(got["lease_until"]) - time.time() < 31
    assert claim(retryd, "t") == []
    assert retryd.job(job)["state"] == "leased"
    assert end(retryd, got, "finish") == {"id": job, "state": "done"}
    assert end(retryd, got, "finish") == {"id": job, "state": "done"}  # asked again: the same
    assert retryd.job(job)["state"] == "done" and state(retryd, "t")["waiting"] == 0


def test_oldest_first_and_as_many_as_asked_for(retryd):
    put_type(retryd, "t")
    ids = batch(retryd, "t", *[{"body": n} for n in range(25)])
    assert [job["id"] for job in claim(retryd, "t", limit=20)] == ids[:20]
    assert [job["id"] for job in claim(retryd, "t", limit=20)] == ids[20:]
    for wrong in ({"limit": 0}, {"limit": 21}, {"lease_s": 0}, {"lease_s": 43201}, {"wait_ms": -1}, {"wait_ms": 60001},
                  {"limits": 3}, {"worker": 5}):
        assert retryd.post("/v1/event-types/t/claim", json=wrong).status_code == 400, wrong
    assert retryd.post("/v1/event-types/none/claim", json={}).status_code == 404


def test_a_pushed_type_cannot_be_claimed(retryd, receiver):
    put_type(retryd, "t", target={"url": receiver.url("/hook")})
    assert retryd.post("/v1/event-types/t/claim", json={}).status_code in (400, 409)


def test_claims_wait_for_something_to_come(retryd):
    put_type(retryd, "t")
    began = time.monotonic()
    assert claim(retryd, "t", wait_ms=300) == []
    assert 0.25 < time.monotonic() - began < 3
    threading.Timer(0.3, lambda: schedule(retryd, "t", b"x")).start()
    began = time.monotonic()
    got, = claim(retryd, "t", wait_ms=20000)
    assert time.monotonic() - began < 5
    end(retryd, got, "fail", retry_after_s=1, error="later")
    began = time.monotonic()
    got, = claim(retryd, "t", wait_ms=20000)
    assert got["attempt"] == 2 and 0.3 < time.monotonic() - began < 5


def test_a_worker_that_is_stopped_while_it_waits_takes_nothing_along(retryd):
    put_type(retryd, "t")
    body = b'{"lease_s": 600, "wait_ms": 60000}'
    before = retryd.metric("retryd_http_waiting")
    with socket.create_connection(("127.0.0.1", retryd.port)) as worker:
        worker.sendall(b"POST /v1/event-types/t/claim HTTP/1.1\r\nHost: x\r\nX-Project-ID: p\r\n"
                       b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        wait_until(lambda: retryd.metric("retryd_http_waiting") > before)
    job = schedule(retryd, "t")
    [got] = claim(retryd, "t", wait_ms=20000)
    assert (got["id"], got["attempt"]) == (job, 1)


def test_failures_follow_the_policy_to_the_dead_letters(retryd):
    put_type(retryd, "t", policy=backoff(1, attempts=3))
    job = schedule(retryd, "t", b"x")
    for attempt in (1, 2):
        got, = claim(retryd, "t", wait_ms=5000)
        assert got["attempt"] == attempt
        answer = end(retryd, got, "fail", error=f"no luck {attempt}")
        assert answer["state"] == "scheduled" and 0 < moment(answer["next_attempt"]) - time.time() < 1.5
        assert end(retryd, got, "fail", error="again") == answer  # asked again: the same
    got, = claim(retryd, "t", wait_ms=5000)
    assert end(retryd, got, "fail", error="no luck 3") == {"id": job, "state": "dead", "next_attempt": None}
    dead, = retryd.wait_dead(1)
    assert dead["reason"] == "exhausted" and dead["attempts"] == 3
    assert dead["failure"]["reason"] == "failed" and dead["failure"]["text"] == "no luck 3"
    assert [e["text"] for e in retryd.attempts(job) if e["event"] in ("attempt", "dead")] == \
        ["no luck 1", "no luck 2", "no luck 3"]


def test_giving_up_is_at_once(retryd):
    put_type(retryd, "t", policy=backoff(1))
    schedule(retryd, "t", b"x")
    got, = claim(retryd, "t")
    assert end(retryd, got, "fail", give_up=True, error="hopeless")["state"] == "dead"
    dead, = retryd.wait_dead(1)
    assert dead["failure"]["text"] == "hopeless"


def test_release_is_no_attempt(retryd):
    put_type(retryd, "t")
    job = schedule(retryd, "t", b"x")
    got, = claim(retryd, "t")
    released = end(retryd, got, "release")
    assert released["state"] == "free" and end(retryd, got, "release") == released  # its answer was lost
    end(retryd, got, "fail", status=409)
    again, = claim(retryd, "t")
    assert again["id"] == job and again["attempt"] == 1 and again["token"] != got["token"]
    for verb in ("finish", "release"):
        end(retryd, got, verb, status=409)


def test_a_stale_or_wrong_token_changes_nothing(retryd):
    put_type(retryd, "t", policy=quick(5))
    job = schedule(retryd, "t", b"x")
    old, = claim(retryd, "t")
    end(retryd, old, "release")
    new, = claim(retryd, "t")
    for verb in ("finish", "fail", "release", "extend"):
        for token in (old["token"], "0" * 16, "nonsense"):
            answer = retryd.post(f"/v1/jobs/{job}/{verb}", json={"token": token})
            assert answer.status_code == 409 and answer.json()["code"] == "not_holder", answer.text
        assert retryd.post(f"/v1/jobs/{job}/{verb}", json={}).status_code == 400
        assert retryd.post(f"/v1/jobs/{job}/{verb}", json={"token": old["token"], "odd": 1}).status_code == 400
        assert retryd.post(f"/v1/jobs/{'0' * 24}/{verb}", json={"token": old["token"]}).status_code == 404
    assert retryd.job(job)["state"] == "leased"
    end(retryd, new, "finish")


def end_many(retryd, verb, *jobs, status=200):
    answer = retryd.post(f"/v1/jobs/{verb}", json={"jobs": list(jobs)})
    assert answer.status_code == status, answer.text
    return answer.json()["results"] if status == 200 else answer.json()


def test_many_are_ended_at_once_each_with_its_own_verdict(retryd):
    put_type(retryd, "t", policy=backoff(60))
    ids = batch(retryd, "t", *[{"body": n} for n in range(100)])
    got = [{"id": job["id"], "token": job["token"]} for _ in range(5) for job in claim(retryd, "t", limit=20)]
    assert end_many(retryd, "release", *got[:2]) == [{"id": id, "state": "free"} for id in ids[:2]]
    extended = end_many(retryd, "extend", {**got[2], "lease_s": 600}, got[0])
    assert 590 < moment(extended[0].pop("lease_until")) - time.time() < 610
    assert extended == [{"id": ids[2], "state": "leased"}, {"id": ids[0], "code": "not_holder"}]
    failed = end_many(retryd, "fail", {**got[3], "error": "no luck"}, {**got[4], "give_up": True, "reason": "hopeless"})
    assert 50 < moment(failed[0].pop("next_attempt")) - time.time() < 70
    assert failed == [{"id": ids[3], "state": "scheduled"}, {"id": ids[4], "state": "dead", "next_attempt": None}]
    assert retryd.attempts(ids[3])[-1]["text"] == "no luck"
    wrong = [{"id": ids[5], "token": "nonsense"}, {"id": "0" * 24, "token": got[5]["token"]}, {"id": "what", "token": ""}]
    results = end_many(retryd, "finish", *wrong, *got[5:])
    assert results[:3] == [{"id": ids[5], "code": "not_holder"}, {"id": "0" * 24, "code": "absent"}, {"id": "what", "code": "absent"}]
    assert results[3:] == [{"id": id, "state": "done"} for id in ids[5:]]
    assert end_many(retryd, "finish", *got[5:7], got[5]) == [*results[3:5], results[3]]  # asked again: the same
    for bad in ({}, {"jobs": []}, {"jobs": got + got[:1]}, {"jobs": [1]}, {"jobs": [{"id": ids[5]}]}, {"jobs": got[:1], "odd": 1},
                {"jobs": [{**got[5], "odd": 1}]}, {"jobs": [{"token": got[5]["token"]}]}):
        assert retryd.post("/v1/jobs/finish", json=bad).status_code == 400, bad


def test_extend_keeps_it(retryd):
    put_type(retryd, "t")
    schedule(retryd, "t", b"x")
    got, = claim(retryd, "t", lease_s=1)
    answer = end(retryd, got, "extend", lease_s=30)
    assert 28 < moment(answer["lease_until"]) - time.time() < 31
    time.sleep(1.5)
    assert claim(retryd, "t") == []
    end(retryd, got, "finish")


def test_a_lease_that_runs_out_is_a_failed_attempt(retryd):
    put_type(retryd, "t", policy=backoff(1, attempts=2))
    job = schedule(retryd, "t", b"x")
    first, = claim(retryd, "t", lease_s=1)
    second, = claim(retryd, "t", lease_s=1, wait_ms=10000)
    assert second["id"] == job and second["attempt"] == 2
    end(retryd, first, "finish", status=409)
    # Nobody says a word again: what kills its workers dies.
    dead, = retryd.wait_dead(1)
    assert dead["reason"] == "exhausted" and dead["attempts"] == 2 and dead["failure"]["reason"] == "lost"
    end(retryd, second, "finish", status=409)


def test_what_is_too_old_is_dead_although_nobody_comes_for_it(retryd):
    put_type(retryd, "t", policy={"maximum_age": 1})
    put_type(retryd, "held", policy={"maximum_age": 1}, target={"url": "http://127.0.0.1:9/"})
    assert retryd.post("/v1/queues/held/circuit", json={"state": "open"}).status_code == 200
    begin = time.monotonic()
    waiting = [schedule(retryd, "t"), schedule(retryd, "t", Order_Key="o"), schedule(retryd, "t", Order_Key="o"),
               schedule(retryd, "t", Deliver_After=60), schedule(retryd, "held")]
    assert retryd.job(waiting[0])["expires"] is not None
    dead = retryd.wait_dead(len(waiting), timeout=10)
    assert 1 <= time.monotonic() - begin < 3
    assert {job["id"] for job in dead} == set(waiting)
    assert {(job["reason"], job["attempts"]) for job in dead} == {("expired", 0)}
    assert claim(retryd, "t") == []
    # A limit that comes later counts for what waits.
    put_type(retryd, "later")
    late = schedule(retryd, "later")
    put_type(retryd, "later", policy={"maximum_age": 1})
    wait_state(retryd, late, "dead", timeout=5)


def test_leases_outlive_kill_9(start_retryd):
    retryd = start_retryd()
    put_type(retryd, "t", policy=backoff(1))
    schedule(retryd, "t", b"x")
    kept, = claim(retryd, "t", lease_s=60)
    retryd.kill()
    retryd.start()
    assert claim(retryd, "t") == []
    end(retryd, kept, "finish")


def test_order_keys_hold_for_workers(retryd):
    put_type(retryd, "t", policy=backoff(1))
    ids = batch(retryd, "t", {"body": 0, "order_key": "a"}, {"body": 1, "order_key": "a"}, {"body": 2, "order_key": "b"},
                {"body": 3})
    got = claim(retryd, "t", limit=20)
    assert [job["id"] for job in got] == [ids[0], ids[2], ids[3]]
    end(retryd, got[0], "fail", error="x")
    assert claim(retryd, "t", limit=20) == []
    again, = claim(retryd, "t", limit=20, wait_ms=5000)
    assert again["id"] == ids[0] and again["attempt"] == 2
    end(retryd, again, "finish")
    after, = claim(retryd, "t", wait_ms=2000)
    assert after["id"] == ids[1]


def test_rate_and_concurrency_hold_for_workers(retryd):
    put_type(retryd, "t", limits={"concurrency": 3})
    batch(retryd, "t", *[{"body": n} for n in range(10)])
    got = claim(retryd, "t", limit=20)
    assert len(got) == 3 and claim(retryd, "t", limit=20) == []
    end(retryd, got[0], "finish")
    assert len(claim(retryd, "t", limit=20, wait_ms=2000)) == 1
    put_type(retryd, "r", limits={"rate_per_s": 5})
    batch(retryd, "r", *[{"body": n} for n in range(10)])
    assert len(claim(retryd, "r", limit=20)) == 5
    assert 1 <= len(claim(retryd, "r", limit=20, wait_ms=5000)) <= 5


def test_the_circuit_holds_for_workers(retryd):
    put_type(retryd, "t", policy=backoff(60), circuit={"minimum_attempts": 3, "sleep_s": 1, "probes": 1})
    batch(retryd, "t", *[{"body": n} for n in range(10)])
    for job in claim(retryd, "t", limit=3):
        end(retryd, job, "fail", error="down")
    wait_until(lambda: state(retryd, "t")["circuit"]["state"] == "open")
    assert claim(retryd, "t", limit=20) == []
    probe = claim(retryd, "t", limit=20, wait_ms=10000)
    assert len(probe) == 1 and state(retryd, "t")["circuit"]["state"] == "half_open"
    end(retryd, probe[0], "finish")
    assert state(retryd, "t")["circuit"]["state"] == "closed"
    assert len(claim(retryd, "t", limit=20, wait_ms=2000)) == 6


@pytest.mark.slow
def test_many_workers_share_without_overlap_over_kill_9(start_retryd):
    """An account of everything: finished once, failed as often as the policy says, nothing lost."""
    retryd = start_retryd()
    put_type(retryd, "t", policy={**backoff(1, attempts=6)}, circuit=None)
    ids = []
    for part in range(4):
        ids += batch(retryd, "t", *[{"body": part * 100 + n, "idempotency_key": str(part * 100 + n)} for n in range(100)])
    finished, over, errors = [], threading.Event(), []

    def work(number):
        import random

        import requests
        chance, session = random.Random(number), requests.Session()
        session.trust_env = False
        session.headers["X-Project-ID"] = "p"

        def post(path, **body):
            while not over.is_set():
                try:
                    answer = session.post(retryd.url + path, json=body, timeout=30)
                    if answer.status_code < 500:
                        return answer
                except requests.RequestException:
                    pass
                over.wait(0.02)
            return None

        try:
            while not over.is_set():
                answer = post("/v1/event-types/t/claim", worker=str(number), limit=5, lease_s=2, wait_ms=500)
                for job in answer.json()["jobs"] if answer is not None and answer.content else []:
                    what = chance.random()
                    if what < 0.05:
                        continue  # its worker forgets it
                    verb = "fail" if what < 0.15 else "release" if what < 0.2 else "finish"
                    done = post(f"/v1/jobs/{job['id']}/{verb}", token=job["token"])
                    if done is None:
                        return
                    assert done.status_code in (200, 409), done.text
                    if verb == "finish" and done.status_code == 200:
                        finished.append(job["id"])
        except Exception as error:  # told by the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        time.sleep(0.7)
        retryd.kill()
        retryd.start()
    try:
        wait_until(lambda: state(retryd, "t")["waiting"] + state(retryd, "t")["leased"] == 0, 60)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert errors == []
    dead = {job["id"] for job in retryd.dead()}
    # A success that was recorded is never handed out again.
    assert len(finished) == len(set(finished)) and not dead & set(finished)
    states = {job: retryd.job(job)["state"] for job in ids}
    assert set(states.values()) <= {"done", "dead"}
    assert {job for job, what in states.items() if what == "dead"} == dead
    # What was recorded although its answer was lost in a kill counts too.
    assert {job for job, what in states.items() if what == "done"} >= set(finished)
