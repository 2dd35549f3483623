"""Kafka: events taken over from topics, failed calls republished to topics; with a real broker and kcat beside it."""
import json
import time

import pytest

from policies import quick, steady
from server import wait_until


def settings(kafka, prefix, **more):
    return {"kafka.brokers": kafka.address, "kafka.prefix": prefix, "kafka.project": "p",
            **{f"kafka.{name}": value for name, value in more.items()}}


@pytest.fixture
def prefix(request):
    """Topics of its own for each test."""
    return "t." + request.node.name.replace("test_", "").replace("[", "_").replace("]", "")[:60]


def make_type(retryd, name, **fields):
    answer = retryd.put(f"/v1/event-types/{name}", json=fields)
    assert answer.status_code in (200, 201), answer.text


def taken(retryd):
    return retryd.metric("retryd_kafka_records_taken_total")


def refused(retryd):
    return retryd.metric("retryd_kafka_records_refused_total")


def bodies(receiver, path="/hook"):
    return [request.body.decode() for request in receiver.seen(path)]


# ---- source -------------------------------------------------------------------------------------------------------------


def test_records_are_taken_over_as_events_and_tried(kafka, start_retryd, receiver, prefix):
    retryd = start_retryd(settings(kafka, prefix))
    make_type(retryd, "card.transaction", target={"url": receiver.url("/hook")})
    wait_until(lambda: "kafka_assigned" in retryd.log(), what="partitions")
    kafka.produce(f"{prefix}.intake", ["one", "two"], rtd_type="card.transaction", rtd_reason="api1-429",
                  content_type="text/plain")
    receiver.wait(2)
    assert sorted(bodies(receiver)) == ["one", "two"]
    first = receiver.seen()[0]
    assert first.headers["content-type"] == "text/plain"
    assert taken(retryd) == 2
    assert first.headers["retryd-reason"] == "api1-429"


def test_workers_fetch_what_came_from_kafka(kafka, start_retryd, prefix):
    retryd = start_retryd(settings(kafka, prefix))
    make_type(retryd, "t", target={"pull": True})
    wait_until(lambda: "kafka_assigned" in retryd.log(), what="partitions")
    kafka.produce(f"{prefix}.intake", ["the call"], rtd_type="t", rtd_reason="api1-5xx", rtd_key="account 7")
    claim = retryd.post("/v1/event-types/t/claim", json={"worker": "w", "limit": 5, "lease_s": 30, "wait_ms": 10000})
    assert claim.status_code == 200, claim.text
    assert [(job["reason"], job["order_key"]) for job in claim.json()["jobs"]] == [("api1-5xx", "account 7")]


def test_what_was_produced_before_the_start_is_taken_over_too(kafka, start_retryd, receiver, prefix):
    kafka.create(f"{prefix}.intake", partitions=3)
    kafka.produce(f"{prefix}.intake", range(50), rtd_type="t")
    retryd = start_retryd(settings(kafka, prefix, source_topics="none"))
    make_type(retryd, "t", target={"url": receiver.url("/hook")})
    retryd.stop()
    retryd.settings["kafka.source_topics"] = ""
    retryd.start()
    receiver.wait(50)
    assert sorted(map(int, bodies(receiver))) == list(range(50))


def test_a_record_says_what_it_is_by_json_pointers(kafka, start_retryd, receiver, prefix):
    retryd = start_retryd(settings(kafka, prefix, type_pointer="/meta/a~1b", reason_pointer="/why/0", id_pointer="/number"))
    make_type(retryd, "t", target={"url": receiver.url("/hook")})
    lines = [json.dumps({"meta": {"a/b": "t"}, "why": ["api1-5xx"], "number": number}) for number in (1, 2, 1)]
    kafka.produce(f"{prefix}.intake", lines, partition=0)
    receiver.wait(2)
    wait_until(lambda: retryd.metric("retryd_kafka_records_known_total") == 1, what="the third to be known by its id")
    assert sorted(bodies(receiver)) == sorted(lines[:2])


def test_a_topic_may_stand_for_a_type(kafka, start_retryd, receiver, prefix):
    kafka.create(f"{prefix}.a")
    kafka.create(f"{prefix}.b")
    retryd = start_retryd(settings(kafka, prefix, source_topics=f"{prefix}.a:a, {prefix}.b:b"))
    for name in "ab":
        make_type(retryd, name, target={"url": receiver.url(f"/{name}")})
        kafka.produce(f"{prefix}.{name}", [name])
    receiver.wait(1, "/a")
    receiver.wait(1, "/b")
    assert bodies(receiver, "/a") + bodies(receiver, "/b") == ["a", "b"]


