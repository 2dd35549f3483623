"""retryctl migrate-store into Kafka and out of it: everything moves, nothing changes."""
import json
import shutil
import subprocess

import pytest

from kafka_node import rows
from server import wait_until
from test_postgres_migrate import CTL, OPTIONS, Estate, fill, kill_until_done

LATER_S = 20  # in which the group forgets who was killed


@pytest.fixture
def places(kafka, tmp_path, request):
    """place(name): the address of an empty store in Kafka, and what has to be set for it."""
    def place(name):
        return (f"kafka://{kafka.address}/{request.node.originalname[-40:]}.{name}",
                {"kafka.copy": str(tmp_path / f"copy-{name}"), "kafka.partitions": "4"})
    return place


def line(source, target, settings, *flags):
    return [CTL, "migrate-store", source, target, *OPTIONS, *flags,
            *(word for name, value in settings.items() for word in ("--set", f"{name}={value}"))]


def migrate(source, target, settings, status=0):
    done = subprocess.run(line(source, target, settings, "--json"), capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if status == 0 else done.stderr


def test_a_store_moves_to_kafka_and_back_and_everything_goes_on(start_retryd, receiver, places, tmp_path, kafka):
    server = start_retryd(Estate.SETTINGS, store=f"lmdb:{tmp_path / 'data'}")
    estate = Estate(server, receiver)
    moves = [places("first"), (f"lmdb:{tmp_path / 'back'}", {}), places("second")]
    settings = {}
    for number, (target, more) in enumerate(moves):
        before = estate.look_at_rest()
        assert server.stop() == 0
        settings = {**settings, **more}  # of Kafka on whichever side it is
        moved = migrate(server.store, target, settings)
        assert moved["jobs"]["dead"] == 3 + number, moved
        server = estate.server = start_retryd({**Estate.SETTINGS, **more}, name=f"home-{number}", store=target)
        after = estate.look()
        for page, seen in before.items():
            assert after[page] == seen, page
        estate.go_on(number)
        server.wait_dead(4 + number)
    # What other tools read goes by the names that the records came with.
    prefix = target.rsplit("/", 1)[1]

    def told():
        return {headers["rtd-id"] for key, (headers, value) in rows(kafka, f"{prefix}.retry").items()
                if key.startswith("job/") and value}

    wait_until(lambda: set(estate.calls) <= told(), 30, "the jobs in the retry topic")
    # A node that has nothing of its own begins from the topics alone.
    before = estate.look_at_rest()
    assert server.stop() == 0
    shutil.rmtree(more["kafka.copy"])
    estate.server = start_retryd({**Estate.SETTINGS, **more}, name="new", store=target)
    after = estate.look()
    for page, seen in before.items():
        assert after[page] == seen, page
    estate.end()


def test_a_migration_that_is_killed_goes_on_where_it_was(start_retryd, places, tmp_path):
    home, (target, settings), other = f"lmdb:{tmp_path / 'data'}", places("it"), places("other")
    server = start_retryd(store=home)
    fill(server, 20000)
    assert server.stop() == 0
    said = kill_until_done(line(home, target, settings, "--json"), line(home, *other, "--json"))
    assert said["jobs"]["free"] == 20000
    server = start_retryd(settings, name="after", store=target)
    assert server.get("/v2/queues/q/stats").json()["messages"]["total"] == 20000


def test_a_store_that_nodes_serve_from_is_not_moved(start_retryd, places, tmp_path):
    target, settings = places("it")
    server = start_retryd(settings, store=target)
    other = {**settings, "kafka.copy": str(tmp_path / "other")}
    wait_until(lambda: "1 node uses this store" in migrate(target, f"lmdb:{tmp_path / 'away'}", other, status=1), LATER_S,
               "the node to have joined its group")
    assert server.stop() == 0
    assert migrate(target, f"lmdb:{tmp_path / 'away'}", other)["records"] > 0


def test_from_kafka_to_kafka_it_goes_over_another_store(places):
    (source, settings), (target, _) = places("a"), places("b")
    assert "over another store" in migrate(source, target, settings, status=2)
