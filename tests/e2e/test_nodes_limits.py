"""Two nodes on one store: what limits an event type holds for both together, as for one."""
from concurrent.futures import ThreadPoolExecutor

import pytest

import events
from postgres import Postgres
from receiver import Answer
from server import wait_until

BUCKETS = 8  # on Kafka a type is shared by its buckets


@pytest.fixture(scope="module")
def database():
    with Postgres(tcp=True) as server:
        yield server


@pytest.fixture(params=[pytest.param("postgresql", marks=pytest.mark.postgres), pytest.param("kafka", marks=pytest.mark.kafka)])
def pair(request, start_retryd, tmp_path):
    name = request.node.originalname[-60:]
    if request.param == "kafka":
        kafka = request.getfixturevalue("kafka")
        return [start_retryd({"kafka.brokers": kafka.address, "kafka.copy": tmp_path / f"copy{i}", "kafka.instance": f"{name}-{i}"},
                             name=f"node-{i}", store=f"kafka://{kafka.address}/{name}") for i in range(2)]
    database = request.getfixturevalue("database")
    database.sql(f"CREATE DATABASE {name}", database="postgres")
    return [start_retryd(name=f"node-{i}", store=f"postgresql://retryd@127.0.0.1:{database.port}/{name}") for i in range(2)]


def put_type(node, **members):
    return events.put_type(node, "card", buckets=BUCKETS, **members)


def started(node):
    line, = (line for line in node.get("/metrics").text.splitlines() if line.startswith("retryd_attempts_started_total "))
    return int(float(line.split()[1]))


def window(node, name):
    return node.get(f"/v1/queues/{name}").json()["circuit"]["window"]


def test_a_rate_is_one_for_all_nodes(pair, receiver):
    """Twenty at once, and twenty a second: a hundred need four seconds. Were it twenty for each node, they would need less
    than two."""
    one, other = pair
    receiver.always(200)
    put_type(one, target={"url": receiver.url("/hook")}, limits={"rate_per_s": 20})
    ids = events.batch(one, "card", *[{"body": n} for n in range(50)])
    ids += events.batch(other, "card", *[{"body": n} for n in range(50, 100)])
    arrived = sorted(request.at for request in receiver.wait(100, timeout=60))
    assert len(arrived) == len(ids)
    assert arrived[-1] - arrived[0] > 3.5
    for first in range(0, 100 - 45):  # of forty-five the last is a second behind; on its way it may catch up
        assert arrived[first + 45] - arrived[first] > 0.9
    assert started(one) + started(other) == 100


def test_a_concurrency_is_one_for_all_nodes(pair, receiver):
    one, other = pair
    takes = 0.2
    receiver.always(Answer(delay=takes))
    put_type(one, target={"url": receiver.url("/hook")}, limits={"concurrency": 3})
    for node in pair:
        events.batch(node, "card", *[{"body": n} for n in range(15)])
    arrived = sorted(request.at for request in receiver.wait(30, timeout=60))
    for first, fourth in zip(arrived, arrived[3:]):
        assert fourth - first > takes * 0.9, "four at once"
    wait_until(lambda: events.state(other, "card")["done"] == 30, 30)


def test_a_concurrency_of_workers_is_one_for_all_nodes(pair):
    one, other = pair
    put_type(one, limits={"concurrency": 3})
    events.batch(one, "card", *[{"body": n} for n in range(10)])
    first = events.claim(one, "card", limit=2)
    assert len(first) == 2
    second = events.claim(other, "card", limit=20)
    assert len(second) == 1
    assert events.claim(one, "card", limit=20) == []
    events.end(other, first[0], "finish")  # by whichever node
    assert len(events.claim(one, "card", limit=20, wait_ms=5000)) == 1


def test_what_nodes_that_died_had_under_way_keeps_no_room(pair, receiver):
    """Its places are free again when its leases end, far behind all that waits for them."""
    one, other = pair
    receiver.always("hang")
    put_type(one, target={"url": receiver.url("/hook")}, limits={"concurrency": 2})
    events.batch(one, "card", *[{"body": n} for n in range(200)])
    receiver.wait(2)
    one.kill()
    other.kill()
    receiver.always(200)
    other.start()
    wait_until(lambda: events.state(other, "card")["done"] == 200, 60, "all to be delivered")


def test_failures_at_two_nodes_open_one_circuit(pair):
    """Ten at each, of twenty in ten seconds."""
    one, other = pair
    put_type(one, policy=events.backoff(0.001), circuit={"window_s": 60, "sleep_s": 60, "maximum_sleep_s": 60})
    events.batch(one, "card", *[{"body": n} for n in range(40)])
    jobs = {node: events.claim(node, "card", limit=10) for node in pair}
    assert [len(jobs[node]) for node in pair] == [10, 10]
    for job in jobs[one]:
        events.end(one, job, "fail")
    for job in jobs[other][:9]:
        events.end(other, job, "fail")
    wanted = {"attempts": 19, "failures": 19, "slow": 0}
    for node in pair:
        wait_until(lambda node=node: window(node, "card") == wanted, 10, "both to have told")
        assert events.circuit(node, "card") == "closed"
    events.end(other, jobs[other][9], "fail")
    events.wait_circuit(one, "card", "open", timeout=5)
    assert events.claim(one, "card", limit=1) == []
    assert window(one, "card") is None  # it counts anew when it has closed


def test_probes_are_as_many_as_one_node_would_make(pair, receiver):
    one, other = pair
    receiver.always(503)
    quick = {"window_s": 60, "minimum_attempts": 4, "sleep_s": 1, "maximum_sleep_s": 1, "probes": 2}
    put_type(one, target={"url": receiver.url("/hook")}, policy=events.backoff(0.001), circuit=quick)
    for node in pair:
        events.batch(node, "card", *[{"body": n} for n in range(20)])
    events.wait_circuit(other, "card", "open")
    receiver.always("hang")
    events.wait_circuit(other, "card", "half_open")
    seen = len(receiver.seen())
    wait_until(lambda: events.state(one, "card")["leased"] == 2, 10, "two probes")
    assert len(receiver.seen()) <= seen + 2


def test_nodes_that_share_limits_do_not_hold_each_other_up(pair, receiver):
    """Each start writes the same few records, whoever makes it."""
    types, portions, portion = [f"t{n}" for n in range(6)], 8, 50
    receiver.always(200)
    for name in types:
        events.put_type(pair[0], name, buckets=BUCKETS, target={"url": receiver.url("/hook")}, limits={"concurrency": 64})

    def post(node):
        for number in range(portions * len(types)):
            events.batch(node, types[number % len(types)], *[{"body": number} for _ in range(portion)])

    with ThreadPoolExecutor() as posters:
        list(posters.map(post, pair))  # whoever is refused says so here
    receiver.wait(len(pair) * portions * len(types) * portion, timeout=40)
    wait_until(lambda: all(events.state(pair[1], name)["leased"] == 0 for name in types), 10)
