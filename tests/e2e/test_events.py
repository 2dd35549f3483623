"""Failed calls, handed over and tried again: types, scheduling, delivery, order, brakes that do not depend on failures."""
import base64
import json
import time

import pytest
import requests

from events import backoff, batch, moment, put_type, schedule, state, wait_state
from policies import quick
from receiver import Answer
from server import wait_until
from test_operations import check_prometheus


# ---- types -----------------------------------------------------------------------------------------------------------


def test_a_type_is_made_shown_changed_and_deleted(retryd, receiver):
    made = put_type(retryd, "card", status=(201,), target={"url": receiver.url("/hook"), "headers": {"X-Key": "1"}})
    assert made["version"] == 1 and made["type"] == "card"
    assert made["circuit"] == {"window_s": 10, "minimum_attempts": 20, "failure_rate": 0.5, "slow_call_s": 0.0,
                               "slow_call_rate": 1.0, "sleep_s": 5, "maximum_sleep_s": 300, "probes": 3,
                               "release_per_s": 100, "max_open_s": 86400}
    assert made["pace"] is None and made["order_key"] is False and made["buckets"] == 1
    answer = retryd.get("/v1/event-types/card")
    assert answer.headers["ETag"] == '"1"' and answer.json()["state"]["circuit"]["state"] == "closed"
    # What GET shows may be put again.
    assert retryd.put("/v1/event-types/card", json=answer.json()).json()["version"] == 2
    put_type(retryd, "other", status=(201,))
    names = [t["type"] for t in retryd.get("/v1/event-types").json()["event_types"]]
    assert names == ["card", "other"]
    page = retryd.get("/v1/event-types", params={"limit": 1}).json()
    assert page["next"] == "card"
    assert [t["type"] for t in retryd.get("/v1/event-types", params={"marker": "card"}).json()["event_types"]] == ["other"]
    assert retryd.delete("/v1/event-types/other").status_code == 204
    assert retryd.get("/v1/event-types/other").status_code == 404
    assert retryd.post("/v1/events/other", data=b"x").status_code == 404


def test_a_stale_version_changes_nothing(retryd):
    put_type(retryd, "t", limits={"rate_per_s": 1})
    body = {"target": {"pull": True}, "limits": {"rate_per_s": 2}}
    assert retryd.put("/v1/event-types/t", json=body, headers={"If-Match": '"1"'}).status_code == 200
    answer = retryd.put("/v1/event-types/t", json=body, headers={"If-Match": '"1"'})
    assert answer.status_code == 412 and answer.json()["code"] == "version_conflict"
    assert retryd.put("/v1/event-types/t", json={**body, "version": 1}).status_code == 409
    assert retryd.put("/v1/event-types/t", json={**body, "version": 2}).json()["version"] == 3
    assert retryd.put("/v1/event-types/t", json=body, headers={"If-Match": "x"}).status_code == 400
    assert retryd.put("/v1/event-types/new", json=body, headers={"If-Match": '"1"'}).status_code in (404, 412)


def test_a_type_is_written_only_if_it_is_new_or_known(retryd):
    def put(status, **headers):
        answer = retryd.put("/v1/event-types/t", json={"target": {"pull": True}},
                            headers={k.replace("_", "-"): v for k, v in headers.items()})
        assert answer.status_code == status, answer.text
        return answer.json()

    assert put(412, If_Match="*")["title"] == "Precondition Failed"
    assert put(201, If_None_Match="*")["version"] == 1
    assert put(412, If_None_Match="*")["code"] == "version_conflict"
    assert put(200, If_Match="*")["version"] == 2
    assert "If-None-Match" in put(400, If_None_Match='"2"')["detail"]


