"""Zaqar's API: queues, their metadata, statistics and purge."""
import concurrent.futures
import datetime
import re

import pytest

from zaqar import API, BODY, NOT_FOUND, PATCH, pages, post, queue, raw, refused, server  # noqa: F401

DEFAULTS = {"_max_messages_post_size": 262144, "_default_message_ttl": 3600, "_default_message_delay": 0,
            "_dead_letter_queue": None, "_dead_letter_queue_messages_ttl": None, "_max_claim_count": None,
            "_enable_encrypt_messages": False}


def patch(server, queue, operations):
    return server.patch(f"/v2/queues/{queue}", json=operations, headers=PATCH)


def test_put_creates_once_and_never_changes(server, queue):
    url = f"/v2/queues/{queue}"
    created = server.put(url, json={"a": 1})
    assert (created.status_code, created.content, created.headers["Location"]) == (201, b"", url)
    assert created.headers["Content-Type"] == "application/json"
    again = server.put(url, json={"a": 2})
    assert (again.status_code, again.content, again.headers["Location"]) == (204, b"", url)
    assert server.get(url).json() == {"a": 1, **DEFAULTS}
    refused(server.put(url, json={"_default_message_ttl": "x"}), 400, API, "_default_message_ttl must be integer.")


def test_put_without_a_body_makes_an_empty_queue(server, queue):
    assert server.put(f"/v2/queues/{queue}").status_code == 201
    assert server.get(f"/v2/queues/{queue}").json() == DEFAULTS


def test_a_queue_that_is_not_there_has_default_metadata(server, queue):
    answer = server.get(f"/v2/queues/{queue}")
    assert (answer.status_code, answer.json()) == (200, DEFAULTS)
    assert list(answer.json()) == list(DEFAULTS)


def test_metadata_keeps_its_order_and_its_text(server, queue):
    text = '{"z": "é", "a": 0.1, "_max_claim_count": 2, "b": {"y": [], "x": null}'
    raw(server, "PUT", f"/v2/queues/{queue}", (text + "}").encode())
    assert server.get(f"/v2/queues/{queue}").text.startswith(text + ', "_max_messages_post_size": 262144, ')


def test_names_are_case_sensitive_and_projects_apart(server, queue):
    server.put(f"/v2/queues/{queue}", json={"mine": 1})
    assert "mine" not in server.get(f"/v2/queues/{queue.upper()}").json()
    assert "mine" not in server.get(f"/v2/queues/{queue}", headers={"X-Project-ID": "another"}).json()
    names = [q["name"] for q in server.get("/v2/queues", headers={"X-Project-ID": "another"}).json()["queues"]]
    assert queue not in names


def test_metadata_is_bounded(server, queue):
    url = f"/v2/queues/{queue}"
    fits = b'{"a": "' + b"x" * (65536 - 9) + b'"}'
    assert raw(server, "PUT", url, fits).status_code == 201
    for method, title in [("PUT", API), ("PATCH", BODY)]:  # before anything else is looked at, its type included
        refused(raw(server, method, url, b" " + fits), 400, title, "Queue metadata is too large. Max size: 65536")
    refused(patch(server, queue, [{"op": "add", "path": "/metadata/b", "value": "y" * 100}]), 400, BODY,
            "Queue metadata is too large. Max size: 65536")
    refused(raw(server, "PUT", url, b"[]"), 400, BODY, "Document type not supported.")


def test_delete_takes_messages_and_subscriptions_with_it(server, queue):
    url = f"/v2/queues/{queue}"
    post(server, queue, {"body": 1})
    subscription = server.subscribe(queue, "http://127.0.0.1:9/")
    assert server.delete(url).status_code == 204
    assert server.delete(url).status_code == 204
    assert server.get(url + "/messages?echo=true").json()["messages"] == []
    assert server.get(f"{url}/subscriptions/{subscription}").status_code == 404
    assert server.get(url + "/subscriptions").json()["subscriptions"] == []
    assert queue not in [q["name"] for page in pages(server, "/v2/queues", "queues", 20) for q in page]


# ---- listing ----------------------------------------------------------------------------------------------------------

@pytest.fixture
def shelf(start_retryd):
    """A server with the queues a, b, … e."""
    server = start_retryd()
    for name in "ecadb":
        server.make_queue(name, colour="red" if name in "ab" else "blue", size=ord(name) - ord("a"))
    return server


def test_list_pages_by_name(shelf):
    first = shelf.get("/v2/queues?limit=2&detailed=false").json()
    assert first == {"queues": [{"name": "a", "href": "/v2/queues/a"}, {"name": "b", "href": "/v2/queues/b"}],
                     "links": [{"rel": "next", "href": "/v2/queues?limit=2&detailed=false&marker=b"}]}
    assert [[q["name"] for q in page] for page in pages(shelf, "/v2/queues", "queues", 2)] == [
        ["a", "b"], ["c", "d"], ["e"]]
    assert shelf.get("/v2/queues?marker=e").json() == {"queues": [], "links": []}
    assert shelf.get("/v2/queues?marker=&limit=&detailed=").json()["queues"][0] == {"name": "a", "href": "/v2/queues/a"}
    assert shelf.get("/v2/queues?marker=bb&limit=1").json()["links"][0]["href"] == "/v2/queues?marker=c&limit=1"
    assert shelf.get("/v2/queues/?limit=1").json()["links"][0]["href"] == "/v2/queues?limit=1&marker=a"


