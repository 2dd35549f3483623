"""The client libraries against the real server: the guide's programs as they stand, the examples, an installed library."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from server import BINARY, ROOT, die_with_parent, wait_until

BUILD = os.path.dirname(BINARY)
PYTHON = os.path.join(ROOT, "clients", "python")
CHARGE = {"c": [os.path.join(BUILD, "examples", "charge")],
          "py": [sys.executable, "-u", os.path.join(ROOT, "examples", "calls", "charge.py")],
          "js": ["node", os.path.join(ROOT, "examples", "calls", "charge.mjs")]}
sys.path.append(PYTHON)
import retryd as client_library  # noqa: E402

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@pytest.fixture
def server(retryd):
    """With an event type whose failures are tried again at once."""
    retryd.session.headers["X-Project-ID"] = "default"
    answer = retryd.put("/v1/event-types/card.transaction", {"target": {"pull": True}, "policy": {"minimum_delay": 1}})
    assert answer.status_code in (200, 201), answer.text
    return retryd


@pytest.fixture
def client(server):
    with client_library.Client(server.url) as made:
        yield made


def environment(server, tmp_path, **more):
    return {**os.environ, "RETRYD_URL": server.url, "PYTHONPATH": PYTHON, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1",
            "DEPENDENCY": str(tmp_path / "dependency"), "SPOOL": str(tmp_path / "spool"), **more}


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# ---- the guide -------------------------------------------------------------------------------------------------------


def programs(language):
    guide = open(os.path.join(ROOT, "docs", "clients.md")).read()
    return re.findall(rf"^```{language}\n(.*?)^```$", guide, re.M | re.S)


def aimed(text, server):
    assert "http://127.0.0.1:8888" in text
    return text.replace("http://127.0.0.1:8888", server.url)


def test_the_guide_s_event_type_can_be_made(server, tmp_path):
    assert '"card.transaction"' in run(["bash", "-ec", aimed(programs("sh")[0], server)], cwd=tmp_path)


@pytest.mark.parametrize("number, says", [
    (0, r"Receipt\(id='[0-9a-f]{24}', key='[0-9a-f]{32}', spooled=False\)\ncard 4711 is charged at attempt 2\n"),
    (1, r"True\n"),
    (2, r"install m1 \{'rack': 7\}\n"),
])
def test_the_guide_s_python_runs(server, tmp_path, number, says):
    printed = run([sys.executable, "-c", aimed(programs("python")[number], server)], cwd=tmp_path,
                  env=environment(server, tmp_path))
    assert re.fullmatch(says, printed), printed
    if number == 2:
        assert server.get("/v1/entities/m1").json()["value"] == {"rack": 7, "installed": True}


@needs_node
@pytest.mark.parametrize("number, says", [
    (0, r"\{\n  scheduled: \{\n    id: '[0-9a-f]{24}',\n    key: '[0-9a-f]{32}'\n  \}\n\}\ncard 4711 is charged at attempt 2\n"),
    (1, r"paint m2 \{ colour: 'red' \}\n"),
])
def test_the_guide_s_javascript_runs(server, tmp_path, number, says):
    os.makedirs(tmp_path / "node_modules")
    os.symlink(os.path.join(ROOT, "clients", "js"), tmp_path / "node_modules" / "retryd")
    (tmp_path / "program.mjs").write_text(aimed(programs("js")[number], server))
    printed = run(["node", "program.mjs"], cwd=tmp_path, env=environment(server, tmp_path))
    assert re.fullmatch(says, printed), printed


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where the build was installed to, and the environment that finds it."""
    root = tmp_path_factory.mktemp("installed")
    run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", str(root)])
    config = next(path for path, _, names in os.walk(root) if "retryd-client.pc" in names)
    return {**os.environ, "PKG_CONFIG_SYSROOT_DIR": str(root), "PKG_CONFIG_PATH": config,
            "LD_LIBRARY_PATH": os.path.dirname(config)}


@pytest.mark.slow  # and a program without sanitizers cannot use a library with them
def test_the_guide_s_c_program_is_built_against_what_is_installed_and_runs(server, tmp_path, installed):
    (tmp_path / "charge.c").write_text(aimed(programs("c")[0], server))
    flags = run(["pkg-config", "--cflags", "--libs", "retryd-client"], env=installed).split()
    run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "charge.c", "-o", "charge", *flags], cwd=tmp_path)
    printed = run(["./charge"], cwd=tmp_path, env={**installed, "no_proxy": "127.0.0.1"})
    assert printed == programs("text")[0]


@pytest.mark.slow
def test_the_header_is_c_plus_plus_too(tmp_path, installed):
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "x.cc").write_text("#include <retryd/client.h>\nint main() { return retry_version() == nullptr; }\n")
    flags = run(["pkg-config", "--cflags", "--libs", "retryd-client"], env=installed).split()
    run(["c++", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "x.cc", "-o", "x", *flags], cwd=tmp_path)
    run(["./x"], cwd=tmp_path, env=installed)


def test_what_was_refused_can_be_sent_again_as_the_guide_says(server, client, tmp_path):
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    os.makedirs(tmp_path / "spool")
    event = {"type": "card.transaction", "idempotency_key": "k", "body_base64": "NDcxMQ==", "deliver_after": 0, "spooled_at": 1}
    (tmp_path / "spool" / "refused.ndjson").write_text(
        json.dumps({"status": 404, "why": "no such event type", "event": event}) + "\n")
    run(["bash", "-ec", aimed(programs("sh")[-1], server)], cwd=tmp_path)
    claimed = client.ask("POST", "/v1/event-types/card.transaction/claim", {"worker": "test"})["jobs"]
    assert [job["body_base64"] for job in claimed] == ["NDcxMQ=="]


