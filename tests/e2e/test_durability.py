"""What kill -9 and a restart leave: everything that was acknowledged, with its phase, count and due time."""
import base64
import threading
import time
from collections import defaultdict

import pytest
import requests

from policies import quick, steady
from server import shared_store, wait_until

KILLS = 100


class Writers:
    """Threads that post numbers, one at a time, whatever happens to the server; they remember what was acknowledged."""

    def __init__(self, retryd, threads):
        self.retryd = retryd
        self.acknowledged, self.tried = [], 0
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.write, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def write(self):
        session = requests.Session()
        session.trust_env = False
        session.headers.update(self.retryd.session.headers)
        while not self.over.is_set():
            with self.lock:
                number = self.tried
                self.tried += 1
            try:
                answer = session.post(self.retryd.url + "/v2/queues/q/messages", timeout=30,
                                      json={"messages": [{"body": number, "ttl": 86400}]})
            except requests.RequestException:
                self.over.wait(0.01)  # it is dead: nobody knows whether this one counts
                continue
            if answer.status_code == 201:
                with self.lock:
                    self.acknowledged.append(number)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def idle(retryd):
    pending = [line for line in retryd.metrics().splitlines() if line.startswith("retryd_jobs{") and
               ('"ready"' in line or '"scheduled"' in line or '"leased"' in line)]
    return (all(line.endswith(" 0") for line in pending) and pending
            and retryd.metric("retryd_attempts_in_flight") == 0)


def life_of(request):
    """Which start of the server sent it: a receiver may look at a request only after its sender was killed."""
    return int(request.headers["user-agent"])


def attempt_of(request):
    return int(request.headers["webhook-attempt"])


def check_repeats(requests_of_job):
    """Attempt numbers go up by one; one comes again only in a later life, if its outcome was not yet on disk."""
    for before, after in zip(requests_of_job, requests_of_job[1:]):
        first, second = attempt_of(before), attempt_of(after)
        if second == first + 1:
            continue
        if shared_store() and second > first and life_of(before) < life_of(after):
            continue  # one was begun, and died with its server before it was sent
        assert second == first, f"attempt {second} came after attempt {first}"
        assert life_of(before) < life_of(after), f"attempt {second} was made twice without a crash"


@pytest.mark.slow
def test_kill_9_in_a_loop_loses_and_repeats_nothing(start_retryd, receiver):
    attempts = defaultdict(int)
    answered = {}  # job → how often 200

    def endpoint(request):
        job, number = request.headers["webhook-id"], request.message
        attempts[job] += 1
        # Every third message fails at its first two attempts.
        if number % 3 == 0 and attempt_of(request) <= 2:
            return 503
        answered[job] = answered.get(job, 0) + 1
        return 200

    receiver.on("/hook", endpoint)
    retryd = start_retryd({"delivery.user_agent": 0})
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy={**quick(2), "backoff_retries": 100})
    writers = Writers(retryd, 4)
    for n in range(KILLS):
        time.sleep(0.02 + (n * 37 % 100) / 1000)
        retryd.kill()
        retryd.settings["delivery.user_agent"] = n + 1
        retryd.start()
    time.sleep(0.2)
    writers.stop()
    wait_until(lambda: idle(retryd), 120, "all deliveries to end")

    by_job, jobs_of = defaultdict(list), defaultdict(set)
    for request in sorted(receiver.seen(), key=life_of):
        by_job[request.headers["webhook-id"]].append(request)
        jobs_of[request.message].add(request.headers["webhook-id"])
    acknowledged = set(writers.acknowledged)
    assert len(acknowledged) == len(writers.acknowledged) > KILLS
    assert acknowledged <= set(jobs_of), "acknowledged messages were never delivered"
    assert set(jobs_of) <= set(range(writers.tried)), "something was delivered that nobody sent"
    for number, jobs in jobs_of.items():
        assert len(jobs) == 1, f"message {number} became {len(jobs)} deliveries"
        [job] = jobs
        assert answered.get(job), f"message {number} was tried and not delivered"
        check_repeats(by_job[job])
    assert retryd.dead() == []
    # The count on disk is the number of the last attempt that anybody saw.
    for job in list(by_job)[:: max(1, len(by_job) // 200)]:
        assert retryd.job(job)["attempts"] == attempt_of(by_job[job][-1])
    total = sum(answered.values())
    print(f"{KILLS} kills, {len(acknowledged)} acknowledged, {len(jobs_of)} delivered, {total - len(answered)} of them twice")


def test_overdue_retry_runs_at_once_after_a_restart(start_retryd, receiver):
    receiver.on("/hook", 500, 200)
    retryd = start_retryd()
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy=steady(2))
    retryd.send("q", {"n": 1})
    first = receiver.wait(1)[0]
    wait_until(lambda: retryd.attempts(first.headers["webhook-id"]), what="the outcome to be recorded")
    retryd.kill()
    time.sleep(2.5)
    retryd.start()
    ready = time.time()
    second = receiver.wait(2)[1]
    assert second.at - ready < 1.5
    assert second.headers["webhook-attempt"] == "2"


def test_a_retry_keeps_its_due_time_over_a_restart(start_retryd, receiver):
    receiver.on("/hook", 500, 200)
    retryd = start_retryd()
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy=steady(3))
    retryd.send("q", {"n": 1})
    first = receiver.wait(1)[0]
    wait_until(lambda: retryd.attempts(first.headers["webhook-id"]), what="the outcome to be recorded")
    retryd.kill()
    retryd.start()
    second = receiver.wait(2)[1]
    assert 2.99 < second.at - first.at < 4.5


