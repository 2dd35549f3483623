"""Zaqar's API: subscriptions, their options, and confirming them."""
import json

import pytest

from zaqar import API, BODY, NOT_FOUND, CLIENT, pages, post, queue, raw, refused, server  # noqa: F401

TYPES = ("The subscriber type of subscription must be supported in the list "
         "['http', 'https', 'mailto', 'trust+http', 'trust+https'].")
TAKEN = "Subscriptions are unique by project + queue + subscriber URI."
HOOK = "http://127.0.0.1:9/hook"
SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


def subscribe(server, queue, **document):
    return server.post(f"/v2/queues/{queue}/subscriptions", json={"subscriber": HOOK, **document})


# ---- creating ---------------------------------------------------------------------------------------------------------

def test_subscription_is_created_and_shown(server, queue):
    options = {"_retry_policy": {"minimum_delay": 5}, "z": [1, {"y": None}], "a": "é"}
    answer = subscribe(server, queue, ttl=300, options=options)
    assert answer.status_code == 201
    assert list(answer.json()) == ["subscription_id"]
    url = f"/v2/queues/{queue}/subscriptions"
    assert answer.headers["Location"] == url
    id = answer.json()["subscription_id"]
    shown = server.get(f"{url}/{id}")
    assert shown.status_code == 200
    assert list(shown.json()) == ["id", "source", "subscriber", "ttl", "age", "options", "confirmed"]
    assert shown.json() == {"id": id, "source": queue, "subscriber": HOOK, "ttl": 300, "age": shown.json()["age"],
                            "options": options, "confirmed": False}
    assert list(shown.json()["options"]) == list(options)
    assert 0 <= shown.json()["age"] < 60


def test_subscription_lives_an_hour_unless_asked_otherwise(server, queue):
    id = subscribe(server, queue).json()["subscription_id"]
    shown = server.get(f"/v2/queues/{queue}/subscriptions/{id}").json()
    assert (shown["ttl"], shown["options"]) == (3600, {})


def test_the_same_subscriber_is_the_same_subscription_until_it_is_confirmed(server, queue):
    first = subscribe(server, queue, ttl=300)
    again = subscribe(server, queue, ttl=400, options={"a": 1})
    assert (again.status_code, again.json()) == (201, first.json())
    url = f"/v2/queues/{queue}/subscriptions/{first.json()['subscription_id']}"
    assert (server.get(url).json()["ttl"], server.get(url).json()["options"]) == (300, {})
    server.put(url + "/confirm", json={"confirmed": True})
    taken = subscribe(server, queue)
    refused(taken, 409, "Resource conflict", "Such subscription already exists." + TAKEN)
    assert taken.headers["Location"] == f"/v2/queues/{queue}/subscriptions"
    assert subscribe(server, queue, subscriber=HOOK + "2").status_code == 201
    assert subscribe(server, queue + "x").status_code == 201


@pytest.mark.parametrize("document,description", [
    ({}, "Missing parameter subscriber in body."),
    ({"ttl": 60}, "Missing parameter subscriber in body."),
    ([], "Subscriptions must be a dict."),
    ({"subscriber": ""}, TYPES),
    ({"subscriber": None}, TYPES),
    ({"subscriber": 5}, TYPES),
    ({"subscriber": "fake"}, TYPES),
    ({"subscriber": "ftp://h/"}, TYPES),
    ({"subscriber": HOOK, "options": [1]}, "Options must be a dict."),
    ({"subscriber": HOOK, "options": "x"}, "Options must be a dict."),
    ({"subscriber": HOOK, "ttl": "60"}, "TTL must be an integer."),
    ({"subscriber": HOOK, "ttl": 60.5}, "TTL must be an integer."),
    ({"subscriber": HOOK, "ttl": None}, "TTL must be an integer."),
    ({"subscriber": HOOK, "ttl": 0}, "The TTL for a subscription must be at least 60 seconds long."),
    ({"subscriber": HOOK, "ttl": 59}, "The TTL for a subscription must be at least 60 seconds long."),
    ({"subscriber": HOOK, "ttl": 2 ** 63 - 1},
     "The TTL seconds for a subscription plus current time must be less than 9999-12-31 23:59:59.999999."),
    ({"subscriber": HOOK, "options": {"_retry_policy": 1}}, "retry_policy must be a dict."),
    ({"subscriber": HOOK, "options": {"_retry_policy": {"maximum_delay": "x"}}},
     "Retry policy: maximum_delay must be a integer."),
    ({"subscriber": HOOK, "options": {"_retry_policy": {"retry_backoff_function": "x"}}},
     "invalid retry_backoff_function."),
    ({"subscriber": HOOK, "options": {"_retry_policy": {"minimum_delay": 60, "maximum_delay": 30}}},
     "minimum_delay must less than maximum_delay."),
    ({"subscriber": HOOK, "options": {"_retry_policy": {"minimum_delay": 51}}},
     "invalid minimum_delay and maximum_delay."),
])
def test_subscribing_is_refused_with_zaqars_words(server, queue, document, description):
    refused(server.post(f"/v2/queues/{queue}/subscriptions", json=document), 400, API, description)


