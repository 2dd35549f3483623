"""/v1/orders on the wire: what Barbican's clients and its documentation rely on, and what is beyond it."""
import re
import time
import uuid

import pytest

from orders import DEMO, STAMP, look, order, put_type, refused, retries, said, wait_active, wait_end, worker_type
from server import wait_until

KEY = {"algorithm": "aes", "bit_length": 256}


@pytest.fixture
def waiting(retryd):
    """A server with a type whose plugin is not there: its orders stay PENDING."""
    put_type(retryd, "work", target={"plugin": "not_there"})
    put_type(retryd, "key", target={"plugin": "not_there"})
    return retryd


# ---- creating and looking --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/orders", "/v1/orders/"])
def test_an_order_is_taken_with_a_reference_and_nothing_else(waiting, path):
    answer = waiting.post(path, json={"type": "key", "meta": {**KEY, "name": " n "}, "status": "ACTIVE", "other": [1]})
    assert answer.status_code == 202 and list(answer.json()) == ["order_ref"]
    ref = answer.json()["order_ref"]
    assert answer.headers["Location"] == ref and ref.startswith(f"{waiting.url}/v1/orders/")
    uuid.UUID(ref.rsplit("/", 1)[1])
    for slash in ("", "/"):
        seen = look(waiting, ref.rsplit("/", 1)[1] + slash)
        assert set(seen) == {"created", "updated", "status", "type", "meta", "order_ref"}
        assert STAMP.match(seen["created"]) and STAMP.match(seen["updated"])
        assert (seen["status"], seen["type"], seen["order_ref"]) == ("PENDING", "key", ref)
        assert seen["meta"] == {**KEY, "name": "n"}


def test_strings_are_stripped_however_deep(waiting):
    seen = look(waiting, order(waiting, text="  a b ", deep=[{" k ": ["\tx\n", 1, None, True]}]))
    assert seen["meta"] == {"text": "a b", "deep": [{" k ": ["x", 1, None, True]}]}


def test_a_nul_in_meta_is_a_character_like_others(waiting):
    assert look(waiting, order(waiting, text="a\0b"))["meta"] == {"text": "a\0b"}


def test_the_creator_is_who_the_header_says(waiting):
    seen = look(waiting, order(waiting, headers={"X-User-Id": "alice"}))
    assert seen["creator_id"] == "alice"


@pytest.mark.parametrize("body, word", [
    (b"", "JSON"), (b"{", "JSON"), (b"[]", "type"), (b'"x"', "JSON"), (b'{"type": "key"}', "meta"),
    (b'{"type": "key", "meta": {"bit_length": 8}}', "algorithm"),
    (b'{"type": "key", "meta": {"algorithm": "aes"}}', "bit_length"),
    (b'{"type": "key", "meta": {"algorithm": "aes", "bit_length": 7}}', "multiple of 8"),
    (b'{"type": "key", "meta": {"algorithm": "aes", "bit_length": "8"}}', "bit_length"),
    (b'{"type": "key", "meta": {"algorithm": "aes", "bit_length": 8, "payload": "x"}}', "payload"),
    (b'{"type": "nobody knows", "meta": {}}', "type"), (b'{"type": "unknown", "meta": {}}', "unknown"),
    (b'{"type": "work", "meta": {"n": 99999999999999999999}}', "64 bits"),
])
def test_what_breaks_a_rule_is_refused_in_words(waiting, body, word):
    answer = waiting.post("/v1/orders", data=body, headers={"Content-Type": "application/json; charset=utf-8"})
    refused(answer, 400, word)
    assert waiting.get("/v1/orders").json()["total"] == 0


