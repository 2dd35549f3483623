"""What each behaviour of an endpoint leads to, and when it is tried again."""
import socket
import time

import pytest

from policies import PHASES, PHASES_MS, quick, steady
from receiver import CLOSE, EARLY, GARBAGE, HANG, RESET, Answer
from server import wait_until


def only_job(retryd, receiver, path="/hook"):
    ids = {request.headers["webhook-id"] for request in receiver.seen(path)}
    assert len(ids) == 1
    return ids.pop()


def wait_state(retryd, job, state):
    wait_until(lambda: retryd.job(job)["state"] == state, what=f"{job} to be {state}")
    return retryd.job(job)


@pytest.mark.threads
@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_success_is_delivered_once(retryd, receiver, status):
    receiver.on("/hook", status)
    retryd.subscribe("q", receiver.url("/hook"))
    retryd.send("q", {"n": 1})
    receiver.wait(1)
    job = wait_state(retryd, only_job(retryd, receiver), "done")
    assert job["reason"] == "delivered" and job["attempts"] == 1
    [event] = retryd.attempts(job["id"])
    assert (event["event"], event["attempt"], event["status"]) == ("delivered", 1, status)
    assert len(receiver.seen()) == 1
    assert retryd.dead() == []


@pytest.mark.parametrize("status", [300, 301, 302, 304, 307, 400, 401, 404, 408, 410, 429, 499])
def test_300_to_499_is_not_retried_and_dead_in_plain_sight(retryd, receiver, status):
    receiver.on("/hook", Answer(status, {"Location": receiver.url("/elsewhere"), "Retry-After": "1"}))
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy=quick(3))
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    assert (job["reason"], job["attempts"], job["state"]) == ("rejected", 1, "dead")
    [event] = retryd.attempts(job["id"])
    assert (event["event"], event["status"]) == ("dead", status)
    assert len(receiver.seen()) == 1


@pytest.mark.threads
@pytest.mark.parametrize("behaviour, reason, status", [
    (500, "status", 500), (503, "status", 503), (599, "status", 599), (600, "status", 600), (999, "status", 999),
    (HANG, "timeout", 0), (RESET, "broken", 0), (CLOSE, "broken", 0), (EARLY, "broken", None), (GARBAGE, "broken", 0),
])
def test_failure_is_retried_until_the_policy_is_exhausted(retryd, receiver, behaviour, reason, status):
    receiver.on("/hook", behaviour)
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={**quick(2), "attempt_timeout": 1})
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    assert (job["reason"], job["attempts"]) == ("exhausted", 3)
    events = retryd.attempts(job["id"])
    assert [event["event"] for event in events] == ["attempt", "attempt", "dead"]
    assert [event["attempt"] for event in events] == [1, 2, 3]
    for event in events:
        assert event["reason"] in (reason, "exhausted")
        assert status is None or event["status"] == status
    assert events[0]["reason"] == reason
    assert len(receiver.seen()) == 3


@pytest.mark.parametrize("behaviour", [500, HANG, RESET, CLOSE, EARLY, GARBAGE])
def test_an_endpoint_that_recovers_gets_the_message(retryd, receiver, behaviour):
    receiver.on("/hook", behaviour, behaviour, 200)
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={**quick(3), "attempt_timeout": 1})
    retryd.send("q", {"n": 1})
    receiver.wait(3)
    job = wait_state(retryd, only_job(retryd, receiver), "done")
    assert job["reason"] == "delivered" and job["attempts"] == 3
    assert [r.message for r in receiver.seen()] == [{"n": 1}] * 3


def test_nobody_listens(retryd):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    retryd.subscribe("q", f"http://127.0.0.1:{port}/", _retry_policy=quick(2))
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    assert (job["reason"], job["attempts"]) == ("exhausted", 3)
    assert retryd.attempts(job["id"])[0]["reason"] == "connect"


def test_name_without_an_address(retryd):
    retryd.subscribe("q", "http://no-such-host.invalid/", _retry_policy=quick(1))
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    assert job["reason"] == "exhausted"
    assert retryd.attempts(job["id"])[0]["reason"] == "resolve"


@pytest.mark.slow
def test_schedule_is_that_of_the_four_phases(retryd, receiver):
    receiver.on("/hook", 500)
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy=PHASES)
    retryd.send("q", {"n": 1})
    seen = receiver.wait(6)
    [job] = retryd.wait_dead(1)
    assert len(receiver.seen()) == 6
    events = retryd.attempts(job["id"])
    assert [event["delay_ms"] for event in events[:-1]] == PHASES_MS
    for before, after, delay_ms in zip(seen, seen[1:], PHASES_MS):
        waited_ms = (after.at - before.at) * 1000
        assert waited_ms > delay_ms - 10, "a retry came early"
        assert waited_ms < delay_ms + 1500, "a retry came late"


@pytest.mark.parametrize("function, middle_ms", [
    # Five retries from 1 s to 9 s; the third by hand: 1 + 2·2, 1 + 3·0.8, 1·9^(2/4), the same.
    ("linear", 5000), ("arithmetic", 3400), ("geometric", 3000), ("exponential", 3000)])
