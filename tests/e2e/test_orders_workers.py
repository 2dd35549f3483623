"""Who advances orders: HTTP workers and plugins that do as they should and as they should not, and a server that dies."""
import os
import subprocess
import threading
import time

import pytest
import requests

from orders import PLUGINS, look, order, put_type, refused, retries, said, wait_active, wait_end, worker_type
from receiver import CLOSE, EARLY, GARBAGE, HANG, RESET, Answer
from server import ROOT, wait_until

PLAIN = {"Content-Type": "text/plain"}


def put_result(server, run, **answer):
    return server.put(f"/v1/orders/{run['order']}/result", json={"token": run["token"], **answer})


# ---- what workers answer ---------------------------------------------------------------------------------------------


def test_what_cannot_be_done_now_is_tried_again(retryd, receiver):
    """Each of these costs an attempt, rests for the backoff's second, and then the worker is well again."""
    ills = {"reset": RESET, "close": CLOSE, "early": EARLY, "garbage": GARBAGE, "s500": 500, "s502": 502, "s302": 302,
            "empty": 200, "s204": 204, "text": Answer(200, PLAIN, b"ok"), "list": Answer(200, {}, b"[]"),
            "word": said("perhaps"), "wrong": said("retry", after_ms="soon"), "big": Answer(200, {}, b"x" * 600000),
            "says": said("unavailable")}
    made = {}
    for name, ill in ills.items():
        receiver.on(f"/{name}", ill, said("done"))
        worker_type(retryd, receiver, name)
        made[name] = order(retryd, name)
    for name, one in made.items():
        wait_active(retryd, one)
        first, second = receiver.seen(f"/{name}")
        assert second.at - first.at >= 0.95, name
        assert second.json["attempt"] == 2 and second.json["token"] != first.json["token"]


@pytest.mark.parametrize("status", [429, 503])
def test_a_worker_says_when_to_come_back(retryd, receiver, status):
    receiver.on("/work", Answer(status, {"Retry-After": "2"}), said("unavailable", after_ms=0, message="soon"),
                said("done"))
    worker_type(retryd, receiver, backoff={"initial_ms": 60000, "maximum_ms": 60000, "exponent": 1})
    wait_active(retryd, order(retryd))
    first, second, third = receiver.seen()
    assert second.at - first.at >= 1.9 and third.at - second.at < 20


def test_a_worker_that_refuses_puts_the_order_in_error(retryd, receiver):
    receiver.on("/work", Answer(404, PLAIN, b"no such profile"))
    worker_type(retryd, receiver)
    seen = wait_end(retryd, order(retryd))
    assert (seen["status"], seen["error_status_code"]) == ("ERROR", "400")
    assert seen["error_reason"] == "create_order issue seen - no such profile"
    receiver.on("/work", said("failed", code=422, reason="Too short."))
    seen = wait_end(retryd, order(retryd))
    assert (seen["error_status_code"], seen["error_reason"]) == ("422", "Too short.")
    receiver.on("/work", said("failed"))
    seen = wait_end(retryd, order(retryd))
    assert seen["error_status_code"] == "500" and "create_order failure seen" in seen["error_reason"]
    assert "secret_ref" not in seen and retries(retryd, seen["order_ref"].rsplit("/", 1)[1]) == []


def test_attempts_have_an_end_where_the_type_says_so(retryd, receiver):
    receiver.on("/work", 503)
    worker_type(retryd, receiver, max_attempts=2)
    seen = wait_end(retryd, order(retryd))
    assert seen["status"] == "ERROR" and seen["error_status_code"] == "500"
    assert len(receiver.seen()) == 2


