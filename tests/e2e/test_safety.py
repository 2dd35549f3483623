"""What must not happen: requests into private networks, a server that others can hold, half-written data."""
import json
import resource
import socket
import subprocess
import threading
import time

import pytest
import requests

from policies import quick, steady
from receiver import Answer
from server import BINARY, wait_until

PRIVATE = ["127.0.0.1", "127.8.9.10", "10.0.0.1", "172.16.5.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
           "[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[fd12:3456::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]",
           "[64:ff9b::7f00:1]", "224.0.0.1", "255.255.255.255"]


@pytest.fixture
def closed(start_retryd):
    """A server with the default: no private network is allowed."""
    return start_retryd({"delivery.allow_networks": None})


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused_when_subscribing(closed, address):
    answer = closed.post("/v2/queues/q/subscriptions", json={"subscriber": f"http://{address}:8080/"})
    assert answer.status_code == 400
    assert "delivery.allow_networks" in answer.text


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f000001", "127.1", "0177.0.0.1", "LOCALHOST", "localhost."])
def test_whatever_resolves_to_loopback_is_refused(closed, receiver, host):
    answer = closed.post("/v2/queues/q/subscriptions", json={
        "subscriber": receiver.url("/hook", host=host), "options": {"_retry_policy": quick(1)}})
    if answer.status_code == 400:
        return  # seen through at once
    assert answer.status_code == 201
    closed.send("q", {"n": 1})
    [job] = closed.wait_dead(1)
    # A name that the resolver does not take at all gets nowhere either.
    assert job["reason"] in ("address_refused", "exhausted")
    if host in ("localhost", "LOCALHOST"):
        assert job["reason"] == "address_refused" and job["attempts"] <= 1
    assert receiver.seen() == []


def test_a_redirect_does_not_lead_into_a_refused_network(start_retryd, receiver, start_receiver):
    inside = start_receiver(host="127.0.0.2")
    retryd = start_retryd({"delivery.allow_networks": "127.0.0.1/32"})
    receiver.on("/hook", Answer(307, {"Location": inside.url("/secret")}))
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={**quick(1), "follow_redirects": True})
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    assert job["reason"] == "address_refused"
    assert inside.seen() == []


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/"])
def test_a_redirect_does_not_leave_http(retryd, receiver, location):
    receiver.on("/hook", Answer(302, {"Location": location}))
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={**quick(1), "follow_redirects": True})
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    assert "root:" not in json.dumps(retryd.attempts(job["id"]))


@pytest.mark.parametrize("subscriber", ["ftp://127.0.0.1/", "file:///etc/passwd", "trust+http://example.com/", "http://", "x",
                                        "http://127.0.0.1:99999/", "http://user@", "http://a b/", "http://x\r\nEvil: 1/"])
def test_other_targets_are_refused(retryd, subscriber):
    answer = retryd.post("/v2/queues/q/subscriptions", json={"subscriber": subscriber})
    assert answer.status_code == 400 and answer.json()["description"]


@pytest.mark.parametrize("name, value", [("X-Evil", "a\r\nHost: other"), ("Bad Name", "x"), ("Content-Length", "5"),
                                         ("Transfer-Encoding", "chunked"), ("Host\r\nX", "y")])
def test_headers_cannot_smuggle(retryd, receiver, name, value):
    answer = retryd.post("/v2/queues/q/subscriptions", json={
        "subscriber": receiver.url("/hook"), "options": {"post_headers": {name: value}}})
    if answer.status_code == 400:
        return
    retryd.send("q", {"n": 1})
    request = receiver.wait(1)[0]
    assert request.headers["host"] != "other" and request.message == {"n": 1}


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0"])
def test_binding_beyond_loopback_wants_insecure(tmp_path, listen):
    done = subprocess.run([BINARY, "serve", "--listen", listen, "--data", tmp_path / "d"], capture_output=True, text=True,
                          timeout=20)
    assert done.returncode != 0 and "--insecure" in done.stderr


# ---- limits ---------------------------------------------------------------------------------------------------------


