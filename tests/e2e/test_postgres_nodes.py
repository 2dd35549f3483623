"""Three nodes on one PostgreSQL through everything that can happen to them, and an exact account at the end; and what users
of libpq expect: passwords from files, TLS, a pooler."""
import collections
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import threading
import time

import pytest
import requests

import events
from network import Cable, Machine, Unavailable
from orders import list_orders, look, said, worker_type
from policies import quick
from postgres import Postgres
from proxy import Proxy
from receiver import Receiver
from server import wait_until

pytestmark = pytest.mark.postgres
PASSWORD = "open-sesame"
CLIENTS = 64
HARM_S = 40  # how long all goes on while nodes and database are struck
LEASE_S = 10
SETTINGS = {"store.postgres_statement_timeout_ms": 3000, "store.postgres_connect_timeout_ms": 2000}


@pytest.fixture(scope="module")
def database():
    with Postgres(tcp=True) as server:
        yield server


@pytest.fixture
def fresh(database, request):
    """The name of a database of the test's own."""
    name = request.node.originalname[-60:]
    database.sql(f"CREATE DATABASE {name}", database="postgres")
    return name


def url_of(port, name, **options):
    more = "&".join(f"{key}={value}" for key, value in options.items())
    return f"postgresql://retryd:{PASSWORD}@127.0.0.1:{port}/{name}" + (f"?{more}" if more else "")


# ---- sixty-four clients ----------------------------------------------------------------------------------------------


