"""The promise of the clients: what was acknowledged is on the server once, whoever was killed or away meanwhile."""
import collections
import json
import os
import random
import re
import shutil
import subprocess
import sys

import pytest

from server import BINARY, ROOT, Retryd, die_with_parent, wait_until

sys.path.append(os.path.join(ROOT, "clients", "python"))
import retryd as client_library  # noqa: E402

BUILD = os.path.dirname(BINARY)
CHARGE = {"c": ["stdbuf", "-oL", os.path.join(BUILD, "examples", "charge")],
          "py": [sys.executable, "-u", os.path.join(ROOT, "examples", "calls", "charge.py")],
          "js": ["node", os.path.join(ROOT, "examples", "calls", "charge.mjs")]}
TYPE = "card.transaction"


@pytest.fixture
def server(retryd):
    """Comes back on its port when it is started again."""
    retryd.session.headers["X-Project-ID"] = "default"
    retryd.command = lambda: Retryd.command(retryd, f"127.0.0.1:{retryd.port}")
    put_type(retryd)
    return retryd


def put_type(server, **more):
    answer = server.put(f"/v1/event-types/{TYPE}", {"target": {"pull": True}, "policy": {"minimum_delay": 1}, **more})
    assert answer.status_code in (200, 201), answer.text


class Fleet:
    """Processes that are ended with the test."""

    def __init__(self, server, folder):
        self.folder, self.processes = folder, []
        self.environment = {**os.environ, "RETRYD_URL": server.url, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1",
                            "DEPENDENCY": str(folder / "dependency"), "SPOOL": str(folder / "spool")}

    def start(self, language, *words):
        log = open(self.folder / f"{len(self.processes)}.out", "wb")
        process = subprocess.Popen([*CHARGE[language], *words], stdout=log, stderr=subprocess.DEVNULL, env=self.environment,
                                   preexec_fn=die_with_parent)
        log.close()
        self.processes.append(process)
        return process

    def said(self):
        return "".join((self.folder / f"{i}.out").read_text() for i in range(len(self.processes)))

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def fleet(server, tmp_path):
    made = Fleet(server, tmp_path)
    yield made
    made.end()


def take_all(client):
    """The bodies of all events, each finished."""
    bodies = []
    while True:
        claimed = client.ask("POST", f"/v1/event-types/{TYPE}/claim", {"worker": "test", "limit": 20})
        if claimed is None:
            return bodies
        for job in claimed["jobs"]:
            bodies.append(job["body"])
            client.ask("POST", f"/v1/jobs/{job['id']}/finish", {"token": job["token"]})


def acknowledged(said):
    """Each card that a process has said to be on a disk; C and Python put it differently."""
    return re.findall(r"^(\S+): (?:RETRY_SCHEDULED|RETRY_SPOOLED|Receipt\(.*\))$", said, re.M)


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_when_servers_and_callers_are_killed(server, fleet, tmp_path):
    chance = random.Random(4711)
    callers = []
    for turn in range(3):
        fresh = [fleet.start(language, "run", *[f"{language}-{turn}-{i}" for i in range(250)]) for language in ("c", "py")]
        lines = fleet.said().count("\n")
        wait_until(lambda: fleet.said().count("\n") > lines + 20)
        server.kill()
        lines = fleet.said().count("\n")
        wait_until(lambda: fleet.said().count("\n") > lines + 50)
        victim = chance.choice(fresh)
        victim.kill()
        callers += [process for process in fresh if process is not victim]
        server.start()
    for process in callers:
        assert process.wait(60) == 0

    with client_library.Client(server.url, spool=str(tmp_path / "spool")) as client:
        assert client.flush(30)
        counts = collections.Counter(take_all(client))
    assert max(counts.values()) == 1, [body for body, count in counts.items() if count > 1]
    assert re.search(r"RETRY_SPOOLED$", fleet.said(), re.M) and "spooled=True" in fleet.said()
    promised = acknowledged(fleet.said())
    assert len(promised) == len(set(promised)) > 300
    assert set(promised) - set(counts) == set()
    assert not os.path.exists(tmp_path / "spool" / "refused.ndjson")


def test_order_is_kept_over_an_outage(server, fleet, tmp_path):
    with client_library.Client(server.url, spool=str(tmp_path / "spool")) as client:
        for i in range(60):
            if i == 20:
                server.kill()
            if i == 40:
                server.start()
            client.schedule(TYPE, str(i), order_key="card-1")
        assert client.flush(30)
        assert take_all(client) == [str(i) for i in range(60)]


@pytest.mark.slow
def test_every_call_succeeds_in_the_end_though_workers_and_server_are_killed(server, fleet, tmp_path):
    languages = ["c", "py"] + (["js"] if shutil.which("node") else [])
    chance = random.Random(17)
    put_type(server, circuit={"minimum_attempts": 100000}, policy={"retries_with_no_delay": 1000})
    cards = [f"card-{i}" for i in range(1500)]
    with client_library.Client(server.url) as client:
        events = [{"type": TYPE, "body": card, "idempotency_key": card} for card in cards]
        for first in range(0, len(events), 500):
            client.ask("POST", "/v1/events", {"events": events[first:first + 500]})
    (tmp_path / "dependency").touch()

    def charged():
        return (tmp_path / "dependency").read_text().split()

    workers = [fleet.start(language, "work") for language in languages]
    for _ in range(4):
        before = len(charged())
        wait_until(lambda: len(charged()) >= min(before + 100, len(cards)))
        victim = chance.randrange(len(workers))
        workers[victim].kill()
        workers[victim] = fleet.start(chance.choice(languages), "work")
        server.kill()
        server.start()

    def all_ended():
        queues = [q for q in server.get("/v1/queues").json()["queues"] if q["name"].endswith(TYPE)]
        return len(queues) == 1 and not any(queues[0].get(state) for state in ("scheduled", "free", "ready", "leased"))

    wait_until(all_ended, timeout=60)
    assert server.dead() == []
    assert set(charged()) == set(cards)
    assert len(charged()) < len(cards) + 100  # at least once, and hardly more
    for process in workers:
        process.terminate()
        assert process.wait(30) == 0


def test_what_the_server_refuses_is_put_aside_and_holds_up_nothing(server, tmp_path):
    with client_library.Client(server.url, spool=str(tmp_path / "spool")) as client:
        server.kill()
        for number, kind in enumerate([TYPE, "unknown", TYPE]):
            assert client.schedule(kind, {"number": number}).spooled
        server.start()
        assert client.flush(30)
        assert take_all(client) == [{"number": 0}, {"number": 2}]
    refused = [json.loads(line) for line in open(tmp_path / "spool" / "refused.ndjson")]
    assert [(line["status"], line["event"]["type"]) for line in refused] == [(404, "unknown")]


def test_the_largest_event_goes_through_the_spool_too(server, fleet, tmp_path):
    """As large as a request may be (1 MiB), so that its base64 would be too large."""
    body = "x" * 1000000
    with client_library.Client(server.url, spool=str(tmp_path / "spool")) as client:
        server.kill()
        assert [client.schedule(TYPE, text).spooled for text in ("small", body, "small")] == [True] * 3
        server.start()
        assert client.flush(30)
        assert take_all(client) == ["small", body, "small"]


def test_a_full_spool_says_so(server, tmp_path):
    with client_library.Client(server.url, spool=str(tmp_path / "spool"), spool_bytes_max=1000) as client:
        server.kill()
        with pytest.raises(client_library.SpoolFull, match="of at most 1000 bytes"):
            for _ in range(10):
                client.schedule(TYPE, "x")
        server.start()
        assert client.flush(30)