@pytest.mark.parametrize("members, named", [
    ({}, "target"), ({"target": {}}, "target"), ({"target": {"pull": False}}, "target"),
    ({"target": {"url": "ftp://x/"}}, "url"), ({"target": {"url": "http://a b/"}}, "url"),
    ({"target": {"url": "http://h/", "header": {}}}, "header"), ({"target": {"url": "http://h/", "headers": {"Host": "x"}}}, "Host"),
    ({"target": {"url": "http://h/", "secret": "x"}}, "secret"), ({"target": {"plugin": "a b"}}, "plugin"),
    ({"target": {"pull": True}, "polcy": {}}, "polcy"), ({"target": {"pull": True}, "policy": 5}, "policy"),
    ({"target": {"pull": True}, "policy": {"minimum_dela": 1}}, "minimum_dela"),
    ({"target": {"pull": True}, "policy": {"minimum_delay": -1}}, "minimum_delay"),
    ({"target": {"pull": True}, "policy": {"max_attempts": 3}}, "max_attempts"),
    ({"target": {"pull": True}, "policy": {"backoff": {"initial": 3}}}, "initial_ms"),
    ({"target": {"pull": True}, "policy": {"backoff": None}}, "backoff"),
    ({"target": {"pull": True}, "policy": {"backoff": {}, "maximum_delay": 3}}, "maximum_delay"),
    ({"target": {"pull": True}, "policy": {"backoff": {}, "max_attempts": -1}}, "max_attempts"),
    ({"target": {"pull": True}, "circuit": {"window": 3}}, "window"), ({"target": {"pull": True}, "circuit": 3}, "circuit"),
    ({"target": {"pull": True}, "circuit": {"failure_rate": 0}}, "failure_rate"),
    ({"target": {"pull": True}, "circuit": {"failure_rate": 1.1}}, "failure_rate"),
    ({"target": {"pull": True}, "circuit": {"window_s": 0}}, "window_s"),
    ({"target": {"pull": True}, "circuit": {"probes": 0}}, "probes"),
    ({"target": {"pull": True}, "circuit": {"sleep_s": "5"}}, "sleep_s"),
    ({"target": {"pull": True}, "pace": {"initial_ms": 0}}, "initial_ms"),
    ({"target": {"pull": True}, "pace": {"initial_ms": 10, "maximum_ms": 9}}, "maximum_ms"),
    ({"target": {"pull": True}, "order_key": "yes"}, "order_key"), ({"target": {"pull": True}, "buckets": 0}, "buckets"),
    ({"target": {"pull": True}, "buckets": 1025}, "buckets"), ({"target": {"pull": True}, "limits": {"rate": 1}}, "rate"),
    ({"target": {"pull": True}, "limits": {"rate_per_s": -1}}, "rate_per_s"),
    ({"target": {"pull": True}, "dead_letter": {"event_type": "a b"}}, "event_type"),
    ({"target": {"pull": True}, "dead_letter": {"keep": 1}}, "keep"), ({"target": {"pull": True}, "type": "other"}, "type"),
], ids=str)
def test_mistakes_in_a_type_are_refused_by_name(retryd, members, named):
    answer = retryd.put("/v1/event-types/t", json=members)
    assert answer.status_code == 400 and named in answer.json()["detail"], answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert retryd.get("/v1/event-types/t").status_code == 404


def test_names_of_types_and_projects(retryd):
    put_type(retryd, "Card.transaction_failures:v1-2")
    assert retryd.put("/v1/event-types/a%20b", json={"target": {"pull": True}}).status_code == 400
    assert retryd.put("/v1/event-types/" + "x" * 128, json={"target": {"pull": True}}).status_code == 201
    assert retryd.put("/v1/event-types/" + "x" * 129, json={"target": {"pull": True}}).status_code == 400
    assert retryd.get("/v1/event-types/Card.transaction_failures:v1-2", headers={"X-Project-ID": "q"}).status_code == 404


def test_an_address_that_is_not_allowed_is_refused(start_retryd):
    retryd = start_retryd({"delivery.allow_networks": None})
    answer = retryd.put("/v1/event-types/t", json={"target": {"url": "http://127.0.0.1:1/"}})
    assert answer.status_code == 400 and "delivery.allow_networks" in answer.json()["detail"]


def test_a_type_with_waiting_events_is_deleted_only_by_force(retryd):
    put_type(retryd, "t")
    job = schedule(retryd, "t")
    assert retryd.delete("/v1/event-types/t").status_code == 409
    assert retryd.delete("/v1/event-types/t", params={"force": "1"}).status_code == 204
    wait_until(lambda: retryd.get(f"/v1/jobs/{job}").json()["state"] == "done")


# ---- scheduling ------------------------------------------------------------------------------------------------------


