"""Zaqar's API: posting, listing, reading, deleting and popping messages."""
import json

import pytest

from zaqar import API, BODY, NOT_FOUND, bodies, other_client, pages, post, queue, raw, refused, server  # noqa: F401

TTL_RANGE = "The TTL for a message may not exceed 1209600 seconds, and must be at least 60 seconds long."
DELAY_RANGE = "The Delay TTL for a message may not exceed 900 seconds,and must be at least 0 seconds long."
LIMIT = "Limit must be at least 1 and may not be greater than 20."
ONE = {"body": 1}


def messages(server, queue, query="echo=true"):
    return server.get(f"/v2/queues/{queue}/messages?{query}")


# ---- posting ----------------------------------------------------------------------------------------------------------

def test_post_answers_where_each_message_is(server, queue):
    url = f"/v2/queues/{queue}/messages"
    answer = server.post(url, json={"messages": [{"body": {"n": i}} for i in range(3)]})
    assert answer.status_code == 201
    resources = answer.json()["resources"]
    ids = [resource.rsplit("/", 1)[1] for resource in resources]
    assert resources == [f"{url}/{id}" for id in ids]
    assert answer.headers["Location"] == f"{url}?ids={','.join(ids)}"
    assert bodies(server.get(answer.headers["Location"])) == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_bodies_come_back_as_the_text_they_were(server, queue):
    texts = ['{"b":1,  "a":[1.50,-0,1E3,"\\u00e9\\ud83d\\ude00","é"]}', "null", '""', "[ ]", '{"x":{"body":2,"ttl":3}}',
             "true", "12345678901234567.125", '"\\ud800"']
    body = '{"messages":[' + ",".join('{"body" :\t' + text + " }" for text in texts) + "]}"
    assert raw(server, "POST", f"/v2/queues/{queue}/messages", body.encode()).status_code == 201
    listed = messages(server, queue)
    for text in texts:
        assert f'"body": {text}}}' in listed.content.decode()
    assert [json.loads(text) for text in texts] == bodies(listed)


def test_of_a_field_that_is_there_twice_the_last_counts(server, queue):
    raw(server, "POST", f"/v2/queues/{queue}/messages",
        b'{"messages": [{"body": 0}], "messages": [{"body": 1, "ttl": 1, "body": 2, "ttl": 77, "other": 3}]}')
    [message] = messages(server, queue).json()["messages"]
    assert (message["body"], message["ttl"]) == (2, 77)


def test_a_message_is_shown_with_these_fields_in_this_order(server, queue):
    [id] = post(server, queue, {"body": "x", "ttl": 300})
    href = f"/v2/queues/{queue}/messages/{id}"
    message = server.get(href)
    assert message.status_code == 200
    assert list(message.json()) == ["id", "href", "ttl", "age", "body"]
    assert message.json() == {"id": id, "href": href, "ttl": 300, "age": message.json()["age"], "body": "x"}
    assert 0 <= message.json()["age"] < 60


def test_ttl_is_the_messages_the_queues_or_an_hour(server, queue):
    post(server, queue, ONE)
    assert messages(server, queue).json()["messages"][0]["ttl"] == 3600
    server.patch_queue(queue, {"op": "add", "path": "/metadata/_default_message_ttl", "value": 60})
    post(server, queue, ONE, {"body": 2, "ttl": 1209600})
    assert [m["ttl"] for m in messages(server, queue).json()["messages"]] == [3600, 60, 1209600]