class Site:
    """Three nodes, and what clients were told by them."""

    def __init__(self, database, nodes, proxies=()):
        self.database, self.nodes, self.proxies = database, nodes, proxies
        self.over = threading.Event()  # nobody wants anything new
        self.done = threading.Event()  # nor is anything left to be done
        self.lock = threading.Lock()
        self.told = collections.defaultdict(list)   # kind → what was acknowledged
        self.wrong = []
        self.threads = []

    def note(self, kind, what):
        with self.lock:
            self.told[kind].append(what)

    def run(self, count, client):
        for number in range(count):
            thread = threading.Thread(target=self._run, args=(client, number), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _run(self, client, number):
        try:
            client(Client(self, number), number)
        except Exception as why:  # noqa: BLE001 - a thread's failure is the test's
            self.wrong.append(f"{client.__name__} {number}: {why!r}")

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(90)
        assert not self.wrong, self.wrong[:3]
        assert not any(thread.is_alive() for thread in self.threads)

    def close(self):
        self.done.set()
        for proxy in self.proxies:
            proxy.close()


class Client:
    """Asks one node after the other until one answers."""

    def __init__(self, site, seed):
        self.site, self.chance = site, random.Random(seed)
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers.update(site.nodes[0].session.headers)

    def ask(self, method, path, json=None, headers=None, data=None, until=None):
        """The answer, asked again until there is one; None: the time is over, and nobody knows what became of it."""
        while True:
            try:
                answer = self.session.request(method, self.chance.choice(self.site.nodes).url + path, json=json, data=data,
                                              headers=headers, timeout=8)
                if answer.status_code not in (500, 503):
                    return answer
                assert answer.status_code == 503 and int(answer.headers["Retry-After"]) > 0, answer.text
            except requests.RequestException:
                pass
            if (until or self.site.over).wait(0.05 + self.chance.random() * 0.1):
                return None

    def rest(self):
        time.sleep(self.chance.random() * 0.1)


def post_messages(client, number):
    for i in itertools.count():
        if client.site.over.is_set():
            return
        what = f"{number}.{i}"
        answer = client.ask("POST", "/v2/queues/told/messages", {"messages": [{"body": what, "ttl": 86400}]})
        if answer is not None:
            assert answer.status_code == 201, answer.text
            client.site.note("messages", what)
        client.rest()


def place_orders(client, number):
    for i in itertools.count():
        if client.site.over.is_set():
            return
        answer = client.ask("POST", "/v1/orders", {"type": "work", "meta": {"number": f"{number}.{i}"}})
        if answer is not None:
            assert answer.status_code == 202, answer.text
            client.site.note("orders", answer.json()["order_ref"].rsplit("/", 1)[1])
        client.rest()


def schedule_events(client, number):
    """In a line of their own, one after the other: the next is handed over when the one before was acknowledged."""
    for i in itertools.count():
        headers = {"Order-Key": f"line-{number}", "Idempotency-Key": f"{number}.{i}"}
        answer = client.ask("POST", "/v1/events/pay", data=json.dumps({"line": number, "at": i}), headers=headers)
        if answer is None:
            return
        assert answer.status_code == 202, answer.text
        client.site.note("events", (answer.json()["id"], number, i))
        client.rest()
        if client.site.over.is_set():
            return


def finish_events(client, number, done):
    while not done.is_set():
        answer = client.ask("POST", "/v1/event-types/pay/claim",
                            {"worker": f"w{number}", "limit": 5, "lease_s": LEASE_S, "wait_ms": 500}, until=done)
        if answer is None:
            return
        assert answer.status_code in (200, 204), answer.text
        claimed = time.monotonic()
        for job in answer.json()["jobs"] if answer.content else []:
            time.sleep(client.chance.random() * 0.02)
            ended = time.monotonic()
            end = client.ask("POST", f"/v1/jobs/{job['id']}/finish", {"token": job["token"]}, until=done)
            if end is not None and end.status_code == 200:
                client.site.note("finished", (job["id"], claimed, ended))
            else:
                assert end is None or end.status_code in (404, 409), end.text


def work(client, number, done):
    """Claims cleaning, and finishes it; a session that ended is opened anew."""
    session = None
    for i in itertools.count():
        if done.is_set():
            return
        if session is None:
            answer = client.ask("POST", "/v1/sessions", {"component": "fleet", "interval_s": LEASE_S}, until=done)
            if answer is None:
                return
            session = answer.json()["session"]
        beat = client.ask("POST", f"/v1/sessions/{session}/heartbeat", until=done)
        got = beat and beat.status_code == 200 and client.ask(
            "POST", "/v1/work/claim", {"session": session, "process": "clean", "kind": "machine", "wait_ms": 300},
            {"Idempotency-Key": f"{number}-{i}"}, until=done)
        if not got or got.status_code != 200:
            if got is not None and (not got or got.status_code == 410):
                session = None
            continue
        began, job = time.monotonic(), got.json()
        time.sleep(client.chance.random() * 0.02)
        ended = time.monotonic()
        end = client.ask("POST", f"/v1/work/{job['work']}/finish", {"session": session, "token": job["token"]}, until=done)
        if end is not None and end.status_code == 200:
            client.site.note("work", (job["entity"], began, ended))
        else:
            assert end is None or end.status_code in (404, 409, 410), end.text
            session = None


def wish_work(client, number):
    """Entities that want to be cleaned, one after the other."""
    for i in itertools.count():
        if client.site.over.is_set():
            return
        name = f"m-{number}-{i}"
        answer = client.ask("PUT", f"/v1/entities/{name}", {"kind": "machine", "value": {}, "processes": ["clean"]})
        if answer is not None:
            assert answer.status_code in (200, 201), answer.text
            client.site.note("entities", name)
        client.rest()


# ---- harm ------------------------------------------------------------------------------------------------------------


def kill(site, victim):
    node = site.nodes[victim]
    node.kill()
    time.sleep(1)
    node.start(60)


def pause(site, victim):
    """Beyond the leases of what it has under way."""
    node = site.nodes[victim]
    node.process.send_signal(signal.SIGSTOP)
    time.sleep(LEASE_S + 2)
    node.process.send_signal(signal.SIGCONT)


def cut_off(site, victim):
    proxy, node = site.proxies[victim], site.nodes[victim]
    proxy.cut()
    wait_until(lambda: node.get("/readyz").status_code == 503, 30, "a node to notice that it is cut off")
    assert "PostgreSQL" in node.get("/readyz").text
    time.sleep(4)
    proxy.heal()


def crash_database(site, _):
    site.database.stop("immediate")
    time.sleep(1)
    site.database.start()


HARM = [kill, cut_off, crash_database, pause, kill, crash_database]


def all_ready(site):
    return all(node.get("/readyz").status_code == 200 for node in site.nodes)


def nothing_left(client, done):
    """But for messages, which stay free until their time to live is over."""
    text = client.ask("GET", "/metrics", until=done).text
    jobs = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("retryd_jobs{"))
    return all(jobs.get(f'retryd_jobs{{state="{state}"}}') == "0" for state in ("ready", "scheduled", "leased"))


def events_left(client, done):
    state = client.ask("GET", "/v1/event-types/pay", until=done).json()["state"]
    return state["waiting"] + state["leased"]


def put_to_use(site, receiver):
    """By sixty-four clients."""
    receiver.on("/hook", lambda request: 503 if request.headers["webhook-attempt"] == "1" and hash(request.message) % 5 == 0
                else 200)
    receiver.on("/work", said("done"))
    first = site.nodes[0]
    first.make_queue("told")
    first.subscribe("told", receiver.url("/hook"), _retry_policy={**quick(2), "backoff_retries": 100})
    worker_type(first, receiver)
    events.put_type(first, "pay", policy=events.backoff(0.1))
    assert first.put("/v1/processes/clean", json={}).status_code == 200
    site.run(22, post_messages)
    site.run(8, place_orders)
    site.run(12, schedule_events)
    site.run(4, wish_work)
    site.run(10, lambda client, number: finish_events(client, 100 + number, site.done))
    site.run(8, lambda client, number: work(client, 200 + number, site.done))
    assert len(site.threads) == CLIENTS


