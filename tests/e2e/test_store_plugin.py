"""Serving from a store of one's own: examples/store, built as a stranger would, outside the tree on public headers alone."""
import os
import shutil
import subprocess
from collections import Counter

import pytest

from policies import steady
from server import BINARY, ROOT, Retryd, wait_until


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The example's shared object."""
    place = tmp_path_factory.mktemp("stranger")
    shutil.copytree(os.path.join(ROOT, "examples", "store"), place / "store", ignore=shutil.ignore_patterns("*.so"))
    shutil.copytree(os.path.join(ROOT, "include"), place / "include")
    subprocess.run(["make", "-s", "-C", place / "store", f"RETRYD_INCLUDE={place / 'include'}"], check=True)
    return place / "store" / "sqlite_store.so"


def test_kill_9_and_restarts_lose_and_repeat_nothing(example, start_retryd, receiver, tmp_path):
    receiver.always(503)
    retryd = start_retryd(store=f"plugin:{example}?{tmp_path / 'kept.db'}")
    retryd.make_queue("q")
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy=steady(1, 50))
    messages = retryd.send("q", *range(20))
    wait_until(lambda: len(receiver.requests) >= 40, what="second attempts")
    retryd.kill()
    seen = len(receiver.requests)
    receiver.always(200)
    retryd.start()
    wait_until(lambda: {request.message for request in receiver.requests[seen:]} == set(range(20)), what="all of them")
    wait_until(lambda: retryd.metric("retryd_attempts_in_flight") == 0)
    attempts = [int(request.headers["webhook-attempt"]) for request in receiver.requests[seen:]]
    assert all(attempt >= 2 for attempt in attempts), attempts  # what was counted before the crash still is
    retryd.restart()
    retryd.kill()
    retryd.start()
    claim = retryd.post("/v2/queues/q/claims", json={"ttl": 300, "grace": 60})
    assert claim.status_code == 201, claim.text
    listed = retryd.get("/v2/queues/q/messages", params={"echo": "true", "include_claimed": "true", "limit": 20}).json()
    assert sorted(message["id"] for message in listed["messages"]) == sorted(messages)
    delivered = Counter(request.message for request in receiver.requests[seen:])
    assert delivered == Counter(range(20)), "a delivery that succeeded was made again"


def test_two_servers_do_not_share_it(example, start_retryd, tmp_path):
    store = f"plugin:{example}?{tmp_path / 'kept.db'}"
    start_retryd(store=store)
    second = Retryd(tmp_path / "second", store=store)
    with pytest.raises(AssertionError, match="another process serves from it"):
        second.start()


NO_STORES = {
    "stranger": "int nothing;",
    "older": "const unsigned *retryd_store_plugin_v1(void) { static const unsigned old[64] = {0}; return old; }",
    "other": """
        #include <retryd/store.h>
        static rt_code never(const struct retryd_store_config *config, rt_store **out, rt_err *err) {
            return config == NULL || out == NULL ? RT_OK : rt_fail(err, RT_E_INVALID, 0, "opened");
        }
        static struct retryd_store_plugin plugin = RETRYD_STORE_PLUGIN("other", never);
        __attribute__((constructor)) static void shrink(void) { plugin.rt_job_size = 1; }
        RETRYD_STORE(plugin)
    """,
}


@pytest.mark.parametrize("store, complaint", [
    ("plugin:{nowhere}", "nowhere.so: No such file or directory"),
    ("plugin:{text}", "cannot be loaded"),
    ("plugin:{stranger}", "is no store: it has no symbol retryd_store_plugin_v1"),
    ("plugin:{older}", "has to be built anew: it speaks version 0"),
    ("plugin:{other}", "has to be built anew: it knows rt_job with 1 bytes, this retryd with 120"),
    ("plugin:{example}", "no file is named"),
    ("plugin:?x", "names no file"),
])
def test_what_is_no_store_is_refused_in_words(example, tmp_path, store, complaint):
    (tmp_path / "text.so").write_text("no shared object")
    for name, source in NO_STORES.items():
        (tmp_path / f"{name}.c").write_text(source)
        subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT}/include", "-o", tmp_path / f"{name}.so", tmp_path / f"{name}.c"],
                       check=True)
    files = {name: tmp_path / f"{name}.so" for name in ("nowhere", "text", *NO_STORES)}
    server = Retryd(tmp_path / "data", store=store.format(example=example, **files))
    with pytest.raises(AssertionError, match=complaint):
        server.start()
    assert server.process.returncode == 2


def test_a_store_moves_into_it_and_back(example, start_retryd, tmp_path):
    homes = [f"lmdb:{tmp_path / 'first'}", f"plugin:{example}?{tmp_path / 'kept.db'}", f"lmdb:{tmp_path / 'second'}"]
    retryd = start_retryd(store=homes[0])
    retryd.make_queue("q")
    messages = sorted(retryd.send("q", *range(30)))
    for source, target in zip(homes, homes[1:]):
        retryd.stop()
        size = ["--set", f"store.lmdb_map_bytes={retryd.settings['store.lmdb_map_bytes'] or '1T'}"]
        moved = subprocess.run([BINARY, "migrate-store", source, target, *size], capture_output=True, text=True)
        assert moved.returncode == 0, moved.stderr
        retryd.store = target
        retryd.start()
        listed = retryd.get("/v2/queues/q/messages", params={"echo": "true", "limit": 20}).json()["messages"]
        assert [message["id"] for message in listed] == messages[:20]
        messages = sorted(messages + retryd.send("q", "one more"))