def test_records_of_a_key_are_tried_in_order_where_that_is_wanted(kafka, start_retryd, receiver, prefix):
    retryd = start_retryd(settings(kafka, prefix, order_by_record_key="true"))
    receiver.on("/hook", 500, 500, 200)  # the first holds up the others of its key
    make_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=quick(5))
    kafka.produce(f"{prefix}.intake", [f"key:{number}" for number in range(10)], key=":", rtd_type="t")
    receiver.wait(12)
    assert bodies(receiver) == ["0", "0"] + [str(number) for number in range(10)]


def test_what_can_never_be_an_event_goes_to_the_dead_letter_topic_and_holds_up_nothing(kafka, start_retryd, receiver,
                                                                                       prefix):
    kafka.create(f"{prefix}.intake", partitions=1)
    retryd = start_retryd(settings(kafka, prefix))
    make_type(retryd, "t", target={"url": receiver.url("/hook")})
    kafka.produce(f"{prefix}.intake", ["k:nobody knows this type"], key=":", rtd_type="nobody", rtd_id="7")
    kafka.produce(f"{prefix}.intake", ["no type at all"])
    kafka.produce(f"{prefix}.intake", ["fine"], rtd_type="t")
    receiver.wait(1)
    assert bodies(receiver) == ["fine"]
    wait_until(lambda: refused(retryd) == 2, what="two refusals")
    dead = sorted(kafka.records(f"{prefix}.dlq"), key=lambda record: record[4])
    assert [record[4] for record in dead] == ["no type at all", "nobody knows this type"]
    headers = dead[1][3]
    assert dead[1][2] == "k"
    assert headers["rtd-type"] == "nobody" and headers["rtd-id"] == "7"
    assert headers["rtd-refused"] == "there is no such event type"
    assert headers["rtd-source"] == f"{prefix}.intake/0/0"
    assert headers["kafka_dlt-original-topic"] == f"{prefix}.intake"
    assert "kafka_refused" in retryd.log()


def test_a_full_batch_of_refusals_does_not_stop_the_partition(kafka, start_retryd, receiver, prefix):
    kafka.create(f"{prefix}.intake", partitions=1)
    kafka.produce(f"{prefix}.intake", range(1500), rtd_type="nobody")
    kafka.produce(f"{prefix}.intake", ["fine"], rtd_type="t")
    retryd = start_retryd(settings(kafka, prefix, source_topics="none"))
    make_type(retryd, "t", target={"url": receiver.url("/hook")})
    retryd.stop()
    retryd.settings["kafka.source_topics"] = ""
    retryd.start()
    receiver.wait(1)
    wait_until(lambda: refused(retryd) == 1500, what="all refusals")
    assert sorted(int(record[4]) for record in kafka.records(f"{prefix}.dlq")) == list(range(1500))


def test_nothing_is_lost_or_doubled_by_kill_9(kafka, start_retryd, receiver, prefix):
    kafka.create(f"{prefix}.intake", partitions=4)
    retryd = start_retryd(settings(kafka, prefix))
    make_type(retryd, "t", target={"pull": True})
    total = 0
    for round_no in range(5):
        kafka.produce(f"{prefix}.intake", range(total, total + 2000), rtd_type="t")
        total += 2000
        wait_until(lambda: waiting(retryd, "t") > total - 2000, what="some of them")
        retryd.kill()  # most likely in the middle of them
        retryd.start()
    wait_until(lambda: waiting(retryd, "t") >= total, 60, "all of them")
    time.sleep(0.5)  # for those that would be too many
    assert waiting(retryd, "t") == total
    assert retryd.metric("retryd_kafka_records_lost_total") == 0


def waiting(retryd, name):
    answer = retryd.get(f"/v1/event-types/{name}")
    assert answer.status_code == 200, answer.text
    return answer.json()["state"]["waiting"]


def test_a_broker_that_restarts_is_waited_for(kafka, start_retryd, receiver, prefix):
    kafka.create(f"{prefix}.intake", partitions=2)
    retryd = start_retryd(settings(kafka, prefix))
    make_type(retryd, "t", target={"pull": True})
    kafka.produce(f"{prefix}.intake", range(100), rtd_type="t")
    wait_until(lambda: waiting(retryd, "t") == 100, what="the first hundred")
    kafka.stop()
    kafka.start()
    kafka.produce(f"{prefix}.intake", range(100), rtd_type="t")
    wait_until(lambda: waiting(retryd, "t") == 200, 90, "the second hundred")
    assert retryd.metric("retryd_kafka_batches_fenced_total") == 0


def test_a_server_stops_although_its_broker_is_gone(kafka, start_retryd, prefix):
    retryd = start_retryd(settings(kafka, prefix))
    wait_until(lambda: "kafka_assigned" in retryd.log(), what="partitions")
    kafka.stop()
    try:
        begin = time.monotonic()
        assert retryd.stop() == 0
        assert time.monotonic() - begin < 15
    finally:
        kafka.start()