def test_what_became_of_orders_is_counted(retryd, receiver):
    receiver.on("/work", 503, said("retry", after_ms=0), said("done"), said("failed"))
    worker_type(retryd, receiver)
    wait_active(retryd, order(retryd))
    failed = order(retryd)
    assert wait_end(retryd, failed)["status"] == "ERROR"
    retryd.delete(f"/v1/orders/{failed}")
    for name, count in (("orders_created", 2), ("orders_ended", 2), ("orders_deleted", 1), ("order_runs", 4),
                        ("order_retries", 2), ("orders_repaired", 0)):
        assert retryd.metric(f"retryd_{name}_total") == count, name
    assert 'retryd_orders_ended_total{status="ERROR"} 1' in retryd.metrics()


def test_failures_in_a_row_are_counted_from_anew_after_a_success(retryd, receiver):
    receiver.on("/work", 500, said("retry", after_ms=0), 500, said("retry", after_ms=0), 500, said("done"))
    worker_type(retryd, receiver, max_attempts=2)
    wait_active(retryd, order(retryd))
    assert len(receiver.seen()) == 6


def test_a_worker_that_does_not_answer_in_time_is_asked_again(retryd, receiver):
    receiver.on("/work", HANG, said("done"))
    worker_type(retryd, receiver, run_limit_s=1)
    wait_active(retryd, order(retryd))
    first, second = receiver.seen()
    assert second.at - first.at >= 1.9


def test_secrets_of_a_worker_are_kept(retryd, receiver):
    receiver.on("/work", said("done", secret={"payload_base64": "AAEC/w==", "content_type": "image/x-key", "name": "s"}))
    worker_type(retryd, receiver)
    ref = wait_active(retryd, order(retryd))["secret_ref"][len(retryd.url):]
    assert retryd.get(ref + "/payload").content == b"\x00\x01\x02\xff"
    assert retryd.get(ref).json()["content_types"] == {"default": "image/x-key"}
    receiver.on("/work", said("done", container={"name": "c", "secrets": {"certificate": {"payload": "pem"},
                                                                          "private_key": {"payload": "key"}}}))
    ref = wait_active(retryd, order(retryd))["container_ref"][len(retryd.url):]
    seen = retryd.get(ref).json()
    assert (seen["name"], seen["type"], seen["status"], seen["consumers"]) == ("c", "certificate", "ACTIVE", [])
    refs = {member["name"]: member["secret_ref"][len(retryd.url):] for member in seen["secret_refs"]}
    assert retryd.get(refs["certificate"] + "/payload").text == "pem"
    assert retryd.get(refs["private_key"]).json()["secret_type"] == "private"
    refused(retryd.get(ref.replace("containers", "secrets")), 404, "Secret")
    refused(retryd.get(refs["certificate"].replace("secrets", "containers")), 404, "Container")


# ---- workers that answer later ---------------------------------------------------------------------------------------


def test_a_worker_may_answer_later(retryd, receiver):
    receiver.on("/work", 202)
    worker_type(retryd, receiver)
    one = order(retryd)
    run = receiver.wait(1)[0].json
    refused(put_result(retryd, {**run, "token": "0" * 16}, action="done"), 409, "token")
    refused(put_result(retryd, {**run, "token": "x"}, action="done"), 400, "token")
    refused(put_result(retryd, run, action="perhaps"), 400, "action")
    refused(put_result(retryd, run, action="retry", after_ms=-1), 400, "after_ms")
    refused(retryd.put(f"/v1/orders/{one}/result", data=b"{"), 400)
    refused(put_result(retryd, {**run, "order": "x"}, action="done"), 404)
    refused(retryd.put(f"/v1/orders/{one}/result", json={"token": run["token"], "action": "done"},
                       headers={"X-Project-Id": "q"}), 404)
    assert look(retryd, one)["status"] == "PENDING"
    answer = put_result(retryd, run, action="retry", after_ms=0, task="second", state="s", kwargs={"k": "a\0b"})
    assert answer.status_code == 204, answer.text
    again = receiver.wait(2)[1].json
    assert (again["task"], again["state"], again["kwargs"]) == ("second", "s", {"k": "a\0b"}) and again["token"] != run["token"]
    refused(put_result(retryd, {**again, "token": "1" * 16}, action="done"), 409)
    for _ in range(2):  # the second time because the first answer was lost
        assert put_result(retryd, again, action="done", secret_ref="http://elsewhere/1").status_code == 204
    assert wait_active(retryd, one)["secret_ref"] == "http://elsewhere/1"
    refused(put_result(retryd, run, action="failed"), 409)
    assert look(retryd, one)["status"] == "ACTIVE"


