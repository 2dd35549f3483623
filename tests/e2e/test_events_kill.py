"""Events over kill -9 under load: an exact account of every one, whatever its answer was lost with."""
import json
import random
import threading
import time
from collections import Counter

import pytest
import requests

from events import backoff, put_type, state
from server import wait_until

KILLS, WRITERS = 12, 4


class Writers:
    """Threads that schedule numbers, each under its own key until it is acknowledged."""

    def __init__(self, retryd):
        self.retryd, self.ids, self.next = retryd, {}, 0
        self.lock, self.over = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.write, args=(n,), daemon=True) for n in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, seed):
        chance = random.Random(seed)
        session = requests.Session()
        session.trust_env = False
        session.headers.update(self.retryd.session.headers)
        while not self.over.is_set():
            with self.lock:
                number, self.next = self.next, self.next + 1
            headers = {"Idempotency-Key": str(number), "Retry-Reason": f"r{number % 3}"}
            if chance.random() < 0.1:  # a failing one holds up its line for seconds
                headers["Order-Key"] = f"line {number % 97}"
            while True:
                try:
                    answer = session.post(self.retryd.url + "/v1/events/t", data=json.dumps(number), headers=headers, timeout=30)
                    if answer.status_code == 202:
                        break
                    assert answer.status_code == 503, answer.text
                except requests.RequestException:
                    pass
                time.sleep(0.01)
            with self.lock:
                self.ids[number] = answer.json()["id"]
            time.sleep(0.002)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self.threads)


@pytest.mark.slow
def test_every_event_is_delivered_or_dead_and_none_twice(start_retryd, receiver):
    answered = Counter()  # number → how often 200
    lock = threading.Lock()

    def endpoint(request):
        number = json.loads(request.body)
        attempt = int(request.headers["webhook-attempt"])
        if number % 7 == 0:
            return 500  # never well
        if number % 5 == 0 and attempt <= 2:
            return 503
        with lock:
            answered[number] += 1
        return 200

    receiver.always(endpoint)
    retryd = start_retryd()
    put_type(retryd, "t", target={"url": receiver.url("/hook")}, policy=backoff(1, attempts=4),
             circuit={"minimum_attempts": 50, "failure_rate": 0.9, "sleep_s": 1})
    writers = Writers(retryd)
    for _ in range(KILLS):
        time.sleep(0.4)
        retryd.kill()
        retryd.start()
    writers.stop()
    wait_until(lambda: state(retryd, "t")["waiting"] + state(retryd, "t")["leased"] == 0, 120)
    ids = writers.ids
    assert len(ids) > KILLS and len(set(ids.values())) == len(ids)
    end = state(retryd, "t")
    assert end["done"] + end["dead"] == len(ids)  # nothing that was not asked for
    dead = {job["id"]: job for job in retryd.dead(type="t", limit=1000)}
    assert set(dead) == {job for number, job in ids.items() if number % 7 == 0}
    assert {job["reason"] for job in dead.values()} <= {"exhausted"} and {job["attempts"] for job in dead.values()} <= {4}
    for number, job in ids.items():
        if number % 7 == 0:
            continue
        assert answered[number] >= 1, number
        # Twice only where a kill came between the answer and its record.
        assert answered[number] <= KILLS
    repeated = sum(1 for count in answered.values() if count > 1)
    assert repeated <= KILLS * 64, repeated
    count = retryd.get("/v1/dead/count", params={"by": "retry_reason"}).json()
    assert count["by"] == dict(Counter(f"r{n % 3}" for n in ids if n % 7 == 0))