def test_no_body_lacks_a_subscriber(server, queue):
    refused(server.post(f"/v2/queues/{queue}/subscriptions"), 400, API, "Missing parameter subscriber in body.")


@pytest.mark.parametrize("document,word", [
    ({"subscriber": "trust+http://h/"}, "Keystone"),
    ({"subscriber": "trust+https://h/"}, "Keystone"),
    ({"subscriber": "http://h/" + "a" * 2048}, "2048"),
    ({"subscriber": "http://h/a b"}, "percent-encoded"),
    ({"subscriber": "http://h/\r\nX: 1"}, "percent-encoded"),
    ({"subscriber": "http://"}, "host"),
    ({"subscriber": "mailto:nobody"}, "mail address"),
    ({"subscriber": HOOK, "options": {"post_headers": {"X": "a\r\nY: b"}}}, "control characters"),
    ({"subscriber": HOOK, "options": {"post_headers": {"Host": "b"}}}, "Host"),
    ({"subscriber": HOOK, "options": {"_post_headers": {"Content-Length": "0"}}}, "Content-Length"),
    ({"subscriber": HOOK, "options": {"post_headers": {"a b": "c"}}}, "name of a header"),
    ({"subscriber": HOOK, "options": {"post_data": [1]}}, "post_data"),
    ({"subscriber": HOOK, "options": {"secret": "plain"}}, "whsec_"),
    ({"subscriber": HOOK, "options": {"secret": [SECRET] * 3}}, "whsec_"),
    ({"subscriber": HOOK, "options": {"x": "y" * 65536}}, "65536"),
    ({"subscriber": "http://10.0.0.1/"}, "delivery.allow_networks"),
    ({"subscriber": "http://[::ffff:10.0.0.1]:80/"}, "delivery.allow_networks"),
    ({"subscriber": "http://user@192.168.0.1/"}, "delivery.allow_networks"),
])
def test_subscribing_is_refused_with_a_reason(server, queue, document, word):
    answer = server.post(f"/v2/queues/{queue}/subscriptions", json=document)
    assert (answer.status_code, answer.json()["title"]) == (400, API)
    assert word in answer.json()["description"]


@pytest.mark.parametrize("subscriber", ["http://127.0.0.1", "https://example.com:8443/a?b=c#d", "HTTP://127.0.0.1/",
                                        "mailto:aa@example.com?subject=x", "http://u:p@127.0.0.1/"])
def test_subscribers_of_every_type(server, queue, subscriber):
    assert subscribe(server, queue, subscriber=subscriber).status_code == 201


# ---- listing, changing, deleting --------------------------------------------------------------------------------------

def test_list_pages_through_all(server, queue):
    url = f"/v2/queues/{queue}/subscriptions"
    assert server.get(url).json() == {"subscriptions": [], "links": []}
    ids = [subscribe(server, queue, subscriber=f"{HOOK}{i}").json()["subscription_id"] for i in range(25)]
    assert [s["id"] for page in pages(server, url, "subscriptions", 7) for s in page] == ids
    first = server.get(url).json()
    assert [s["id"] for s in first["subscriptions"]] == ids[:10]
    assert first["links"] == [{"rel": "next", "href": f"{url}?marker={ids[9]}"}]
    assert first["subscriptions"][0] == server.get(f"{url}/{ids[0]}").json()
    assert server.get(url + "?limit=2").json()["links"][0]["href"] == f"{url}?limit=2&marker={ids[1]}"
    assert server.get(url + "?marker=nonsense").json() == {"subscriptions": [], "links": []}
    for limit in ["0", "21"]:
        refused(server.get(f"{url}?limit={limit}"), 400, API,
                "Limit must be at least 1 and may not be greater than 20.")