def test_a_worker_that_never_answers_is_asked_again_and_is_too_late_then(retryd, receiver):
    receiver.on("/work", 202)
    worker_type(retryd, receiver, answer_limit_s=1)
    one = order(retryd)
    first, second = [request.json for request in receiver.wait(2, timeout=20)[:2]]
    refused(put_result(retryd, first, action="failed", reason="late"), 409)
    assert look(retryd, one)["status"] == "PENDING" and second["attempt"] == 2
    retryd.delete(f"/v1/orders/{one}")


def test_a_result_that_is_faster_than_its_answer_counts(retryd, receiver):
    def work(request):
        assert put_result(retryd, request.json, action="done").status_code == 204
        return 202

    receiver.on("/work", work)
    worker_type(retryd, receiver)
    wait_active(retryd, order(retryd))
    assert len(receiver.wait(1)) == 1  # the receiver takes note of a request when it has answered


# ---- deleting --------------------------------------------------------------------------------------------------------


def test_a_worker_is_told_once_when_a_pending_order_is_deleted(retryd, receiver):
    receiver.on("/work", said("retry", after_ms=3600000, task="later", state="s"), said("done"))
    worker_type(retryd, receiver, cancel=True)
    one = order(retryd, n=1)
    wait_until(lambda: [t for t in retries(retryd, one) if t["retry_count"] == 1])
    assert retryd.delete(f"/v1/orders/{one}").status_code == 204
    told = receiver.wait(2)[1].json
    assert (told["verb"], told["order"], told["task"], told["state"]) == ("cancel", one, "later", "s")
    assert receiver.seen()[0].json["verb"] == "run"
    other = order(retryd)
    wait_active(retryd, other)
    retryd.delete(f"/v1/orders/{other}")  # ACTIVE: there is nothing to cancel
    last = order(retryd)
    wait_active(retryd, last)
    assert len(receiver.seen()) == 4


def test_an_answer_for_an_order_that_was_deleted_changes_nothing(retryd, receiver):
    def work(request):
        assert retryd.delete(f"/v1/orders/{request.json['order']}").status_code == 204
        return said("done", secret={"payload": "x"})

    receiver.on("/work", work)
    worker_type(retryd, receiver)
    one = order(retryd)
    wait_until(lambda: retryd.get(f"/v1/orders/{one}").status_code == 404)
    receiver.on("/work", said("done"))
    wait_active(retryd, order(retryd))
    refused(retryd.get(f"/v1/orders/{one}"), 404)
    assert retryd.get("/v1/orders").json()["total"] == 1 and len(receiver.seen()) == 2


# ---- workers that are away -------------------------------------------------------------------------------------------


def test_a_worker_that_was_stopped_and_started_goes_on(retryd, start_receiver):
    gone = start_receiver()
    gone.close()
    put_type(retryd, "work", target={"url": gone.url("/work")},
             backoff={"initial_ms": 1000, "maximum_ms": 1000, "exponent": 1})
    made = [order(retryd, n=i) for i in range(5)]
    for one in made:
        task, = wait_until(lambda: [t for t in retries(retryd, one) if t["failures"] > 0])
        assert task["retry_count"] == task["failures"] and look(retryd, one)["status"] == "PENDING"
    back = start_receiver(port=gone.port)
    back.on("/work", said("done"))
    for one in made:
        wait_active(retryd, one)


