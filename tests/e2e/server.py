"""A real retryd, started, stopped, killed and asked."""
import ctypes
import hashlib
import os
import re
import signal
import subprocess
import time
import uuid

import requests

import postgres

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("RETRYD_BIN", os.path.join(ROOT, "build", "retryd"))
READY = re.compile(r"^retryd: listening on (http://\S+:(\d+))$", re.M)
STORE_VARIABLE = "RETRYD_TEST_STORE"
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(truth, timeout=20.0, what=None):
    """Waits for `truth()` to be truthy and returns it; looks every few milliseconds."""
    end = time.monotonic() + timeout
    pause = 0.005
    while True:
        value = truth()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout} s for {what or truth}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def database_of(data):
    """The address of the database that takes the place of this folder; made when it is first asked for."""
    os.makedirs(data, exist_ok=True)
    return postgres.database_url("e2e_" + hashlib.sha256(data.encode()).hexdigest()[:16])


def shared_store():
    """Do these tests run on a store that other nodes could use as well?"""
    return postgres.URL_VARIABLE in os.environ


class Retryd:
    """`settings` become --set flags; the data folder outlives stop, kill and restart.

    All data is in `store` instead, if one is given; in PostgreSQL where `postgres.py pytest …` runs the tests, or with
    RETRYD_TEST_STORE=postgresql; and where that says otherwise, with {data} for the folder:
    "plugin:./my_store.so?{data}.db"."""

    def __init__(self, data, settings=None, flags=(), store=None):
        self.data = str(data)
        self.store = store
        # RETRYD_MAP_BYTES: sanitizers leave no room for the usual map of a terabyte.
        self.settings = {"delivery.allow_networks": "127.0.0.0/8",
                         "store.lmdb_map_bytes": os.environ.get("RETRYD_MAP_BYTES"), **(settings or {})}
        self.flags = list(flags)
        self.log_path = self.data + ".log"
        self.process = None
        self.url = None
        self.port = None
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers.update({"Client-ID": str(uuid.uuid4()), "X-Project-ID": "p"})

    def command(self, listen="127.0.0.1:0"):
        if self.store is None and postgres.URL_VARIABLE in os.environ:
            self.store = database_of(self.data)
        if self.store is None and STORE_VARIABLE in os.environ:
            self.store = os.environ[STORE_VARIABLE].format(data=self.data)
        where = ["--data", self.data] if self.store is None else ["--store", self.store]
        line = [BINARY, "serve", "--listen", listen, *where]
        for name, value in self.settings.items():
            if value is not None:
                line += ["--set", f"{name}={value}"]
        return line + self.flags

    def launch(self):
        """The process, which may not come to serve."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=die_with_parent)

    def start(self, timeout=30.0):
        begin = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        self.launch()

        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"retryd ended with {self.process.returncode}:\n{self.log()[-4000:]}")
            return READY.search(self.log(begin))

        found = wait_until(ready, timeout, "retryd to listen")
        self.url, self.port = found.group(1), int(found.group(2))
        return self

    def log(self, begin=0):
        with open(self.log_path, "rb") as log:
            log.seek(begin)
            return log.read().decode("utf-8", "replace")

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, timeout=40.0):
        """SIGTERM; returns the exit status."""
        if self.running():
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def kill(self):
        if self.running():
            self.process.kill()
        self.process.wait()

    def restart(self):
        if self.running():
            self.stop()
        return self.start()

    # ---- HTTP -----------------------------------------------------------------------------------------------------

    def request(self, method, path, **more):
        more.setdefault("timeout", 30)
        return self.session.request(method, self.url + path, **more)

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def put(self, path, json=None, **more):
        return self.request("PUT", path, json=json, **more)

    def post(self, path, json=None, **more):
        return self.request("POST", path, json=json, **more)

    def patch(self, path, json=None, **more):
        return self.request("PATCH", path, json=json, **more)

    def delete(self, path, **more):
        return self.request("DELETE", path, **more)

    # ---- what most tests say --------------------------------------------------------------------------------------

    def make_queue(self, queue, **metadata):
        answer = self.put(f"/v2/queues/{queue}", json=metadata)
        assert answer.status_code in (201, 204), answer.text

    def patch_queue(self, queue, *operations):
        answer = self.patch(f"/v2/queues/{queue}", json=list(operations),
                            headers={"Content-Type": "application/openstack-messaging-v2.0-json-patch"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def subscribe(self, queue, url, **options):
        answer = self.post(f"/v2/queues/{queue}/subscriptions", json={"subscriber": url, "options": options})
        assert answer.status_code == 201, answer.text
        return answer.json()["subscription_id"]

    def send(self, queue, *bodies, ttl=3600):
        """Posts the bodies as one request; returns the ids of the messages."""
        answer = self.post(f"/v2/queues/{queue}/messages",
                           json={"messages": [{"body": body, "ttl": ttl} for body in bodies]})
        assert answer.status_code == 201, answer.text
        return [resource.rsplit("/", 1)[1] for resource in answer.json()["resources"]]

    def dead(self, **query):
        """All dead jobs, whatever the number of pages."""
        jobs, marker = [], None
        while True:
            answer = self.get("/v1/dead", params={**query, "marker": marker})
            assert answer.status_code == 200, answer.text
            page = answer.json()
            jobs += page["dead"]
            marker = page["next"]
            if not marker:
                return jobs

    def wait_dead(self, count, timeout=30.0, **query):
        wait_until(lambda: len(self.dead(**query)) >= count, timeout, f"{count} dead jobs")
        jobs = self.dead(**query)
        assert len(jobs) == count, jobs
        return jobs

    def job(self, job):
        answer = self.get(f"/v1/jobs/{job}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def attempts(self, job):
        """Oldest first."""
        answer = self.get(f"/v1/jobs/{job}/attempts")
        assert answer.status_code == 200, answer.text
        return sorted(answer.json()["attempts"], key=lambda event: event["seq"])

    def metrics(self):
        answer = self.get("/metrics")
        assert answer.status_code == 200, answer.text
        return answer.text

    def metric(self, name):
        """Sum over all label sets of one metric."""
        total, found = 0.0, False
        for line in self.metrics().splitlines():
            if re.match(re.escape(name) + r"(\{.*\})? ", line):
                total += float(line.rsplit(" ", 1)[1])
                found = True
        assert found, f"no metric {name}"
        return total
