"""Dead letters: finding, counting, sampling, exporting, redriving and deleting them; what follows on another type; audit."""
import base64
import json
import time

import pytest

from events import backoff, batch, claim, end, put_type, schedule, state, wait_state
from policies import quick
from receiver import Answer
from server import wait_until


@pytest.fixture
def dead(retryd, receiver):
    """Six dead events of two types, with reasons and answers of their own."""
    receiver.on("/a", 503)
    receiver.on("/b", Answer(404, body=b"no such card"))
    put_type(retryd, "a", target={"url": receiver.url("/a")}, policy=quick(1), circuit=None)
    put_type(retryd, "b", target={"url": receiver.url("/b")}, policy=quick(1), circuit=None)
    ids = batch(retryd, "a", {"body": {"card": 1}, "reason": "api1-429"}, {"body": {"card": 2}, "reason": "api1-5xx"},
                {"body": {"card": 3}, "reason": "api1-5xx"}, {"body": {"card": 4}})
    ids += batch(retryd, "b", {"body": {"card": 5}, "reason": "api1-429"}, {"body": "card 6"})
    retryd.wait_dead(6)
    return ids


def ids_of(retryd, **query):
    return [job["id"] for job in retryd.dead(**query)]


def test_they_are_found_by_everything_that_is_known(retryd, dead):
    assert ids_of(retryd, type="a") == dead[:4] and ids_of(retryd, type="b") == dead[4:]
    assert ids_of(retryd, queue="a") == dead[:4] and ids_of(retryd, queue="p/b") == dead[4:]
    assert ids_of(retryd, reason="api1-429") == [dead[0], dead[4]]
    assert ids_of(retryd, reason="api1-5xx", type="a") == dead[1:3]
    assert ids_of(retryd, reason="exhausted") == dead[:4] and ids_of(retryd, reason="rejected") == dead[4:]
    assert ids_of(retryd, failure="503") == dead[:4] and ids_of(retryd, failure="4xx") == dead[4:]
    assert ids_of(retryd, failure="status") == dead  # all had an answer
    assert ids_of(retryd, failure="timeout") == []
    assert ids_of(retryd, text='"card": 2') == [dead[1]]
    assert ids_of(retryd, text="no such card") == dead[4:]  # in the answer
    assert ids_of(retryd, before="1h") == [] and ids_of(retryd, after="1h") == dead
    assert ids_of(retryd, after="2020-01-01T00:00:00Z", before="2100-01-01") == dead
    assert ids_of(retryd, limit=1) == dead
    shown = retryd.dead(type="b")[0]
    assert shown["retry_reason"] == "api1-429" and shown["failure"] == {"reason": shown["failure"]["reason"], "status": 404,
                                                                        "text": "no such card"}
    for query in ({"type": "none"}, {"queue": "none"}):
        assert retryd.get("/v1/dead", params=query).status_code == 404
    for query in ({"failure": "boredom"}, {"before": "soon"}, {"after": "-1h"}, {"text": "x" * 257}, {"type": "a", "queue": "b"}):
        assert retryd.get("/v1/dead", params=query).status_code == 400, query


def test_they_are_counted(retryd, dead):
    def count(**query):
        answer = retryd.get("/v1/dead/count", params=query)
        assert answer.status_code == 200, answer.text
        assert answer.json()["counted_all"] is True
        return answer.json()

    assert count()["count"] == 6 and count(type="a", reason="api1-5xx")["count"] == 2
    assert retryd.get("/v1/dead", params={"count": 1, "type": "b"}).json()["count"] == 2
    assert count(by="retry_reason")["by"] == {"api1-429": 2, "api1-5xx": 2, "": 2}
    assert count(by="reason")["by"] == {"exhausted": 4, "rejected": 2}
    assert count(by="failure")["by"] == {"503": 4, "404": 2}
    assert count(by="queue")["by"] == {"p/a": 4, "p/b": 2}
    assert retryd.get("/v1/dead/count", params={"by": "colour"}).status_code == 400


def test_a_sample_is_some_of_them(retryd, dead):
    seen = set()
    for _ in range(100):
        answer = retryd.get("/v1/dead/sample", params={"type": "a", "limit": 2}).json()
        assert answer["count"] == 4 and len(answer["dead"]) == 2
        seen |= {job["id"] for job in answer["dead"]}
    assert seen == set(dead[:4])
    assert {job["id"] for job in retryd.get("/v1/dead/sample").json()["dead"]} == set(dead)


def test_export_is_ndjson_and_resumable(retryd, dead):
    def export(**query):
        answer = retryd.get("/v1/dead/export", params=query)
        assert answer.status_code == 200 and answer.headers["Content-Type"] == "application/x-ndjson"
        return [json.loads(line) for line in answer.text.splitlines()], answer.headers.get("Retryd-Next")

    lines, after = export()
    assert [line["id"] for line in lines] == dead and after is None
    assert lines[0]["body"] == {"card": 1} and lines[5]["body"] == "card 6" and lines[0]["retry_reason"] == "api1-429"
    got, marker = [], None
    while True:
        lines, marker = export(limit=4, marker=marker)
        got += [line["id"] for line in lines]
        if marker is None:
            break
    assert got == dead
    assert [line["id"] for line in export(marker=export()[0][3]["marker"])[0]] == dead[4:]
    assert [line["id"] for line in export(reason="api1-5xx")[0]] == dead[1:3]


