"""retryctl migrate-store: everything moves, nothing changes, and it may be killed at any point."""
import json
import os
import random
import subprocess
import time
import urllib.parse

import pytest

import events
from orders import look, order, retries, said, worker_type
from postgres import Postgres
from server import BINARY, wait_until

CTL = os.path.join(os.path.dirname(BINARY), "retryctl")
OPTIONS = ["--set", "store.lmdb_map_bytes=" + os.environ.get("RETRYD_MAP_BYTES", "1T")]
MOVING = {"age", "age_s", "oldest_s", "oldest_age_s", "now", "uptime_s"}  # what time alone changes
pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        yield server


@pytest.fixture
def new_database(database, request):
    count = 0

    def make():
        nonlocal count
        count += 1
        name = f"{request.node.originalname}_{count}"[-60:]
        database.sql(f"CREATE DATABASE {name}", database="postgres")
        return database.url(name)

    return make


def migrate(source, target, *flags, status=0):
    done = subprocess.run([CTL, "migrate-store", source, target, *OPTIONS, *flags], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if "--json" in flags and status == 0 else done.stdout + done.stderr


# ---- a store with something of everything ----------------------------------------------------------------------------


class Estate:
    """What lives in a server, made once, and looked at and gone on with wherever it has moved to."""

    SETTINGS = {"orders.host_href": "http://orders.example"}  # ports are not the same

    def __init__(self, server, receiver):
        self.server, self.receiver = server, receiver
        receiver.on("/down", 503)
        receiver.on("/gone", 404)
        receiver.on("/up", 200)
        receiver.on("/work", said("retry", task="next", after_ms=3600000))
        self.notifications()
        self.work()
        self.order = order(server) if worker_type(server, receiver) else None
        wait_until(lambda: retries(server, self.order) and retries(server, self.order)[0]["retry_task"] == "next")
        self.events()

    def notifications(self):
        s = self.server
        s.make_queue("claimed")
        s.send("claimed", *({"number": i} for i in range(30)))
        answer = s.post("/v2/queues/claimed/claims", json={"ttl": 600, "grace": 600}, params={"limit": 3})
        self.claim = urllib.parse.urlsplit(answer.headers["Location"]).path
        slow = {"minimum_delay": 3600, "maximum_delay": 7200, "retries_with_no_delay": 1, "minimum_delay_retries": 3}
        s.make_queue("told", _retry_policy=slow)
        for path in ("/down", "/gone", "/up"):
            s.subscribe("told", self.receiver.url(path))
        s.send("told", "one", "two")
        self.dead = {job["id"] for job in s.wait_dead(2, reason="rejected")}
        self.receiver.wait(4, "/down")

    def work(self):
        s = self.server
        assert s.put("/v1/processes/clean", json={"backoff": {"initial_ms": 3600000, "maximum_ms": 3600000,
                                                             "exponent": 1}}).status_code == 200
        for name in ("m-1", "m-2", "m-3"):
            assert s.put(f"/v1/entities/{name}", json={"kind": "machine", "value": {"rack": 7}, "processes": ["clean"]}
                         ).status_code in (200, 201)
        self.session = s.post("/v1/sessions", json={"component": "w", "interval_s": 600}).json()["session"]
        got = self.claim_work()
        assert s.post(f"/v1/work/{got['work']}/fail", json={"session": self.session, "token": got["token"],
                                                             "cause": "broken"}).status_code == 200
        self.held = self.claim_work()

    def claim_work(self):
        answer = self.server.post("/v1/work/claim", json={"session": self.session, "process": "clean", "kind": "machine"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def events(self):
        s = self.server
        events.put_type(s, "pay")
        self.calls = [events.schedule(s, "pay", b'{"n":%d}' % i, Order_Key=f"k{i % 2}", Idempotency_Key=str(i))
                      for i in range(10)]
        self.leased = events.claim(s, "pay", limit=1, lease_s=600)[0]
        events.put_type(s, "push", target={"url": self.receiver.url("/gone")})
        dead = events.schedule(s, "push")
        events.wait_state(s, dead, "dead")
        self.dead.add(dead)

    def pages(self):
        jobs = [f"/v1/jobs/{job}{what}" for job in [*sorted(self.dead), *self.calls] for what in ("", "/attempts")]
        return ["/v1/queues", "/v2/queues", "/v2/queues/claimed/messages?include_claimed=true&echo=true&limit=20",
                self.claim, "/v2/queues/told/subscriptions", "/v1/dead", "/v1/event-types", "/v1/orders",
                f"/v1/orders/{self.order}", f"/v1/orders/{self.order}/retries", "/v1/order-types", "/v1/sessions", "/v1/work", "/v1/backoffs",
                "/v1/processes", *(f"/v1/entities/m-{i}{what}" for i in (1, 2, 3) for what in ("", "/history")), *jobs]

    def look(self):
        seen = {}
        for page in self.pages():
            answer = self.server.get(page)
            assert answer.status_code == 200, (page, answer.text)
            seen[page] = still(answer.json())
        return seen

    def look_at_rest(self):
        """Once outcomes of attempts that were seen are recorded."""
        def same():
            first = self.look()
            time.sleep(0.3)
            return first if self.look() == first else None
        return wait_until(same)

    def go_on(self, number):
        """Ends nothing that the next move is to find, but uses everything once."""
        s = self.server
        old = {m["id"] for m in s.get("/v2/queues/claimed/messages?include_claimed=true&echo=true&limit=20").json()["messages"]}
        assert not old & set(s.send("claimed", f"new {number}"))
        assert s.patch(self.claim, json={"ttl": 900, "grace": 900}).status_code == 204
        assert s.post(f"/v1/sessions/{self.session}/heartbeat").status_code == 200
        assert events.schedule(s, "pay", b'{"n":0}', Order_Key="k0", Idempotency_Key="0") == self.calls[0]  # nothing new
        events.end(s, self.leased, "extend", lease_s=900)
        again = events.claim(s, "pay", limit=20)
        assert all(job["id"] not in (self.leased["id"], *self.calls[::2]) for job in again)  # k0 waits for what is leased
        for job in again:
            events.end(s, job, "release")
        s.send("told", f"round {number}")
        self.receiver.wait(3 + number, "/up")
        assert look(s, self.order)["status"] == "PENDING"

    def end(self):
        """Now everything ends as it would have."""
        s = self.server
        events.end(s, self.leased, "finish")
        assert s.post(f"/v1/work/{self.held['work']}/finish", json={"session": self.session, "token": self.held["token"]}
                      ).status_code == 200
        assert s.delete(self.claim).status_code == 204
        self.receiver.on("/down", 200)
        self.receiver.on("/work", said("done"))
        assert s.post("/v1/dead/redrive", json={}).status_code in (200, 202)


def still(value):
    """Without what time alone changes."""
    if isinstance(value, dict):
        return {key: still(one) for key, one in value.items() if key not in MOVING}
    return [still(one) for one in value] if isinstance(value, list) else value


def test_a_store_moves_to_postgresql_and_back_and_everything_goes_on(start_retryd, receiver, new_database, tmp_path):
    home = f"lmdb:{tmp_path / 'data'}"
    server = start_retryd(Estate.SETTINGS, store=home)
    estate = Estate(server, receiver)
    for number, target in enumerate([new_database(), f"lmdb:{tmp_path / 'back'}", new_database()]):
        before = estate.look_at_rest()
        assert server.stop() == 0
        moved = migrate(server.store, target, "--json")
        assert moved["jobs"]["dead"] == 3 + number, moved  # /gone of each message of "told", and the event
        server = estate.server = start_retryd(Estate.SETTINGS, name=f"home-{number}", store=target)
        after = estate.look()
        for page, seen in before.items():
            assert after[page] == seen, page
        estate.go_on(number)
        server.wait_dead(4 + number)
    estate.end()


# ---- killed, refused -------------------------------------------------------------------------------------------------


def fill(server, count, size=200):
    server.make_queue("q")
    for i in range(0, count, 20):
        server.send("q", *({"number": i + j, "pad": "x" * size} for j in range(20)))


def kill_until_done(command, rehearsal):
    """Kills it sooner than `rehearsal`, the same to another place, took; each time a little later, until it comes to its end.
    What it then says."""
    chance, began = random.Random(5), time.monotonic()
    subprocess.run(rehearsal, check=True, stdout=subprocess.DEVNULL)
    took = time.monotonic() - began
    for kills in range(60):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(timeout=chance.uniform(0.05, 0.15) * took * (1 + kills / 2))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
    assert process.returncode == 0, err
    assert kills >= 2
    return json.loads(out)


def test_a_migration_that_is_killed_goes_on_where_it_was(start_retryd, new_database, tmp_path):
    home = f"lmdb:{tmp_path / 'data'}"
    server = start_retryd(store=home)
    fill(server, 30000)
    assert server.stop() == 0
    target, back = new_database(), f"lmdb:{tmp_path / 'back'}"
    for source, place, other in ((home, target, new_database()), (target, back, f"lmdb:{tmp_path / 'other'}")):
        said = kill_until_done(*([CTL, "migrate-store", source, to, *OPTIONS, "--json"] for to in (place, other)))
        assert said["jobs"]["free"] == 30000
    server = start_retryd(name="after", store=back)
    assert server.get("/v2/queues/q/stats").json()["messages"]["total"] == 30000


def test_a_migration_is_told_again_by_who_did_not_hear_that_it_was_done(start_retryd, new_database, tmp_path):
    home = f"lmdb:{tmp_path / 'data'}"
    server = start_retryd(store=home)
    fill(server, 200)
    assert server.stop() == 0
    target, back = new_database(), f"lmdb:{tmp_path / 'back'}"
    for source, place in ((home, target), (target, back)):
        said = migrate(source, place, "--json")
        assert said["jobs"]["free"] == 200
        assert migrate(source, place, "--json") == said
    server = start_retryd(name="after", store=back)
    server.send("q", "late")
    assert server.stop() == 0
    assert "not empty" in migrate(target, back, status=2)


def test_the_target_of_a_migration_that_is_not_done_is_not_served(start_retryd, new_database, database, tmp_path):
    home = f"lmdb:{tmp_path / 'data'}"
    server = start_retryd(store=home)
    fill(server, 30000)
    assert server.stop() == 0
    target = new_database()
    process = subprocess.Popen([CTL, "migrate-store", home, target, *OPTIONS], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    name = target.split("?")[0].rsplit("/", 1)[1]
    notes = "SELECT count(*) FROM retryd_documents WHERE name = 'retryd.copy'"
    wait_until(lambda: there(database, name) and database.sql(notes, database=name) == "1")
    process.kill()
    process.wait()
    halted = start_retryd(name="early", store=target, wait=False)
    with pytest.raises(AssertionError, match="migration that did not come to its end"):
        halted.start()
    halted.process = None
    assert "source is not whole" in migrate(target, f"lmdb:{tmp_path / 'else'}", status=2)
    server.start()  # the source goes on, so the part that was moved is of the past
    server.send("q", "late")
    assert server.stop() == 0
    assert "source has changed" in migrate(home, target, status=2)


def there(database, name):
    return database.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'retryd_documents'", database=name) == "1"


def test_stores_that_are_in_use_or_full_are_refused(start_retryd, new_database, tmp_path):
    home, target = f"lmdb:{tmp_path / 'data'}", new_database()
    server = start_retryd(store=home)
    assert "in use" in migrate(home, target, status=1)
    node = start_retryd(name="node", store=target)
    node.make_queue("q")
    assert server.stop() == 0
    assert "in use" in migrate(home, target, status=1)
    assert "in use" in migrate(target, f"lmdb:{tmp_path / 'new'}", status=1)
    assert node.stop() == 0
    assert "not empty" in migrate(home, target, status=2)
    assert "same store" in migrate(home, home, status=2)
    assert "lmdb:DIR" in migrate("mysql://root:secret@x/y", target, status=2)
    assert "secret" not in migrate("postgresql://u:secret@127.0.0.1:1/x", target, status=1)