def test_a_change_of_the_type_counts_at_once(retryd, receiver, start_receiver):
    receiver.on("/work", 500)
    worker_type(retryd, receiver, backoff={"initial_ms": 3600000, "maximum_ms": 3600000, "exponent": 1})
    one = order(retryd)
    wait_until(lambda: [t for t in retries(retryd, one) if t["failures"] == 1])
    other = start_receiver()
    other.on("/work", said("done"))
    worker_type(retryd, other, status=200)
    assert retryd.post(f"/v1/orders/{one}/retry-now").status_code == 204
    wait_active(retryd, one)
    assert len(receiver.seen()) == 1 and len(other.seen()) == 1


@pytest.mark.threads
def test_no_more_runs_than_the_type_allows_and_one_for_each_order(retryd, receiver):
    lock, under_way, most = threading.Lock(), [], [0]

    def work(request):
        run = request.json
        with lock:
            assert run["order"] not in under_way
            under_way.append(run["order"])
            most[0] = max(most[0], len(under_way))
        time.sleep(0.02)
        with lock:
            under_way.remove(run["order"])
        return said("done") if run["task"] == "second" else said("retry", after_ms=0, task="second")

    receiver.on("/work", work)
    worker_type(retryd, receiver, concurrency=3)
    for one in [order(retryd, n=i) for i in range(30)]:
        wait_active(retryd, one)
    assert most[0] <= 3 and len(receiver.seen()) == 60


# ---- plugins ---------------------------------------------------------------------------------------------------------

UNRULY = r"""
#include <retryd/plugin.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void run(struct retryd_ctx *ctx, const struct retryd_task *task, const struct retryd_order *order,
                struct retryd_reply *reply) {
    const char *how = retryd_text(ctx, order->meta, "how");
    (void)task;
    if (ctx->attempt > 1) retryd_reply_done(reply);
    else if (strcmp(how, "crash") == 0) abort();
    else if (strcmp(how, "exit") == 0) _exit(0);
    else if (strcmp(how, "hang") == 0) while (1) pause();
    else if (strcmp(how, "nonsense") == 0) retryd_reply_retry(reply, 0, "t", "not JSON", NULL);
}

static const struct retryd_plugin plugin = {
    .abi = RETRYD_PLUGIN_ABI, .size = sizeof plugin, .name = "unruly", .run = run};
RETRYD_PLUGIN(plugin)
"""


def build_plugin(folder, name, source):
    (folder / f"{name}.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-I", os.path.join(ROOT, "include"), "-o", str(folder / f"{name}.so.new"),
                    str(folder / f"{name}.c")], check=True)
    os.rename(folder / f"{name}.so.new", folder / f"{name}.so")


@pytest.fixture
def folder(tmp_path):
    """A directory of plugins with those that come along."""
    path = tmp_path / "plugins"
    path.mkdir()
    for name in ("key", "asymmetric", "simple_certificate"):
        os.symlink(os.path.join(PLUGINS, f"{name}.so"), path / f"{name}.so")
    return path


@pytest.mark.threads
def test_an_unruly_plugin_costs_an_attempt_and_nobody_else(start_retryd, folder):
    build_plugin(folder, "unruly", UNRULY)
    server = start_retryd({"plugins.directory": str(folder), "orders.demo": "true"})
    put_type(server, "unruly", target={"plugin": "unruly"}, run_limit_s=1,
             backoff={"initial_ms": 1000, "maximum_ms": 1000, "exponent": 1})
    made = [order(server, "unruly", how=how) for how in ("crash", "exit", "hang", "nonsense", "silence")]
    for i in range(5):
        wait_active(server, order(server, "key", algorithm="aes", bit_length=128))
    for one in made:
        wait_active(server, one)
        assert look(server, one)["status"] == "ACTIVE"