# ---- what happens to calls -------------------------------------------------------------------------------------------

CALLS = {
    "py": """
import sys, time, retryd
client = retryd.Client(sys.argv[1])
@client.retryable("py")
def call(what):
    attempt = retryd.current().attempt
    if what == "never": raise retryd.GiveUp("api1-400", "it makes no sense")
    if what == "later" and attempt == 1: raise retryd.Failure("api1-429", not_before_s=1)
    if what == "odd" and attempt == 1: raise KeyError("x")
    if what == "long": time.sleep(4)
    print(what, attempt, retryd.current().lost(), flush=True)
client.start(threads=4, lease_s=3, wait_ms=5000)
time.sleep(3.5)  # an event that ends a long poll has its whole lease before it
for what in ("never", "later", "odd", "long"): call.schedule(what)
sys.stdin.read()
client.close()
""",
    "js": """
import { Client, Failure, GiveUp } from "retryd";
const client = new Client(process.argv[2]);
const call = client.retryable("js", async (what, { attempt, lost }) => {
  if (what === "never") throw new GiveUp("api1-400", "it makes no sense");
  if (what === "later" && attempt === 1) throw new Failure("api1-429", "", { notBeforeS: 1 });
  if (what === "odd" && attempt === 1) null.x;
  if (what === "long") await new Promise((resolve) => setTimeout(resolve, 4000));
  console.log(what, attempt, lost() ? "True" : "False");
});
client.start({ concurrency: 4, leaseS: 3, waitMs: 5000 });
await new Promise((resolve) => setTimeout(resolve, 3500));
for (const what of ["never", "later", "odd", "long"]) await call.schedule(what);
process.stdin.resume();
process.stdin.on("end", () => client.stop());
""",
}


@needs_node
def test_calls_give_up_wait_as_told_and_outlast_their_leases(server, client, tmp_path):
    """In both languages at once: a call that is longer than its lease needs seconds."""
    os.makedirs(tmp_path / "node_modules")
    os.symlink(os.path.join(ROOT, "clients", "js"), tmp_path / "node_modules" / "retryd")
    for language, program in CALLS.items():
        client.ask("PUT", f"/v1/event-types/{language}", {"target": {"pull": True}})
        (tmp_path / f"calls.{language.replace('js', 'mjs')}").write_text(program)
    running = {language: subprocess.Popen([interpreter, name, server.url], cwd=tmp_path, stdin=subprocess.PIPE,
                                          stdout=open(tmp_path / f"{language}.out", "wb"), preexec_fn=die_with_parent,
                                          env=environment(server, tmp_path))
               for language, interpreter, name in (("py", sys.executable, "calls.py"), ("js", "node", "calls.mjs"))}
    try:
        for language, process in running.items():
            printed = wait_until(lambda: (lambda text: text.count("\n") >= 3 and text)((tmp_path / f"{language}.out").read_text()))
            assert sorted(printed.splitlines()) == ["later 2 False", "long 1 False", "odd 2 False"]
            process.stdin.close()
            assert process.wait(30) == 0
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    dead = server.get("/v1/dead").json()["dead"]
    assert sorted(job["queue"] for job in dead) == ["default/js", "default/py"]
    for job in dead:
        assert "api1-400: it makes no sense" in json.dumps(server.attempts(job["id"]))
    told = json.dumps([server.get("/v1/attempts?limit=100").text])
    assert "KeyError" in told and "TypeError" in told


# ---- examples --------------------------------------------------------------------------------------------------------


@needs_node
@pytest.mark.threads
@pytest.mark.parametrize("caller, worker", [("c", "py"), ("py", "js"), ("js", "c")])
def test_what_one_language_hands_over_another_runs(server, tmp_path, caller, worker):
    where = environment(server, tmp_path)
    cards = [f"{caller}-{i}" for i in range(20)] + ["für 5 €"]
    said = run([*CHARGE[caller], "run", *cards], env=where)
    assert len(said.splitlines()) == len(cards)
    running = subprocess.Popen([*CHARGE[worker], "work"], env=where, preexec_fn=die_with_parent)
    try:
        (tmp_path / "dependency").touch()
        charged = wait_until(lambda: (tmp_path / "dependency").read_text().count("\n") >= len(cards) and
                             (tmp_path / "dependency").read_text())
        assert sorted(charged.splitlines()) == sorted(cards)
        running.terminate()
        assert running.wait(30) == 0
    finally:
        running.kill()
        running.wait()


@pytest.mark.threads
def test_the_worker_in_c_finishes_what_works_and_fails_what_does_not(server, client):
    client.ask("PUT", "/v1/processes/install", {"backoff": {"initial_ms": 60000, "maximum_ms": 60000, "exponent": 1}})
    for i in range(30):
        client.ask("PUT", f"/v1/entities/m{i}", {"kind": "machine", "value": {"broken": i == 7}})
    printed = run([os.path.join(BUILD, "examples", "worker"), "install", "machine", "8", "--once"],
                  env={**os.environ, "RETRYD_URL": server.url, "no_proxy": "127.0.0.1"})
    assert sorted(printed.splitlines()) == sorted([f"m{i}: installed" for i in range(30) if i != 7] +
                                                  ["m7: it does not answer"])
    assert client.ask("GET", "/v1/entities/m3")["value"] == {"broken": False, "installed": True}
    assert [b["cause"] for b in client.ask("GET", "/v1/backoffs")] == ["it does not answer"]
    assert client.ask("GET", "/v1/sessions") == []
