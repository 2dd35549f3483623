"""What a run with several nodes leaves behind is held against what was produced: every event once, in the order of its key,
and a reason for every pause."""
import json
import threading
import time
import zlib
from collections import Counter, defaultdict
from datetime import datetime

from receiver import Receiver

FAILING_PERCENT = 15  # of all attempts are answered 500
PAUSE_S = 3.0         # without an attempt of a type that has something to do: worth a line …
STUCK_S = 10.0        # … and longer than a busy machine and nodes that wait for each other's rows take: to be explained
AFTERMATH_S = 15.0    # how long trouble is felt: the group misses a node after 10 s, leases end after 5 s


class Sink(Receiver):
    """An endpoint for events whose bodies are numbers; whether an attempt fails follows from its number and the event's."""

    def __init__(self):
        super().__init__()
        self.attempts = []      # (when, type, order key, number, webhook-id, success)
        self.delivered = set()  # numbers

    def choose(self, request):
        number, attempt = int(request.body), request.headers["webhook-attempt"]
        success = zlib.crc32(f"{number}/{attempt}".encode()) % 100 >= FAILING_PERCENT
        with self.lock:
            self.attempts.append((time.monotonic(), request.headers["retryd-type"], request.headers["retryd-order-key"], number,
                                  request.headers["webhook-id"], success))
            if success:
                self.delivered.add(number)
        return 200 if success else 500


class Producer(threading.Thread):
    """Produces `count` events in `portions`, each of one type, keys in turn. Who stops the broker holds `lock`: kcat would give
    up."""

    def __init__(self, kafka, topic, count, portions, types, keys):
        super().__init__(daemon=True)
        self.kafka, self.topic, self.count, self.types, self.keys = kafka, topic, count, types, keys
        self.portion = -(-count // portions)
        self.lock, self.failed = threading.Lock(), None
        self.produced = []  # (when, type, range of numbers)

    def run(self):
        try:
            for first in range(0, self.count, self.portion):
                numbers = range(first, min(first + self.portion, self.count))
                kind = f"t{first // self.portion % self.types}"
                with self.lock:
                    self.kafka.kcat("-P", "-t", self.topic, "-K", ":", "-H", f"rtd-type={kind}",
                                    "-H", "content-type=text/plain", timeout=120,
                                    lines=[f"key{number % self.keys}:{number}" for number in numbers])
                self.produced.append((time.monotonic(), kind, numbers))
                time.sleep(0.3)
        except Exception as why:  # noqa: BLE001 - told by the test's own thread
            self.failed = why


class Troubles:
    """with troubles("node 1 killed"): …"""

    def __init__(self):
        self.began, self.list = time.monotonic(), []  # [begin, end, what]

    def __call__(self, what):
        self.list.append([time.monotonic(), None, what])
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.list[-1][1] = time.monotonic()

    def felt(self, begin, end):
        """What was going on then, or had its aftermath."""
        return [what for since, until, what in self.list if since <= end and begin <= (until or end) + AFTERMATH_S]

    def show(self, begin, end):
        return f"{begin - self.began:7.1f} s  {end - begin:5.1f} s"


def circuits(node, types):
    """(type, begin, end) of the times when a circuit was not closed, as the audit stream tells them."""
    to_monotonic = time.monotonic() - time.time()
    kinds = {node.get(f"/v1/event-types/{kind}").json()["queue"]: kind for kind in types}
    opened, found, after = {}, [], 0
    while True:
        lines = node.get("/v1/attempts", params={"after": after, "limit": 1000}).text.splitlines()
        for event in map(json.loads, lines):
            kind = kinds.get(event["queue_id"])
            if event["event"] != "circuit" or kind is None:
                continue
            when = datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp() + to_monotonic
            if event["text"] == "closed" and kind in opened:
                found.append((kind, opened.pop(kind), when))
            elif event["text"] != "closed":
                opened.setdefault(kind, when)
        if not lines:
            return found + [(kind, since, time.monotonic()) for kind, since in opened.items()]
        after = json.loads(lines[-1])["seq"]


def check_all_are_there_once(sink, count):
    ids = defaultdict(set)
    for _, _, _, number, webhook_id, _ in sink.attempts:
        ids[number].add(webhook_id)
    assert sink.delivered == set(range(count)), sorted(set(range(count)) ^ sink.delivered)[:20]
    twice = {number: found for number, found in ids.items() if len(found) != 1}
    assert not twice, f"records that became several events: {dict(list(twice.items())[:5])}"


def check_order(sink, producer):
    """No attempt of an event comes before the success of the one before it in its key."""
    wanted = defaultdict(list)
    for _, kind, numbers in producer.produced:
        for number in numbers:
            wanted[kind, f"key{number % producer.keys}"].append(number)
    done = Counter()
    for _, kind, key, number, _, success in sink.attempts:
        line, at = wanted[kind, key], done[kind, key]
        if at < len(line) and number == line[at]:
            done[kind, key] += success
        else:
            assert at > 0 and number <= line[at - 1], f"{kind} {key}: {number} was tried before {line[at]} had succeeded"


def pauses(sink, producer):
    """(begin, end, type) of the times when nothing was tried although something could have been."""
    found = []
    for kind in {kind for _, kind, _ in producer.produced}:
        tries = [(when, success) for when, each, _, _, _, success in sink.attempts if each == kind]
        portions = [(when, len(numbers)) for when, each, numbers in producer.produced if each == kind]
        succeeded = 0
        for (when, success), (following, _) in zip(tries, tries[1:]):
            succeeded += success
            waiting = sum(size for produced, size in portions if produced <= when) - succeeded
            if waiting > 0 and following - when > PAUSE_S:
                found.append((when, following, kind))
    return sorted(found)


def report(sink, producer, troubles, open_circuits):
    """Where time went. Returns the pauses over STUCK_S that nothing explains."""
    produced_until, last = producer.produced[-1][0], sink.attempts[-1][0]
    failures = sum(1 for attempt in sink.attempts if not attempt[5])
    successes = Counter(attempt[3] for attempt in sink.attempts if attempt[5])
    took = last - troubles.began
    print(f"{producer.count} events, produced in {produced_until - troubles.began:.0f} s, delivered in {took:.0f} s "
          f"({producer.count / took:.0f} a second): {len(sink.attempts)} attempts, {failures} answered 500, "
          f"{sum(successes.values()) - len(successes)} successes again after a kill")
    print("troubles:")
    for since, until, what in troubles.list:
        print(f"  {troubles.show(since, until)}  {what}")
    for kind, opened, closed in open_circuits:
        print(f"  {troubles.show(opened, closed)}  circuit of {kind} open")
    print(f"pauses of a type over {PAUSE_S:.0f} s:")
    unexplained = []
    for since, until, kind in pauses(sink, producer):
        felt = troubles.felt(since, until)
        felt += ["its circuit was open" for each, opened, closed in open_circuits
                 if each == kind and opened <= until and since <= closed][:1]
        print(f"  {troubles.show(since, until)}  {kind}: {', '.join(felt) or 'no trouble at that time'}")
        if not felt and until - since > STUCK_S:
            unexplained.append((since, until, kind))
    return unexplained