def test_any_body_arrives_as_it_was_with_what_is_known_of_it(retryd, receiver):
    put_type(retryd, "card", target={"url": receiver.url("/hook"), "headers": {"X-Key": "v"}})
    body = bytes(range(256))
    job = schedule(retryd, "card", body, Content_Type="application/x-odd", Retry_Reason="api1-429", Order_Key="customer 7")
    request, = receiver.wait(1)
    assert request.body == body and request.headers["content-type"] == "application/x-odd"
    assert request.headers["x-key"] == "v" and request.headers["webhook-id"] == job
    assert request.headers["webhook-attempt"] == "1"
    done = wait_state(retryd, job, "done")
    assert done["kind"] == "event" and done["type"] == "card" and done["reason"] == "delivered"


def test_a_waiting_event_shows_reason_key_type_and_body(retryd):
    put_type(retryd, "card")
    job = schedule(retryd, "card", b'{"amount": 7}', Content_Type="application/json", Retry_Reason="api1-5xx", Order_Key="k")
    shown = retryd.job(job)
    assert (shown["type"], shown["retry_reason"], shown["order_key"], shown["content_type"]) == \
        ("card", "api1-5xx", "k", "application/json")
    assert shown["body"] == {"amount": 7} and shown["state"] == "free"
    answer = retryd.get(shown["body_url"])
    assert answer.content == b'{"amount": 7}' and answer.headers["Content-Type"] == "application/json"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    html = schedule(retryd, "card", b"<script>", Content_Type="text/html")
    assert retryd.job(html)["body"] == "<script>"
    odd = schedule(retryd, "card", b"\xff\x00", Content_Type="application/octet-stream")
    assert base64.b64decode(retryd.job(odd)["body_base64"]) == b"\xff\x00"
    empty = schedule(retryd, "card", b"")
    assert retryd.get(f"/v1/jobs/{empty}/body").content == b""


def test_failures_are_retried_until_it_succeeds(retryd, receiver):
    receiver.on("/hook", 503, 500, 200)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=quick(5))
    job = schedule(retryd, "t", b"x")
    wait_state(retryd, job, "done")
    assert [r.headers["webhook-attempt"] for r in receiver.seen()] == ["1", "2", "3"]
    events = retryd.attempts(job)
    assert [(e["event"], e["status"]) for e in events] == [("attempt", 503), ("attempt", 500), ("delivered", 200)]


def test_a_backoff_grows_and_ends_after_max_attempts(retryd, receiver):
    receiver.always(500)
    put_type(retryd, "t", target={"url": receiver.url("/hook")},
             policy={"backoff": {"initial_ms": 1000, "maximum_ms": 60000, "exponent": 2}, "max_attempts": 3})
    job = schedule(retryd, "t", b"x")
    dead, = retryd.wait_dead(1)
    assert dead["id"] == job and dead["attempts"] == 3 and dead["reason"] == "exhausted"
    assert [e["delay_ms"] for e in retryd.attempts(job)][:2] == [1000, 2000]
    first, second, third = [r.at for r in receiver.seen()]
    assert 0.9 < second - first < 2 and 1.9 < third - second < 3.5


def test_deliver_after_waits(retryd, receiver):
    put_type(retryd, "t", target={"url": receiver.url("/hook")})
    began = time.time()
    job = schedule(retryd, "t", b"x", Deliver_After=1)
    assert abs(moment(retryd.job(job)["next_attempt"]) - began - 1) < 0.5
    request, = receiver.wait(1)
    assert request.at - began > 0.95
    assert retryd.post("/v1/events/t", data=b"x", headers={"Deliver-After": "-1"}).status_code == 400
    assert retryd.post("/v1/events/t", data=b"x", headers={"Deliver-After": "soon"}).status_code == 400


def test_the_same_key_schedules_once(retryd, receiver):
    put_type(retryd, "t", target={"url": receiver.url("/hook")})
    put_type(retryd, "u", target={"url": receiver.url("/hook")})
    first = retryd.post("/v1/events/t", data=b"x", headers={"Idempotency-Key": "k"})
    again = retryd.post("/v1/events/t", data=b"x", headers={"Idempotency-Key": "k"})
    assert first.status_code == again.status_code == 202
    assert again.json() == {"id": first.json()["id"], "existed": True}
    answer = retryd.post("/v1/events/t", data=b"y", headers={"Idempotency-Key": "k"})
    assert answer.status_code == 409 and answer.json()["code"] == "idempotency_conflict"
    assert schedule(retryd, "u", b"x", Idempotency_Key="k") != first.json()["id"]  # a key counts within its type
    wait_state(retryd, first.json()["id"], "done")
    assert schedule(retryd, "t", b"x", Idempotency_Key="k") == first.json()["id"]  # after its end, too
    receiver.wait(2)
    time.sleep(0.2)
    assert len(receiver.seen()) == 2


