"""What is bounded: memory for clients that do not read, and everybody's patience while the database hangs."""
import concurrent.futures
import contextlib
import os
import resource
import signal
import socket
import subprocess
import time

import pytest
import requests

import events
from policies import quick
from postgres import Postgres
from server import BINARY, wait_until

MB = 1 << 20
REPLIES_MAX = 64 * MB
BESIDES = 96 * MB  # what the server is without replies, and pages that readers have not yet finished
DEAF = 500
ANSWER_S = 2  # generous: "at once" on a machine that does other things too


def memory(retryd):
    """Of its own, without the pages of files."""
    with open(f"/proc/{retryd.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))


def be_deaf(retryd, path):
    """Asks and never reads."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", retryd.port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Project-ID: p\r\n"
                       "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n\r\n".encode())
    return connection


@pytest.mark.slow
def test_clients_that_do_not_read_hold_little_memory(start_retryd, receiver):
    retryd = start_retryd({"server.replies_bytes_max": REPLIES_MAX, "server.request_timeout_s": 600})
    events.put_type(retryd, "t", target={"url": receiver.url("/no")}, policy=events.backoff(0.1, 1))
    receiver.on("/no", 503)
    for _ in range(20):
        retryd.send("q", "x" * 250_000)
        events.schedule(retryd, "t", b"y" * 400_000)
    retryd.wait_dead(20)
    pages = ["/v2/queues/q/messages?limit=20&echo=true", "/v1/dead/export"]
    for path in pages:
        assert len(retryd.get(path).content) > 4 * MB
    peak = 0
    with contextlib.ExitStack() as deaf:
        for number in range(DEAF):
            deaf.enter_context(be_deaf(retryd, pages[number % len(pages)]))
            peak = max(peak, memory(retryd))
        asked = retryd.metric("retryd_http_requests_total")
        end = time.monotonic() + 8  # longer than those may read who are in the way
        while time.monotonic() < end:
            peak = max(peak, memory(retryd))
            begin = time.monotonic()
            retryd.send("other", "hello")
            assert time.monotonic() - begin < ANSWER_S
        assert asked >= DEAF and retryd.metric("retryd_http_refused_total") > 0
        # Whoever reads gets the page in the end, although nobody else has moved.
        wait_until(lambda: retryd.get(pages[0]).status_code == 200, 30, "room for a page")
    print(f"{peak / MB:.0f} MB at most")
    assert peak < REPLIES_MAX + BESIDES


# ---- a machine that has no more to give ------------------------------------------------------------------------------


@contextlib.contextmanager
def limited(retryd, what, limit):
    _, most = resource.prlimit(retryd.process.pid, what)
    resource.prlimit(retryd.process.pid, what, (limit, most))
    try:
        yield
    finally:
        resource.prlimit(retryd.process.pid, what, (most, most))


def processor_s(retryd):
    with open(f"/proc/{retryd.process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_running_out_of_descriptors_passes(start_retryd, receiver):
    retryd = start_retryd()
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={**quick(2), "backoff_retries": 100})
    retryd.send("q", "first")
    receiver.wait(1)
    used = len(os.listdir(f"/proc/{retryd.process.pid}/fd"))
    with limited(retryd, resource.RLIMIT_NOFILE, used + 2), contextlib.ExitStack() as clients:
        for _ in range(20):
            clients.enter_context(socket.create_connection(("127.0.0.1", retryd.port)))
        begun = processor_s(retryd)
        time.sleep(1)
        assert processor_s(retryd) - begun < 0.5  # those who cannot be taken do not keep it busy
    for number in range(5):
        retryd.send("q", number)
    receiver.wait(6)
    assert retryd.dead() == []


def test_starting_without_descriptors_says_why(tmp_path):
    done = subprocess.run(["prlimit", "--nofile=16", BINARY, "serve", "--listen", "127.0.0.1:0", "--data", tmp_path / "d"],
                          capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1 and "Too many open files" in done.stderr


@pytest.mark.slow
@pytest.mark.lmdb
def test_running_out_of_memory_passes(start_retryd):
    retryd = start_retryd({"store.lmdb_map_bytes": 128 * MB})
    message = {"messages": [{"body": "x" * 200_000, "ttl": 3600}]}
    for _ in range(20):
        assert retryd.post("/v2/queues/q/messages", json=message).status_code == 201
    with open(f"/proc/{retryd.process.pid}/statm", encoding="ascii") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()

    def use(number):
        session = requests.Session()
        session.headers.update(retryd.session.headers)
        for _ in range(20):
            with contextlib.suppress(requests.ConnectionError):  # without memory for a reply there is none
                if number % 2 == 0:
                    answer = session.post(retryd.url + "/v2/queues/q/messages", json=message, timeout=20)
                else:
                    answer = session.get(retryd.url + "/v2/queues/q/messages?limit=20&echo=true", timeout=20)
                assert answer.status_code in (200, 201, 503), answer.text

    with limited(retryd, resource.RLIMIT_AS, now + 8 * MB), concurrent.futures.ThreadPoolExecutor(16) as clients:
        list(clients.map(use, range(16)))
    assert len(retryd.get("/v2/queues/q/messages?limit=20&echo=true").json()["messages"]) == 20
    retryd.send("other", "hello")


# ---- a database that hangs -------------------------------------------------------------------------------------------


def family(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return [pid, *(one for child in children.read().split() for one in family(int(child)))]


@contextlib.contextmanager
def hanging(database):
    """It neither answers nor goes away."""
    stopped = family(database.process.pid)
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


PATCH = {"Content-Type": "application/openstack-messaging-v2.0-json-patch"}
NEEDS_THE_STORE = [
    ("GET", "/v2/queues/q", {}), ("GET", "/v2/queues/q/messages", {}), ("GET", "/v2/queues/q/stats", {}),
    ("POST", "/v2/queues/q/messages", {"json": {"messages": [{"body": 1, "ttl": 60, "delay": 3}]}}),
    ("POST", "/v2/queues/q/messages", {"json": {"messages": [{"body": 1, "ttl": 60}]}}),
    ("PATCH", "/v2/queues/q", {"json": [{"op": "add", "path": "/metadata/a", "value": 1}], "headers": PATCH}),
    ("POST", "/v1/queues/t/pause", {"json": {}}), ("GET", "/v2/ping", {}), ("GET", "/v1/dead", {}),
    ("POST", "/v1/dead/redrive", {"json": {"queue": "q"}}), ("GET", "/v1/orders", {}), ("GET", "/v1/entities/e", {}),
]
NEEDS_NONE = ["/healthz", "/readyz", "/openapi.json", "/v2", "/"]


def ask(retryd, method, path, **more):
    """(status, Retry-After, seconds)"""
    begin = time.monotonic()
    more["headers"] = {**retryd.session.headers, **more.get("headers", {})}
    answer = requests.request(method, retryd.url + path, timeout=60, **more)
    return answer.status_code, answer.headers.get("Retry-After"), time.monotonic() - begin


def check_at_once(retryd):
    for path in NEEDS_NONE:
        _, _, took_s = ask(retryd, "GET", path)
        assert took_s < ANSWER_S, path
    status, _, took_s = ask(retryd, "GET", "/metrics")
    assert status == 200 and took_s < 3 + ANSWER_S


@pytest.mark.slow
@pytest.mark.postgres
def test_nobody_waits_long_for_a_database_that_hangs(start_retryd, receiver):
    with Postgres() as database:
        retryd = start_retryd({"store.postgres_statement_timeout_ms": 4000, "store.postgres_connect_timeout_ms": 2000,
                               "server.deadline_ms": 15000}, store=database.url())
        retryd.subscribe("q", receiver.url("/hook"), _retry_policy=quick(1))
        retryd.send("q", "hello")
        receiver.wait(1)
        events.put_type(retryd, "t")
        before = len(os.listdir(f"/proc/{retryd.process.pid}/fd"))
        with hanging(database), concurrent.futures.ThreadPoolExecutor(64) as clients:
            asked = [clients.submit(ask, retryd, method, path, **more) for method, path, more in NEEDS_THE_STORE * 5]
            time.sleep(0.5)
            check_at_once(retryd)
            for request in asked:
                status, retry_after, took_s = request.result(60)
                assert status == 503 and int(retry_after) > 0 and took_s < 15 + ANSWER_S
            assert ask(retryd, "GET", "/readyz")[0] == 503
            check_at_once(retryd)
            # Nothing piles up: neither descriptors nor memory, however many come.
            for _ in range(3):
                for request in [clients.submit(ask, retryd, *what, **more) for *what, more in NEEDS_THE_STORE * 5]:
                    assert request.result(60)[0] == 503
            check_at_once(retryd)
            wait_until(lambda: len(os.listdir(f"/proc/{retryd.process.pid}/fd")) < before + 40, 20, "connections to end")
            assert memory(retryd) < BESIDES
        wait_until(lambda: retryd.get("/readyz").status_code == 200, 30, "the server to be ready again")
        retryd.send("q", "again")
        assert receiver.wait(2)[-1].message == "again"