@pytest.mark.parametrize("document,title,description", [
    ({}, API, "No messages were found in the request body."),
    ([ONE], API, "No messages were found in the request body."),
    ({"messages": []}, API, "No messages to enqueu."),
    ({"messages": {}}, BODY, "Document type not supported."),
    ({"messages": None}, BODY, "Document type not supported."),
    ({"messages": [1]}, BODY, "Document type not supported."),
    ({"messages": [[ONE]]}, BODY, "Document type not supported."),
    ({"messages": [{"ttl": 60}]}, BODY, 'Missing "body" field.'),
    ({"messages": [ONE, {"ttl": "60"}]}, BODY, 'The value of the "ttl" field must be a int.'),
    ({"messages": [{"body": 1, "ttl": 60.0}]}, BODY, 'The value of the "ttl" field must be a int.'),
    ({"messages": [{"body": 1, "ttl": None}]}, BODY, 'The value of the "ttl" field must be a int.'),
    ({"messages": [ONE, {"body": 1, "ttl": 59}]}, API, TTL_RANGE),
    ({"messages": [{"body": 1, "ttl": 1209601}]}, API, TTL_RANGE),
    ({"messages": [{"body": 1, "ttl": 0}]}, API, TTL_RANGE),
    ({"messages": [{"body": 1, "ttl": True}]}, API, TTL_RANGE),
    ({"messages": [ONE] * 1025}, API, "Message collection is too large. Max count 1024"),
])
def test_post_refuses_all_if_one_is_wrong(server, queue, document, title, description):
    refused(server.post(f"/v2/queues/{queue}/messages", json=document), 400, title, description)
    assert messages(server, queue).json()["messages"] == []


def test_post_is_bounded_by_size_before_it_is_parsed(server, queue):
    url = f"/v2/queues/{queue}/messages"
    shell = b'{"messages": [{"body": "%s"}]}'
    full = shell % (b"x" * (262144 - len(shell) + 2))
    assert len(full) == 262144
    assert raw(server, "POST", url, full).status_code == 201
    refused(raw(server, "POST", url, b"{" + full), 400, API, "Message collection size is too large. Max size 262144")


def test_a_queue_may_have_a_smaller_bound(server, queue):
    server.make_queue(queue, _max_messages_post_size=100)
    refused(server.post(f"/v2/queues/{queue}/messages", json={"messages": [{"body": "x" * 100}]}), 400, API,
            "Message collection size is too large. The max size for current queue is 100. It is calculated by max size = "
            "min(max_messages_post_size_config: 262144, max_messages_post_size_queue: 100).")
    post(server, queue, ONE)


def test_a_thousand_messages_in_one_post_keep_their_order(server, queue):
    ids = post(server, queue, *[{"body": i} for i in range(1024)])
    assert len(set(ids)) == 1024
    found = pages(server, f"/v2/queues/{queue}/messages?echo=true", "messages", 20)
    assert [m["body"] for page in found for m in page] == list(range(1024))


# ---- delays -----------------------------------------------------------------------------------------------------------

def test_delays_count_only_where_the_queue_has_one(server, queue):
    post(server, queue, {"body": 1, "delay": "nonsense"}, {"body": 2, "delay": 5000})
    assert bodies(messages(server, queue)) == [1, 2]
    server.patch_queue(queue, {"op": "add", "path": "/metadata/_default_message_delay", "value": 900})
    post(server, queue, {"body": 3}, {"body": 4, "delay": 0}, {"body": 5, "delay": 60})
    assert bodies(messages(server, queue)) == [1, 2, 4]
    assert bodies(messages(server, queue, "echo=true&include_delayed=true")) == [1, 2, 3, 4, 5]
    assert len(server.post(f"/v2/queues/{queue}/claims").json()["messages"]) == 3


@pytest.mark.parametrize("delay,title,description", [
    (-1, API, DELAY_RANGE), (901, API, DELAY_RANGE), ("1", BODY, 'The value of the "delay" field must be a int.')])
def test_delays_are_checked_where_they_count(server, queue, delay, title, description):
    server.make_queue(queue, _default_message_delay=1)
    refused(server.post(f"/v2/queues/{queue}/messages", json={"messages": [{"body": 1, "delay": delay}]}), 400, title,
            description)


# ---- listing ----------------------------------------------------------------------------------------------------------

def test_list_hides_the_askers_own_messages_unless_echoed(server, queue):
    post(server, queue, ONE)
    assert messages(server, queue, "").json() == {"messages": [], "links": []}
    assert messages(server, queue, "echo=false").json()["messages"] == []
    assert bodies(messages(server, queue)) == [1]
    assert bodies(server.get(f"/v2/queues/{queue}/messages", headers=other_client())) == [1]
    spelling = server.session.headers["Client-ID"].replace("-", "").upper()
    assert bodies(server.get(f"/v2/queues/{queue}/messages", headers={"Client-ID": spelling})) == []


