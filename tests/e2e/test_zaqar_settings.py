"""Zaqar's settings of the group [transport]: what they limit, and that refusals name the limit that is set."""
import uuid

from zaqar import API, BODY, PATCH, bodies, post, raw, refused  # noqa: F401


def start(start_retryd, **settings):
    return start_retryd({"transport." + name: str(value) for name, value in settings.items()})


def test_pages_are_as_large_as_they_may_be(start_retryd):
    server = start(start_retryd, max_queues_per_page=3, max_messages_per_page=100, max_subscriptions_per_page=2)
    for i in range(4):
        server.make_queue(f"q{i}")
        server.subscribe("q0", f"http://127.0.0.1:9/{i}")
    ids = post(server, "q0", *[{"body": i} for i in range(100)])
    assert len(server.get("/v2/queues").json()["queues"]) == 3
    refused(server.get("/v2/queues?limit=4"), 400, API, "Limit must be at least 1 and no greater than 3.")
    url = "/v2/queues/q0/messages"
    assert len(server.get(url + "?echo=true").json()["messages"]) == 10
    assert len(server.get(url + "?echo=true&limit=100").json()["messages"]) == 100
    assert bodies(server.get(f"{url}?ids={','.join(ids)}")) == list(range(100))
    refused(server.get(url + "?limit=101"), 400, API, "Limit must be at least 1 and may not be greater than 100.")
    assert server.delete(f"{url}?ids={','.join(ids)}").status_code == 204
    assert bodies(server.get(url + "?echo=true")) == []
    refused(server.delete(f"{url}?ids={','.join(ids)},one"), 400, API,
            "ids parameter should have at least 1 and not greater than 100 values.")
    assert len(server.get("/v2/queues/q0/subscriptions").json()["subscriptions"]) == 2
    refused(server.get("/v2/queues/q0/subscriptions?limit=3"), 400, API,
            "Limit must be at least 1 and may not be greater than 2.")


def test_claims_and_pops_take_as_many_as_they_may(start_retryd):
    server = start(start_retryd, max_messages_per_claim_or_pop=2, max_claim_ttl=100, max_claim_grace=90,
                   default_claim_ttl=80, default_claim_grace=70)
    post(server, "q", *[{"body": i, "ttl": 60} for i in range(5)])
    url = "/v2/queues/q"
    claimed = server.post(url + "/claims")
    assert [message["ttl"] for message in claimed.json()["messages"]] == [150, 150]  # 80 and 70: they would end before
    assert server.get(claimed.headers["Location"]).json()["ttl"] == 80
    refused(server.post(url + "/claims?limit=3"), 400, API, "Limit must be at least 1 and may not be greater than 2.")
    refused(server.post(url + "/claims", json={"ttl": 101}), 400, API,
            "The TTL for a claim may not exceed 100 seconds, and must be at least 60 seconds long.")
    refused(server.post(url + "/claims", json={"grace": 91}), 400, API,
            "The grace for a claim may not exceed 90 seconds, and must be at least 60 seconds long.")
    refused(server.delete(url + "/messages?pop=3"), 400, API, "Pop value must be at least 1 and may not be greater than 2.")
    assert len(server.delete(url + "/messages?pop=2").json()["messages"]) == 2


def test_sizes_are_bounded_as_is_set(start_retryd):
    server = start(start_retryd, max_queue_metadata=30, max_messages_post_size=200)
    refused(raw(server, "PUT", "/v2/queues/q", b'{"a": "' + b"x" * 30 + b'"}'), 400, API,
            "Queue metadata is too large. Max size: 30")
    assert server.get("/v2/queues/q").json()["_max_messages_post_size"] == 200
    refused(raw(server, "PUT", "/v2/queues/q", b'{"_max_messages_post_size":99999}'[:30]), 400, BODY,
            "Request body could not be parsed.")
    url = "/v2/queues/q/messages"
    refused(raw(server, "POST", url, b" " * 201), 400, API, "Message collection size is too large. Max size 200")


def test_metadata_that_grew_by_being_written_may_shrink(start_retryd):
    server = start(start_retryd, max_queue_metadata=60)
    sent = b'{"a":[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2],"b":1}'  # with a blank behind each comma it has more than 60
    assert raw(server, "PUT", "/v2/queues/q", sent).status_code == 201
    changes = [b'[{"op":"remove","path":"/metadata/b"}]', b'[{"op":"add","path":"/metadata/c","value":1}]']
    assert raw(server, "PATCH", "/v2/queues/q", changes[0], **PATCH).status_code == 200
    refused(raw(server, "PATCH", "/v2/queues/q", changes[1], **PATCH), 400, BODY,
            "Queue metadata is too large. Max size: 60")