def test_too_large_a_body_is_refused(retryd):
    answer = retryd.post("/v2/queues/q/messages", json={"messages": [{"body": "x" * 262144}]})
    assert answer.status_code == 400 and "Max size 262144" in answer.text
    try:
        answer = retryd.post("/v2/queues/q/messages", data=b'{"messages": [{"body": "' + b"x" * 8_000_000 + b'"}]}')
        assert answer.status_code in (400, 413)
    except requests.ConnectionError:
        pass  # answered and closed before all was sent
    assert retryd.get("/healthz").status_code == 200


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"messages": [{"body": ' + b"[" * 50_000 + b"]" * 50_000 + b"}]}",
                                  b'{"a":' * 30_000, b"{" + b'"k": 1,' * 10_000], ids=["open", "deep", "objects", "cut"])
def test_nesting_is_bounded(retryd, body):
    for path in ("/v2/queues/q/messages", "/v2/queues/q/subscriptions", "/v2/queues/q/claims", "/v1/dead/redrive"):
        assert retryd.post(path, data=body).status_code in (400, 413)
    assert retryd.put("/v2/queues/q", data=body).status_code == 400
    assert retryd.get("/healthz").status_code == 200


def raw(retryd, data, wait=5.0):
    with socket.create_connection(("127.0.0.1", retryd.port), timeout=wait) as connection:
        connection.sendall(data)
        connection.settimeout(wait)
        try:
            return connection.recv(65536)
        except (TimeoutError, ConnectionResetError):
            return b""