def test_list_pages_in_order_with_links_that_lead_on(server, queue):
    ids = post(server, queue, *[{"body": i} for i in range(5)])
    first = messages(server, queue, "limit=2&echo=true").json()
    assert [m["body"] for m in first["messages"]] == [0, 1]
    url = f"/v2/queues/{queue}/messages"
    assert first["links"] == [
        {"rel": "next", "href": f"{url}?limit=2&echo=true&include_delayed=true&marker={ids[1]}"}]
    found = pages(server, url + "?echo=true", "messages", 2)
    assert [[m["body"] for m in page] for page in found] == [[0, 1], [2, 3], [4]]
    assert bodies(messages(server, queue, f"echo=true&marker={ids[2]}")) == [3, 4]
    server.delete(f"/v2/queues/{queue}/messages/{ids[2]}")
    assert bodies(messages(server, queue, f"echo=true&marker={ids[2]}")) == [3, 4]


def test_list_of_a_delayed_queue_says_nothing_about_delays(server, queue):
    server.make_queue(queue, _default_message_delay=60)
    post(server, queue, {"body": 1, "delay": 0})
    assert "include_delayed" not in messages(server, queue).json()["links"][0]["href"]


def test_list_gives_ten_unless_asked_otherwise(server, queue):
    post(server, queue, *[{"body": i} for i in range(25)])
    assert bodies(messages(server, queue)) == list(range(10))
    assert bodies(messages(server, queue, "echo=true&limit=20")) == list(range(20))
    for limit in ["0", "21", "-1"]:
        refused(messages(server, queue, f"limit={limit}"), 400, API, LIMIT)
    refused(messages(server, queue, "echo=maybe"), 400, "Invalid parameter",
            'The "echo" parameter is invalid. The value of the parameter must be "true" or "false".')


@pytest.mark.parametrize("marker", ["nonsense", "0" * 24, "f" * 24, "%C3%A9"])
def test_a_marker_that_is_none_leads_nowhere(server, queue, marker):
    post(server, queue, ONE)
    assert messages(server, queue, f"echo=true&marker={marker}").json() == {"messages": [], "links": []}


def test_list_shows_claimed_messages_only_when_asked(server, queue):
    ids = post(server, queue, *[{"body": i} for i in range(3)])
    claim = server.post(f"/v2/queues/{queue}/claims?limit=1").headers["Location"].rsplit("/", 1)[1]
    assert bodies(messages(server, queue)) == [1, 2]
    shown = messages(server, queue, "echo=true&include_claimed=true").json()["messages"]
    assert [m["body"] for m in shown] == [0, 1, 2]
    assert shown[0]["href"] == f"/v2/queues/{queue}/messages/{ids[0]}?claim_id={claim}"
    assert shown[1]["href"] == f"/v2/queues/{queue}/messages/{ids[1]}"


def test_a_queue_that_is_not_there_has_no_messages(server, queue):
    assert messages(server, queue).json() == {"messages": [], "links": []}


# ---- by id ------------------------------------------------------------------------------------------------------------

def test_get_by_ids_passes_over_unknown_ones(server, queue):
    ids = post(server, queue, *[{"body": i} for i in range(3)])
    answer = messages(server, queue, f"ids={ids[2]},nosuch&ids={ids[0]}")
    assert list(answer.json()) == ["messages"]
    assert bodies(answer) == [2, 0]
    refused(messages(server, queue, "ids=nosuch"), 404, NOT_FOUND,
            f"No messages with IDs: ['nosuch'] found in the queue {queue} for project p.")
    refused(messages(server, queue, "ids=a,it's"), 404, NOT_FOUND,
            f"No messages with IDs: ['a', \"it's\"] found in the queue {queue} for project p.")
    refused(messages(server, queue, "ids=" + ",".join(["x"] * 21)), 400, API, LIMIT)


