"""Fixtures of the end-to-end tests: the real binary (RETRYD_BIN, default build/retryd) and receivers under control."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import postgres  # noqa: E402
from kafka_node import lent_broker  # noqa: E402
from receiver import Receiver  # noqa: E402
from server import STORE_VARIABLE, Retryd  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long; left out when a sanitizer slows everything down")
    config.addinivalue_line("markers", "threads: worth running under ThreadSanitizer")
    config.addinivalue_line("markers", "lmdb: about the embedded store itself; left out where another one is tested")
    config.addinivalue_line("markers", "postgres: makes databases of its own, whatever store is tested")
    config.addinivalue_line("markers", "kafka: with a broker (every test with that fixture)")
    if os.environ.get(STORE_VARIABLE) == "postgresql":
        del os.environ[STORE_VARIABLE]
        if postgres.URL_VARIABLE not in os.environ:
            config.own_postgres = postgres.Postgres()
            os.environ[postgres.URL_VARIABLE] = config.own_postgres.url()


def pytest_unconfigure(config):
    if hasattr(config, "own_postgres"):
        config.own_postgres.close()


@pytest.hookimpl(tryfirst=True)  # before the markers choose
def pytest_collection_modifyitems(config, items):
    for item in items:
        if "kafka" in getattr(item, "fixturenames", ()):
            item.add_marker("kafka")
    if postgres.URL_VARIABLE not in os.environ and STORE_VARIABLE not in os.environ:
        return
    chosen = [item for item in items if "lmdb" not in item.keywords]
    config.hook.pytest_deselected(items=[item for item in items if "lmdb" in item.keywords])
    items[:] = chosen


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    setattr(item, "report_" + report.when, report)


@pytest.fixture
def start_retryd(tmp_path, request):
    """start_retryd(settings={…}, name="a", flags=[…]): as many servers as a test wants. At the end each must still be there
    (unless the test ended it) and go quietly."""
    servers = []

    def start(settings=None, name="data", flags=(), wait=True, store=None):
        server = Retryd(tmp_path / name, settings, flags, store)
        servers.append(server)
        return server.start() if wait else server

    yield start
    failed = getattr(request.node, "report_call", None) is None or request.node.report_call.failed
    for server in servers:
        if failed and os.path.exists(server.log_path):
            print(f"---- {server.log_path}\n{server.log()[-4000:]}")
        died = server.process is not None and server.process.returncode not in (None, 0, -9)
        if server.running():
            code = None
            try:
                code = server.stop()
            finally:
                server.kill()
            assert code == 0, f"retryd ended with {code}:\n{server.log()[-4000:]}"
        assert not died, f"retryd died with {server.process.returncode}:\n{server.log()[-4000:]}"


@pytest.fixture
def retryd(start_retryd):
    return start_retryd()


@pytest.fixture
def start_receiver():
    receivers = []

    def start(**how):
        receivers.append(Receiver(**how))
        return receivers[-1]

    yield start
    for receiver in receivers:
        receiver.close()


@pytest.fixture
def receiver(start_receiver):
    return start_receiver()


@pytest.fixture(scope="module")
def kafka():
    """One broker for the tests of a module."""
    yield from lent_broker()