def test_a_posts_size_comes_before_its_content(start_retryd):
    server = start_retryd()
    server.make_queue("small", _max_messages_post_size=100)
    size = ("Message collection size is too large. The max size for current queue is 100. It is calculated by max size = "
            "min(max_messages_post_size_config: 262144, max_messages_post_size_queue: 100).")
    for body in [b"x" * 101, b"[" + b" " * 100 + b"]", b"x" * 262145]:
        refused(raw(server, "POST", "/v2/queues/small/messages", body), 400, API, size)
    refused(raw(server, "POST", "/v2/queues/small/messages", b"x" * 100), 400, BODY, "Request body could not be parsed.")
    refused(raw(server, "POST", "/v2/queues/large/messages", b"x" * 262145), 400, API,
            "Message collection size is too large. Max size 262144")


def test_lives_and_delays_are_as_is_set(start_retryd):
    server = start(start_retryd, default_message_ttl=100, max_message_ttl=200, default_message_delay=30,
                   max_message_delay=40, default_subscription_ttl=90)
    shown = server.get("/v2/queues/q").json()
    assert (shown["_default_message_ttl"], shown["_default_message_delay"]) == (100, 30)
    url = "/v2/queues/q/messages"
    post(server, "q", {"body": "delayed"}, {"body": "at once", "delay": 0, "ttl": 200})
    assert [(m["body"], m["ttl"]) for m in server.get(url + "?echo=true").json()["messages"]] == [("at once", 200)]
    every = server.get(url + "?echo=true&include_delayed=true").json()["messages"]
    assert [(m["body"], m["ttl"]) for m in every] == [("delayed", 100), ("at once", 200)]
    refused(server.post(url, json={"messages": [{"body": 1, "ttl": 201}]}), 400, API,
            "The TTL for a message may not exceed 200 seconds, and must be at least 60 seconds long.")
    refused(server.post(url, json={"messages": [{"body": 1, "delay": 41}]}), 400, API,
            "The Delay TTL for a message may not exceed 40 seconds,and must be at least 0 seconds long.")
    refused(server.put("/v2/queues/r", json={"_default_message_ttl": 201}), 400, API,
            "_default_message_ttl can not exceed 200 seconds, and must be at least 60 seconds long.")
    id = server.subscribe("q", "http://127.0.0.1:9/")
    assert server.get(f"/v2/queues/q/subscriptions/{id}").json()["ttl"] == 90


def test_client_ids_need_be_no_uuids(start_retryd):
    server = start(start_retryd, client_id_uuid_safe="off", max_length_client_id=40)
    for length, right in [(9, False), (10, True), (40, True), (41, False)]:
        answer = server.get("/v2/queues", headers={"Client-ID": "c" * length})
        if right:
            assert answer.status_code == 200
        else:
            refused(answer, 400, "Length of client id must be at least 10 and no greater than 40.")
    post(server, "q", {"body": 1})  # of a client with a UUID, which is the same one in all its spellings
    url = "/v2/queues/q/messages"
    mine = server.session.headers["Client-ID"]
    for id, sees in [(mine, []), (uuid.UUID(mine).hex, []), ("c" * 10, [1])]:
        assert bodies(server.get(url, headers={"Client-ID": id})) == sees


def test_deleting_by_ids_wants_the_claims_that_hold_them(start_retryd):
    server = start(start_retryd, message_delete_with_claim_id="true")
    ids = post(server, "q", *[{"body": i} for i in range(4)])
    url = "/v2/queues/q/messages"
    claims = [server.post("/v2/queues/q/claims?limit=1").headers["Location"].rsplit("/", 1)[1] for _ in range(3)]
    both = ('The request should have both "ids" and "claim_ids" parameter in the request when '
            "message_delete_with_claim_id is True.")
    refused(server.delete(f"{url}?ids={ids[0]}"), 400, API, both)
    refused(server.delete(f"{url}?pop=1&claim_ids={claims[0]}"), 400, API, both)
    refused(server.delete(f"{url}?ids={ids[0]},{ids[2]}&claim_ids={claims[0]},{claims[1]}"), 403, "Unable to delete",
            "This message is claimed; it cannot be deleted without a valid claim ID.")
    refused(server.delete(f"{url}?ids={ids[0]},{ids[3]}&claim_ids={claims[0]}"), 400, "Unable to delete",
            "A claim was specified, but the message is not currently claimed.")
    assert bodies(server.get(url + "?echo=true&include_claimed=true")) == [0, 1, 2, 3]
    assert server.delete(f"{url}?ids={ids[0]},{ids[1]},nosuch&claim_ids={claims[0]},{claims[1]}").status_code == 204
    assert bodies(server.get(url + "?echo=true&include_claimed=true")) == [2, 3]
    assert len(server.delete(url + "?pop=1").json()["messages"]) == 1


def test_subscribers_are_of_the_types_that_are_set(start_retryd):
    server = start(start_retryd, subscriber_types="https, mailto")
    url = "/v2/queues/q/subscriptions"
    for subscriber in ["http://127.0.0.1:9/", "trust+https://127.0.0.1:9/", "https//127.0.0.1", ""]:
        refused(server.post(url, json={"subscriber": subscriber}), 400, API,
                "The subscriber type of subscription must be supported in the list ['https', 'mailto'].")
    assert server.post(url, json={"subscriber": "HTTPS://127.0.0.1:9/"}).status_code == 201