def test_list_shows_metadata_when_asked(shelf):
    first = shelf.get("/v2/queues?limit=1&detailed=true").json()["queues"][0]
    assert first["metadata"] == {"colour": "red", "size": 0, **DEFAULTS}


def test_list_filters_and_counts(shelf):
    def found(query):
        return [q["name"] for q in shelf.get("/v2/queues?" + query).json()["queues"]]
    assert found("colour=red") == ["a", "b"]
    assert found("colour=red&size=1") == ["b"]
    assert found("size=4&limit=1") == ["e"]
    assert found("size=nosuch") == []
    assert found("name=d") == ["d"]
    assert found("name=nosuch") == []
    page = shelf.get("/v2/queues?with_count=true&limit=2&colour=blue").json()
    assert page["count"] == 3
    assert page["links"][0]["href"] == "/v2/queues?limit=2&with_count=true&colour=blue&marker=d"
    assert "count" not in shelf.get("/v2/queues?with_count=true&name=nosuch").json()
    assert "count" not in shelf.get("/v2/queues").json()


@pytest.mark.parametrize("limit", ["0", "21", "-1"])
def test_list_refuses_other_page_sizes(server, limit):
    refused(server.get(f"/v2/queues?limit={limit}"), 400, API, "Limit must be at least 1 and no greater than 20.")


def test_list_refuses_parameters_of_the_wrong_type(server):
    refused(server.get("/v2/queues?limit=x"), 400, "Invalid parameter",
            'The "limit" parameter is invalid. The value must be an integer.')
    refused(server.get("/v2/queues?detailed=x"), 400, "Invalid parameter",
            'The "detailed" parameter is invalid. The value of the parameter must be "true" or "false".')


def test_list_gives_ten_unless_asked_otherwise(start_retryd):
    server = start_retryd()
    for i in range(25):
        server.make_queue(f"q{i:02}")
    assert len(server.get("/v2/queues").json()["queues"]) == 10
    assert len(server.get("/v2/queues?limit=20").json()["queues"]) == 20
    assert len([q for page in pages(server, "/v2/queues", "queues", 7) for q in page]) == 25


# ---- patch ------------------------------------------------------------------------------------------------------------

def test_patch_changes_single_keys(server, queue):
    server.make_queue(queue, a=1, b=2)
    answer = patch(server, queue, [{"op": "replace", "path": "/metadata/a", "value": {"x": "y"}},
                                   {"op": "remove", "path": "/metadata/b"},
                                   {"op": "add", "path": "/metadata/c~1d", "value": [1]},
                                   {"op": "add", "path": "/metadata/_default_message_ttl", "value": 60}])
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    want = {"a": {"x": "y"}, "c/d": [1], **DEFAULTS, "_default_message_ttl": 60}
    assert answer.json() == want
    assert server.get(f"/v2/queues/{queue}").json() == want
    assert patch(server, queue, []).json() == want


@pytest.mark.parametrize("operation,status,title,description", [
    ({"op": "remove", "path": "/metadata/k"}, 409, "Resource conflict", "Can't remove non-existent object k."),
    ({"op": "replace", "path": "/metadata/k", "value": 1}, 409, "Resource conflict",
     "Can't replace non-existent object k."),
    ({"op": "move", "path": "/metadata/k"}, 400, BODY,
     "Invalid operation: `move`. It must be one of the following: add, remove, replace."),
    ({"path": "/metadata/k"}, 400, BODY,
     "Unable to find `op` in JSON Schema change. It must be one of the following: add, remove, replace."),
    ({"op": "add", "path": "/metadata/a"}, 400, BODY, 'Operation "add" requires a member named "value".'),
    ({"op": "add", "path": "/other/a", "value": 1}, 400, BODY, "The root of path must be metadata, e.g /metadata/key."),
    ({"op": "add", "path": "/metadata/x/y", "value": 1}, 400, BODY,
     "Invalid JSON pointer for this resource: '/metadata/x/y, e.g /metadata/key'"),
    ({"op": "add", "path": "/metadata/_default_message_ttl", "value": 59}, 400, BODY,
     "_default_message_ttl can not exceed 1209600 seconds, and must be at least 60 seconds long."),
    (5, 400, BODY, "Operations must be JSON objects."),
])
def test_patch_refuses_and_changes_nothing(server, queue, operation, status, title, description):
    server.make_queue(queue, a=1)
    good = {"op": "add", "path": "/metadata/a", "value": 2}
    refused(patch(server, queue, [good, operation]), status, title, description)
    assert server.get(f"/v2/queues/{queue}").json()["a"] == 1