def test_patch_changes_what_it_names(server, queue):
    id = subscribe(server, queue, ttl=300, options={"a": 1}).json()["subscription_id"]
    url = f"/v2/queues/{queue}/subscriptions/{id}"
    answer = server.patch(url, json={"ttl": 1000})
    assert (answer.status_code, answer.content, answer.headers["Location"]) == (204, b"", url)
    assert (server.get(url).json()["ttl"], server.get(url).json()["options"]) == (1000, {"a": 1})
    assert server.patch(url, json={"options": {"b": 2}, "unknown": 1}).status_code == 204
    assert (server.get(url).json()["ttl"], server.get(url).json()["options"]) == (1000, {"b": 2})
    assert server.patch(url, json={"subscriber": HOOK + "new"}).status_code == 204
    assert server.get(url).json()["subscriber"] == HOOK + "new"
    assert subscribe(server, queue).json()["subscription_id"] != id


def test_patch_refuses(server, queue):
    id = subscribe(server, queue).json()["subscription_id"]
    subscribe(server, queue, subscriber=HOOK + "2")
    url = f"/v2/queues/{queue}/subscriptions/{id}"
    refused(server.patch(url, json={}), 400, API, "No subscription to create.")
    refused(server.patch(url), 400, API, "No subscription to create.")
    refused(server.patch(url, json={"unknown": 1}), 400, "Unable to update subscription",
            f"Subscription {id} could not be updated.")
    refused(server.patch(url, json={"subscriber": HOOK + "2"}), 409, "Resource conflict",
            "Such subscription already exists. " + TAKEN)
    refused(server.patch(url, json={"subscriber": "fake"}), 400, API, TYPES)
    refused(server.patch(url, json={"ttl": 1}), 400, API,
            "The TTL for a subscription must be at least 60 seconds long.")
    refused(server.patch(url, json={"options": 5}), 400, API, "Options must be a dict.")
    assert server.patch(url, json={"subscriber": HOOK}).status_code == 204


def test_delete_is_done_once_and_for_all(server, queue):
    id = subscribe(server, queue).json()["subscription_id"]
    url = f"/v2/queues/{queue}/subscriptions/{id}"
    assert (server.delete(url).status_code, server.delete(url).status_code) == (204, 204)
    assert server.delete(f"/v2/queues/{queue}/subscriptions/nosuch").status_code == 204
    assert subscribe(server, queue).json()["subscription_id"] != id


@pytest.mark.parametrize("id", ["nosuch", "0" * 24])
def test_subscriptions_that_are_not_there(server, queue, id):
    server.make_queue(queue)
    url = f"/v2/queues/{queue}/subscriptions/{id}"
    text = f"Subscription {id} does not exist"
    refused(server.get(url), 404, NOT_FOUND, text)
    refused(server.patch(url, json={"ttl": 60}), 404, NOT_FOUND, text)
    refused(server.put(url + "/confirm", json={"confirmed": True}), 404, NOT_FOUND, text)


def test_subscriptions_of_one_queue_are_none_of_another(server, queue):
    id = subscribe(server, queue).json()["subscription_id"]
    subscribe(server, queue + "x")
    url = f"/v2/queues/{queue}x/subscriptions/{id}"
    assert server.get(url).status_code == 404
    server.delete(url)
    assert server.get(f"/v2/queues/{queue}/subscriptions/{id}").status_code == 200


# ---- confirming -------------------------------------------------------------------------------------------------------

def test_confirm_wants_a_bool(server, queue):
    url = f"/v2/queues/{queue}/subscriptions/" + subscribe(server, queue).json()["subscription_id"]
    for body in [{"confirmed": 1}, {"confirmed": "true"}, {"confirmed": None}, {}, [], None]:
        refused(server.put(url + "/confirm", json=body), 400, API, "The 'confirmed' should be boolean.")
    answer = server.put(url + "/confirm", json={"confirmed": True})
    assert (answer.status_code, answer.headers["Location"]) == (204, url + "/confirm")
    assert server.get(url).json()["confirmed"] is True
    assert server.put(url + "/confirm", json={"confirmed": False}).status_code == 204
    assert server.get(url).json()["confirmed"] is False


