"""Zaqar's API: topics, which are queues under another path, without claims."""
import pytest

from zaqar import NOT_FOUND, PATCH, names, pages, post, queue, raw, refused, server  # noqa: F401

SHOWN = {"_max_messages_post_size": 262144, "_default_message_ttl": 3600, "_default_message_delay": 0}


@pytest.fixture
def topic():
    return f"topic-{next(names)}"


def tell(server, topic, *bodies):
    answer = server.post(f"/v2/topics/{topic}/messages", json={"messages": [{"body": body} for body in bodies]})
    assert answer.status_code == 201, answer.text
    return answer


def test_topic_is_made_shown_changed_and_deleted(server, topic):
    url = f"/v2/topics/{topic}"
    made = server.put(url, json={"colour": "red"})
    assert (made.status_code, made.content, made.headers["Location"]) == (201, b"", url)
    assert server.put(url, json={"colour": "blue"}).status_code == 204
    assert server.get(url).json() == {"colour": "red", **SHOWN}
    changed = raw(server, "PATCH", url, b'[{"op": "replace", "path": "/metadata/colour", "value": "blue"}]', **PATCH)
    assert (changed.status_code, changed.json()) == (200, {"colour": "blue", **SHOWN})
    refused(raw(server, "PATCH", url, b'[{"op": "remove", "path": "/metadata/_max_claim_count"}]', **PATCH), 409,
            "Resource conflict", "Can't remove non-existent object _max_claim_count.")
    assert server.delete(url).status_code == 204
    assert server.get(url).json() == SHOWN
    refused(raw(server, "PATCH", url, b"[]", **PATCH), 404, NOT_FOUND, f"Topic {topic} does not exist for project p")


def test_topic_and_queue_of_one_name_are_two_things(server, topic):
    server.make_queue(topic, is_a="queue")
    server.put(f"/v2/topics/{topic}", json={"is_a": "topic"})
    assert server.get(f"/v2/queues/{topic}").json()["is_a"] == "queue"
    tell(server, topic, "of the topic")
    post(server, topic, {"body": "of the queue"})
    for kind in ["queue", "topic"]:
        found = server.get(f"/v2/{kind}s/{topic}/messages?echo=true").json()["messages"]
        assert [message["body"] for message in found] == [f"of the {kind}"]
        assert found[0]["href"] == f"/v2/{kind}s/{topic}/messages/{found[0]['id']}"
        other = "topic" if kind == "queue" else "queue"
        assert server.get(found[0]["href"]).status_code == 200
        assert server.get(found[0]["href"].replace(kind, other, 1)).status_code == 404
    assert server.delete(f"/v2/topics/{topic}").status_code == 204
    assert server.get(f"/v2/queues/{topic}").json()["is_a"] == "queue"
    assert len(server.get(f"/v2/queues/{topic}/messages?echo=true").json()["messages"]) == 1


def test_lists_hold_their_own_kind_only(start_retryd):
    server = start_retryd()
    for name in ["a", "Z", "_", "0", "-", ".b", "zz"]:
        server.make_queue(name, kind="queue")
        server.put(f"/v2/topics/{name}", json={"kind": "topic"})
    for kind in ["queues", "topics"]:
        found = pages(server, f"/v2/{kind}?detailed=true", kind, 3)
        assert [len(page) for page in found] == [3, 3, 1]
        rows = [row for page in found for row in page]
        assert [row["name"] for row in rows] == sorted(["a", "Z", "_", "0", "-", ".b", "zz"])
        assert {row["metadata"]["kind"] for row in rows} == {kind[:-1]}
        assert [row["href"] for row in rows] == [f"/v2/{kind}/{row['name']}" for row in rows]
        assert server.get(f"/v2/{kind}?with_count=true").json()["count"] == 7
        assert server.get(f"/v2/{kind}?marker=zz").json() == {kind: [], "links": []}
        assert [row["name"] for row in server.get(f"/v2/{kind}?name=z").json()[kind]] == ["zz"]
    assert server.get("/v2/topics", headers={"X-Project-ID": "another"}).json() == {"topics": [], "links": []}