def test_an_attempt_under_way_is_made_again_after_a_crash(start_retryd, receiver):
    receiver.on("/hook", "hang", 200)
    retryd = start_retryd()
    retryd.subscribe("q", receiver.url("/hook"))
    retryd.send("q", {"n": 1})
    receiver.wait(1)
    retryd.kill()
    retryd.start()
    second = receiver.wait(2, timeout=10)[1]
    # The first never came to an end that anybody wrote down; where nodes share a store, its lease ran out, and that counts.
    assert second.headers["webhook-attempt"] == ("2" if shared_store() else "1")


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_everything_is_there_after_a_restart(start_retryd, receiver, how):
    retryd = start_retryd()
    retryd.make_queue("q", colour="blue", _retry_policy=quick(1))
    subscription = retryd.subscribe("other", receiver.url("/hook"), secret="whsec_" + base64.b64encode(b"s" * 24).decode())
    messages = retryd.send("q", *range(10))
    claim = retryd.post("/v2/queues/q/claims", params={"limit": 3}, json={"ttl": 300, "grace": 60})
    assert claim.status_code == 201
    at = claim.headers["Location"]
    getattr(retryd, how)()
    retryd.start()
    metadata = retryd.get("/v2/queues/q").json()
    assert metadata["colour"] == "blue" and metadata["_retry_policy"] == quick(1)
    listed = retryd.get("/v2/queues/other/subscriptions").json()["subscriptions"]
    assert [each["id"] for each in listed] == [subscription]
    assert [each["body"] for each in retryd.get(at).json()["messages"]] == [0, 1, 2]
    free = retryd.get("/v2/queues/q/messages", params={"echo": True, "limit": 20}).json()["messages"]
    assert [each["body"] for each in free] == list(range(3, 10))
    assert retryd.get("/v2/queues/q/stats").json()["messages"]["total"] == len(messages) == 10
    retryd.send("other", {"n": 1})
    assert receiver.wait(1)[0].headers["webhook-signature"]


@pytest.mark.lmdb
def test_a_second_server_on_the_same_data_is_refused(start_retryd):
    first = start_retryd()
    second = start_retryd(name="data", wait=False)
    with pytest.raises(AssertionError, match="retryd ended with 1"):
        second.start()
    second.process = None
    assert first.get("/healthz").status_code == 200