def test_get_of_one_that_is_not_there(server, queue):
    [id] = post(server, queue, ONE)
    for url in [f"/v2/queues/{queue}/messages/nosuch", f"/v2/queues/{queue}x/messages/{id}"]:
        name = url.split("/")[3]
        refused(server.get(url), 404, NOT_FOUND,
                f"Message {url.rsplit('/', 1)[1]} does not exist in queue {name} for project p")


# ---- deleting ---------------------------------------------------------------------------------------------------------

def test_delete_one_is_done_once_and_for_all(server, queue):
    [id] = post(server, queue, ONE)
    url = f"/v2/queues/{queue}/messages/{id}"
    assert (server.delete(url).status_code, server.delete(url).status_code) == (204, 204)
    assert server.get(url).status_code == 404
    assert server.delete(f"/v2/queues/{queue}/messages/nosuch").status_code == 204
    assert server.delete(f"/v2/queues/{queue}x/messages/{id}").status_code == 204


def test_delete_of_a_claimed_message_wants_its_claim(server, queue):
    ids = post(server, queue, ONE, ONE, ONE)
    locations = [server.post(f"/v2/queues/{queue}/claims?limit=1").headers["Location"] for _ in range(2)]
    claims = [location.rsplit("/", 1)[1] for location in locations]
    url = f"/v2/queues/{queue}/messages/"
    title = "Unable to delete"
    claimed = "This message is claimed; it cannot be deleted without a valid claim ID."
    refused(server.delete(url + ids[0]), 403, title, claimed)
    refused(server.delete(url + ids[0] + "?claim_id=" + claims[1]), 403, title, claimed)
    for claim in ["nosuch", "0" * 24]:
        refused(server.delete(url + ids[0] + "?claim_id=" + claim), 400, title,
                "The specified claim does not exist or has expired.")
    refused(server.delete(url + ids[2] + "?claim_id=" + claims[0]), 400, title,
            "A claim was specified, but the message is not currently claimed.")
    assert server.delete(url + ids[0] + "?claim_id=" + claims[0]).status_code == 204
    assert server.get(url + ids[0]).status_code == 404


def test_delete_many_takes_claimed_ones_too(server, queue):
    ids = post(server, queue, *[{"body": i} for i in range(4)])
    server.post(f"/v2/queues/{queue}/claims?limit=1")
    answer = server.delete(f"/v2/queues/{queue}/messages?ids={ids[0]},nosuch,{ids[2]}&ids={ids[0]}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert bodies(messages(server, queue, "echo=true&include_claimed=true")) == [1, 3]


@pytest.mark.parametrize("query,description", [
    ("", 'The request should have either "ids" or "pop" parameter in the request, to be able to delete.'),
    ("ids=&pop=", 'The request should have either "ids" or "pop" parameter in the request, to be able to delete.'),
    ("ids=a&pop=1", "pop and id params cannot be present together in the delete request."),
    ("pop=0", "Pop value must be at least 1 and may not be greater than 20."),
    ("pop=21", "Pop value must be at least 1 and may not be greater than 20."),
    ("ids=" + ",".join(["x"] * 21), "ids parameter should have at least 1 and not greater than 20 values."),
])
def test_delete_many_refuses(server, queue, query, description):
    refused(server.delete(f"/v2/queues/{queue}/messages?{query}"), 400, API, description)


def test_pop_hands_out_and_deletes_the_first_ones(server, queue):
    ids = post(server, queue, *[{"body": {"n": i}, "ttl": 60} for i in range(3)])
    server.post(f"/v2/queues/{queue}/claims?limit=1")
    answer = server.delete(f"/v2/queues/{queue}/messages?pop=20")
    assert answer.status_code == 200
    [first, second] = answer.json()["messages"]
    assert first == {"id": ids[1], "age": first["age"], "ttl": 60, "claim_count": 0, "body": {"n": 1}, "claim_id": None}
    assert second["id"] == ids[2]
    assert server.delete(f"/v2/queues/{queue}/messages?pop=1").json() == {"messages": []}
    assert server.delete(f"/v2/queues/{queue}x/messages?pop=1").json() == {"messages": []}