def test_a_meta_that_is_too_large_is_refused(waiting):
    fits = {"x": "y" * (65536 - len('{"x": ""}'))}
    order(waiting, **fits)
    refused(waiting.post("/v1/orders", json={"type": "work", "meta": {"x": fits["x"] + "y"}}), 413, "65536")


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_of_another_kind_is_refused(waiting, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    refused(waiting.post("/v1/orders", data=b'{"type": "key", "meta": {}}', headers=headers), 415, "application/json")


def test_methods_that_are_not_there(waiting):
    one = order(waiting)
    for method, path in (("PUT", "/v1/orders"), ("DELETE", "/v1/orders"), ("PUT", f"/v1/orders/{one}"),
                         ("POST", f"/v1/orders/{one}"), ("PATCH", f"/v1/orders/{one}"), ("POST", "/v1/secrets/x")):
        answer = waiting.request(method, path, json={}, headers={"Accept": "application/json"})
        refused(answer, 405)
        assert "GET" in answer.headers["Allow"]


def test_what_is_not_there_is_not_found(waiting):
    for what in (str(uuid.uuid4()), "x", "0" * 24):
        for method in ("GET", "DELETE"):
            assert refused(waiting.request(method, f"/v1/orders/{what}"), 404)["description"] == "Order not found."
    refused(waiting.get(f"/v1/secrets/{uuid.uuid4()}"), 404, "Secret not found.")
    refused(waiting.get(f"/v1/containers/{uuid.uuid4()}"), 404, "Container not found.")
    refused(waiting.get("/v1/orders/a/b/c"), 404)


def test_a_deleted_order_is_gone_everywhere(waiting):
    one, other = order(waiting), order(waiting)
    answer = waiting.delete(f"/v1/orders/{one}")
    assert answer.status_code == 204 and answer.content == b""
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/retries"), ("POST", "/retry-now")):
        refused(waiting.request(method, f"/v1/orders/{one}{path}"), 404, "Order not found.")
    listed = waiting.get("/v1/orders").json()
    assert listed["total"] == 1 and listed["orders"][0]["order_ref"].endswith(other)


def test_references_begin_with_the_host_that_was_asked_or_with_the_setting(start_retryd):
    server = start_retryd()
    put_type(server, "work", target={"plugin": "not_there"})
    one = order(server)
    for host, begin in (("example.org:81", "http://example.org:81/v1/orders/"), ("[::1]:5", "http://[::1]:5/v1/orders/"),
                        ("a/b", "/v1/orders/")):
        assert look(server, one, headers={"Host": host})["order_ref"] == begin + one
    server = start_retryd({"orders.host_href": "https://keys.example.org/"}, name="named")
    put_type(server, "work", target={"plugin": "not_there"})
    assert look(server, order(server))["order_ref"].startswith("https://keys.example.org/v1/orders/")


# ---- listing ---------------------------------------------------------------------------------------------------------


def ids(page):
    return [one["order_ref"].rsplit("/", 1)[1] for one in page["orders"]]


def test_pages_are_cut_as_barbican_cuts_them(waiting):
    made = [order(waiting, n=i) for i in range(105)]

    def page(query):
        answer = waiting.get("/v1/orders" + query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    for query, begin, count in (("", 0, 10), ("?limit=3", 0, 3), ("?limit=0", 0, 1), ("?limit=-5", 0, 1),
                                ("?limit=x", 0, 10), ("?limit=1000", 0, 100), ("?offset=100", 100, 5),
                                ("?offset=-1&limit=2", 0, 2), ("?offset=x", 0, 10), ("?limit=4&offset=50", 50, 4)):
        seen = page(query)
        assert ids(seen) == made[begin:begin + count], query
        assert seen["total"] == 105
        assert ("next" in seen) == (begin + count < 105) and ("previous" in seen) == (begin > 0)
    assert page("?offset=105") == {"orders": [], "total": 105}
    assert page("?offset=100000")["orders"] == []
    seen = page("?limit=4&offset=50")
    assert seen["previous"] == f"{waiting.url}/v1/orders?limit=4&offset=46"
    assert seen["next"].startswith(f"{waiting.url}/v1/orders?limit=4&offset=54")
    assert page("?limit=60&offset=50")["previous"].endswith("limit=60&offset=0")


def test_a_marker_says_where_a_page_begins_and_the_offset_how_far_in_that_is(waiting):
    made = [order(waiting) for _ in range(12)]

    def page(**query):
        answer = waiting.get("/v1/orders", params={"limit": 4, **query})
        assert answer.status_code == 200, answer.text
        seen = answer.json()
        assert seen["total"] == 12
        links = {name: re.search(r"offset=(\d+)", seen[name])[1] for name in ("next", "previous") if name in seen}
        return ids(seen), links

    middle = made[4:8], {"next": "8", "previous": "0"}
    assert page(offset=4, marker=made[3]) == page(marker=made[3]) == page(offset=4) == middle
    assert page(offset=8, marker=made[7]) == (made[8:], {"previous": "4"})
    assert page(offset=2**63 - 1, marker=made[3])[0] == made[4:8]
    assert page(marker=made[11]) == ([], {})


def test_meta_is_looked_for_as_text(waiting):
    made = [order(waiting, name=f"n{i}", colour="ü") for i in range(12)]
    seen = waiting.get("/v1/orders", params={"meta": '"name": "n1', "limit": 2}).json()
    assert seen["total"] == 3 and ids(seen) == [made[1], made[10]]
    seen = waiting.get(seen["next"][len(waiting.url):]).json()
    assert ids(seen) == [made[11]] and "next" not in seen
    assert waiting.get("/v1/orders", params={"meta": "ü"}).json()["total"] == 12
    assert waiting.get("/v1/orders", params={"meta": "no such"}).json() == {"orders": [], "total": 0}


def test_walking_by_next_meets_everyone_who_stays_exactly_once(waiting):
    made = [order(waiting) for _ in range(30)]
    seen, url, turn = [], "/v1/orders?limit=4", 0
    while url:
        page = waiting.get(url).json()
        seen += ids(page)
        # Others come and go, before and behind the place where the walk is.
        waiting.delete(f"/v1/orders/{made[turn]}")
        waiting.delete(f"/v1/orders/{made[29 - turn]}")
        order(waiting)
        turn += 1
        url = page.get("next", "")[len(waiting.url):]
    stayed = made[turn:30 - turn]
    assert len(stayed) > 5 and [one for one in seen if one in stayed] == stayed
    assert len(seen) == len(set(seen))
    refused(waiting.get("/v1/orders?marker=x"), 400, "marker")


# ---- tasks -----------------------------------------------------------------------------------------------------------


def test_the_live_task_is_shown_and_grows(retryd, receiver):
    receiver.on("/work", said("retry", after_ms=0, task="second", args=[1, "x"], kwargs={"a": None}, state="s1"),
                said("retry", after_ms=3600000, sub_status="resting", message="come back"))
    worker_type(retryd, receiver)
    one = order(retryd, n=1)
    receiver.wait(2)
    task, = wait_until(lambda: [t for t in retries(retryd, one) if t["retry_count"] == 2])
    assert {"id", "order_id", "retry_task", "retry_at", "retry_args", "retry_kwargs", "retry_count"} <= set(task)
    assert task["order_id"] == one and task["retry_task"] == "second" and task["state"] == "scheduled"
    assert task["retry_args"] == [1, "x"] and task["retry_kwargs"] == {"a": None}
    assert (task["retry_count"], task["attempts"], task["failures"]) == (2, 2, 0)
    assert STAMP.match(task["retry_at"]) and task["retry_at"] > look(retryd, one)["updated"]
    seen = look(retryd, one)
    assert (seen["status"], seen["sub_status"], seen["sub_status_message"]) == ("PENDING", "resting", "come back")
    first, second = [request.json for request in receiver.seen()]
    assert (first["task"], first["args"], first["kwargs"], first["state"]) == ("create_order", [], {}, None)
    assert first["order"] == one and first["meta"] == {"n": 1} and first["attempt"] == 1 and first["project"] == "p"
    assert (second["task"], second["args"], second["kwargs"], second["state"]) == ("second", [1, "x"], {"a": None}, "s1")
    assert second["token"] != first["token"] and second["deadline"] > time.time() * 1000
    # Retry now.
    receiver.on("/work", said("done", secret_ref="http://elsewhere/1"))
    assert retryd.post(f"/v1/orders/{one}/retry-now").status_code == 204
    seen = wait_active(retryd, one)
    assert seen["secret_ref"] == "http://elsewhere/1" and seen["sub_status"] == "resting"
    refused(retryd.post(f"/v1/orders/{one}/retry-now"), 409, "ACTIVE")


def test_long_texts_are_cut_at_whole_characters(retryd, receiver):
    receiver.on("/work", said("failed", code="1234567890123456789", reason="ü" * 300, sub_status="ö" * 37,
                              message="ä" * 256))
    worker_type(retryd, receiver)
    seen = wait_end(retryd, order(retryd))
    assert seen["status"] == "ERROR" and seen["error_status_code"] == "1234567890123456"
    assert seen["error_reason"] == "ü" * 255
    assert seen["sub_status"] == "ö" * 36 and seen["sub_status_message"] == "ä" * 255


# ---- who may what ----------------------------------------------------------------------------------------------------


def test_projects_do_not_meet(start_retryd):
    server = start_retryd(DEMO)
    other = {"X-Project-Id": "q"}
    mine = order(server, "key", **KEY)
    theirs = order(server, "key", headers=other, **KEY)
    assert ids(server.get("/v1/orders").json()) == [mine]
    assert ids(server.get("/v1/orders", headers=other).json()) == [theirs]
    for path in ("", "/retries"):
        refused(server.get(f"/v1/orders/{theirs}{path}"), 404)
    refused(server.delete(f"/v1/orders/{theirs}"), 404)
    secret = wait_active(server, mine)["secret_ref"][len(server.url):]
    for path in ("", "/payload"):
        assert server.get(secret + path).status_code == 200
        refused(server.get(secret + path, headers=other), 404)
    put_type(server, "own", target={"plugin": "key"})
    assert server.get("/v1/order-types/own", headers=other).status_code == 404
    refused(server.post("/v1/orders", json={"type": "own", "meta": {}}, headers=other), 400, "own")


def test_a_request_says_whose_orders_it_is_about(waiting):
    one = order(waiting)
    for path in ("/v1/orders", f"/v1/orders/{one}", f"/v1/orders/{one}/retries", f"/v1/secrets/{one}", f"/v1/containers/{one}"):
        for nobody in (None, ""):
            refused(waiting.get(path, headers={"X-Project-Id": nobody}), 400, "X-Project-Id")
    answer = waiting.post("/v1/orders", json={"type": "key", "meta": KEY}, headers={"X-Project-Id": None})
    refused(answer, 400, "X-Project-Id")
    assert waiting.get("/v1/orders").json()["total"] == 1


def test_the_same_request_with_its_key_gets_the_same_order(waiting):
    def post(status, key, **meta):
        answer = waiting.post("/v1/orders", json={"type": "work", "meta": meta}, headers={"Idempotency-Key": key})
        assert answer.status_code == status, answer.text
        return answer

    first = post(202, "k", n=1)
    again = post(202, "k", n=1)
    assert again.json() == first.json() and again.headers["Location"] == first.headers["Location"]
    refused(post(409, "k", n=2), 409, "idempotency key")
    assert post(202, "k2", n=1).json() != first.json()
    refused(post(400, "k" * 129), 400, "Idempotency-Key")
    assert waiting.get("/v1/orders").json()["total"] == 2


def test_tokens_open_their_project_only(start_retryd, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("0123456789abcdef-p p\n0123456789abcdef-q q\n0123456789abcdef-all *\n")
    tokens.chmod(0o600)
    server = start_retryd({"auth.tokens_file": str(tokens)})
    mine = {"X-Auth-Token": "0123456789abcdef-p"}
    everybody = {"X-Auth-Token": "0123456789abcdef-all"}
    refused(server.get("/v1/orders"), 401)
    refused(server.get("/v1/orders", headers={"X-Project-Id": None}), 401)
    refused(server.get("/v1/orders", headers={**mine, "X-Project-Id": None}), 400, "X-Project-Id")
    refused(server.get("/v1/orders", headers={**mine, "X-Project-Id": "q"}), 403)
    assert server.get("/v1/orders", headers=mine).status_code == 200
    assert server.put("/v1/order-types/t", json={"target": {"plugin": "p"}}).status_code == 401
    put_type(server, "t", headers=mine, target={"plugin": "p"})
    # What all projects share is the operators'.
    shared = {"X-Project-Id": "*"}
    assert server.put("/v1/order-types/s", json={"target": {"plugin": "p"}}, headers={**mine, **shared}).status_code == 403
    put_type(server, "s", headers={**everybody, **shared}, target={"plugin": "p"})
    assert [t["type"] for t in server.get("/v1/order-types", headers=mine).json()] == ["t", "s"]
    # The task of an order that is of such a type is nevertheless its project's.
    task = retries(server, order(server, "s", headers=mine), headers=mine)[0]["id"]
    for headers, status in ((mine, 200), (everybody, 200), ({"X-Auth-Token": "0123456789abcdef-q", "X-Project-Id": "q"}, 404)):
        assert server.get(f"/v1/jobs/{task}", headers=headers).status_code == status
        assert server.get(f"/v1/jobs/{task}/attempts", headers=headers).status_code == status
        assert server.get(f"/v1/jobs/{task}/body", headers=headers).status_code == 404
    assert server.delete(f"/v1/jobs/{task}", headers=mine).status_code == 409
    assert server.get("/v1/locks", headers=mine).status_code == 403
    assert server.get("/v1/locks", headers=everybody).status_code == 200


# ---- types and locks -------------------------------------------------------------------------------------------------


def test_a_type_is_registered_changed_and_deleted(retryd):
    made = put_type(retryd, "t", target={"url": "http://127.0.0.1:9/x", "headers": {"X-A": "b: c"},
                                         "secret": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="},
                    backoff={"initial_ms": 1000, "maximum_ms": 2000, "exponent": 2}, max_attempts=5, run_limit_s=7,
                    answer_limit_s=8, concurrency=9, first_task="begin", cancel=True)
    assert made == {"type": "t", "project": "p", "first_task": "begin", "max_attempts": 5, "run_limit_s": 7,
                    "answer_limit_s": 8, "concurrency": 9, "cancel": True,
                    "target": {"url": "http://127.0.0.1:9/x", "headers": {"X-A": "b: c"}, "signed": True},
                    "backoff": {"initial_ms": 1000, "maximum_ms": 2000, "exponent": 2.0, "jitter": "none"}}
    assert retryd.get("/v1/order-types/t").json() == made
    changed = put_type(retryd, "t", status=200, target={"plugin": "p"}, backoff=None)
    assert changed == {"type": "t", "project": "p", "target": {"plugin": "p"}, "first_task": "create_order",
                       "backoff": None, "max_attempts": 0, "run_limit_s": 30, "answer_limit_s": 3600,
                       "concurrency": 0, "cancel": False}
    assert retryd.get("/v1/order-types").json() == [changed]
    one = order(retryd, "t")
    answer = retryd.delete("/v1/order-types/t")
    assert answer.status_code == 409 and "PENDING" in answer.json()["detail"]
    retryd.delete(f"/v1/orders/{one}")
    wait_until(lambda: retryd.delete("/v1/order-types/t").status_code == 204)
    assert retryd.get("/v1/order-types/t").status_code == 404 and retryd.get("/v1/order-types").json() == []
    assert retryd.delete("/v1/order-types/t").status_code == 404


@pytest.mark.parametrize("fields, word", [
    ({}, "target"), ({"target": {}}, "target"), ({"target": "x"}, "target"), ({"target": {"plugin": "a b"}}, "plugin"),
    ({"target": {"plugin": ".."}}, "plugin"), ({"target": {"plugin": "a.so"}}, "plugin"), ({"target": {"plugin": "A"}}, "plugin"),
    ({"target": {"plugin": "p", "url": "http://127.0.0.1/"}}, "either"), ({"target": {"url": "ftp://h/"}}, "url"),
    ({"target": {"url": "/x"}}, "url"), ({"target": {"url": "http://10.1.2.3/"}}, "delivery.allow_networks"),
    ({"target": {"url": "http://127.0.0.1/", "headers": {"Host": "x"}}}, "Host"),
    ({"target": {"url": "http://127.0.0.1/", "headers": {"A": "b\nc"}}}, "A"),
    ({"target": {"url": "http://127.0.0.1/", "secret": "x"}}, "target.secret"),
    ({"target": {"url": "http://127.0.0.1/", "method": "GET"}}, "method"),
    ({"target": {"plugin": "p"}, "run_limit_s": 0}, "run_limit_s"),
    ({"target": {"plugin": "p"}, "run_limit_s": 3601}, "run_limit_s"),
    ({"target": {"plugin": "p"}, "run_limit_s": 1.5}, "run_limit_s"),
    ({"target": {"plugin": "p"}, "max_attempts": -1}, "max_attempts"),
    ({"target": {"plugin": "p"}, "answer_limit_s": 0}, "answer_limit_s"),
    ({"target": {"plugin": "p"}, "first_task": "x" * 129}, "first_task"),
    ({"target": {"plugin": "p"}, "backoff": {"exponent": "2"}}, "exponent"),
    ({"target": {"plugin": "p"}, "cancel": 1}, "cancel"), ({"target": {"plugin": "p"}, "colour": 1}, "colour"),
])
def test_a_type_that_breaks_a_rule_is_refused_by_its_field(retryd, fields, word):
    answer = retryd.put("/v1/order-types/t", json=fields)
    assert answer.status_code == 400 and word in answer.json()["detail"], answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_types_have_names_of_letters_and_digits(retryd):
    assert retryd.put("/v1/order-types/a%20b", json={"target": {"plugin": "p"}}).status_code == 400
    assert retryd.put(f"/v1/order-types/{'x' * 65}", json={"target": {"plugin": "p"}}).status_code == 400
    put_type(retryd, "x" * 64, target={"plugin": "p"})


def test_a_project_may_have_its_own_instead_of_everybodys(start_retryd, receiver):
    server = start_retryd(DEMO)
    assert [(t["type"], t["project"]) for t in server.get("/v1/order-types").json()] == [
        ("asymmetric", "*"), ("certificate", "*"), ("key", "*")]
    receiver.on("/key", said("done"))
    worker_type(server, receiver, "key")
    assert server.get("/v1/order-types/key").json()["project"] == "p"
    assert "secret_ref" not in wait_active(server, order(server, "key", **KEY))
    assert server.delete("/v1/order-types/key").status_code == 204
    assert server.get("/v1/order-types/key").json()["project"] == "*"
    assert "secret_ref" in wait_active(server, order(server, "key", **KEY))
    # The demo's types are only put where there are none.
    put_type(server, "key", status=200, headers={"X-Project-Id": "*"}, target={"plugin": "key"}, max_attempts=3)
    server.restart()
    assert server.get("/v1/order-types/key").json()["max_attempts"] == 3


def test_locks_are_shown(retryd):
    put_type(retryd, "work", target={"plugin": "not_there"})
    order(retryd)
    answer = retryd.get("/v1/locks")
    assert answer.status_code == 200
    # Held for moments only.
    assert all(set(lock) == {"name", "holder", "token", "taken", "renewed"} for lock in answer.json())
    assert retryd.put("/v1/locks", json={}).status_code == 405
