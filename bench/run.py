"""./dev bench [PART…]: measures retryd beside what bounds it, on one machine in one run, and prints tables.

Parts: posts, cycles, work, events, postgres, deliveries, fairness, pending. Each number is the median of RUNS runs; rivals take turns, so that a machine that
gets slower or faster meanwhile does so for all."""
import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RIVALS = os.path.join(ROOT, "build", "rivals")
PROGRAMS = os.path.join(ROOT, "build", "bench")
RETRYD = os.path.join(ROOT, "build", "retryd")
RUNS = int(os.environ.get("RUNS", "3"))
SECONDS = int(os.environ.get("SECONDS_EACH", "3"))
BYTES = 1024
BACKLOG, BACKLOG_REQUEST = 40000, 40  # events, by so many a request
PENDING = [int(n) for n in os.environ.get("PENDING", "10000,10000000").split(",")]
ENTITIES = int(os.environ.get("ENTITIES", "1000000"))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from kafka_broker import Broker, Unreachable  # noqa: E402
from postgres import Postgres  # noqa: E402
HEADERS = {"Client-ID": "3381af92-2b9e-11e3-b191-71861300734c", "X-Project-ID": "bench", "Content-Type": "application/json"}


class Process:
    """A child that goes when the block ends; its folder, if it has one, goes with it."""

    def __init__(self, *command, stderr=None):
        self.folder = None
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def folder():
    return tempfile.mkdtemp(prefix="bench-", dir=os.path.join(ROOT, "build"))


def listening(*command):
    """A program of ours that prints its port."""
    server = Process(*command)
    server.port = int(server.process.stdout.readline())
    return server


def bare_post(durable=True):
    data = folder()
    server = listening(os.path.join(PROGRAMS, "bare_post"), data if durable else "-")
    server.folder = data
    return server


def beanstalkd(*sync):
    data = folder()
    with Process(os.path.join(PROGRAMS, "sink")) as free:  # its port is free a moment later
        port = int(free.process.stdout.readline())
    server = Process("beanstalkd", "-l", "127.0.0.1", "-p", str(port), "-b", data, *sync, stderr=subprocess.DEVNULL)
    server.folder, server.port = data, port
    time.sleep(0.3)
    return server


