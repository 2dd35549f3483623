"""Zaqar's API: discovery, and the checks before every request in their order."""
import http.client
import json
import socket

import pytest
import requests

from zaqar import BODY, CLIENT, raw, refused, server  # noqa: F401

URL = "/v2/queues/q"


def ask(server, method="GET", path=URL, headers=None, data=None):
    """A request with nothing but these headers."""
    with requests.Session() as session:
        session.trust_env = False
        session.headers.clear()
        return session.request(method, server.url + path, headers=headers, data=data, timeout=30)


def test_root_offers_version_2_to_everybody(server):
    answer = ask(server, path="/")
    assert answer.status_code == 300
    assert answer.json() == {"versions": [{
        "id": "2", "status": "CURRENT", "updated": "2014-9-24T04:06:47Z",
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.messaging-v2+json"}],
        "links": [{"href": "/v2/", "rel": "self"}]}]}
    assert ask(server, path="/", headers={"Accept": "text/html"}).status_code == 406


@pytest.mark.parametrize("path", ["/v2", "/v2/"])
def test_home_document_names_every_resource(server, path):
    answer = ask(server, path=path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json-home"
    assert answer.headers["Cache-Control"] == "max-age=86400"
    resources = answer.json()["resources"]
    assert {"rel/" + name for name in [
        "queues", "queue", "queue_stats", "queue_share", "queue_purge", "messages", "post_messages", "messages_delete",
        "message_delete", "message_get", "claim", "post_claim", "patch_claim", "delete_claim", "subscriptions_get",
        "subscriptions_post", "subscription", "subscription_patch", "ping"]} <= set(resources)
    assert resources["rel/queues"]["href-template"] == "/v2/queues{?marker,limit,detailed}"
    assert resources["rel/queue"]["href-template"] == "/v2/queues/{queue_name}"
    assert resources["rel/queue"]["href-vars"] == {"queue_name": "param/queue_name"}
    assert resources["rel/queue"]["hints"]["allow"] == ["GET", "PUT", "DELETE", "PATCH"]
    assert server.get(resources["rel/queue"]["href-template"].format(queue_name="home")).ok


def test_ping_and_health_say_that_the_store_works(server):
    assert server.get("/v2/ping").status_code == 204
    assert server.request("HEAD", "/v2/ping").status_code == 204
    health = server.get("/v2/health")
    assert health.status_code == 200
    assert health.json()["storage_reachable"] is True
    operations = health.json()["operation_status"]
    assert set(operations) == {"create_queue", "post_messages", "list_messages", "claim_messages", "delete_messages",
                               "delete_claim", "bulk_delete_messages", "delete_queue"}
    for operation in operations.values():
        assert operation["succeeded"] is True and operation["ref"] is None and operation["seconds"] >= 0
    assert set(health.json()["message_volume"]) == {"free", "claimed", "total"}


def test_every_answer_has_a_request_id_of_its_own(server):
    ids = {server.get(path).headers["x-openstack-request-id"] for path in [URL, "/v2/nosuch", "/v2/queues", URL]}
    assert len(ids) == 4 and all(one.startswith("req-") for one in ids)


# ---- the order of checks ----------------------------------------------------------------------------------------------

PROJECT = {"X-Project-ID": "p"}
GOOD = {"Client-ID": CLIENT, **PROJECT}
AUTH = "The header X-PROJECT-ID was missing"


def test_client_id_is_wanted_before_the_project(server):
    refused(ask(server), 400, "Missing header value", 'The "Client-ID" header is required.')
    refused(ask(server, headers={"Client-ID": "nonsense"}), 400, "Wrong UUID value", "Malformed hexadecimal UUID.")
    refused(ask(server, headers={"Client-ID": CLIENT}), 400, "Project-Id Missing", AUTH)
    refused(ask(server, headers={**GOOD, "X-Project-ID": ""}), 400, "Empty project header not allowed",
            "X-PROJECT-ID cannot be an empty string. Specify the right header X-PROJECT-ID and retry.")
    assert ask(server, headers=GOOD).status_code == 200


@pytest.mark.parametrize("name", ["a" * 65, "a b", "q%2Fx", "caf%C3%A9", "a:b", "a%00"])
def test_bad_queue_names_are_refused_everywhere(server, name):
    for method, path in [("GET", ""), ("PUT", ""), ("POST", "/messages"), ("GET", "/messages"), ("POST", "/claims"),
                         ("GET", "/subscriptions"), ("GET", "/stats"), ("POST", "/purge")]:
        answer = server.request(method, f"/v2/queues/{name}{path}", data=b"")
        if "%00" in name:
            assert answer.status_code == 400
        else:
            refused(answer, 400, "Invalid queue identification",
                    "The format of the submitted queue name or project id is not valid.")


def test_names_at_their_limits_are_fine(server):
    assert server.put(f"/v2/queues/{'a' * 64}").status_code in (201, 204)
    assert server.put("/v2/queues/A-z_0.9").status_code in (201, 204)
    assert ask(server, headers={**GOOD, "X-Project-ID": "p" * 256}).status_code == 200
    refused(ask(server, headers={**GOOD, "X-Project-ID": "p" * 257}), 400, "Invalid queue identification",
            "The format of the submitted queue name or project id is not valid.")


@pytest.mark.parametrize("accept,status", [("*/*", 200), ("application/*", 200), ("application/json", 200),
                                           ("text/html, */*;q=0.1", 200), ("text/html", 406), ("application/xml", 406)])
def test_accept_must_admit_json(server, accept, status):
    answer = ask(server, headers={**GOOD, "Accept": accept})
    assert answer.status_code == status
    if status == 406:
        assert answer.content == b""


def test_forms_are_refused_before_anything_else(server):
    answer = ask(server, "PUT", headers={"Content-Type": "application/x-www-form-urlencoded"}, data=b"{}")
    assert (answer.status_code, answer.json()["title"]) == (400, "Invalid Content-Type")
    for type in ["application/json", "text/plain", "application/x-www-form-urlencoded; charset=utf-8"]:
        assert ask(server, "PUT", headers={**GOOD, "Content-Type": type}, data=b"{}").status_code in (201, 204)


def test_unknown_paths_and_methods_are_told_apart(server):
    for path in ["/v2/nosuch", "/v2/queues/q/nosuch", "/nosuch", "/v2/queues/q/messages/a/b", "/v1/queues/q/messages"]:
        assert server.get(path).status_code == 404, path
    refused(ask(server, path="/v2/nosuch"), 404, "404 Not Found")
    answer = server.request("POST", "/v2/queues")
    refused(answer, 405, "405 Method Not Allowed")
    assert answer.headers["Allow"] == "GET, OPTIONS"
    assert server.request("HEAD", "/v2/queues").status_code == 405
    options = ask(server, "OPTIONS", "/v2/queues")
    assert (options.status_code, options.headers["Allow"]) == (200, "GET")


# ---- bodies -----------------------------------------------------------------------------------------------------------

BODIES = [("POST", URL + "/messages"), ("POST", URL + "/claims"), ("PUT", URL), ("POST", URL + "/subscriptions"),
          ("POST", URL + "/purge"), ("POST", URL + "/share")]


@pytest.mark.parametrize("method,path", BODIES)
@pytest.mark.parametrize("body", [b"{", b"[1,]", b"\xff\xfe{}", b'{"a": NaN}', b'{"a": "\xed\xa0\x80"}', b"12",
                                  b'"x"', b"null", b'{"a": 1}}', b'{"a":\x0b1}'])
def test_what_is_no_json_document_cannot_be_parsed(server, method, path, body):
    refused(raw(server, method, path, body), 400, BODY, "Request body could not be parsed.")


@pytest.mark.parametrize("method,path", BODIES)
def test_integers_beyond_64_bits_are_refused(server, method, path):
    refused(raw(server, method, path, b'{"a": [9223372036854775808]}'), 400, BODY,
            "JSON contains integer that is too large.")


@pytest.mark.parametrize("method,path", BODIES)
def test_deep_nesting_is_refused(server, method, path):
    refused(raw(server, method, path, b'{"a":' + b"[" * 64 + b"]" * 64 + b"}"), 400, BODY,
            "Request body is nested deeper than 64 levels.")


def test_nesting_of_a_hundred_thousand_does_no_harm(server):
    refused(raw(server, "POST", URL + "/messages", b"[" * 100000), 400, BODY,
            "Request body is nested deeper than 64 levels.")


@pytest.mark.parametrize("method,path", [("POST", URL + "/messages"), ("POST", URL + "/share"),
                                         ("PATCH", URL + "/claims/x")])
def test_a_body_that_is_needed_must_be_there(server, method, path):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest(method, path)
    for name, value in GOOD.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 400
    assert json.loads(answer.read()) == {"title": BODY, "description": "Request body can not be empty"}
    connection.close()


def test_a_body_over_the_servers_limit_is_refused_without_being_read(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as s:
        s.sendall(b"POST /v2/queues/q/messages HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000000\r\n\r\n")
        head = s.recv(65536)
        assert head.startswith(b"HTTP/1.1 400 ") and b'"title": "Invalid API request"' in head