def test_backoff_function_decides_the_delay(retryd, receiver, function, middle_ms):
    receiver.on("/hook", 500)
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={
        "retries_with_no_delay": 0, "minimum_delay_retries": 0, "minimum_delay": 1, "maximum_delay": 9,
        "backoff_retries": 5, "maximum_delay_retries": 0, "retry_backoff_function": function})
    retryd.send("q", {"n": 1})
    receiver.wait(3, timeout=20)
    job = only_job(retryd, receiver)
    wait_until(lambda: len(retryd.attempts(job)) >= 3, what="the third attempt to be recorded")
    delays = [event["delay_ms"] for event in retryd.attempts(job)][:3]
    assert delays[0] == 1000 and delays[2] == middle_ms


def test_retry_on_adds_statuses(retryd, receiver):
    receiver.on("/hook", 404, 410, 429, 200)
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={**quick(5), "retry_on": ["404", "410", "429"]})
    retryd.send("q", {"n": 1})
    receiver.wait(4)
    assert wait_state(retryd, only_job(retryd, receiver), "done")["attempts"] == 4


def test_retry_on_takes_classes(retryd, receiver):
    receiver.on("/hook", 302, 418, 200)
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={**quick(5), "retry_on": ["3xx", "4xx"]})
    retryd.send("q", {"n": 1})
    receiver.wait(3)
    assert wait_state(retryd, only_job(retryd, receiver), "done")["attempts"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("asked, respect, delay_ms", [
    ("2", True, 2000),     # more than the policy's 1 s
    ("0", True, 1000),     # less: the policy's
    ("3600", True, 3000),  # at most maximum_delay
    ("2", False, 1000)])   # off: the policy's
def test_retry_after(retryd, receiver, asked, respect, delay_ms):
    receiver.on("/hook", Answer(503, {"Retry-After": asked}), 200)
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={
        "retries_with_no_delay": 0, "minimum_delay_retries": 1, "minimum_delay": 1, "maximum_delay": 3, "backoff_retries": 1,
        "maximum_delay_retries": 0, "respect_retry_after": respect})
    retryd.send("q", {"n": 1})
    first, second = receiver.wait(2)[:2]
    assert (second.at - first.at) * 1000 > delay_ms - 10
    job = only_job(retryd, receiver)
    assert retryd.attempts(job)[0]["delay_ms"] == delay_ms


def test_redirects_are_followed_only_if_asked(retryd, receiver):
    receiver.on("/hook", Answer(307, {"Location": receiver.url("/elsewhere")}))
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={**quick(1), "follow_redirects": True})
    retryd.send("q", {"n": 1})
    [there] = receiver.wait(1, "/elsewhere")
    assert there.method == "POST" and there.message == {"n": 1}
    wait_state(retryd, there.headers["webhook-id"], "done")
    assert retryd.dead() == []


@pytest.mark.slow
def test_maximum_age_ends_it(retryd, receiver):
    receiver.on("/hook", 500)
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={**steady(1), "maximum_age": 3})
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    assert job["reason"] == "expired"
    assert 2 <= job["attempts"] <= 4


def test_first_bytes_of_the_answer_are_kept(retryd, receiver):
    receiver.on("/hook", Answer(404, body=b"no such hook here" + b"." * 5000))
    retryd.subscribe("q", receiver.url("/hook"))
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    [event] = retryd.attempts(job["id"])
    assert event["text"].startswith("no such hook here") and len(event["text"]) <= 512


def test_huge_and_endless_answers_do_no_harm(retryd, receiver):
    receiver.on("/huge", Answer(200, body=b"x" * 20_000_000))
    retryd.subscribe("q", receiver.url("/huge"), _retry_policy={**quick(1), "attempt_timeout": 10})
    retryd.send("q", *range(5))
    receiver.wait(5)
    assert retryd.get("/healthz").status_code == 200


@pytest.mark.threads
def test_each_subscriber_gets_each_message(retryd, receiver):
    for n in range(70):  # more than fit into the post's own change
        retryd.subscribe("q", receiver.url(f"/{n}"))
    retryd.send("q", *range(20))
    receiver.wait(70 * 20, timeout=60)
    wait_until(lambda: retryd.metric("retryd_deliveries_succeeded_total") == 70 * 20)
    for n in range(70):
        assert sorted(request.message for request in receiver.seen(f"/{n}")) == list(range(20))
    assert len({request.headers["webhook-id"] for request in receiver.seen()}) == 70 * 20


def test_no_delivery_after_unsubscribing(retryd, receiver):
    receiver.on("/hook", 500)
    subscription = retryd.subscribe("q", receiver.url("/hook"), _retry_policy=steady(1))
    retryd.send("q", {"n": 1})
    receiver.wait(1)
    job = only_job(retryd, receiver)
    assert retryd.delete(f"/v2/queues/q/subscriptions/{subscription}").status_code == 204
    assert wait_state(retryd, job, "done")["reason"] == "unsubscribed"
    count = len(receiver.seen())
    time.sleep(1.3)
    assert len(receiver.seen()) == count


def test_deleting_the_message_does_not_end_its_delivery(retryd, receiver):
    receiver.on("/hook", 500, 200)
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy=steady(1))
    [message] = retryd.send("q", {"n": 1})
    receiver.wait(1)
    assert retryd.delete(f"/v2/queues/q/messages/{message}").status_code == 204
    assert receiver.wait(2)[1].message == {"n": 1}
