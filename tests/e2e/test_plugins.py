"""Plugins on the real binary: the example of the guide, their settings and log, and that none outlives its server."""
import json
import os
import subprocess

import pytest

from orders import DEMO, PLUGINS, look, order, put_type, wait_active, wait_end
from server import BINARY, ROOT, wait_until

RETRYCTL = os.path.join(os.path.dirname(BINARY), "retryctl")


def hosts_of(server):
    """The plugin processes that a server has started."""
    pid = server.process.pid
    with open(f"/proc/{pid}/task/{pid}/children") as main:
        found = [int(child) for child in main.read().split()]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as children:
            found += [int(child) for child in children.read().split()]
    return sorted(set(found))


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.fixture
def hello(tmp_path):
    """A directory with the example, built as its page says."""
    source = os.path.join(ROOT, "examples", "plugin", "hello.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-I", os.path.join(ROOT, "include"), "-o", str(tmp_path / "hello.so"), source],
                   check=True)
    return tmp_path


def test_the_example_greets_from_its_settings(start_retryd, hello):
    server = start_retryd({"plugins.directory": str(hello), "plugin.hello.greeting": "Good morning"})
    put_type(server, "hello", target={"plugin": "hello"})
    seen = wait_active(server, order(server, "hello", who="world"))
    assert (seen["sub_status"], seen["sub_status_message"]) == ("finished", "That was all.")
    secret = seen["secret_ref"].rsplit("/", 1)[1]
    payload = server.get(f"/v1/secrets/{secret}/payload", headers={"Accept": "text/plain"})
    assert payload.text == "Good morning, world!"
    assert "plugin=hello" in server.log() and "Good morning, world!" in server.log()
    seen = wait_end(server, order(server, "hello"))
    assert (seen["status"], seen["error_status_code"]) == ("ERROR", "400") and "meta.who is missing" in seen["error_reason"]


@pytest.mark.threads
def test_plugins_go_with_their_server(start_retryd):
    server = start_retryd(DEMO)
    for kind, meta in [("key", {"algorithm": "aes", "bit_length": 128}), ("asymmetric", {"algorithm": "ec", "bit_length": 256})]:
        wait_active(server, order(server, kind, **meta))
    hosts = hosts_of(server)
    assert len(hosts) == 2
    server.kill()
    wait_until(lambda: all(is_gone(pid) for pid in hosts), what="plugins to end with a killed server")
    server.start()
    wait_active(server, order(server, "key", algorithm="aes", bit_length=128))
    hosts = hosts_of(server)
    assert len(hosts) == 1
    assert server.stop() == 0
    assert all(is_gone(pid) for pid in hosts)


def test_a_killed_plugin_costs_nothing_that_was_made(start_retryd):
    server = start_retryd(DEMO)
    one = order(server, "key", algorithm="aes", bit_length=128)
    before = wait_active(server, one)
    for pid in hosts_of(server):
        os.kill(pid, 9)
    wait_active(server, order(server, "key", algorithm="aes", bit_length=128))
    assert look(server, one) == before


@pytest.mark.parametrize("setting", ["plugin.Bad.key=1", "plugin.hello=1", "plugin.a/b.key=1", "plugin..key=1",
                                     "plugins.processes=0", "plugins.processes=65"])
def test_settings_that_no_plugin_can_have_are_refused(setting):
    done = subprocess.run([BINARY, "config", "--check", "--set", setting], capture_output=True, text=True)
    assert done.returncode == 2 and "plugin" in done.stderr


def test_the_host_is_no_command_for_people():
    assert "plugin-host" not in subprocess.run([BINARY, "--help"], capture_output=True, text=True).stdout
    done = subprocess.run([BINARY, "plugin-host", "key", os.path.join(PLUGINS, "key.so")], capture_output=True, text=True)
    assert done.returncode == 2 and "the server" in done.stderr


def check(*words):
    done = subprocess.run([RETRYCTL, "plugin", "check", *words], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout


def test_retryctl_says_what_is_in_a_plugin(hello):
    assert check(str(hello / "hello.so")) == (0, f"{hello}/hello.so: fine: plugin hello, ABI 1, with run, init, validate\n")
    code, text = check("--json", str(hello / "hello.so"))
    assert code == 0 and json.loads(text) == {"name": "hello", "abi": 1, "init": True, "shutdown": False, "validate": True,
                                              "cancel": False}


def test_retryctl_says_why_something_is_no_plugin(hello):
    (hello / "text.so").write_text("not at all")
    (hello / "crash.c").write_text("#include <stdlib.h>\n__attribute__((constructor)) static void load(void) { abort(); }\n")
    (hello / "empty.c").write_text("int nothing;\n")
    for name in ("crash", "empty"):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(hello / f"{name}.so"), str(hello / f"{name}.c")], check=True)
    os.symlink(hello / "hello.so", hello / "Hello.so")
    for name, word in [("text", "text.so"), ("crash", "crashes when it is loaded: signal 6"), ("empty", "no symbol retryd_plugin_v1"),
                       ("missing", "missing.so"), ("Hello", "a server wants NAME.so")]:
        code, text = check(str(hello / f"{name}.so"))
        assert code == 1 and word in text, name