def test_a_plugin_that_is_missing_is_waited_for(start_retryd, folder):
    server = start_retryd({"plugins.directory": str(folder)})
    put_type(server, "late", target={"plugin": "late"}, backoff={"initial_ms": 1000, "maximum_ms": 1000, "exponent": 1})
    one = order(server, "late", how="silence")
    task, = wait_until(lambda: [t for t in retries(server, one) if t["failures"] > 0])
    attempts = server.get(f"/v1/jobs/{task['id']}/attempts").json()["attempts"]
    assert attempts[0]["reason"] == "no_plugin"
    build_plugin(folder, "late", UNRULY)
    wait_active(server, one)


# ---- kill -9 ---------------------------------------------------------------------------------------------------------


class Saga:
    """A worker whose orders take four steps: again at once, 202 with a result later, again, done. An order may ask in its
    meta for the server to be killed, once, at a moment of a step: "asked" before it is answered, a number of milliseconds
    after that, "put" before the late result, "told" right after that."""

    STEPS = ["create_order", "second", "third", "fourth"]
    MOMENTS = [(step, moment) for step in STEPS for moment in ("asked", 0, 2, 10)] + [("second", "put"), ("second", "told")]

    def __init__(self, server):
        self.server, self.killed, self.lock = server, set(), threading.Lock()

    def kill(self, run, moment):
        with self.lock:
            if run["meta"].get("kill") != [run["task"], moment] or run["order"] in self.killed:
                return
            self.killed.add(run["order"])
            self.server.process.kill()

    def put(self, run):
        """Tries until somebody understands it: the server may be away."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            self.kill(run, "put")
            try:
                status = requests.put(f"{self.server.url}/v1/orders/{run['order']}/result",
                                      json={"token": run["token"], "action": "retry", "after_ms": 0, "task": "third"},
                                      headers={"X-Project-Id": "p"}, timeout=5).status_code
                assert status in (204, 409), status
                self.kill(run, "told")
                return
            except requests.RequestException:
                time.sleep(0.02)

    def __call__(self, request):
        run = request.json
        self.kill(run, "asked")
        if isinstance(run["meta"].get("kill", [0, ""])[1], int):
            moment = run["meta"]["kill"][1]
            threading.Timer(moment / 1000, self.kill, (run, moment)).start()
        step = run["task"]
        if step == "create_order":
            return said("retry", after_ms=0, task="second", state="1")
        if step == "second":
            assert run["state"] == "1", run
            threading.Thread(target=self.put, args=(run,), daemon=True).start()
            return 202
        if step == "third":
            assert run["state"] == "1", run
            return said("retry", after_ms=0, task="fourth", args=[run["order"]], state="3")
        assert (run["args"], run["state"]) == ([run["order"]], "3"), run
        return said("done", secret={"payload": run["order"]})


def test_orders_end_wherever_the_server_is_killed(start_retryd, receiver):
    server = start_retryd()
    saga = Saga(server)
    receiver.on("/work", saga)
    worker_type(server, receiver)
    acknowledged = set()
    for moment in Saga.MOMENTS:
        # One that has the server killed, among others that are under way.
        acknowledged |= {order(server) for _ in range(2)}
        try:
            acknowledged.add(order(server, kill=list(moment)))
        except requests.ConnectionError:
            pass  # killed before the reply was on its way: it is there all the same, or the server were not dead
        server.process.wait(30)
        server.start()
        for one in acknowledged:
            if len(retries(server, one)) != 1:
                assert look(server, one)["status"] == "ACTIVE"
    made = {one["order_ref"].rsplit("/", 1)[1] for one in server.get("/v1/orders?limit=100").json()["orders"]}
    assert acknowledged <= made and len(made) == 3 * len(Saga.MOMENTS)
    for one in made:
        ref = wait_active(server, one)["secret_ref"]
        assert server.get(ref[len(server.url):] + "/payload").text == one
    assert saga.killed <= made and len(saga.killed) == len(Saga.MOMENTS)