def test_two_nodes_share_the_partitions_and_hand_them_over(kafka, start_retryd, receiver, prefix):
    """Each has a store of its own: Kafka is told how far they are, so that the other goes on there."""
    kafka.create(f"{prefix}.intake", partitions=4)
    nodes = [start_retryd(settings(kafka, prefix), name=name) for name in "ab"]
    for node in nodes:
        make_type(node, "t", target={"url": receiver.url("/hook")})
    wait_until(lambda: all("kafka_assigned" in node.log() for node in nodes), 60, "partitions for both")
    kafka.produce(f"{prefix}.intake", range(200), rtd_type="t")
    receiver.wait(200, timeout=60)  # what a node has taken over stays with it
    assert nodes[0].stop() == 0
    kafka.produce(f"{prefix}.intake", range(200, 400), rtd_type="t")
    receiver.wait(400, timeout=90)
    assert sorted(map(int, bodies(receiver))) == list(range(400))


# ---- target -------------------------------------------------------------------------------------------------------------


def test_events_are_republished_with_key_headers_and_retry_count(kafka, start_retryd, prefix):
    kafka.create(f"{prefix}.again", partitions=3)
    retryd = start_retryd(settings(kafka, prefix, source_topics="none"))
    make_type(retryd, "t", target={"kafka_topic": f"{prefix}.again"})
    answer = retryd.post("/v1/events/t", data=b"the call", headers={"Content-Type": "text/plain", "Order-Key": "account 7",
                                                                    "Retry-Reason": "api1-5xx"})
    assert answer.status_code == 202, answer.text
    record = wait_until(lambda: kafka.records(f"{prefix}.again"), what="the record")[0]
    assert record[2] == "account 7"
    assert record[4] == "the call"
    assert record[3]["rtd-id"] == answer.json()["id"]
    assert record[3]["rtd-attempt"] == "1"
    assert record[3]["rtd-type"] == "t"
    assert record[3]["rtd-reason"] == "api1-5xx"
    assert record[3]["content-type"] == "text/plain"
    job = wait_until(lambda: (lambda job: job["state"] == "done" and job)(retryd.job(answer.json()["id"])), what="its end")
    assert job["attempts"] == 1


def test_a_topic_that_cannot_be_written_is_tried_again(kafka, start_retryd, prefix):
    retryd = start_retryd(settings(kafka, prefix, source_topics="none"))
    make_type(retryd, "t", target={"kafka_topic": f"{prefix}.later"},
              policy={**steady(1), "attempt_timeout": 1})  # more of them than a broker takes to start
    kafka.stop()
    try:
        answer = retryd.post("/v1/events/t", data=b"x")
        assert answer.status_code == 202, answer.text
        job = answer.json()["id"]
        failed = wait_until(lambda: retryd.attempts(job), what="a failed attempt")[0]
        assert failed["reason"] in ("connect", "timeout"), failed
    finally:
        kafka.start()
    wait_until(lambda: retryd.job(job)["state"] == "done", 90, "its end")
    # The first may have been written too, after it was given up: at least once.
    attempts = [int(record[3]["rtd-attempt"]) for record in kafka.records(f"{prefix}.later")]
    assert max(attempts) >= 2 and len(attempts) == len(set(attempts))


def test_a_record_that_is_too_large_for_the_topic_is_dead_at_once(kafka, start_retryd, prefix):
    kafka.create(f"{prefix}.small", **{"max_message_bytes": 2000})
    retryd = start_retryd(settings(kafka, prefix, source_topics="none"))
    make_type(retryd, "t", target={"kafka_topic": f"{prefix}.small"})
    answer = retryd.post("/v1/events/t", data=b"x" * 5000)
    job = answer.json()["id"]
    wait_until(lambda: retryd.job(job)["state"] == "dead", what="it to be given up")
    assert retryd.job(job)["attempts"] == 1


# ---- settings -----------------------------------------------------------------------------------------------------------


def test_properties_that_retryd_needs_cannot_be_changed_and_values_are_never_shown(kafka, start_retryd, tmp_path, prefix):
    properties = tmp_path / "kafka.properties"
    properties.write_text("# ours\nsasl.password=hunter2secret\nenable.idempotence=false\n")
    properties.chmod(0o600)
    retryd = start_retryd(settings(kafka, prefix, properties_file=str(properties)), wait=False)
    with pytest.raises(AssertionError, match="line 3: \"enable.idempotence\" is set by retryd"):
        retryd.start()
    retryd.process = None
    assert "hunter2secret" not in retryd.log()