def test_keys_survive_kill_9(start_retryd):
    retryd = start_retryd()
    put_type(retryd, "t")
    job = schedule(retryd, "t", b"x", Idempotency_Key="k")
    retryd.kill()
    retryd.start()
    assert schedule(retryd, "t", b"x", Idempotency_Key="k") == job
    assert state(retryd, "t")["waiting"] == 1


def test_batches_are_all_or_nothing(retryd):
    put_type(retryd, "t")
    put_type(retryd, "u")
    ids = batch(retryd, "t", {"body": {"a": [1, 2.5, None]}, "reason": "r", "order_key": "o", "idempotency_key": "k"},
                {"body": "text"}, {"body_base64": base64.b64encode(b"\x00\xff").decode(), "content_type": "x/y"})
    assert len(ids) == 3
    shown = [retryd.job(job) for job in ids]
    assert shown[0]["body"] == {"a": [1, 2.5, None]} and shown[0]["content_type"] == "application/json"
    assert shown[0]["retry_reason"] == "r" and shown[0]["order_key"] == "o"
    assert shown[1]["body"] == "text" and shown[1]["content_type"].startswith("text/plain")
    assert base64.b64decode(shown[2]["body_base64"]) == b"\x00\xff" and shown[2]["content_type"] == "x/y"
    assert batch(retryd, "t", {"body": {"a": [1, 2.5, None]}, "reason": "r", "order_key": "o", "idempotency_key": "k"}) == ids[:1]
    answer = retryd.post("/v1/events", json={"events": [{"type": "t", "body": 1}, {"type": "u", "body": 2}]})
    assert answer.status_code == 202 and len(answer.json()["ids"]) == 2
    answer = retryd.post("/v1/events", json={"events": [{"type": "t", "body": 1}, {"type": "none", "body": 2}]})
    assert answer.status_code == 404 and answer.json()["detail"] == "events[1]: there is no event type none"
    assert state(retryd, "t")["waiting"] == 4 and state(retryd, "u")["waiting"] == 1


def test_numbers_arrive_as_they_came_however_large(retryd):
    put_type(retryd, "t")
    text = '{"n": 12345678901234567890123, "x": 1e999}'
    answer = retryd.post("/v1/events/t/batch", data='{"events": [{"body": %s}, {"body": 18446744073709551616}]}' % text)
    assert answer.status_code == 202, answer.text
    first, second = answer.json()["ids"]
    assert retryd.get(f"/v1/jobs/{first}/body").text == text
    assert retryd.job(second)["body"] == 2.0 ** 64


@pytest.mark.parametrize("text, named", [
    ("", "JSON"), ("{", "JSON"), ("[]", "events"), ('{"events": []}', "events"), ('{"events": [1]}', "events"),
    ('{"events": [{}]}', "body"), ('{"events": [{"body": 1, "body_base64": ""}]}', "body"),
    ('{"events": [{"body": 1, "idempotencykey": "x"}]}', "idempotencykey"), ('{"events": [{"body_base64": "*"}]}', "body_base64"),
    ('{"events": [{"body": 1, "deliver_after": -1}]}', "deliver_after"), ('{"events": [{"body": 1, "reason": 5}]}', "reason"),
    ('{"events": [{"body": 1, "type": "a b"}]}', "type"), ('{"events": [{"body": 1, "reason": "%s"}]}' % ("x" * 129), "reason"),
], ids=str)
def test_mistakes_in_a_batch_are_refused_by_name(retryd, text, named):
    put_type(retryd, "t")
    answer = retryd.post("/v1/events/t/batch", data=text)
    assert answer.status_code == 400 and named in answer.json()["detail"], answer.text
    assert state(retryd, "t")["waiting"] == 0


