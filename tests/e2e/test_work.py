"""Worker fleets on the real binary: the contract of docs/work.md, and a fleet that is killed again and again."""
import concurrent.futures
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import time
from datetime import datetime

import pytest

from fleet import work
from server import BINARY, ROOT, wait_until

CTL = os.path.join(os.path.dirname(BINARY), "retryctl")


def session(retryd, **fields):
    answer = retryd.post("/v1/sessions", json=fields)
    assert answer.status_code == 201, answer.text
    return answer.json()["session"]


def process(retryd, name, **fields):
    answer = retryd.put(f"/v1/processes/{name}", json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def put(retryd, name, **fields):
    answer = retryd.put(f"/v1/entities/{name}", json={"kind": "machine", "value": {}, **fields})
    assert answer.status_code in (200, 201), answer.text


def claim(retryd, who, what, status=200, headers=None, **fields):
    answer = retryd.post("/v1/work/claim", json={"session": who, "process": what, **fields}, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


def end(retryd, got, verb, status=200, **fields):
    answer = retryd.post(f"/v1/work/{got['work']}/{verb}",
                         json={"session": got["session"], "token": got["token"], **fields})
    assert answer.status_code == status, answer.text
    return answer.json()


def history(retryd, entity, **query):
    """Newest first."""
    answer = retryd.get(f"/v1/entities/{entity}/history", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(retryd, entity):
    return [line["event"] for line in reversed(history(retryd, entity, limit=1000))]


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# ---- the contract ----------------------------------------------------------------------------------------------------


def test_sessions_live_by_heartbeats_and_die_for_good(retryd):
    answer = retryd.post("/v1/sessions", json={"component": "shepherd", "runtime": "host a"})
    assert answer.status_code == 201 and answer.json()["interval_s"] == 5
    assert retryd.get(answer.headers["Location"]).json()["session"] == answer.json()["session"]
    assert 3 < moment(answer.json()["deadline"]) - time.time() < 6
    short = session(retryd, interval_s=1)
    assert retryd.post(f"/v1/sessions/{short}/heartbeat").status_code == 200
    assert short in [s["session"] for s in retryd.get("/v1/sessions").json()]
    wait_until(lambda: retryd.get(f"/v1/sessions/{short}").status_code == 404)
    for request in ("heartbeat",):
        answer = retryd.post(f"/v1/sessions/{short}/{request}")
        assert answer.status_code == 410 and answer.json()["code"] == "session_expired"
        assert answer.headers["Content-Type"] == "application/problem+json"
    process(retryd, "a")
    claim(retryd, short, "a", candidates=["m"], status=410)
    assert retryd.post("/v1/sessions", json={"interval_s": 0}).status_code == 400
    assert retryd.post("/v1/sessions", json={"interval_s": 3601}).status_code == 400


def test_closing_a_session_cancels_its_work(retryd):
    process(retryd, "a")
    who = session(retryd)
    claim(retryd, who, "a", candidates=["m"])
    assert retryd.delete(f"/v1/sessions/{who}").status_code == 204
    assert history(retryd, "m")[0]["event"] == "Canceled"
    assert history(retryd, "m")[0]["cause"] == "session closed"
    assert retryd.delete(f"/v1/sessions/{who}").status_code == 204


def test_a_failure_rests_as_long_as_its_process_says_and_longer_each_time(retryd):
    process(retryd, "install", backoff={"initial_ms": 1000, "maximum_ms": 3600000, "exponent": 3})
    who = session(retryd, interval_s=60)
    got = claim(retryd, who, "install", candidates=["m"])
    assert got["previous_interval_s"] is None and got["entity"] == "m" and got["process"] == "install"
    failed = end(retryd, got, "fail", cause="no route")
    assert failed["interval_s"] == 1 and abs(moment(failed["until"]) - time.time() - 1) < 0.5
    assert end(retryd, got, "fail", cause="no route") == failed  # asked again: the same
    claim(retryd, who, "install", candidates=["m"], status=204)
    claim(retryd, who, "install", candidates=["m"], strict=True, status=409)
    row, = retryd.get("/v1/backoffs", params={"active": 1}).json()
    assert (row["entity"], row["process"], row["cause"]) == ("m", "install", "no route")
    assert row["last_interval_s"] == 1 and row["active"] is True and row["until"] == failed["until"]
    got = claim(retryd, who, "install", candidates=["m"], wait_ms=5000)
    assert time.time() >= moment(failed["until"]) and got["previous_interval_s"] == 1
    assert end(retryd, got, "fail", cause="again")["interval_s"] == 3
    assert retryd.delete("/v1/backoffs/m/install").status_code == 204
    got = claim(retryd, who, "install", candidates=["m"])
    assert end(retryd, got, "fail", cause="x", backoff={"initial_ms": 7000, "maximum_ms": 7000,
                                                        "exponent": 1})["interval_s"] == 7
    got = claim(retryd, who, "install", candidates=["m"], ignore_backoff=True)
    assert end(retryd, got, "fail", cause="x", backoff=None)["interval_s"] == 7
    got = claim(retryd, who, "install", candidates=["m"], ignore_backoff=True)
    end(retryd, got, "finish")
    assert retryd.get("/v1/backoffs", params={"entity": "m"}).json() == []
    assert events(retryd, "m") == ["Started", "Failed"] * 4 + ["Started", "Finished"]
    page = history(retryd, "m", limit=2)
    assert history(retryd, "m", limit=2, before=page[-1]["seq"])[0]["seq"] < page[-1]["seq"]


def test_finish_and_patch_are_one(retryd):
    process(retryd, "a")
    put(retryd, "m", value={"keep": 1, "drop": 2, "deep": {"x": 1, "y": 2}})
    who = session(retryd)
    got = claim(retryd, who, "a", kind="machine")
    assert got["value"] == {"keep": 1, "drop": 2, "deep": {"x": 1, "y": 2}}
    patch = {"drop": None, "deep": {"y": None, "z": [1]}, "new": "ü"}
    end(retryd, got, "finish", entity_patch=patch)
    end(retryd, got, "finish", entity_patch=patch)
    seen = retryd.get("/v1/entities/m").json()
    assert seen["value"] == {"keep": 1, "deep": {"x": 1, "z": [1]}, "new": "ü"}
    assert seen["processes"] == [] and seen["work"] == []
    claim(retryd, who, "a", kind="machine", status=204)
    end(retryd, got, "fail", cause="late", status=409)
    put(retryd, "m", processes=["a"])
    got = claim(retryd, who, "a", kind="machine")
    end(retryd, got, "finish", processes=["a"])  # it puts itself back
    assert claim(retryd, who, "a", kind="machine")["entity"] == "m"


def test_a_nul_in_a_value_is_a_character_like_others(retryd):
    process(retryd, "a")
    put(retryd, "m", value={"text": "a\0b"})
    got = claim(retryd, session(retryd), "a", kind="machine")
    assert got["value"] == {"text": "a\0b"}
    end(retryd, got, "finish", entity_patch={"more": "\0"})
    assert retryd.get("/v1/entities/m").json()["value"] == {"text": "a\0b", "more": "\0"}
    # Where a rule says which characters there are, it is none of them.
    assert retryd.put("/v1/entities/m", json={"kind": "k\0"}).status_code == 400
    assert retryd.post("/v1/work/claim", json={"session": got["session"] + "\0", "process": "a", "kind": "k"}).status_code == 410


def test_backoffs_are_listed_by_whether_they_are_over(retryd):
    process(retryd, "a", backoff={"initial_ms": 3600000})
    who = session(retryd)
    for name, backoff in (("rests", {}), ("over", {"backoff": {"initial_ms": 1000}})):
        end(retryd, claim(retryd, who, "a", candidates=[name]), "fail", cause="x", **backoff)

    def listed(**query):
        return [row["entity"] for row in retryd.get("/v1/backoffs", params=query).json()]

    wait_until(lambda: listed(active=1) == ["rests"])
    assert listed(active="true") == ["rests"] and listed(active=0) == ["over"] and listed() == ["over", "rests"]
    assert listed(active=0, entity="over") == ["over"] and listed(active=1, entity="over") == []


def test_only_the_holder_ends_its_work(retryd):
    process(retryd, "a")
    who, other = session(retryd), session(retryd)
    got = claim(retryd, who, "a", candidates=["m"])
    for wrong in ({"token": "0" * 16}, {"token": "x"}, {"session": other}):
        for verb in ("finish", "cancel"):
            end(retryd, {**got, **wrong}, verb, status=409)
    end(retryd, {**got, "work": "0" * 24}, "finish", status=409)
    end(retryd, got, "cancel")
    end(retryd, got, "cancel")
    end(retryd, got, "finish", status=409)
    assert events(retryd, "m") == ["Started", "Canceled"]


def test_excluded_processes_never_meet_and_entities_at_work_stay(retryd):
    process(retryd, "start", excludes=["recover"])
    process(retryd, "recover")
    put(retryd, "m")
    who = session(retryd)
    got = claim(retryd, who, "start", kind="machine")
    claim(retryd, who, "recover", kind="machine", status=204)
    claim(retryd, who, "recover", candidates=["m"], strict=True, status=409)
    assert retryd.delete("/v1/entities/m").status_code == 409
    active, = retryd.get("/v1/work").json()
    assert active["entity"] == "m" and active["session"] == who and moment(active["deadline"]) > time.time()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(claim, retryd, who, "recover", kind="machine", wait_ms=10000)
        time.sleep(0.1)
        begin = time.monotonic()
        end(retryd, got, "finish")
        got = waiting.result()
        assert time.monotonic() - begin < 2
    end(retryd, got, "fail", cause="x")
    assert retryd.delete("/v1/entities/m").status_code == 204
    assert retryd.get("/v1/entities/m").status_code == 404
    assert retryd.get("/v1/backoffs").json() == []
    assert events(retryd, "m") == ["Started", "Finished", "Started", "Failed"]
    assert history(retryd, "nobody") == []


def test_a_repeated_claim_with_its_key_gets_the_same_work(retryd):
    process(retryd, "a")
    put(retryd, "m1")
    put(retryd, "m2")
    who = session(retryd)
    key = {"Idempotency-Key": "k"}
    assert claim(retryd, who, "a", kind="machine", headers=key) == claim(retryd, who, "a", kind="machine", headers=key)
    assert claim(retryd, who, "a", kind="machine")["entity"] == "m2"


def test_what_breaks_a_rule_is_refused_with_words(retryd):
    who = session(retryd)
    process(retryd, "a")
    for method, path, body, status in (
            ("PUT", "/v1/processes/a%20b", {}, 400), ("PUT", "/v1/processes/a", {"excludes": "b"}, 400),
            ("PUT", "/v1/processes/a", {"backoff": {"exponent": "2"}}, 400),
            ("PUT", "/v1/processes/a", {"backoff": {"jitter": "some"}}, 400),
            ("PUT", "/v1/entities/m", {}, 400), ("PUT", "/v1/entities/m", {"kind": "k", "processes": [1]}, 400),
            ("PUT", "/v1/entities/m", {"kind": "k", "value": "x" * 70000}, 413),
            ("PUT", "/v1/entities/" + "x" * 129, {"kind": "k"}, 400),
            ("POST", "/v1/work/claim", {"session": who, "process": "a"}, 400),
            ("POST", "/v1/work/claim", {"session": who, "process": "a", "kind": "k", "candidates": ["m"]}, 400),
            ("POST", "/v1/work/claim", {"session": who, "process": "a", "kind": "k", "wait_ms": 60001}, 400),
            ("POST", "/v1/work/claim", {"session": who, "process": "unknown", "kind": "k"}, 404),
            ("POST", "/v1/work/claim", {"session": "x", "process": "a", "kind": "k"}, 410),
            ("POST", "/v1/work/claim", {"process": "a", "kind": "k"}, 400),
            ("GET", "/v1/backoffs?marker=x", None, 400), ("GET", "/v1/backoffs?active=perhaps", None, 400),
            ("GET", "/v1/work?limit=0", None, 400),
            ("PATCH", "/v1/work/claim", None, 405), ("GET", "/v1/work/x/y/z", None, 404)):
        answer = retryd.request(method, path, json=body)
        assert answer.status_code == status, (path, body, answer.text)
        assert answer.json()["status"] == status and answer.json()["detail"]


def test_a_member_that_is_not_known_is_refused_by_its_name(retryd):
    process(retryd, "a")
    put(retryd, "m")
    who = session(retryd)
    got = claim(retryd, who, "a", kind="machine")
    holder = {"session": got["session"], "token": got["token"]}
    work = f"/v1/work/{got['work']}"
    for method, path, body in (("POST", "/v1/sessions", {}), ("PUT", "/v1/processes/a", {}),
                               ("PUT", "/v1/entities/m", {"kind": "machine"}),
                               ("POST", "/v1/work/claim", {"session": who, "process": "a", "kind": "machine"}),
                               ("POST", f"{work}/finish", holder), ("POST", f"{work}/fail", {**holder, "cause": "x"}),
                               ("POST", f"{work}/cancel", holder)):
        answer = retryd.request(method, path, json={**body, "payload": None})
        assert answer.status_code == 400 and answer.json()["detail"] == '"payload" is not known here.', (path, answer.text)
    # One of another request is not known either.
    assert "entity_patch" in retryd.post(f"{work}/fail", json={**holder, "cause": "x", "entity_patch": {}}).json()["detail"]
    assert len(retryd.get("/v1/sessions").json()) == 1 and events(retryd, "m") == ["Started"]
    end(retryd, got, "finish")


def test_tenants_do_not_meet(retryd):
    process(retryd, "a")
    put(retryd, "m")
    other = {"X-Project-ID": "q"}
    assert retryd.get("/v1/entities/m", headers=other).status_code == 404
    assert retryd.get("/v1/processes", headers=other).json() == []
    claim(retryd, session(retryd), "a", kind="machine", headers=other, status=410)


def test_backoffs_and_work_outlive_kill_and_restart(retryd):
    process(retryd, "a", backoff={"initial_ms": 60000, "maximum_ms": 60000, "exponent": 1})
    put(retryd, "m1")
    put(retryd, "m2")
    who = session(retryd, interval_s=60)
    failed = end(retryd, claim(retryd, who, "a", kind="machine"), "fail", cause="x")
    held = claim(retryd, who, "a", kind="machine")
    retryd.kill()
    retryd.start()
    row, = retryd.get("/v1/backoffs").json()
    assert row["entity"] == "m1" and row["until"] == failed["until"]
    claim(retryd, who, "a", kind="machine", status=204)
    end(retryd, held, "finish")


def test_a_server_that_stops_does_not_keep_those_who_wait(retryd):
    process(retryd, "a")
    who = session(retryd, interval_s=60)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(claim, retryd, who, "a", kind="machine", wait_ms=30000, status=204)
        wait_until(lambda: retryd.metric("retryd_http_waiting") >= 1)
        begin = time.monotonic()
        assert retryd.stop() == 0
        assert time.monotonic() - begin < 5
        waiting.result()


# ---- a fleet ---------------------------------------------------------------------------------------------------------


def check_history(lines):
    """Oldest first: every Started has one end before the next Started. Returns how often it finished."""
    open_work = None
    for line in lines:
        if line["event"] == "Started":
            assert open_work is None, lines
            open_work = line["work"]
        else:
            assert line["work"] == open_work, lines
            open_work = None
    assert open_work is None, lines
    return sum(line["event"] == "Finished" for line in lines)


@pytest.mark.slow
def test_a_fleet_under_fire_does_everything_once(retryd):
    workers, entities = 50, 1000
    process(retryd, "install", backoff={"initial_ms": 1000, "maximum_ms": 2000, "exponent": 1.5})
    for i in range(entities):
        put(retryd, f"m{i}", value={"number": i})
    fork, chance = multiprocessing.get_context("fork"), random.Random(7)
    port = fork.Value("i", retryd.port)
    started = 0

    def recruit():
        nonlocal started
        started += 1
        worker = fork.Process(target=work, args=(port, started, "install", "machine", 0.1), daemon=True)
        worker.start()
        return worker

    fleet = [recruit() for _ in range(workers)]
    for turn in range(12):
        time.sleep(0.4)
        for i in chance.sample(range(workers), 4):
            fleet[i].kill()
            fleet[i].join()
            fleet[i] = recruit()
        if turn % 4 == 3:
            retryd.kill()
            retryd.start()
            port.value = retryd.port
    for worker in fleet:
        worker.join(120)
        assert worker.exitcode == 0
    wait_until(lambda: retryd.get("/v1/work").json() == [], what="the work of the dead to be over")

    counts = {}
    for i in range(entities):
        lines = list(reversed(history(retryd, f"m{i}", limit=1000)))
        assert check_history(lines) == 1, lines
        done = [line["work"] for line in lines if line["event"] == "Finished"]
        assert retryd.get(f"/v1/entities/m{i}").json()["value"] == {"number": i, "done": done[0]}
        for line in lines:
            counts[line["event"]] = counts.get(line["event"], 0) + 1
    assert counts["Finished"] == entities and counts["Failed"] > 0 and counts["Expired"] > 0
    assert counts["Started"] == sum(counts.values()) - counts["Started"]
    assert retryd.get("/v1/backoffs").json() == []


# ---- examples and tools ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("worker", ["worker.sh", "worker.py"])
def test_example_workers_finish_what_works_and_fail_what_does_not(retryd, worker):
    default = {"X-Project-ID": "default"}
    retryd.session.headers.update(default)
    process(retryd, "install", backoff={"initial_ms": 60000, "maximum_ms": 60000, "exponent": 1})
    put(retryd, "good", value={"rack": 7})
    put(retryd, "bad", value={"broken": True})
    path = os.path.join(ROOT, "examples", "work", worker)
    command = [sys.executable, path, "install", "machine", "--once"]
    if worker.endswith(".sh"):
        if shutil.which("jq") is None:
            pytest.skip("jq is not installed")
        command = [path, "install", "machine", "sh", "-c", 'case "$1" in *broken*) echo "no answer" >&2; exit 1; esac']
    running = subprocess.Popen(command, env={**os.environ, "RETRYD_URL": retryd.url})
    try:
        wait_until(lambda: events(retryd, "good")[-1:] == ["Finished"] and events(retryd, "bad")[-1:] == ["Failed"])
    finally:
        running.kill() if worker.endswith(".py") else running.terminate()
        running.wait()


def test_retryctl_shows_work_and_clears_backoffs(retryd):
    process(retryd, "install", backoff={"initial_ms": 60000, "maximum_ms": 60000, "exponent": 1})
    who = session(retryd, component="shepherd", interval_s=60)
    got = claim(retryd, who, "install", candidates=["m1"])

    def ctl(*words):
        done = subprocess.run([CTL, "--url", retryd.url, "--project", "p", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "m1" in ctl("work") and "shepherd" in ctl("sessions")
    end(retryd, got, "fail", cause="no route to host")
    assert "no route to host" in ctl("backoffs") and "no route to host" in ctl("backoffs", "list", "--process", "install")
    assert ctl("work") == "Nothing is worked on.\n"
    ctl("backoffs", "clear", "m1", "install")
    assert ctl("backoffs") == "Nothing is in backoff.\n"
    lines = ctl("history", "m1").splitlines()
    assert "Failed" in lines[1] and "Started" in lines[2]
    assert json.loads(ctl("entity", "m1", "--json"))["entity"] == "m1"