class Retryd(Process):
    def __init__(self, data=None, *settings, store=None):
        place = ["--store", store] if store else ["--data", data or folder()]
        command = [RETRYD, "serve", "--listen", "127.0.0.1:0", *place, "--set", "delivery.allow_networks=loopback"]
        for setting in settings:
            command += ["--set", setting]
        began = time.monotonic()
        super().__init__(*command, stderr=subprocess.PIPE)
        self.folder = None if data or store else place[1]
        for line in self.process.stderr:
            if line.startswith("retryd: listening on "):
                self.url = line.split()[-1]
                break
        else:
            raise SystemExit("retryd did not start")
        self.ready_ms = (time.monotonic() - began) * 1000
        self.port = int(self.url.rsplit(":", 1)[1])
        self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=subprocess.DEVNULL)

    def __exit__(self, *_):
        super().__exit__()
        self.drain.wait()

    def call(self, method, path, value=None):
        request = urllib.request.Request(self.url + path, method=method, headers=HEADERS,
                                         data=None if value is None else json.dumps(value).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    def private_mb(self):
        """Resident memory that is not page cache."""
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("RssAnon"):
                return int(line.split()[1]) / 1024

    def quantile(self, histogram, share, before=""):
        """Upper bound of the bucket that holds it, in what came since the text `before` of /metrics."""
        def buckets(text):
            return {line.split('le="')[1].split('"')[0]: float(line.split()[-1]) for line in text.splitlines()
                    if line.startswith(histogram + "_bucket")}
        old, new = buckets(before), buckets(self.call("GET", "/metrics"))
        grown = {bound: count - old.get(bound, 0) for bound, count in new.items()}
        wanted = grown.get("+Inf", 0) * share
        return next((bound for bound, count in grown.items() if count >= wanted and count > 0), "-")


def run(program, *arguments):
    done = subprocess.run([os.path.join(PROGRAMS, program), *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True)
    return {name: float(value) for name, value in json.loads(done.stdout).items()}


def load(what, server, connections, subject="-", per_request=1, seconds=None, enough=0):
    return run("load", what, server.port, connections, seconds or SECONDS, subject, BYTES, per_request, enough)["per_second"]


def medians(*measures):
    """Runs each in turn, RUNS times; returns the median of each."""
    rows = [[measure() for measure in measures] for _ in range(RUNS)]
    return [statistics.median(column) for column in zip(*rows)]


def table(title, head, rows):
    print(f"\n### {title}\n\n| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(f"{cell:,.0f}" if isinstance(cell, float) and cell >= 10 else f"{cell:.2f}"
                                if isinstance(cell, float) else str(cell) for cell in row) + " |", flush=True)


def posts():
    rows = []
    for per_request in (1, 10):
        for connections in (1, 16, 64, 256):
            def durable():
                with Retryd() as server:
                    return load("post", server, connections, "bench", per_request)

            def bare():
                with bare_post() as server:
                    return load("bare", server, connections, "-", per_request)
            ours, theirs = medians(durable, bare)
            rows.append([per_request, connections, ours, theirs, ours / theirs])
    table("Durable posts: messages/s, 1 KB each, on disk before the answer (post_1k__group_commit)",
          ["messages a request", "connections", "retryd", "bare libmicrohttpd + LMDB", "ratio"], rows)
    with bare_post(durable=False) as server:
        http = load("bare", server, 64)
    alone = []
    for per_commit in (1, 16, 64, 256):
        data = folder()
        alone.append([per_commit, run("bare_lmdb", data, per_commit, SECONDS, BYTES)["per_second"]])
        shutil.rmtree(data)
    table("What bounds them: LMDB alone, a sync with each commit, puts of 1 KB", ["a commit", "puts/s"], alone)
    print(f"\nA libmicrohttpd handler that stores nothing answers {http:,.0f} POSTs/s at 64 connections.")


def cycles():
    def ours(per_request):
        def measure():
            with Retryd() as server:
                return load("cycle", server, 64, "bench", per_request)
        return measure

    def rival(*sync):
        def measure():
            with beanstalkd(*sync) as server:
                return load("beanstalk", server, 64)
        return measure
    one, ten, sync, sync_50, no_sync = medians(ours(1), ours(10), rival("-f0"), rival("-f50"), rival("-F"))
    table("Life of a job: put, claim, finish; jobs/s, 1 KB, 64 connections (cycle_1k__group_commit)",
          ["server", "jobs/s", "retryd, 1 a request, is … times that", "retryd, 10 a request"],
          [["retryd, on disk before each answer, 1 a request", one, 1.0, ten / one],
           ["the same, 10 a request", ten, one / ten, 1.0],
           ["beanstalkd -f0, a sync per write", sync, one / sync, ten / sync],
           ["beanstalkd -f50, a sync each 50 ms", sync_50, one / sync_50, ten / sync_50],
           ["beanstalkd -F, never a sync", no_sync, one / no_sync, ten / no_sync]])


def with_entities(count, resting, backoff_ms=3600000):
    """Claim + finish cycles/s of 64 workers beside `count` entities, of which `resting` are in backoff."""
    with Retryd() as server, tempfile.NamedTemporaryFile("w") as sessions:
        server.call("PUT", "/v1/processes/bench", {"backoff": {"initial_ms": backoff_ms, "maximum_ms": backoff_ms, "exponent": 1}})
        for _ in range(64):
            session = json.loads(server.call("POST", "/v1/sessions", {"component": "bench", "interval_s": 3600}))["session"]
            sessions.write(session + "\n")
        sessions.flush()
        load("entities", server, 64, seconds=3600, enough=count)
        if resting:
            load("fail", server, 64, sessions.name, seconds=3600, enough=resting)
        return load("work", server, 64, sessions.name)


def work():
    def rival(*sync):
        def measure():
            with beanstalkd(*sync) as server:
                return load("beanstalk", server, 64)
        return measure
    ours, sync, sync_50 = medians(lambda: with_entities(10000, 0), rival("-f0"), rival("-f50"))
    table("Work: claim + finish of entities, 64 workers (claim_finish__group_commit)", ["server", "cycles/s", "retryd is … times that"],
          [["retryd: claim and finish with a token, history on disk before each answer, 10,000 entities", ours, 1.0],
           ["beanstalkd -f0: put, reserve, delete, a sync per write", sync, ours / sync],
           ["beanstalkd -f50: the same, a sync each 50 ms", sync_50, ours / sync_50]])
    few, many = with_entities(ENTITIES // 100, ENTITIES // 200), with_entities(ENTITIES, ENTITIES // 2)
    table("The same beside many entities, half of them in backoff (once each)", ["entities", "cycles/s"],
          [[f"{ENTITIES // 100:,}", few], [f"{ENTITIES:,}", many], ["ratio", many / few]])


def redis():
    """Each write synced before its answer."""
    data = folder()
    with Process(os.path.join(PROGRAMS, "sink")) as free:  # its port is free a moment later
        port = int(free.process.stdout.readline())
    server = Process("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", data, "--save", "", "--appendonly", "yes",
                     "--appendfsync", "always", "--daemonize", "no", "--maxmemory-policy", "noeviction")
    server.folder, server.url = data, f"redis://127.0.0.1:{port}"
    for line in server.process.stdout:
        if "Ready to accept connections" in line:
            break
    server.drain = subprocess.Popen(["cat"], stdin=server.process.stdout, stdout=subprocess.DEVNULL)
    return server


def rival(kind, url, what, concurrency):
    done = subprocess.run(["node", "rival.mjs", kind, url, what, str(SECONDS), str(concurrency), str(BYTES)], cwd=RIVALS,
                          stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout)["per_second"])


def bullmq(what):
    with redis() as server:
        return rival("bullmq", server.url, what, 64)


def on_postgres(kind, what):
    with Postgres(durable=True, tcp=True) as server:
        return rival(kind, server.url(), what, 64)


@contextlib.contextmanager
def store_on(kind):
    """Where a store is, as --store wants it; None: a folder."""
    if kind == "postgres":
        with Postgres(durable=True) as server:
            yield server.url()
    elif kind == "kafka":
        with contextlib.closing(Broker()) as server:
            server.start()
            yield f"kafka://{server.address}/bench"
    else:
        yield None


def calls(protocol, nodes=1, store=None):
    """Failed calls of one type over 64 connections in all: scheduled; scheduled, claimed and finished; or, "process", a backlog that
    is claimed and finished, twenty a request."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(store_on(store))
        copies = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(nodes)]
        servers = [stack.enter_context(Retryd(None, "kafka.copy=" + copy, store=url)) for copy in copies]
        servers[0].call("PUT", "/v1/event-types/bench", {"target": {"pull": True}})
        seconds = SECONDS
        if protocol == "process":
            load("backlog", servers[0], 16, "bench", BACKLOG_REQUEST, seconds=600, enough=BACKLOG // BACKLOG_REQUEST)
            seconds = 600
        began = time.monotonic()
        loads = [subprocess.Popen([os.path.join(PROGRAMS, "load"), protocol, str(server.port), str(64 // nodes), str(seconds), "bench",
                                   str(BYTES)], stdout=subprocess.PIPE, text=True) for server in servers]
        results = [json.loads(one.communicate()[0]) for one in loads]
        if protocol == "process":
            return sum(one["done"] for one in results) / (time.monotonic() - began)
        return sum(one["per_second"] for one in results)


def on_kafka(protocol):
    try:
        return calls(protocol, store="kafka")
    except Unreachable:
        return 0.0  # the broker's own words are above


def events():
    names = ["retryd on LMDB, 64 connections", "retryd on Kafka, acks=all", "BullMQ, Redis appendfsync always, 64 at a time",
             "graphile-worker on PostgreSQL, 64 at a time"]
    adds = medians(lambda: calls("schedule"), lambda: on_kafka("schedule"), lambda: bullmq("add"), lambda: on_postgres("graphile", "add"))
    processed = medians(lambda: calls("process"), lambda: on_kafka("process"), lambda: bullmq("process"),
                        lambda: on_postgres("graphile", "process"))
    lives = medians(lambda: calls("call"), lambda: on_kafka("call"))
    table("Failed calls, 1 KB, durable: added one a request (schedule_1k); a backlog processed, ours twenty a request (process_1k); whole "
          "lives, one a request (call_1k). Rivals add and process, each in one Node.js process",
          ["server", "added/s", "retryd on LMDB is … times that", "processed/s", "… times that", "lives/s"],
          [[name, add, adds[0] / add if add else "-", done, processed[0] / done if done else "-", life]
           for name, add, done, life in zip(names, adds, processed, [*lives, "-", "-"])])


def postgres():
    rivals = [lambda what: on_postgres("graphile", what), lambda what: on_postgres("pgboss", what)]
    adds = medians(lambda: calls("schedule", store="postgres"), *(lambda one=one: one("add") for one in rivals), lambda: calls("schedule"))
    processed = medians(lambda: calls("process", store="postgres"), *(lambda one=one: one("process") for one in rivals),
                        lambda: calls("process"))
    on_it, on_lmdb = medians(lambda: calls("call", store="postgres"), lambda: calls("call"))
    names = ["retryd on PostgreSQL", "graphile-worker", "pg-boss", "retryd on LMDB"]
    table("On PostgreSQL, 1 KB, fsync on, the same server: added one a request; a backlog processed, ours twenty a request; whole lives, "
          "one a request",
          ["", "added/s", "retryd on PostgreSQL is … times that", "processed/s", "… times that", "lives/s"],
          [[name, add, adds[0] / add, done, processed[0] / done, life]
           for name, add, done, life in zip(names, adds, processed, [on_it, "-", "-", on_lmdb])])
    more = medians(*(lambda nodes=nodes, what=what: calls(what, nodes, "postgres") for what in ("schedule", "call") for nodes in (1, 2, 4)))
    table("Nodes on one PostgreSQL, 64 connections in all", ["nodes", "scheduled/s", "lives/s"],
          [[nodes, more[i], more[i + 3]] for i, nodes in enumerate((1, 2, 4))])


def sink_stats(sink):
    with urllib.request.urlopen(f"http://127.0.0.1:{sink.port}/", timeout=10) as answer:
        return json.loads(answer.read())


def settle(sink, count, seconds=300):
    """Waits until the sink has seen `count` POSTs; deliveries/s between the first and the last of them."""
    end, seen, first, last = time.monotonic() + seconds, 0, None, None
    while seen < count and time.monotonic() < end:
        time.sleep(0.1)
        stats = sink_stats(sink)
        if stats["count"]:
            first, last = first or stats["first_us"], stats["last_us"]
        seen += stats["count"]
    if seen < count:
        raise SystemExit(f"only {seen} of {count} deliveries came")
    return seen / ((last - first) / 1e6)


def deliver(subscriptions, messages):
    """All messages are posted first, ten a request, then counted as they arrive."""
    with listening(os.path.join(PROGRAMS, "sink")) as sink, Retryd() as server:
        for n in range(subscriptions):
            server.call("POST", "/v2/queues/bench/subscriptions", {"subscriber": f"http://127.0.0.1:{sink.port}/{n}"})
        sink_stats(sink)
        body = {"messages": [{"ttl": 86400, "body": {"data": "x" * (BYTES - 12)}}] * 10}
        for _ in range(messages // 10):
            server.call("POST", "/v2/queues/bench/messages", body)
        return settle(sink, subscriptions * messages)


def push(server, sink):
    """Deliveries/s of one subscription to a healthy endpoint, from the first to the last, while 16 connections post."""
    server.call("POST", "/v2/queues/live/subscriptions", {"subscriber": f"http://127.0.0.1:{sink.port}/"})
    sink_stats(sink)
    run("load", "post", server.port, 16, SECONDS, "live", BYTES, 10)
    seen, first, last, quiet = 0, None, None, 0
    while quiet < 10:
        time.sleep(0.1)
        stats = sink_stats(sink)
        quiet = quiet + 1 if stats["count"] == 0 else 0
        if stats["count"]:
            first, last, seen = first or stats["first_us"], stats["last_us"], seen + stats["count"]
    return seen / ((last - first) / 1e6)


def deliver_while_posting():
    with listening(os.path.join(PROGRAMS, "sink")) as sink, Retryd() as server:
        return push(server, sink)


def deliveries():
    def bare(connections, full):
        def measure():
            with listening(os.path.join(PROGRAMS, "sink")) as sink:
                return run("bare_curl", sink.port, connections, SECONDS, BYTES, full)["per_second"]
        return measure
    fan, while_posting, *curls = medians(lambda: deliver(16, 8000), deliver_while_posting, bare(64, 0), bare(64, 1),
                                         bare(1024, 0), bare(1024, 1))
    best = max(curls)
    names = ["bare libcurl multi loop, 64 connections", "the same, each request set up as for a delivery",
             "bare libcurl multi loop, 1,024 connections", "the same, each request set up as for a delivery"]
    table("Webhook deliveries/s, end to end to a local sink, outcome on disk (deliver_1k__group_commit)",
          ["what", "deliveries/s", "of the best bare loop"],
          [["retryd, each message to 16 subscriptions", fan, fan / best],
           ["retryd, 1 subscription, while 16 connections post", while_posting, while_posting / best],
           *([name, rate, rate / best] for name, rate in zip(names, curls))])


def beside_dead(endpoints, jobs):
    """The same beside many dead endpoints with many jobs each: half of them refuse, half never answer."""
    policy = {"retries_with_no_delay": 0, "minimum_delay_retries": 1000, "minimum_delay": 1, "maximum_delay": 1,
              "backoff_retries": 1, "maximum_delay_retries": 0}
    with listening(os.path.join(PROGRAMS, "sink")) as sink, Retryd() as server, \
            socket.create_server(("127.0.0.1", 0), backlog=4096) as silent:
        for n in range(endpoints):
            port = silent.getsockname()[1] if n % 2 else 1
            server.call("POST", "/v2/queues/dead/subscriptions",
                        {"subscriber": f"http://127.0.0.1:{port}/{n}", "options": {"_retry_policy": policy}})
        for _ in range(jobs // 10 if endpoints else 0):
            server.call("POST", "/v2/queues/dead/messages", {"messages": [{"ttl": 86400, "body": 1}] * 10})
        time.sleep(3 if endpoints else 0)
        return push(server, sink)


def fairness():
    alone, beside = medians(lambda: beside_dead(0, 0), lambda: beside_dead(1000, 100))
    table("Fairness: deliveries/s of one healthy endpoint, while 16 connections post to it",
          ["alone", "beside 1,000 dead endpoints with 100 jobs due each", "ratio"], [[alone, beside, beside / alone]])


def lateness(server, sink):
    """99th percentile of the start of deliveries after they were due, under a light load: one client that posts."""
    server.call("POST", "/v2/queues/light/subscriptions", {"subscriber": f"http://127.0.0.1:{sink.port}/"})
    before = server.call("GET", "/metrics")
    sink_stats(sink)
    for _ in range(300):
        server.call("POST", "/v2/queues/light/messages", {"messages": [{"ttl": 86400, "body": "x" * BYTES}] * 10})
    settle(sink, 3000)
    return server.quantile("retryd_attempt_lateness_seconds", 0.99, before)


def with_pending(count):
    """A store with `count` jobs: half messages to be claimed, half deliveries due tomorrow on 1,000 subscriptions."""
    data = folder()
    with Retryd(data) as server:
        server.call("PUT", "/v2/queues/backlog", {})
        for n in range(1000):
            server.call("POST", "/v2/queues/waiting/subscriptions",
                        {"subscriber": f"http://127.0.0.1:1/{n}", "ttl": 864000})
    began = time.monotonic()
    filled = run("fill", data, count)
    filled["fill_s"] = time.monotonic() - began
    os.sync()  # what the file system still has to write of that is not part of what follows
    time.sleep(2)
    try:
        with listening(os.path.join(PROGRAMS, "sink")) as sink, Retryd(data) as server:
            result = {"ready_ms": server.ready_ms, "gb": filled["bytes"] / 1e9, "fill_s": filled["fill_s"]}
            result["posts"] = load("post", server, 64, "bench")
            result["cycles"] = load("cycle", server, 64, "cycles")
            result["takes"] = load("take", server, 64, "backlog") if count > 100000 else None
            result["late_p99"] = lateness(server, sink)
            result["pushed"] = push(server, sink)
            result["mb"] = server.private_mb()
            return result
    finally:
        shutil.rmtree(data, ignore_errors=True)


def pending():
    results = [with_pending(count) for count in PENDING]
    rows = [["durable posts/s, 64 connections", "posts"], ["put + claim + finish cycles/s, 64 connections", "cycles"],
            ["claim + finish of the backlog/s", "takes"],
            ["webhook deliveries/s, 1 subscription, while 16 connections post", "pushed"], ["ready after, ms", "ready_ms"],
            ["memory beyond the page cache, MB", "mb"], ["data, GB", "gb"],
            ["start of a due delivery after its due time, 99th percentile, s", "late_p99"]]
    def cell(value):
        return "-" if value is None else value
    table("Pending jobs: half messages, half retries due later on 1,000 subscriptions",
          ["", *[f"{count:,} pending" for count in PENDING], "ratio"],
          [[name, *[cell(r[key]) for r in results],
            results[-1][key] / results[0][key] if key in ("posts", "cycles", "pushed") else ""] for name, key in rows])


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE, text=True).stdout.strip()
    print(f"./dev bench {' '.join(sys.argv[1:])}\ncommit {commit or 'unknown'}, {os.cpu_count()} cores of {model}, "
          f"Linux {platform.release()}, n = {RUNS} (median), {SECONDS} s each; the load runs on the same cores")


PARTS = {"posts": posts, "cycles": cycles, "work": work, "events": events, "postgres": postgres, "deliveries": deliveries, "fairness": fairness, "pending": pending}

if __name__ == "__main__":
    unknown = [part for part in sys.argv[1:] if part not in PARTS]
    if unknown:
        raise SystemExit(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers and folders go
    machine()
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
