"""Which policy governs a delivery, and from when on."""
import pytest

from policies import quick, steady
from server import wait_until


def attempts_of(retryd, receiver):
    [job] = retryd.wait_dead(1)
    assert len(receiver.seen()) == job["attempts"]
    return job["attempts"]


@pytest.mark.parametrize("queue, subscription, attempts", [
    (quick(1), None, 2),
    (None, quick(2), 3),
    (quick(1), quick(2), 3),
    ({**quick(1), "ignore_subscription_override": True}, quick(2), 2),
    ({**quick(1), "ignore_subscription_override": True}, None, 2),
    (quick(1), {**quick(2), "ignore_subscription_override": True}, 3),
], ids=["queue", "subscription", "both", "both_queue_insists", "queue_insists", "subscription_cannot_insist"])
def test_whose_policy_counts(retryd, receiver, queue, subscription, attempts):
    receiver.always(500)
    retryd.make_queue("q", **({"_retry_policy": queue} if queue else {}))
    retryd.subscribe("q", receiver.url("/hook"), **({"_retry_policy": subscription} if subscription else {}))
    retryd.send("q", {"n": 1})
    assert attempts_of(retryd, receiver) == attempts


@pytest.mark.parametrize("queue, subscription", [({}, None), (None, None), (quick(1), {})],
                         ids=["queue_empty", "none", "subscription_empty_is_a_policy"])
def test_the_default_policy_waits_5_s_after_3_immediate_retries(retryd, receiver, queue, subscription):
    receiver.always(500)
    retryd.make_queue("q", **({"_retry_policy": queue} if queue is not None else {}))
    retryd.subscribe("q", receiver.url("/hook"), **({"_retry_policy": subscription} if subscription is not None else {}))
    retryd.send("q", {"n": 1})
    job = receiver.wait(4)[0].headers["webhook-id"]
    wait_until(lambda: len(retryd.attempts(job)) >= 4, what="the fourth attempt to be recorded")
    assert [event["delay_ms"] for event in retryd.attempts(job)][:4] == [0, 0, 0, 5000]
    assert retryd.job(job)["state"] == "scheduled"


def test_keys_left_out_are_defaults_not_the_queues(retryd, receiver):
    receiver.always(500)
    retryd.make_queue("q", _retry_policy=quick(5))
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={"retries_with_no_delay": 1})
    retryd.send("q", {"n": 1})
    job = receiver.wait(2)[0].headers["webhook-id"]
    wait_until(lambda: len(retryd.attempts(job)) >= 2, what="the second attempt to be recorded")
    assert [event["delay_ms"] for event in retryd.attempts(job)][:2] == [0, 5000]


def test_changed_queue_policy_counts_from_the_next_attempt(retryd, receiver):
    receiver.always(500)
    retryd.make_queue("q", _retry_policy=steady(1))
    retryd.subscribe("q", receiver.url("/hook"))
    retryd.send("q", {"n": 1})
    receiver.wait(2)
    retryd.patch_queue("q", {"op": "replace", "path": "/metadata/_retry_policy", "value": quick(1)})
    # The attempt that was due already finds a policy of one retry and is given up.
    assert attempts_of(retryd, receiver) <= 4


def test_changed_subscription_policy_counts_from_the_next_attempt(retryd, receiver):
    receiver.always(500)
    subscription = retryd.subscribe("q", receiver.url("/hook"), _retry_policy=steady(1))
    retryd.send("q", {"n": 1})
    receiver.wait(2)
    answer = retryd.patch(f"/v2/queues/q/subscriptions/{subscription}", json={"options": {"_retry_policy": quick(1)}})
    assert answer.status_code == 204
    assert attempts_of(retryd, receiver) <= 4


@pytest.mark.parametrize("policy", [
    {"minimum_delay": -1}, {"minimum_delay": 51}, {"minimum_delay": 50, "maximum_delay": 55},
    {"minimum_delay": 9, "maximum_delay": 8, "backoff_retries": 2}, {"retry_backoff_function": "quadratic"},
    {"minimum_delay": 0, "maximum_delay": 60, "retry_backoff_function": "geometric"}, {"backoff_retries": 0},
    {"backoff_retries": 101}, {"jitter": "some"}, {"retry_on": ["9xx?"]}, {"retries_with_no_delay": "3"},
    {"attempt_timeout": 0}, {"maximum_age": -5}], ids=str)
def test_policies_that_make_no_sense_are_refused(retryd, receiver, policy):
    body = {"subscriber": receiver.url("/hook"), "options": {"_retry_policy": policy}}
    answer = retryd.post("/v2/queues/q/subscriptions", json=body)
    assert answer.status_code == 400 and answer.json()["description"]
    assert retryd.put("/v2/queues/q2", json={"_retry_policy": policy}).status_code == 400