def test_patch_of_reserved_keys_that_are_absent_is_fine(server, queue):
    server.make_queue(queue)
    assert patch(server, queue, [{"op": "remove", "path": "/metadata/_max_claim_count"},
                                 {"op": "replace", "path": "/metadata/_default_message_ttl", "value": 77}]).ok
    assert server.get(f"/v2/queues/{queue}").json()["_default_message_ttl"] == 77


def test_patch_wants_its_media_type_and_a_list(server, queue):
    url = f"/v2/queues/{queue}"
    for type in ["application/json", PATCH["Content-Type"] + "; charset=utf-8"]:
        refused(raw(server, "PATCH", url, b"[]", **{"Content-Type": type}), 415, "415 Unsupported Media Type",
                "Accepted media type for PATCH: {'Accept-Patch': 'application/openstack-messaging-v2.0-json-patch'}.")
    refused(raw(server, "PATCH", url, b"{}", **PATCH), 400, BODY,
            "Request body must be a JSON array of operation objects.")
    refused(raw(server, "PATCH", url, b"", **PATCH), 400, BODY, "PATCH body could not be empty for update.")
    refused(raw(server, "PATCH", url, b"{", **PATCH), 400, BODY, "Request body could not be parsed.")


def test_patch_of_a_queue_that_is_not_there_is_not_found(server, queue):
    refused(patch(server, queue, []), 404, NOT_FOUND, f"Queue {queue} does not exist for project p")
    refused(patch(server, queue, [{"op": "x"}]), 400, BODY,
            "Invalid operation: `x`. It must be one of the following: add, remove, replace.")


def test_patches_at_the_same_time_all_count(server, queue):
    server.make_queue(queue)

    def add(i):
        return patch(server, queue, [{"op": "add", "path": f"/metadata/k{i}", "value": i}]).status_code
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(add, range(40)))
    kept = {key for key in server.get(f"/v2/queues/{queue}").json() if key.startswith("k")}
    assert set(done) <= {200, 503}
    assert kept == {f"k{i}" for i, status in enumerate(done) if status == 200}
    assert done.count(200) >= 8


# ---- statistics and purge ---------------------------------------------------------------------------------------------

def test_stats_of_nothing_are_zeros(server, queue):
    nothing = {"messages": {"claimed": 0, "free": 0, "total": 0}}
    assert server.get(f"/v2/queues/{queue}/stats").json() == nothing
    server.make_queue(queue)
    assert server.get(f"/v2/queues/{queue}/stats").json() == nothing


def test_stats_count_and_name_the_ends(server, queue):
    ids = post(server, queue, *[{"body": i} for i in range(5)])
    server.post(f"/v2/queues/{queue}/claims?limit=2")
    stats = server.get(f"/v2/queues/{queue}/stats").json()["messages"]
    assert (stats["claimed"], stats["free"], stats["total"]) == (2, 3, 5)
    for name, id in [("oldest", ids[0]), ("newest", ids[-1])]:
        assert set(stats[name]) == {"href", "age", "created"}
        assert stats[name]["href"] == f"/v2/queues/{queue}/messages/{id}"
        assert 0 <= stats[name]["age"] < 60
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", stats[name]["created"])
        created = datetime.datetime.strptime(stats[name]["created"], "%Y-%m-%dT%H:%M:%SZ")
        assert abs((datetime.datetime.utcnow() - created).total_seconds()) < 60


@pytest.mark.parametrize("types,left", [(["messages"], (0, 1)), (["subscriptions"], (1, 0)),
                                        (["messages", "subscriptions"], (0, 0)), ([], (1, 1)), (None, (0, 0))])
def test_purge_removes_what_it_names(server, queue, types, left):
    url = f"/v2/queues/{queue}"
    post(server, queue, {"body": 1})
    server.subscribe(queue, "http://127.0.0.1:9/")
    answer = server.post(url + "/purge", json=None if types is None else {"resource_types": types})
    assert (answer.status_code, answer.content) == (204, b"")
    assert len(server.get(url + "/messages?echo=true&include_claimed=true").json()["messages"]) == left[0]
    assert len(server.get(url + "/subscriptions").json()["subscriptions"]) == left[1]


def test_purge_refuses_other_things(server, queue):
    url = f"/v2/queues/{queue}/purge"
    for types in [["messages", "claims"], "messages", [1], None]:
        refused(server.post(url, json={"resource_types": types}), 400, API,
                "Resource types must be a sub set of {'messages', 'subscriptions'}.")
    refused(server.post(url, json={"x": 1}), 400, API, 'Post body must contain key "resource_types".')
    refused(server.post(url, json=[]), 400, BODY, "Document type not supported.")
    assert server.post(url).status_code == 204