def test_limits_of_a_request(start_retryd):
    retryd = start_retryd()
    put_type(retryd, "t")
    assert len(batch(retryd, "t", *[{"body": n} for n in range(1000)])) == 1000
    answer = retryd.post("/v1/events/t/batch", json={"events": [{"body": n} for n in range(1001)]})
    assert answer.status_code == 413
    for header, size in (("Retry-Reason", 128), ("Order-Key", 256), ("Idempotency-Key", 256)):
        assert retryd.post("/v1/events/t", data=b"x", headers={header: "x" * size}).status_code == 202
        answer = retryd.post("/v1/events/t", data=b"x", headers={header: "x" * (size + 1)})
        assert answer.status_code == 400 and header in answer.json()["detail"]
    assert retryd.post("/v1/events/t", data=b"x" * 1000000).status_code == 202
    assert retryd.post("/v1/events/t", data=b"x" * (1 << 20)).status_code == 413
    assert retryd.post("/v1/events/t", data=b"x" * ((1 << 20) + 1)).status_code == 413


# ---- order keys ------------------------------------------------------------------------------------------------------


def test_events_of_one_key_are_in_line_and_hold_up_no_others(retryd, receiver):
    failures = {"a": 2}

    def endpoint(request):
        key = json.loads(request.body)["key"]
        if failures.get(key, 0) > 0:
            failures[key] -= 1
            return 500
        return 200

    receiver.always(endpoint)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=backoff(1), circuit=None)
    began = time.time()
    batch(retryd, "t", *[{"body": {"key": key, "n": n}, "order_key": key} for n in range(5) for key in ("a", "b")],
          {"body": {"key": None, "n": 0}})
    receiver.wait(11 + 2)
    seen = [r.json for r in receiver.seen()]
    assert [s["n"] for s in seen if s["key"] == "a"] == [0, 0, 0, 1, 2, 3, 4]
    assert [s["n"] for s in seen if s["key"] == "b"] == [0, 1, 2, 3, 4]
    others = [r.at for r in receiver.seen() if r.json["key"] != "a"]
    assert max(others) - began < 1 and max(r.at for r in receiver.seen()) - began > 1.9


def test_order_key_true_puts_all_in_one_line(retryd, receiver):
    receiver.on("/hook", 500, 200)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=backoff(1), order_key=True)
    batch(retryd, "t", *[{"body": n} for n in range(5)])
    receiver.wait(6)
    assert [r.json for r in receiver.seen()] == [0, 0, 1, 2, 3, 4]


def test_order_outlives_kill_9(start_retryd, receiver):
    retryd = start_retryd()
    receiver.on("/hook", 500, 500, 200)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=backoff(1), order_key=True)
    batch(retryd, "t", *[{"body": n} for n in range(20)])
    receiver.wait(1)
    retryd.kill()
    retryd.start()
    wait_until(lambda: state(retryd, "t")["waiting"] == 0)
    order = [r.json for r in receiver.seen()]
    assert sorted(set(order)) == list(range(20)) and order == sorted(order)


# ---- rate, concurrency, changes ---------------------------------------------------------------------------------------


def test_rate_limits_starts(retryd, receiver):
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, limits={"rate_per_s": 10})
    batch(retryd, "t", *[{"body": n} for n in range(30)])
    receiver.wait(30, timeout=20)
    times = sorted(r.at for r in receiver.seen())
    assert 1.5 < times[-1] - times[0] < 6  # ten at once, then ten a second


def test_concurrency_is_kept(retryd, receiver):
    receiver.always(Answer(200, delay=0.1))
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, limits={"concurrency": 2})
    began = time.time()
    batch(retryd, "t", *[{"body": n} for n in range(10)])
    receiver.wait(10)
    assert time.time() - began > 0.35 and receiver.connections <= 3


def test_a_change_counts_for_what_waits(retryd, receiver):
    receiver.on("/bad", 500)
    put_type(retryd, "t", target={"url": receiver.url("/bad")}, policy=backoff(1))
    job = schedule(retryd, "t", b"x")
    receiver.wait(1, "/bad")
    put_type(retryd, "t", target={"url": receiver.url("/good")}, policy=backoff(1))
    receiver.wait(1, "/good")
    wait_state(retryd, job, "done")
    answer = retryd.put("/v1/event-types/t", json={"target": {"pull": True}})
    assert answer.status_code == 200  # nothing waits
    schedule(retryd, "t", b"x")
    answer = retryd.put("/v1/event-types/t", json={"target": {"url": receiver.url("/good")}})
    assert answer.status_code == 409