def test_messages_of_a_topic_are_posted_listed_popped_and_counted(server, topic):
    url = f"/v2/topics/{topic}/messages"
    made = tell(server, topic, *range(4))
    ids = [resource.rsplit("/", 1)[1] for resource in made.json()["resources"]]
    assert made.json()["resources"] == [f"{url}/{id}" for id in ids]
    assert made.headers["Location"] == f"{url}?ids={','.join(ids)}"
    found = pages(server, url + "?echo=true", "messages", 3)
    assert [[message["body"] for message in page] for page in found] == [[0, 1, 2], [3]]
    stats = server.get(f"/v2/topics/{topic}/stats").json()["messages"]
    assert (stats["total"], stats["oldest"]["href"]) == (4, f"{url}/{ids[0]}")
    assert server.delete(f"{url}/{ids[0]}").status_code == 204
    assert [message["body"] for message in server.delete(url + "?pop=2").json()["messages"]] == [1, 2]
    refused(server.get(f"{url}/{ids[0]}"), 404, NOT_FOUND,
            f"Message {ids[0]} does not exist in queue {topic} for project p")
    assert server.post(f"/v2/topics/{topic}/purge").status_code == 204
    assert server.get(f"/v2/topics/{topic}/stats").json() == {"messages": {"claimed": 0, "free": 0, "total": 0}}


def test_subscribers_of_a_topic_are_told(server, receiver, topic):
    url = f"/v2/topics/{topic}/subscriptions"
    made = server.post(url, json={"subscriber": receiver.url("/" + topic)})
    assert (made.status_code, made.headers["Location"]) == (201, url)
    id = made.json()["subscription_id"]
    server.subscribe(topic, receiver.url("/queue"))
    tell(server, topic, {"n": 1})
    [told] = receiver.wait(1, "/" + topic)
    assert told.json == {"ttl": 3600, "body": {"n": 1}, "Message_Type": "Notification", "queue_name": topic}
    assert receiver.seen("/queue") == []
    assert server.get(f"{url}/{id}").json()["source"] == topic
    listed = server.get(url).json()
    assert [row["id"] for row in listed["subscriptions"]] == [id]
    assert listed["links"][0]["href"] == f"{url}?marker={id}"
    assert server.patch(f"{url}/{id}", json={"ttl": 70}).headers["Location"] == f"{url}/{id}"
    assert server.get(f"/v2/queues/{topic}/subscriptions/{id}").status_code == 404
    assert server.delete(f"{url}/{id}").status_code == 204
    assert server.get(f"{url}/{id}").status_code == 404


def test_subscriber_of_a_topic_confirms_under_its_path(start_retryd, receiver, topic):
    server = start_retryd({"notification.require_confirmation": "true"})
    url = f"/v2/topics/{topic}/subscriptions"
    id = server.post(url, json={"subscriber": receiver.url("/hook")}).json()["subscription_id"]
    said = receiver.wait(1, "/hook")[0].json
    assert said["URL-Paths"] == f"{url}/{id}/confirm"
    assert (said["queue_name"], said["Message"]) == (topic, f"You have chosen to subscribe to the queue: {topic}")
    signed = {name: said[name] for name in ["URL-Signature", "URL-Methods", "URL-Paths", "X-Project-ID", "URL-Expires"]}
    confirmed = server.put(said["URL-Paths"], json=said["SubscribeBody"], headers=signed)
    assert (confirmed.status_code, confirmed.headers["Location"]) == (204, f"{url}/{id}/confirm")
    tell(server, topic, "in time")
    assert receiver.wait(2, "/hook")[1].message == "in time"


def test_topics_have_no_claims_and_no_shared_urls(server, topic):
    for page in ["claims", "share"]:
        refused(server.post(f"/v2/topics/{topic}/{page}", json={}), 404, "404 Not Found")
    refused(server.put("/v2/topics/a@b"), 400, "Invalid topic identification",
            "The format of the submitted topic name or project id is not valid.")
    refused(server.put("/v2/queues/~" + topic), 400, "Invalid queue identification",
            "The format of the submitted queue name or project id is not valid.")
    assert server.put("/v2/topics/" + "t" * 64).status_code == 201
    assert server.put("/v2/topics/" + "t" * 65).status_code == 400


def test_operators_find_a_topic_by_its_mark(server, topic):
    tell(server, topic, 1)
    row = next(row for row in server.get("/v1/queues").json()["queues"] if row["name"] == f"p/~{topic}")
    assert (row["kind"], row["free"]) == ("messages", 1)
