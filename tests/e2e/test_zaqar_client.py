"""python3-zaqarclient, unmodified, against retryd."""
import uuid

import pytest

client_module = pytest.importorskip("zaqarclient.queues.v2.client")
from zaqarclient.queues import client as factory  # noqa: E402
from zaqarclient.queues.v2 import core  # noqa: E402
from zaqarclient.transport import errors  # noqa: E402

from zaqar import queue, server  # noqa: E402,F401


def connect(server, project="p", **more):
    conf = {"client_uuid": str(uuid.uuid4()),
            "auth_opts": {"backend": "noauth", "options": {"os_project_id": project, **more}}}
    return factory.Client(server.url, 2, conf)


@pytest.fixture
def client(server):
    return connect(server)


def test_client_pings_and_reads_health_and_home(client):
    assert client.ping()
    assert client.health()["storage_reachable"] is True
    assert "rel/queue" in client.homedoc()["resources"]


def test_client_creates_lists_and_deletes_queues(start_retryd):
    client = connect(start_retryd())
    for i in range(23):
        client.queue(f"q{i:02}", force_create=True)
    found, count = client.queues(limit=5, detailed=True, with_count=True)
    assert count == 23
    assert [q.name for q in found] == [f"q{i:02}" for i in range(5)]
    found, _ = client.queues(limit=5)
    names = [q.name for q in found.stream()]
    assert names == [f"q{i:02}" for i in range(23)]
    client.queue("q07").delete()
    found, _ = client.queues(marker="q06", limit=1)
    assert [q.name for q in found] == ["q08"]


def test_client_changes_metadata(client, queue):
    q = client.queue(queue, force_create=True)
    q.metadata(new_meta={"colour": "red", "_default_message_ttl": 70})
    assert q.metadata(force_reload=True)["colour"] == "red"
    q.metadata(new_meta={"size": {"a": [1]}})
    now = q.metadata(force_reload=True)
    assert now["size"] == {"a": [1]} and "colour" not in now and now["_default_message_ttl"] == 3600
    with pytest.raises(errors.MalformedRequest):
        q.metadata(new_meta={"_default_message_ttl": 1})


def test_client_posts_reads_and_deletes_messages(server, client, queue):
    q = client.queue(queue)
    refs = q.post([{"body": {"n": i}, "ttl": 60 + i} for i in range(15)])["resources"]
    ids = [ref.rsplit("/", 1)[1] for ref in refs]
    assert list(q.messages()) == []
    shown = list(q.messages(echo=True, limit=4).stream())
    assert [(m.id, m.body, m.ttl) for m in shown] == [(ids[i], {"n": i}, 60 + i) for i in range(15)]
    assert [m.body["n"] for m in connect(server).queue(queue).messages(limit=3)] == [0, 1, 2]
    message = q.message(ids[3])
    assert message.body == {"n": 3}
    message.delete()
    with pytest.raises(errors.ResourceNotFound):
        q.message(ids[3])
    q.delete_messages(ids[4], ids[5])
    assert [m.body["n"] for m in q.pop(count=4)] == [0, 1, 2, 6]
    assert q.stats["messages"]["total"] == 8


def test_client_refusals_are_its_own_errors(client, queue):
    q = client.queue(queue)
    with pytest.raises(errors.MalformedRequest) as refused:
        q.post({"body": 1, "ttl": 1})
    assert "The TTL for a message may not exceed 1209600 seconds" in str(refused.value)
    with pytest.raises(errors.MalformedRequest):
        q.messages(limit=21)


def test_client_claims_renews_and_finishes(client, queue):
    q = client.queue(queue)
    q.post([{"body": i, "ttl": 300} for i in range(4)])
    claim = q.claim(ttl=100, grace=60, limit=2)
    taken = list(claim)
    assert [m.body for m in taken] == [0, 1]
    assert taken[0].claim_id == claim.id
    request, transport = client._request_and_transport()
    with pytest.raises(errors.ForbiddenError):
        core.message_delete(transport, request, queue, taken[0].id)
    taken[0].delete()
    claim.update(ttl=200, grace=60)
    assert q.claim(id=claim.id).ttl == 200
    assert [m.body for m in q.claim(id=claim.id)] == [1]
    claim.delete()
    assert [m.body for m in q.claim(ttl=60, grace=60)] == [1, 2, 3]
    assert list(q.claim(ttl=60, grace=60)) == []


def test_client_subscribes(client, receiver, queue):
    q = client.queue(queue)
    made = client.subscription(queue, subscriber=receiver.url("/hook"), ttl=120, options={"a": 1})
    assert (made.ttl, made.options, made.confirmed) == (120, {"a": 1}, False)
    for i in range(3):
        client.subscription(queue, subscriber=receiver.url(f"/other{i}"), ttl=120)
    assert len(list(client.subscriptions(queue, limit=2).stream())) == 4
    assert [s.subscriber for s in q.subscriptions()][0] == receiver.url("/hook")
    made.update({"ttl": 600})
    assert client.subscription(queue, id=made.id, auto_create=True).ttl == 600
    q.post({"body": "hello", "ttl": 60})
    assert receiver.wait(1, "/hook")[0].message == "hello"
    made.delete()
    with pytest.raises(errors.ResourceNotFound):
        client.subscription(queue, id=made.id)


def test_client_purges(client, queue):
    q = client.queue(queue)
    q.post({"body": 1, "ttl": 60})
    client.subscription(queue, subscriber="http://127.0.0.1:9/", ttl=60)
    q.purge(resource_types=["messages"])
    assert q.stats["messages"]["total"] == 0
    assert len(list(q.subscriptions())) == 1
    q.purge()
    assert list(q.subscriptions()) == []


def test_client_uses_signed_urls(server, client, queue):
    q = client.queue(queue)
    q.post({"body": "shared", "ttl": 60})
    signed = q.signed_url(paths=["messages"], ttl_seconds=600, methods=["GET"])
    options = {name: signed[name] for name in ["signature", "expires", "methods", "paths"]}
    conf = {"client_uuid": str(uuid.uuid4()),
            "auth_opts": {"backend": "signed-url", "options": {**options, "os_project_id": signed["project"]}}}
    guest = factory.Client(server.url, 2, conf).queue(queue)
    assert [m.body for m in guest.messages()] == ["shared"]
    with pytest.raises(errors.ResourceNotFound):
        guest.post({"body": 1, "ttl": 60})
    with pytest.raises(errors.ResourceNotFound):
        guest.stats
