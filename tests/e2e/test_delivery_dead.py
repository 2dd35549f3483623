"""Dead jobs: listed, inspected, redriven, deleted."""
import pytest

from policies import quick
from server import wait_until


def make_dead(retryd, receiver, queue, count, status=404, path="/hook"):
    receiver.on(path, status)
    retryd.subscribe(queue, receiver.url(path), _retry_policy=quick(1))
    retryd.send(queue, *({"n": n} for n in range(count)))
    return retryd.wait_dead(count, queue=queue)


def test_a_dead_job_tells_its_story(retryd, receiver):
    [listed] = make_dead(retryd, receiver, "q", 1, 503)
    job = retryd.job(listed["id"])
    assert job["state"] == "dead" and job["reason"] == "exhausted" and job["attempts"] == 2
    assert "q" in job["queue"] and receiver.url("/hook") in job["queue"]
    assert job["body"] == {"n": 0} or job["body"]["body"] == {"n": 0}
    assert [event["status"] for event in retryd.attempts(job["id"])] == [503, 503]


def test_redriven_job_starts_afresh_and_is_delivered(retryd, receiver):
    [job] = make_dead(retryd, receiver, "q", 1)
    receiver.on("/hook", 200)
    answer = retryd.post(f"/v1/dead/{job['id']}/redrive")
    assert answer.status_code == 200, answer.text
    second = receiver.wait(2)[1]
    assert second.headers["webhook-id"] == job["id"] and second.headers["webhook-attempt"] == "1"
    wait_until(lambda: retryd.job(job["id"])["state"] == "done")
    assert [event["event"] for event in retryd.attempts(job["id"])] == ["dead", "redriven", "delivered"]
    assert retryd.dead() == []
    # It is no longer dead.
    assert retryd.post(f"/v1/dead/{job['id']}/redrive").status_code in (404, 409)
    assert retryd.delete(f"/v1/dead/{job['id']}").status_code in (404, 409)


def test_deleted_job_is_gone_for_good(retryd, receiver):
    [job] = make_dead(retryd, receiver, "q", 1)
    assert retryd.delete(f"/v1/dead/{job['id']}").status_code == 204
    assert retryd.dead() == []
    assert retryd.post(f"/v1/dead/{job['id']}/redrive").status_code in (404, 409)
    assert retryd.attempts(job["id"])[-1]["event"] == "ended"


def test_listing_by_queue_reason_and_page(retryd, receiver):
    make_dead(retryd, receiver, "a", 25, 404, "/a")
    make_dead(retryd, receiver, "b", 3, 500, "/b")
    assert len(retryd.dead(limit=10)) == 28
    assert len(retryd.dead(queue="a")) == 25
    assert len(retryd.dead(queue="b")) == 3
    assert len(retryd.dead(reason="exhausted")) == 3
    assert len(retryd.dead(reason="rejected", limit=7)) == 25
    assert len({job["id"] for job in retryd.dead(limit=1)}) == 28
    assert retryd.get("/v1/dead", params={"reason": "boredom"}).json()["dead"] == []
    assert retryd.get("/v1/dead", params={"limit": "0"}).status_code == 400
    assert retryd.get("/v1/dead", params={"queue": "none"}).status_code == 404
    for name in ("q" * 65, "p/" + "q" * 65, "p" * 300 + "/q"):  # longer than any name may be
        assert retryd.get("/v1/dead", params={"queue": name}).status_code == 404
        assert retryd.post("/v1/dead/redrive", json={"queue": name}).status_code == 404


@pytest.mark.threads
def test_redrive_of_many_takes_those_that_match(retryd, receiver):
    make_dead(retryd, receiver, "a", 150, 404, "/a")
    make_dead(retryd, receiver, "b", 5, 500, "/b")
    receiver.on("/a", 200)
    dry = retryd.post("/v1/dead/redrive", json={"queue": "a", "dry_run": True})
    assert dry.status_code == 200 and dry.json()["count"] == 150
    assert len(retryd.dead()) == 155
    assert retryd.post("/v1/dead/redrive", json={"queue": "a"}).status_code == 202
    wait_until(lambda: retryd.metric("retryd_deliveries_succeeded_total") == 150, what="150 deliveries")
    assert {job["reason"] for job in retryd.dead()} == {"exhausted"} and len(retryd.dead()) == 5


@pytest.mark.slow
@pytest.mark.parametrize("body, field", [({"reason": "rejected"}, "reason"), ({"filter": {"reasons": "rejected"}}, "reasons"),
                                         ({"filter": {"reason": 5}}, "reason"), ({"queue": 5}, "queue"),
                                         ({"queue": None}, "queue"), ({"filter": {"type": None}}, "type"),
                                         ({"dry_run": None}, "dry_run"), ({"dry_run": "yes"}, "dry_run"), ({"rate": "9"}, "rate")])
def test_what_would_match_more_than_was_meant_is_refused(retryd, receiver, body, field):
    receiver.always(404)
    retryd.subscribe("a", receiver.url())
    retryd.send("a", 1)
    retryd.wait_dead(1)
    for verb in ("redrive", "delete"):
        answer = retryd.post(f"/v1/dead/{verb}", json=body)
        assert answer.status_code == 400 and f'"{field}"' in answer.json()["detail"]
    assert len(retryd.dead()) == 1 and len(receiver.seen()) == 1


def test_redrive_keeps_to_its_rate(retryd, receiver):
    make_dead(retryd, receiver, "a", 60, 404, "/a")
    receiver.on("/a", 200)
    begin = len(receiver.seen())
    assert retryd.post("/v1/dead/redrive", json={"queue": "a", "rate": 20}).status_code == 202
    seen = receiver.wait(begin + 60, timeout=20)[begin:]
    # 60 at 20 a second: three seconds, less what may come as a burst at once.
    assert seen[-1].at - seen[0].at > 1.5


def test_delete_of_many(retryd, receiver):
    make_dead(retryd, receiver, "a", 100, 404, "/a")
    assert retryd.post("/v1/dead/delete", json={"filter": {"reason": "rejected"}}).status_code == 202
    wait_until(lambda: not retryd.dead(), what="the dead to be gone")


def test_what_does_not_exist(retryd):
    for job in ("0" * 24, "nonsense", "f" * 24):
        assert retryd.get(f"/v1/jobs/{job}").status_code == 404
        assert retryd.get(f"/v1/jobs/{job}/attempts").status_code == 404
        assert retryd.delete(f"/v1/dead/{job}").status_code == 404
        answer = retryd.post(f"/v1/dead/{job}/redrive")
        assert answer.status_code == 404
        assert answer.headers["Content-Type"].startswith("application/problem+json")


def test_redrive_without_its_subscription_is_refused(retryd, receiver):
    [job] = make_dead(retryd, receiver, "q", 1)
    [subscription] = retryd.get("/v2/queues/q/subscriptions").json()["subscriptions"]
    assert retryd.delete(f"/v2/queues/q/subscriptions/{subscription['id']}").status_code == 204
    answer = retryd.post(f"/v1/dead/{job['id']}/redrive")
    assert answer.status_code == 409 and answer.json()["detail"]
    assert retryd.job(job["id"])["state"] == "dead"