def test_redrive_of_one_is_afresh_with_its_past(retryd, receiver, dead):
    receiver.on("/a", 200)
    past = retryd.attempts(dead[0])
    assert retryd.post(f"/v1/dead/{dead[0]}/redrive").status_code == 200
    job = wait_state(retryd, dead[0], "done")
    assert job["redriven"] == 1
    events = retryd.attempts(dead[0])
    assert events[:len(past)] == past
    assert [e["event"] for e in events[len(past):]] == ["redriven", "delivered"] and events[-1]["attempt"] == 1
    assert retryd.post(f"/v1/dead/{dead[0]}/redrive").status_code in (404, 409)


def test_redrive_of_many_by_filter_with_dry_run(retryd, receiver, dead):
    receiver.on("/a", 200)
    body = {"type": "a", "filter": {"reason": "api1-5xx"}}
    answer = retryd.post("/v1/dead/redrive", json={**body, "dry_run": True})
    assert answer.status_code == 200 and answer.json()["count"] == 2
    assert len(retryd.dead()) == 6
    assert retryd.post("/v1/dead/redrive", json=body).status_code == 202
    wait_until(lambda: set(ids_of(retryd)) == set(dead) - set(dead[1:3]))
    for job in dead[1:3]:
        wait_state(retryd, job, "done")
    answer = retryd.post("/v1/dead/redrive", json={"filter": {"text": "card", "failure": "503"}})
    assert answer.status_code == 202
    wait_until(lambda: ids_of(retryd) == dead[4:])


def test_redrive_at_a_rate(retryd, receiver):
    receiver.on("/a", 500)
    put_type(retryd, "a", target={"url": receiver.url("/a")}, policy=quick(1), circuit=None)
    batch(retryd, "a", *[{"body": n} for n in range(30)])
    retryd.wait_dead(30)
    receiver.on("/a", 200)
    began, seen = time.monotonic(), len(receiver.seen())
    assert retryd.post("/v1/dead/redrive", json={"type": "a", "rate": 15}).status_code == 202
    receiver.wait(seen + 30)
    assert 1.2 < time.monotonic() - began < 10


def test_deleting_one_and_many(retryd, dead):
    assert retryd.delete(f"/v1/dead/{dead[0]}").status_code == 204
    assert retryd.post("/v1/dead/delete", json={"filter": {"type": "a", "failure": "5xx", "after": "1h"}}).status_code == 202
    wait_until(lambda: ids_of(retryd) == dead[4:])
    assert retryd.get(f"/v1/jobs/{dead[1]}").json()["state"] == "done"
    assert retryd.attempts(dead[1])[-1]["reason"] == "deleted"


@pytest.mark.parametrize("body, named", [({"filter": {"reasons": "x"}}, "reasons"), ({"filter": {"failure": "x"}}, "failure"),
                                         ({"filter": {"before": "x"}}, "before"), ({"filter": {"text": 5}}, "text"),
                                         ({"types": "a"}, "types"), ({"rate": -1}, "rate")], ids=str)
def test_a_filter_that_is_not_understood_touches_nothing(retryd, dead, body, named):
    for verb in ("redrive", "delete"):
        answer = retryd.post(f"/v1/dead/{verb}", json=body)
        assert answer.status_code == 400 and named in answer.json()["detail"]
    assert ids_of(retryd) == dead


def test_dead_events_of_workers_are_redriven_to_workers(retryd):
    put_type(retryd, "t", policy=backoff(1, attempts=1))
    job = schedule(retryd, "t", b"x")
    end(retryd, claim(retryd, "t")[0], "fail", error="x")
    retryd.wait_dead(1)
    assert retryd.post(f"/v1/dead/{job}/redrive").status_code == 200
    got, = claim(retryd, "t", wait_ms=2000)
    assert got["id"] == job and got["attempt"] == 1
    end(retryd, got, "finish")


def test_what_dies_may_go_on_as_another_type(retryd, receiver):
    receiver.on("/hook", 500)
    put_type(retryd, "graveyard")
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=quick(1), circuit=None,
             dead_letter={"event_type": "graveyard"})
    job = schedule(retryd, "t", b"x", Retry_Reason="r", Content_Type="text/plain")
    got, = claim(retryd, "graveyard", wait_ms=5000)
    assert got["body"] == "x" and got["reason"] == "r" and got["type"] == "graveyard"
    assert retryd.job(got["id"])["continues"] == job
    assert retryd.dead() == []
    assert retryd.put("/v1/event-types/graveyard", json={"target": {"pull": True}, "dead_letter": {"event_type": "t"}}).status_code == 400


def test_dead_events_are_kept_as_long_as_the_type_says(retryd, receiver):
    receiver.on("/hook", 404)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, dead_letter={"keep_s": 1})
    job = schedule(retryd, "t", b"x")
    wait_state(retryd, job, "dead")
    wait_state(retryd, job, "done")
    assert retryd.dead() == []


def test_the_audit_is_one_resumable_stream(retryd, dead):
    lines, after = [], 0
    while True:
        answer = retryd.get("/v1/attempts", params={"after": after, "limit": 3}, headers={"Accept": "application/x-ndjson"})
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        page = [json.loads(line) for line in answer.text.splitlines()]
        if not page:
            break
        lines += page
        after = page[-1]["seq"]
    assert [line["seq"] for line in lines] == sorted({line["seq"] for line in lines})
    for job in dead:
        mine = [line for line in lines if line["job"] == job]
        assert [line["event"] for line in mine][-1] == "dead"
        assert mine == retryd.attempts(job)
