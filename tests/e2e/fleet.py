"""A worker of a fleet: claims, works for a moment, and ends its work. Run as a process of its own, to be killed."""
import http.client
import json
import random
import time

ERRORS = (OSError, http.client.HTTPException)


class Client:
    """`port` is shared memory: the server may come back on another one."""

    def __init__(self, port):
        self.port, self.connected, self.link = port, None, None

    def call(self, method, path, body=None, headers=()):
        """(status, JSON or None), asked again as long as the server is away."""
        while True:
            try:
                if self.link is None or self.connected != self.port.value:
                    self.connected = self.port.value
                    self.link = http.client.HTTPConnection("127.0.0.1", self.connected, timeout=20)
                self.link.request(method, path, None if body is None else json.dumps(body),
                                  {"X-Project-ID": "p", **dict(headers)})
                answer = self.link.getresponse()
                text = answer.read()
                if answer.status < 500:
                    return answer.status, json.loads(text) if text else None
            except ERRORS:
                self.link = None
            time.sleep(0.05)


def work(port, seed, process, kind, failures):
    """Until nothing comes for a while. The share `failures` of all work fails; finished work leaves its id in the entity."""
    chance, client, session = random.Random(seed), Client(port), None
    number, idle = 0, 0
    while idle < 3:
        if session is None:
            session = client.call("POST", "/v1/sessions", {"component": "fleet", "interval_s": 3})[1]["session"]
        elif client.call("POST", f"/v1/sessions/{session}/heartbeat")[0] == 410:
            session = None
            continue
        number += 1
        status, got = client.call("POST", "/v1/work/claim",
                                  {"session": session, "process": process, "kind": kind, "wait_ms": 1000},
                                  {"Idempotency-Key": f"{seed}-{number}"})
        if status == 410:
            session = None
            continue
        idle = idle + 1 if status == 204 else 0
        if status != 200:
            assert status == 204, (status, got)
            continue
        time.sleep(chance.random() * 0.02)
        end = {"session": session, "token": got["token"]}
        if chance.random() < failures:
            status, answer = client.call("POST", f"/v1/work/{got['work']}/fail", {**end, "cause": "bad luck"})
        else:
            status, answer = client.call("POST", f"/v1/work/{got['work']}/finish",
                                         {**end, "entity_patch": {"done": got["work"]}})
        assert status in (200, 409, 410), (status, answer)
        if status != 200:
            session = None
