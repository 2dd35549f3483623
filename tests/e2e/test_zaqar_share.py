"""Zaqar's API: pre-signed URLs, and tokens."""
import datetime

import pytest

from server import wait_until
from zaqar import API, BODY, CLIENT, bodies, post, queue, refused, server  # noqa: F401

NOT_FOUND = "404 Not Found"


def share(server, queue, **document):
    return server.post(f"/v2/queues/{queue}/share", json=document)


def headers_of(shared):
    return {"URL-Signature": shared["signature"], "URL-Expires": shared["expires"],
            "URL-Methods": ",".join(shared["methods"]), "URL-Paths": ",".join(shared["paths"]),
            "X-Project-ID": shared["project"], "Client-ID": CLIENT}


def test_share_signs_what_is_asked_for_sorted(server, queue):
    shared = share(server, queue, paths=["subscriptions", "claims", "messages"], methods=["POST", "DELETE", "GET"],
                   expires="2030-01-01T00:00:00")
    assert shared.status_code == 200
    assert shared.json() == {"paths": [f"/v2/queues/{queue}/{name}" for name in ["claims", "messages", "subscriptions"]],
                             "methods": ["DELETE", "GET", "POST"], "project": "p", "expires": "2030-01-01T00:00:00",
                             "signature": shared.json()["signature"]}
    assert len(bytes.fromhex(shared.json()["signature"])) == 32


def test_share_of_nothing_is_reading_messages_for_a_day(server, queue):
    shared = share(server, queue).json()
    assert (shared["paths"], shared["methods"]) == ([f"/v2/queues/{queue}/messages"], ["GET"])
    expires = datetime.datetime.strptime(shared["expires"], "%Y-%m-%dT%H:%M:%S")
    left = (expires - datetime.datetime.utcnow()).total_seconds()
    assert 86300 < left <= 86400


@pytest.mark.parametrize("document,description", [
    ({"x": 1}, "Unknown keys: {'x'}"),
    ({"project_id": "p", "paths": ["x"]}, "Unknown keys: {'project_id'}"),
    ({"paths": ["x"]}, "Invalid paths: {'x'}"),
    ({"paths": ["messages", "/v2/queues"]}, "Invalid paths: {'/v2/queues'}"),
    ({"methods": "GET"}, "`methods` should be a list"),
    ({"methods": [1]}, "`methods` should be a list"),
    ({"methods": ["GET,DELETE"]}, "`methods` should be a list"),
    ({"expires": 1234},
     "`expires` should be date format, for example 2016-01-01T00:00:00, not integer value: 1234"),
    ({"expires": "2016-01-01T00:00:00"}, "`expires` is lower than the current time"),
    ({"expires": "zzz"}, "Unable to parse date string 'zzz'"),
])
def test_share_refuses(server, queue, document, description):
    refused(share(server, queue, **document), 400, API, description)


def test_share_wants_an_object(server, queue):
    refused(server.post(f"/v2/queues/{queue}/share", json=[]), 400, BODY, "Document type not supported.")


@pytest.fixture
def guarded(start_retryd, tmp_path):
    """A server with a token for project p and one for project q."""
    tokens = tmp_path / "tokens"
    tokens.write_text("token-of-project-p p\ntoken-of-project-q q\ntoken-of-operators *\n")
    tokens.chmod(0o600)
    server = start_retryd({"auth.tokens_file": str(tokens)})
    server.session.headers["X-Auth-Token"] = "token-of-project-p"
    return server


def test_tokens_open_their_own_project(guarded, queue):
    url = f"/v2/queues/{queue}"
    assert guarded.put(url).status_code == 201
    assert guarded.get(url, headers={"X-Auth-Token": None, "Authorization": "Bearer token-of-project-p"}).ok
    assert guarded.get(url, headers={"X-Auth-Token": "token-of-operators"}).ok
    for token in [None, "token-of-project-", "wrong", ""]:
        refused(guarded.get(url, headers={"X-Auth-Token": token}), 401, "Unauthorized",
                "The request you have made requires authentication.")
    refused(guarded.get(url, headers={"X-Auth-Token": "token-of-project-q"}), 403, "Not authorized",
            "You are not authorized to complete this action.")
    assert guarded.get(url, headers={"X-Auth-Token": "token-of-project-q", "X-Project-ID": "q"}).ok
    assert guarded.get("/v2/ping", headers={"X-Auth-Token": None}).status_code == 204
    assert "message_volume" not in guarded.get("/v2/health").json()


def test_a_signed_url_stands_for_a_token(guarded, queue):
    messages = f"/v2/queues/{queue}/messages"
    [id] = post(guarded, queue, {"body": 1})
    signed = {**headers_of(share(guarded, queue, methods=["GET", "POST"]).json()), "X-Auth-Token": None}
    assert bodies(guarded.get(messages + "?echo=true", headers=signed)) == [1]
    assert guarded.get(f"{messages}/{id}", headers=signed).json()["body"] == 1
    assert guarded.post(messages, json={"messages": [{"body": 2}]}, headers=signed).status_code == 201

    refused(guarded.delete(f"{messages}/{id}", headers=signed), 404, NOT_FOUND)
    for path in [f"/v2/queues/{queue}", f"/v2/queues/{queue}/claims/x", f"/v2/queues/{queue}x/messages", "/v2/queues"]:
        refused(guarded.get(path, headers=signed), 404, NOT_FOUND)


def test_what_was_signed_cannot_be_changed(guarded, queue):
    signed = {**headers_of(share(guarded, queue).json()), "X-Auth-Token": None}
    url = f"/v2/queues/{queue}/messages"
    assert guarded.get(url, headers=signed).status_code == 200
    for name, value in [("URL-Signature", "0" * 64), ("URL-Signature", ""), ("URL-Signature", "é"),
                        ("URL-Methods", "GET,POST"), ("URL-Paths", url + ",/v2/queues"), ("URL-Paths", "/v2"),
                        ("URL-Paths", ""), ("URL-Expires", "2035-01-01T00:00:00"), ("URL-Expires", "x"),
                        ("X-Project-ID", "q"), ("URL-Expires", None), ("URL-Methods", None), ("URL-Paths", None)]:
        value = value.encode() if value else value
        refused(guarded.get(url, headers={**signed, name: value}), 404, NOT_FOUND)


def test_signatures_run_out(server, queue):
    soon = datetime.datetime.utcnow() + datetime.timedelta(seconds=2)
    signed = headers_of(share(server, queue, expires=soon.isoformat()).json())
    url = f"/v2/queues/{queue}/messages"
    assert server.get(url, headers=signed).status_code == 200
    wait_until(lambda: server.get(url, headers=signed).status_code == 404)


def test_signatures_survive_a_restart(start_retryd, queue):
    server = start_retryd()
    signed = headers_of(share(server, queue).json())
    server.restart()
    assert server.get(f"/v2/queues/{queue}/messages", headers=signed).status_code == 200
    server.kill()
    server.start()
    assert server.get(f"/v2/queues/{queue}/messages", headers=signed).status_code == 200
