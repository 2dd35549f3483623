"""What docs/orders.md shows, as it stands: shell and Python; and retryctl on orders."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys

import pytest

from orders import PLUGINS, order, put_type, retries, said, wait_active
from server import BINARY, ROOT, wait_until

CTL = os.path.join(os.path.dirname(BINARY), "retryctl")


@pytest.fixture
def demo(start_retryd):
    """What ./dev run starts, for clients that name no project."""
    server = start_retryd({"orders.demo": "true", "plugins.directory": PLUGINS})
    server.session.headers["X-Project-ID"] = "default"
    return server


def blocks(language, begin, end):
    with open(os.path.join(ROOT, "docs", "orders.md"), encoding="utf-8") as page:
        text = page.read()
    part = text[text.index(begin):text.index(end)]
    return re.findall(rf"```{language}\n(.*?)```", part, re.S)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def run_shell(server, scripts):
    """All of them in one shell; only the addresses are others than on the page."""
    script = "\n".join(scripts).replace("http://127.0.0.1:8888", server.url).replace("9001", str(free_port()))
    script = script.replace("python3 ", f"{sys.executable} ")
    done = subprocess.run(["bash", "-eu", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_first_order_of_the_guide(demo):
    said_by_shell = run_shell(demo, blocks("sh", "# Orders", "With Barbican's client:"))
    words = re.findall(r'"(PENDING|ACTIVE|cert_\w+|check_\w+)"', said_by_shell)
    assert words == ["PENDING", "cert_request_pending", "check_certificate_status", "ACTIVE", "cert_generated"]


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_worker_of_the_guide(demo):
    address, first = blocks("sh", "# Orders", "With Barbican's client:")
    function = first.split("\n")[0]
    said_by_shell = run_shell(demo, [address, function] + blocks("sh", "## A worker of your own", "## States"))
    assert '["bytes","http://127.0.0.1:' in said_by_shell
    assert re.search(r'"status": "ACTIVE",\s+"sub_status": "brewing"', said_by_shell)
    assert re.search(r"^16$", said_by_shell, re.M) and re.search(r'"failures": [12]', said_by_shell)
    assert said_by_shell.rstrip().endswith('"ACTIVE"')


def test_the_client_of_the_guide(demo):
    pytest.importorskip("barbicanclient")
    program, = blocks("python", "With Barbican's client:", "## A worker of your own")
    done = subprocess.run([sys.executable, "-c", program.replace("http://127.0.0.1:8888", demo.url)], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ACTIVE 32\n-----BEGIN PUBLIC KEY-----\n"


def test_the_type_of_the_guide_is_one(demo):
    shown, = blocks("json", "## Types", "## Looking")
    made = json.loads(shown.replace("whsec_…", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="))
    put_type(demo, "t", **made)


# ---- retryctl --------------------------------------------------------------------------------------------------------


def test_retryctl_shows_and_wakes_orders(retryd, receiver):
    def ctl(*words, status=0):
        done = subprocess.run([CTL, "--url", retryd.url, "--project", "p", *words], capture_output=True, text=True)
        assert done.returncode == status, (words, done.stderr)
        return done.stdout if status == 0 else done.stderr

    assert ctl("orders") == "There are no orders.\n" and ctl("order-types") == "There are no order types.\n"
    target = {"target": {"url": receiver.url("/work")}}
    assert "http://127.0.0.1" in ctl("order-types", "put", "work", json.dumps(target))
    assert json.loads(ctl("order-types", "list", "--json"))[0]["type"] == "work"
    receiver.on("/work", said("retry", after_ms=3600000, task="later", args=[7], sub_status="resting"), said("done"))
    one = order(retryd)
    wait_until(lambda: [t for t in retries(retryd, one) if t["retry_count"] == 1])
    assert "resting" in ctl("orders") and one in ctl("orders", "list")
    seen = json.loads(ctl("orders", "--json"))
    assert seen["total"] == 1 and seen["orders"][0]["id"] == one
    assert "later" in ctl("orders", "show", one) and "[7]" in ctl("orders", "retries", one)
    assert json.loads(ctl("orders", "show", one, "--json"))["status"] == "PENDING"
    assert json.loads(ctl("orders", "retries", one, "--json"))[0]["retry_task"] == "later"
    assert "PENDING" in ctl("order-types", "delete", "work", status=1)
    ctl("orders", "wake", one)
    wait_active(retryd, one)
    assert "It has no task." in ctl("orders", "show", one)
    assert "ACTIVE" in ctl("orders", "wake", one, status=1)
    others = [order(retryd, n=i) for i in range(4)]
    first = ctl("orders", "--limit", "3")
    assert f"more: --marker {others[1]}" in first and others[2] not in first
    assert others[2] in ctl("orders", "--limit", "3", "--marker", others[1])
    ctl("orders", "delete", one)
    assert "Order not found." in ctl("orders", "show", one, status=1)
    for each in others:
        wait_active(retryd, each)
    ctl("order-types", "delete", "work")
    assert ctl("locks") == "No lock is held.\n" and json.loads(ctl("locks", "--json")) == []
    assert "usage" in ctl("orders", "show", status=2) and "JSON" in ctl("order-types", "put", "t", "{", status=2)