def test_headers_are_bounded(retryd):
    huge = raw(retryd, b"GET /v2 HTTP/1.1\r\nHost: x\r\nX-Big: " + b"y" * 200_000 + b"\r\n\r\n")
    assert huge == b"" or huge.split()[1] in (b"400", b"413", b"431")
    many = raw(retryd, b"GET /v2 HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 20_000 + b"\r\n")
    assert many == b"" or many.split()[1] in (b"400", b"413", b"431")
    assert retryd.get("/healthz").status_code == 200


@pytest.mark.parametrize("data", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v2 HTTP/1.1\r\n"
                                  b"Content-Length: -5\r\n\r\n", b"POST /v2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                                  b"\r\nzz\r\n", b"GET /%zz%00%ff HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_garbage_does_not_hurt(retryd, data):
    raw(retryd, data, wait=1.0)
    assert retryd.get("/healthz").status_code == 200


@pytest.mark.slow
def begin_requests(retryd, count):
    """Connections whose request is never whole."""
    begun = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", retryd.port))
        connection.sendall(b"POST /v2/queues/q/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        begun.append(connection)
    return begun


def test_slow_clients_cannot_hold_the_server(retryd):
    slow = begin_requests(retryd, 300)
    for n in range(50):
        began = time.monotonic()
        retryd.send("q", n)
        assert time.monotonic() - began < 2
        slow[n].send(b" ")
    for connection in slow:
        connection.close()


def test_clients_that_went_away_do_not_hold_up_the_stop(retryd):
    """Their last bytes and their end come at once."""
    slow = begin_requests(retryd, 100)
    retryd.send("q", "by now the server has read what they sent")
    for connection in slow:
        connection.sendall(b" ")
        connection.close()
    began = time.monotonic()
    assert retryd.stop() == 0
    assert time.monotonic() - began < 10  # a request may take 30 s


@pytest.mark.slow
def test_clients_that_do_not_read_cannot_hold_the_server(retryd):
    for n in range(20):
        retryd.send("q", "x" * 200_000)
    deaf = []
    for _ in range(50):
        connection = socket.create_connection(("127.0.0.1", retryd.port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET /v2/queues/q/messages?limit=20&echo=true HTTP/1.1\r\nHost: x\r\nX-Project-ID: p\r\n"
                           b"Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n\r\n" * 5)
        deaf.append(connection)
    began = time.monotonic()
    for n in range(20):
        retryd.send("other", n)
    assert time.monotonic() - began < 10
    for connection in deaf:
        connection.close()


# ---- fairness -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_dead_endpoints_do_not_hold_up_a_healthy_one(start_retryd, receiver):
    retryd = start_retryd()
    hole = socket.create_server(("127.0.0.1", 0), backlog=4096)  # takes connections and never says a word
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = free.getsockname()[1]
    try:
        for n in range(150):
            retryd.subscribe("bad", f"http://127.0.0.1:{hole.getsockname()[1]}/{n}", _retry_policy=steady(1))
            retryd.subscribe("bad", f"http://127.0.0.1:{nobody}/{n}", _retry_policy=steady(1))
        for _ in range(5):
            retryd.send("bad", *range(10))  # 300 subscriptions, 50 jobs each
        retryd.subscribe("good", receiver.url("/hook"))
        began = time.monotonic()
        for n in range(20):
            retryd.send("good", *range(10))
        receiver.wait(200, timeout=30)
        took = time.monotonic() - began
        print(f"200 deliveries beside 300 dead endpoints took {took:.2f} s")
        assert retryd.get("/healthz").status_code == 200
    finally:
        hole.close()


@pytest.mark.slow
def test_a_paused_queue_waits_and_holds_up_nobody(retryd, receiver):
    retryd.subscribe("a", receiver.url("/a"))
    retryd.subscribe("b", receiver.url("/b"))
    queues = retryd.get("/v1/queues", params={"limit": 100}).json()["queues"]
    [paused] = [queue["id"] for queue in queues if queue["kind"] == "delivery" and queue["name"].endswith("/a")]
    assert retryd.post(f"/v1/queues/{paused}/pause", json={}).status_code in (200, 204)
    retryd.send("a", *range(10))
    retryd.send("b", *range(10))
    receiver.wait(10, "/b")
    time.sleep(0.5)
    assert receiver.seen("/a") == []
    assert retryd.post(f"/v1/queues/{paused}/resume").status_code in (200, 204)
    receiver.wait(10, "/a")


# ---- full -----------------------------------------------------------------------------------------------------------


@pytest.mark.lmdb
def test_a_full_store_refuses_reads_on_and_recovers(start_retryd):
    retryd = start_retryd({"store.lmdb_map_bytes": 32 << 20})
    stored = []
    while True:
        answer = retryd.post("/v2/queues/q/messages", json={"messages": [{"body": "x" * 100_000, "ttl": 3600}]})
        if answer.status_code != 201:
            break
        stored.append(answer.json()["resources"][0])
        assert len(stored) < 1000, "32 MB hold no 100 MB"
    assert answer.status_code == 503 and answer.json()["description"]
    assert "Retry-After" in answer.headers
    # Reads go on, and nothing of what was refused is there.
    assert retryd.get("/v2/queues/q/stats").json()["messages"]["total"] == len(stored)
    assert len(retryd.get(stored[-1]).json()["body"]) == 100_000
    assert retryd.get("/healthz").status_code == 200
    # What gives room is still taken, and then posts are, without a restart.
    for message in stored[: len(stored) // 2]:
        assert retryd.delete(message).status_code == 204
    wait_until(lambda: retryd.post("/v2/queues/q/messages", json={"messages": [{"body": "again"}]}).status_code == 201,
               20, "a post to succeed again")
    assert retryd.get("/readyz").status_code == 200


@pytest.mark.lmdb
def test_a_limit_on_the_size_of_files_is_like_a_full_disk(retryd):
    resource.prlimit(retryd.process.pid, resource.RLIMIT_FSIZE, (4 << 20, resource.RLIM_INFINITY))
    stored = []
    while True:
        answer = retryd.post("/v2/queues/q/messages", json={"messages": [{"body": "x" * 100_000, "ttl": 3600}]})
        if answer.status_code != 201:
            break
        stored.append(answer.json()["resources"][0])
        assert len(stored) < 100, "4 MB hold no 10 MB"
    assert answer.status_code == 503
    assert retryd.get("/v2/queues/q/stats").json()["messages"]["total"] == len(stored)
    resource.prlimit(retryd.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    wait_until(lambda: retryd.post("/v2/queues/q/messages", json={"messages": [{"body": "again"}]}).status_code == 201,
               20, "a post to succeed again")


@pytest.mark.lmdb
def test_deliveries_end_while_the_store_is_full(start_retryd, receiver):
    retryd = start_retryd({"store.lmdb_map_bytes": 32 << 20})
    gate = threading.Event()

    def wait_for_gate(_):
        gate.wait(20)
        return 200
    receiver.on("/hook", wait_for_gate)
    retryd.subscribe("push", receiver.url("/hook"))
    retryd.send("push", *range(10))
    receiver.wait(1)
    while retryd.post("/v2/queues/q/messages", json={"messages": [{"body": "x" * 100_000}]}).status_code == 201:
        pass
    gate.set()
    wait_until(lambda: retryd.metric("retryd_deliveries_succeeded_total") == 10, what="outcomes to be recorded")