def bring_to_an_end(site, receiver):
    """And settle accounts."""
    site.over.set()
    asks = Client(site, 0)
    wait_until(lambda: events_left(asks, site.done) == 0, 60, "events to end")
    wait_until(lambda: {name for name, *_ in site.told["work"]} >= set(site.told["entities"]), 60, "work to end")
    wait_until(lambda: nothing_left(asks, site.done), 90, "all deliveries to end")
    site.done.set()
    site.stop()
    account(site, receiver)


@pytest.mark.slow
def test_three_nodes_lose_nothing_whatever_happens(database, fresh, start_retryd, receiver):
    proxies = [Proxy(("127.0.0.1", database.port)) for _ in range(3)]
    nodes = [start_retryd(SETTINGS, name=f"node-{i}", store=url_of(proxy.port, fresh)) for i, proxy in enumerate(proxies)]
    with contextlib.closing(Site(database, nodes, proxies)) as site:
        put_to_use(site, receiver)
        begin = time.monotonic()
        for number, harm in enumerate(HARM):
            time.sleep(2)
            harm(site, number % 3)
            wait_until(lambda: all_ready(site), 60, f"all nodes to be ready again after {harm.__name__}")
        time.sleep(max(0, HARM_S - (time.monotonic() - begin)))
        bring_to_an_end(site, receiver)


def account(site, receiver):
    told, node = site.told, site.nodes[1]
    counts = {kind: len(what) for kind, what in told.items()}
    print(counts)
    assert min(counts.values()) > 50, counts
    # Messages: each that was acknowledged came, and what came was sent.
    came = {request.message for request in receiver.seen("/hook")}
    assert set(told["messages"]) <= came, sorted(set(told["messages"]) - came)[:5]
    assert node.dead() == []
    # Orders.
    for uuid in told["orders"]:
        wait_until(lambda: look(node, uuid)["status"] == "ACTIVE", 30, f"order {uuid}")
    listed, total = list_orders(node)
    assert set(told["orders"]) <= set(listed) and total == len(listed) == len(set(listed))
    # Events: each key made one job, each job was finished once, and each line in order.
    ids = [job for job, *_ in told["events"]]
    assert len(ids) == len(set(ids))
    finished = collections.Counter(job for job, *_ in told["finished"])
    assert max(finished.values()) == 1
    assert all(node.job(job)["state"] == "done" for job in ids)
    when = {job: (claimed, ended) for job, claimed, ended in told["finished"]}
    lines = collections.defaultdict(list)
    for job, line, at in told["events"]:
        lines[line].append((at, job))
    for line in lines.values():
        jobs = [job for _, job in sorted(line)]
        for before, after in zip(jobs, jobs[1:]):
            # Of a finish whose answer was lost nobody knows the time.
            if before in when and after in when:
                assert when[before][1] < when[after][0], (
                    "two events of one line at a time, or in the wrong order", when[before], node.attempts(before),
                    when[after], node.attempts(after))
    # Work: nobody else while somebody was at it.
    spans = collections.defaultdict(list)
    for entity, began, ended in told["work"]:
        spans[entity].append((began, ended))
    assert set(spans) >= set(told["entities"])
    for entity, held in spans.items():
        held.sort()
        for (_, ended), (began, _) in zip(held, held[1:]):
            assert ended < began, f"two workers at {entity}"
    for each in site.nodes:
        assert PASSWORD not in each.log()


# ---- a cable that is cut ---------------------------------------------------------------------------------------------


@pytest.fixture
def machines():
    """Two of them, with a cable to the database, which is on the first, and another one for all else."""
    made = []
    try:
        try:
            made += [Machine(), Machine()]
            cable = Cable(*made, "store", "10.77.0.1", "10.77.0.2")
            Cable(*made, "rest", "10.77.1.1", "10.77.1.2")
        except Unavailable as why:
            pytest.skip(f"no network namespaces: {why}")
        yield (*made, cable)
    finally:
        for machine in made:
            machine.close()


@pytest.fixture
def linked(machines):
    """PostgreSQL on the first machine, for both."""
    with machines[0]:
        server = Postgres(tcp=True, settings=["listen_addresses=127.0.0.1,10.77.0.1"])
    with server:
        with open(os.path.join(server.data, "pg_hba.conf"), "a", encoding="utf-8") as hba:
            hba.write("host all all 10.77.0.0/24 trust\n")
        server.sql("SELECT pg_reload_conf()")
        yield server