def test_subscriber_confirms_with_what_it_was_sent(start_retryd, receiver, queue):
    server = start_retryd({"notification.require_confirmation": "true"})
    id = server.subscribe(queue, receiver.url("/hook"))
    [asked] = receiver.wait(1, "/hook")
    url = f"/v2/queues/{queue}/subscriptions/{id}"
    said = asked.json
    signed = {name: said[name] for name in ["URL-Signature", "URL-Methods", "URL-Paths", "X-Project-ID", "URL-Expires"]}
    assert said == {"Message_Type": "SubscriptionConfirmation",
                    "Message": f"You have chosen to subscribe to the queue: {queue}", **signed,
                    "URL-Methods": "PUT", "URL-Paths": url + "/confirm", "X-Project-ID": "p",
                    "SubscribeBody": {"confirmed": True}, "UnsubscribeBody": {"confirmed": False}, "queue_name": queue}

    post(server, queue, {"body": "too early"})
    assert server.put(url + "/confirm", json=said["SubscribeBody"], headers=signed).status_code == 204
    post(server, queue, {"body": "in time"})
    assert [r.json.get("body") for r in receiver.wait(2, "/hook")] == [None, "in time"]

    forged = {**signed, "URL-Paths": url.replace(id, "0" * 24) + "/confirm"}
    refused(server.put(url + "/confirm", json={"confirmed": False}, headers=forged), 404, "404 Not Found")

    assert server.put(url + "/confirm", json=said["UnsubscribeBody"], headers=signed).status_code == 204
    goodbye = receiver.wait(3, "/hook")[2].json
    assert goodbye["Message_Type"] == "UnsubscribeConfirmation"
    assert goodbye["Message"] == (f"You have unsubscribed successfully to the queue: {queue}, you can resubscribe it by "
                                  "using confirmed=True.")
    post(server, queue, {"body": "too late"})
    assert server.put(url + "/confirm", json={"confirmed": True}, headers={
        name: goodbye[name] for name in signed}).status_code == 204
    post(server, queue, {"body": "again"})
    assert receiver.wait(4, "/hook")[3].message == "again"


def test_subscribing_again_asks_again(start_retryd, receiver, queue):
    server = start_retryd({"notification.require_confirmation": "true"})
    server.subscribe(queue, receiver.url("/hook"))
    receiver.wait(1, "/hook")
    server.subscribe(queue, receiver.url("/hook"))
    first, second = receiver.wait(2, "/hook")
    assert first.json["URL-Paths"] == second.json["URL-Paths"]


# ---- what is sent -----------------------------------------------------------------------------------------------------

def test_notice_is_zaqars(server, receiver, queue):
    server.subscribe(queue, receiver.url("/plain"))
    server.subscribe(queue, receiver.url("/form"), post_data='{"text": "$zaqar_message$", "n": 1}',
                     post_headers={"X-Key": "value", "Content-Type": "application/x-own"})
    server.subscribe(queue, receiver.url("/under"), _post_data={"text": "$zaqar_message$"}, _post_headers={"X-Key": "2"})
    raw(server, "POST", f"/v2/queues/{queue}/messages", '{"messages": [{"body": {"x":"é"}, "ttl": 300}]}'.encode())
    notice = f'{{"ttl": 300, "body": {{"x":"é"}}, "Message_Type": "Notification", "queue_name": "{queue}"}}'
    [plain] = receiver.wait(1, "/plain")
    assert plain.body.decode() == notice
    assert plain.headers["content-type"] == "application/json"
    [form] = receiver.wait(1, "/form")
    assert form.body.decode() == f'{{"text": {notice}, "n": 1}}'
    assert (form.headers["x-key"], form.headers["content-type"]) == ("value", "application/x-own")
    [under] = receiver.wait(1, "/under")
    assert (under.json["text"]["body"], under.headers["x-key"]) == ({"x": "é"}, "2")


def test_notice_of_a_delayed_queue_says_the_delay(server, receiver, queue):
    server.make_queue(queue, _default_message_delay=60)
    server.subscribe(queue, receiver.url("/" + queue))
    post(server, queue, {"body": 1, "delay": 5})
    [request] = receiver.wait(1, "/" + queue)
    assert json.loads(request.body)["delay"] == 5
