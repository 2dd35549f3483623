"""What tests of events say most of the time."""
import time
from datetime import datetime

from server import wait_until


def backoff(seconds, attempts=0):
    """The same delay each time; 0 attempts: no end."""
    ms = int(seconds * 1000)
    return {"backoff": {"initial_ms": ms, "maximum_ms": ms, "exponent": 1}, "max_attempts": attempts}


def put_type(retryd, name, status=(200, 201), **members):
    members.setdefault("target", {"pull": True})
    answer = retryd.put(f"/v1/event-types/{name}", json=members)
    assert answer.status_code in status, answer.text
    return answer.json()


def schedule(retryd, name, body=b"{}", status=202, **headers):
    """Headers with '_' for '-'."""
    answer = retryd.post(f"/v1/events/{name}", data=body, headers={k.replace("_", "-"): str(v) for k, v in headers.items()})
    assert answer.status_code == status, answer.text
    return answer.json().get("id")


def batch(retryd, name, *events):
    answer = retryd.post(f"/v1/events/{name}/batch", json={"events": list(events)})
    assert answer.status_code == 202, answer.text
    return answer.json()["ids"]


def claim(retryd, name, **members):
    answer = retryd.post(f"/v1/event-types/{name}/claim", json={"worker": "w", **members})
    assert answer.status_code in (200, 204), answer.text
    return answer.json()["jobs"] if answer.content else []


def end(retryd, job, verb, status=200, **members):
    answer = retryd.post(f"/v1/jobs/{job['id']}/{verb}", json={"token": job["token"], **members})
    assert answer.status_code == status, answer.text
    return answer.json()


def state(retryd, name):
    answer = retryd.get(f"/v1/event-types/{name}")
    assert answer.status_code == 200, answer.text
    return answer.json()["state"]


def circuit(retryd, name):
    return state(retryd, name)["circuit"]["state"]


def wait_circuit(retryd, name, wanted, timeout=20):
    wait_until(lambda: circuit(retryd, name) == wanted, timeout, f"the circuit of {name} to be {wanted}")


def wait_state(retryd, job, wanted, timeout=20):
    wait_until(lambda: retryd.job(job)["state"] == wanted, timeout, f"{job} to be {wanted}")
    return retryd.job(job)


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def ago(text):
    return time.time() - moment(text)
