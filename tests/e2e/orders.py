"""What the tests of orders share: requests to /v1/orders, and a worker that answers as it is told."""
import json
import os
import re

from receiver import Answer
from server import BINARY, wait_until

PLUGINS = os.environ.get("RETRYD_PLUGINS", os.path.join(os.path.dirname(BINARY), "plugins"))
DEMO = {"orders.demo": "true", "plugins.directory": PLUGINS,
        "simple_certificate.delay_before_update_seconds": "1"}
STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$")


def said(action, status=200, **more):
    """What a worker answers."""
    return Answer(status, {"Content-Type": "application/json"}, json.dumps({"action": action, **more}).encode())


def put_type(retryd, name, status=201, headers=None, **fields):
    answer = retryd.put(f"/v1/order-types/{name}", json=fields, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def worker_type(retryd, receiver, name="work", **fields):
    """An order type whose runs go to `receiver`, and are tried again every second when they fail."""
    fields.setdefault("backoff", {"initial_ms": 1000, "maximum_ms": 1000, "exponent": 1})
    return put_type(retryd, name, target={"url": receiver.url(f"/{name}")}, **fields)


def order(retryd, kind="work", headers=None, **meta):
    """Its UUID."""
    answer = retryd.post("/v1/orders", json={"type": kind, "meta": meta}, headers=headers)
    assert answer.status_code == 202, answer.text
    assert list(answer.json()) == ["order_ref"]
    return answer.json()["order_ref"].rsplit("/", 1)[1]


def look(retryd, uuid, **more):
    answer = retryd.get(f"/v1/orders/{uuid}", **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def list_orders(retryd):
    """UUIDs of all of them, by "next", and the total that the last page shows."""
    seen, page = [], retryd.get("/v1/orders?limit=100").json()
    while True:
        seen += [one["order_ref"].rsplit("/", 1)[1] for one in page["orders"]]
        if "next" not in page:
            return seen, page["total"]
        page = retryd.get(page["next"][page["next"].index("/v1/"):]).json()


def retries(retryd, uuid, **more):
    answer = retryd.get(f"/v1/orders/{uuid}/retries", **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def wait_end(retryd, uuid, timeout=30.0):
    """The order once it is ACTIVE or in ERROR; until then it has a task that lives."""
    def ended():
        seen = look(retryd, uuid)
        return seen if seen["status"] != "PENDING" else None
    return wait_until(ended, timeout, f"order {uuid} to end")


def wait_active(retryd, uuid, timeout=30.0):
    seen = wait_end(retryd, uuid, timeout)
    assert seen["status"] == "ACTIVE", seen
    assert retries(retryd, uuid) == []
    return seen


def refused(answer, status, word=""):
    """An error as Barbican's client reads it."""
    assert answer.status_code == status, answer.text
    seen = answer.json()
    assert set(seen) == {"code", "title", "description"} and seen["code"] == status and seen["title"], seen
    assert word in seen["description"], seen
    return seen