def test_pace_slows_down_after_failures_and_recovers(retryd, receiver):
    receiver.on("/hook", 500, 500, 500, 200)
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=quick(10), circuit=None,
             pace={"initial_ms": 200, "maximum_ms": 400})
    batch(retryd, "t", *[{"body": n} for n in range(4)])
    wait_until(lambda: state(retryd, "t")["pace"]["delay_ms"] > 0)
    receiver.wait(7)
    times = [r.at for r in receiver.seen()]
    assert times[-1] - times[0] > 0.8
    wait_until(lambda: state(retryd, "t")["waiting"] + state(retryd, "t")["leased"] == 0)
    wait_until(lambda: state(retryd, "t")["pace"]["delay_ms"] < 200)


# ---- who may ---------------------------------------------------------------------------------------------------------


def test_tokens_open_their_project_only(start_retryd, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("secret-of-p-0123456789 p\nsecret-of-q-0123456789 q\nsecret-of-all-0123456789 *\n")
    tokens.chmod(0o600)
    retryd = start_retryd({"auth.tokens_file": tokens})

    def call(method, path, token, project="p", **more):
        return requests.request(method, retryd.url + path, timeout=10,
                                headers={"X-Project-ID": project, **({"Authorization": f"Bearer {token}"} if token else {})},
                                **more)

    p, q, everything = "secret-of-p-0123456789", "secret-of-q-0123456789", "secret-of-all-0123456789"
    assert call("PUT", "/v1/event-types/t", None, json={"target": {"pull": True}}).status_code == 401
    assert call("PUT", "/v1/event-types/t", q, json={"target": {"pull": True}}).status_code == 403
    # A name that is no text is shown as well as it can be.
    assert call("GET", "/v1/event-types", q, "ü".encode("latin-1")).json()["detail"].endswith('project "\ufffd".')
    assert call("PUT", "/v1/event-types/t", p, json={"target": {"pull": True}}).status_code == 201
    job = call("POST", "/v1/events/t", p, data=b"x").json()["id"]
    assert call("GET", f"/v1/jobs/{job}", p).status_code == 200
    assert call("GET", f"/v1/jobs/{job}/body", everything).content == b"x"
    assert call("GET", f"/v1/jobs/{job}", q, "q").status_code == 404
    assert call("DELETE", f"/v1/jobs/{job}", q, "q").status_code == 404
    for page in ("/v1/dead", "/v1/queues", "/v1/attempts", "/v1/locks", "/metrics"):  # of operators
        assert call("GET", page, p).status_code == 403, page
        assert call("GET", page, everything).status_code == 200, page
        for nobody in (None, "no-such-token-0123456789"):
            answer = call("GET", page, nobody)
            assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer", page
    got = call("POST", "/v1/event-types/t/claim", p, json={}).json()["jobs"][0]
    assert call("POST", f"/v1/jobs/{job}/finish", q, "q", json={"token": got["token"]}).status_code in (404, 409)
    assert call("POST", f"/v1/jobs/{job}/finish", p, json={"token": got["token"]}).status_code == 200
    assert call("GET", f"/v1/jobs/{job}", p).json()["state"] == "done"


# ---- what waits ------------------------------------------------------------------------------------------------------


def test_waiting_events_are_listed_and_filtered_by_reason(retryd, receiver):
    receiver.on("/hook", 503)
    put_type(retryd, "pull")
    put_type(retryd, "push", target={"url": receiver.url("/hook")}, policy=backoff(60), circuit=None)

    def listed(name, **query):
        jobs, marker = [], None
        while True:
            answer = retryd.get(f"/v1/events/{name}", params={**query, "marker": marker})
            assert answer.status_code == 200, answer.text
            jobs += answer.json()["events"]
            marker = answer.json()["next"]
            if marker is None:
                return jobs

    for name in ("pull", "push"):
        ids = batch(retryd, name, *[{"body": n, "reason": f"r{n % 2}"} for n in range(10)])
        # Once each was tried it stays where it is: what moves between two pages is listed twice.
        tried = 1 if name == "push" else 0
        wait_until(lambda: all(retryd.job(job)["attempts"] == tried for job in ids))
        assert sorted(job["id"] for job in listed(name)) == ids == sorted(job["id"] for job in listed(name, limit=3))
        assert sorted(job["id"] for job in listed(name, reason="r1", limit=2)) == ids[1::2]
    assert retryd.get("/v1/events/none").status_code == 404
    assert retryd.get("/v1/events/pull", params={"marker": "x"}).status_code == 400
    first, second = batch(retryd, "push", *[{"body": n, "order_key": "k"} for n in range(2)])
    shown = retryd.job(second)
    assert shown["in_line"] is True and shown["next_attempt"] is None and retryd.job(first)["in_line"] is False


# ---- metrics ---------------------------------------------------------------------------------------------------------


def test_metrics_are_utf8_whatever_projects_are_called(retryd):
    for name in (b"p\xe9", "ü".encode()):
        answer = retryd.put("/v1/event-types/t", json={"target": {"pull": True}}, headers={"X-Project-ID": name})
        assert answer.status_code == 201, answer.text
        assert retryd.post("/v1/events/t", data=b"x", headers={"X-Project-ID": name}).status_code == 202
    text = retryd.get("/metrics").content.decode("utf-8")
    for name in ("p\ufffd", "ü"):
        assert f'retryd_events_scheduled_total{{project="{name}",type="t",reason=""}} 1' in text.splitlines()


def test_operators_see_the_queues_and_the_dead_of_projects_whatever_they_are_called(retryd):
    names = [b"p\xe9", b"a/b", b'a"b\\c', "ü".encode()]
    for name in names:
        headers = {"X-Project-ID": name}
        retryd.put("/v1/event-types/t", json={"target": {"pull": True}}, headers=headers)
        job = retryd.post("/v1/events/t", data=b"x", headers=headers).json()["id"]
        got = retryd.post("/v1/event-types/t/claim", json={}, headers=headers).json()["jobs"][0]
        assert retryd.post(f"/v1/jobs/{job}/fail", json={"token": got["token"], "give_up": True}, headers=headers).status_code == 200
        assert retryd.job(job)["state"] == "dead"
    shown = [name.decode("utf-8", "replace") + "/t" for name in names]
    assert [queue["name"] for queue in retryd.get("/v1/queues").json()["queues"]] == shown
    assert [job["queue"] for job in retryd.dead()] == shown
    assert [json.loads(line)["queue"] for line in retryd.get("/v1/dead/export").text.splitlines()] == shown


def test_metrics_count_by_type_and_reason(retryd, receiver):
    receiver.on("/bad", 503)
    put_type(retryd, "good", target={"url": receiver.url("/good")})
    put_type(retryd, "bad", target={"url": receiver.url("/bad")}, policy=quick(2), circuit=None)
    batch(retryd, "good", *[{"body": n, "reason": 'api1-"429"'} for n in range(3)])
    batch(retryd, "bad", {"body": 1, "reason": "api1-5xx"}, {"body": 2})
    schedule(retryd, "bad", b"x", Idempotency_Key="k")
    schedule(retryd, "bad", b"x", Idempotency_Key="k")
    retryd.wait_dead(3)
    wait_until(lambda: state(retryd, "good")["done"] == 3)
    text = retryd.metrics()
    check_prometheus(text)
    for line in ('retryd_events_scheduled_total{project="p",type="good",reason="api1-\\"429\\""} 3',
                 'retryd_events_scheduled_total{project="p",type="bad",reason="api1-5xx"} 1',
                 'retryd_events_scheduled_total{project="p",type="bad",reason=""} 2',
                 'retryd_event_attempts_total{project="p",type="good",result="succeeded"} 3',
                 'retryd_event_attempts_total{project="p",type="bad",result="failed"} 9',
                 'retryd_events_given_up_total{project="p",type="bad"} 3', 'retryd_events_dead{project="p",type="bad"} 3',
                 'retryd_events_pending{project="p",type="good"} 0', 'retryd_pace_delay_seconds{project="p",type="good"} 0.000',
                 'retryd_circuit_state{project="p",type="good",state="closed"} 1',
                 'retryd_circuit_state{project="p",type="good",state="open"} 0'):
        assert line in text.splitlines(), line