def check_cut_off(site):
    """A node that is cut off says so, does not keep anybody waiting, and goes on by itself."""
    near, _, far = site.nodes
    wait_until(lambda: far.get("/readyz").status_code == 503, 30, "a node to notice that it is cut off")
    told = len(site.told["messages"])
    for _ in range(10):
        begin = time.monotonic()
        assert far.get("/healthz").status_code == 200
        assert time.monotonic() - begin < 2
    answer = far.post("/v2/queues/told/messages", json={"messages": [{"body": "lost", "ttl": 60}]})
    assert answer.status_code == 503 and int(answer.headers["Retry-After"]) > 0
    time.sleep(LEASE_S + 3)  # what it had under way is the others' now
    assert far.get("/readyz").status_code == 503 and near.get("/readyz").status_code == 200
    assert len(site.told["messages"]) > told


@pytest.mark.slow
@pytest.mark.parametrize("cut, mend", [(Cable.unplug, Cable.plug), (Cable.lose, Cable.find)], ids=["unplugged", "lost"])
def test_a_node_whose_cable_is_cut_loses_nothing(machines, linked, start_retryd, cut, mend):
    here, there, cable = machines
    settings = {**SETTINGS, "delivery.allow_networks": "10.77.1.0/24"}

    def start(name, host):
        return start_retryd(settings, name=name, store=f"postgresql://retryd@{host}:{linked.port}/retryd",
                            flags=["--listen", "10.77.1.2:0" if name == "far" else "10.77.1.1:0", "--insecure"])

    with here, contextlib.closing(Receiver(host="10.77.1.1")) as receiver:
        nodes = [start("near", "127.0.0.1"), start("nearer", "127.0.0.1")]
        with there:
            nodes.append(start("far", "10.77.0.1"))
        with contextlib.closing(Site(linked, nodes)) as site:
            put_to_use(site, receiver)
            time.sleep(3)
            cut(cable)
            check_cut_off(site)
            mend(cable)
            wait_until(lambda: all_ready(site), 60, "all nodes to be ready again")
            time.sleep(3)
            bring_to_an_end(site, receiver)


# ---- one thing at a time ---------------------------------------------------------------------------------------------


@pytest.fixture
def pair(database, fresh, start_retryd):
    return [start_retryd(name=f"node-{i}", store=url_of(database.port, fresh)) for i in range(2)]


def test_the_database_looks_every_few_seconds_whether_a_node_is_still_there(pair, database):
    """Of a node that is cut off while it sends a batch nothing else ends the session, and what it has locked with it."""
    def watched():
        """Connections of the database that are asked for signs of life after seconds; without a word it would be two hours."""
        shown = subprocess.run(["ss", "-tnoH", "state", "established", f"sport = :{database.port}"], check=True,
                               capture_output=True, text=True).stdout
        return [line for line in shown.splitlines() if "timer:(keepalive," in line and "min" not in line]

    wait_until(lambda: len(watched()) >= len(pair), 10, "the database to watch both nodes")


def test_events_of_one_order_key_stay_in_order_wherever_they_come_in(pair):
    """Nodes take ids from blocks of their own, so the order of ids is not that of what came in."""
    events.put_type(pair[0], "pay")
    ids = [events.schedule(pair[i % 2], "pay", b"%d" % i, Order_Key="k") for i in range(20)]
    for i, wanted in enumerate(ids):
        job, = events.claim(pair[i // 2 % 2], "pay", limit=20, wait_ms=5000)
        assert job["id"] == wanted, i
        events.end(pair[i % 2], job, "finish")


def test_a_circuit_is_one_for_all_nodes(pair, receiver):
    one, other = pair
    receiver.always(503)
    tight = {"window_s": 60, "minimum_attempts": 4, "failure_rate": 0.5, "sleep_s": 60, "maximum_sleep_s": 60}
    events.put_type(one, "pay", target={"url": receiver.url("/hook")}, policy=events.backoff(1), circuit=tight)
    events.batch(one, "pay", *[{"body": n} for n in range(20)])
    events.wait_circuit(other, "pay", "open")
    time.sleep(0.5)  # what was under way ends
    seen = len(receiver.seen())
    events.batch(other, "pay", *[{"body": n} for n in range(20)])
    time.sleep(2)  # nothing to wait for: that nothing happens
    assert len(receiver.seen()) == seen < 20
    answer = other.post("/v1/queues/pay/circuit", json={"state": "closed"})
    assert answer.status_code in (200, 204), answer.text
    receiver.always(200)
    events.wait_circuit(one, "pay", "closed")
    wait_until(lambda: events.state(one, "pay")["done"] == 40, 30)
