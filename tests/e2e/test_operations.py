"""Starting, stopping, watching."""
import json
import os
import re
import subprocess
import time

import pytest

from policies import quick
from receiver import Answer
from server import BINARY, ROOT, wait_until

CTL = os.path.join(os.path.dirname(BINARY), "retryctl")
SAMPLE = re.compile(r'^[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*",?)*\})? '
                    r'([+-]?([0-9]*\.)?[0-9]+([eE][+-]?[0-9]+)?|[+-]Inf|NaN)$')


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=30, **more)


def prose(path):
    """A page of the documentation without its examples."""
    with open(path, encoding="utf-8") as file:
        return re.sub(r"```.*?```", "", file.read(), flags=re.S)


def anchors(path):
    """The headings of a page as links name them."""
    bare = (re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in re.findall(r"^#+ (.*)$", prose(path), re.M))
    return {heading.replace(" ", "-") for heading in bare}


def settings():
    """The names of all that `retryd config --explain` prints."""
    group, names = None, set()
    for line in run(BINARY, "config", "--explain").stdout.splitlines():
        if line.startswith("["):
            group = line.strip("[]")
        elif re.match(r"#\w+ = ", line):
            names.add(f"{group}.{line[1:].split(' ')[0]}")
    return names


# ---- metrics --------------------------------------------------------------------------------------------------------


def check_prometheus(text):
    """The rules of the text format 0.0.4: every sample well-formed, HELP and TYPE once and before it, buckets rising."""
    types, seen = {}, []
    buckets = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types and kind in ("counter", "gauge", "histogram")
            types[name] = kind
        elif line.startswith("# HELP "):
            assert len(line.split(" ", 3)) == 4
        else:
            assert SAMPLE.match(line), line
            name = re.match(r"[^{ ]+", line).group()
            family = re.sub(r"_(bucket|sum|count)$", "", name) if name not in types else name
            assert family in types, line
            key = line.rsplit(" ", 1)[0]
            seen.append(key)
            if name.endswith("_bucket") and types[family] == "histogram":
                value = float(line.rsplit(" ", 1)[1])
                assert value >= buckets.get(family, 0)
                buckets[family] = value
                if 'le="+Inf"' in line:
                    assert f"{family}_count {int(value)}" in text
    assert len(seen) == len(set(seen))
    return types


def test_metrics_are_prometheus_text_and_count(retryd, receiver):
    receiver.on("/bad", 500)
    retryd.subscribe("q", receiver.url("/good"))
    retryd.subscribe("q", receiver.url("/bad"), _retry_policy=quick(1))
    retryd.subscribe("q", receiver.url("/rejected"), _retry_policy=quick(1))
    receiver.on("/rejected", 404)
    retryd.send("q", *range(10))
    retryd.wait_dead(20)
    wait_until(lambda: retryd.metric("retryd_deliveries_succeeded_total") == 10)
    answer = retryd.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    types = check_prometheus(answer.text)
    assert {"counter", "gauge", "histogram"} == set(types.values())
    assert retryd.metric("retryd_messages_posted_total") == 10
    assert retryd.metric("retryd_deliveries_created_total") == 30
    assert retryd.metric("retryd_attempts_started_total") == 10 + 20 + 10
    assert 'retryd_attempts_failed_total{reason="status"} 20' in answer.text or retryd.metric("retryd_attempts_failed_total") >= 20
    assert 'retryd_jobs_dead_total{reason="exhausted"} 10' in answer.text
    assert 'retryd_jobs_dead_total{reason="rejected"} 10' in answer.text
    assert retryd.metric("retryd_jobs_dead") == 20
    assert retryd.metric("retryd_attempt_lateness_seconds_count") >= 30
    assert retryd.metric("retryd_commit_duration_seconds_count") > 0


def test_health_and_readiness(retryd):
    for page in ("/healthz", "/readyz"):
        probe = retryd.request("HEAD", page)
        assert probe.status_code == 200 and probe.content == b""
    assert retryd.get("/healthz").status_code == 200
    assert retryd.get("/readyz").status_code == 200
    assert retryd.get("/openapi.json").json()["openapi"].startswith("3.")


def test_the_page_about_the_api_names_the_requests_that_there_are(retryd):
    page = retryd.get("/openapi.json").json()
    for path, said in page["paths"].items():
        answer = retryd.request("OPTIONS", re.sub(r"\{[^}]*\}", "x", path))
        assert answer.status_code == 200, path
        there = set(answer.headers["Allow"].split(", ")) - {"HEAD", "OPTIONS"}
        assert there == {method.upper() for method in said if method != "parameters"}, path


def test_the_page_about_the_api_has_all_that_zaqars_home_document_names(retryd):
    there = {re.sub(r"\{[^}]*\}", "{}", path) for path in retryd.get("/openapi.json").json()["paths"]}
    for name, resource in retryd.get("/v2").json()["resources"].items():
        href = resource.get("href-template", resource.get("href"))
        assert re.sub(r"\{\w+\}", "{}", re.sub(r"\{\?.*", "", href)) in there, name


# ---- starting and stopping ------------------------------------------------------------------------------------------


def test_version():
    done = run(BINARY, "--version")
    assert done.returncode == 0 and re.match(r"retryd \d+\.\d+\.\d+", done.stdout)


@pytest.mark.parametrize("arguments", [["--set", "delivery.no_such=1"], ["--set", "nonsense"], ["--no-such-flag"],
                                       ["--listen", "127.0.0.1:99999"], ["--listen", "nonsense"],
                                       ["--set", "store.lmdb_map_bytes=-1"], ["--config", "/no/such/file"]], ids=str)
def test_mistakes_on_the_command_line_are_told(tmp_path, arguments):
    done = run(BINARY, "serve", "--data", str(tmp_path / "d"), *arguments)
    assert done.returncode != 0 and len(done.stderr) > 10
    assert "listening" not in done.stderr


def test_every_setting_is_explained():
    guide, names = prose(os.path.join(ROOT, "docs", "operations.md")), settings()
    assert "delivery.allow_networks" in names and len(names) > 20
    assert [name for name in names if f"`{name}`" not in guide] == []


def test_config_file(start_retryd, tmp_path):
    config = tmp_path / "retryd.conf"
    config.write_text("[notification]\nrequire_confirmation = true\n")
    retryd = start_retryd(flags=["--config", str(config)])
    assert retryd.get("/healthz").status_code == 200
    config.write_text("[notification]\nno_such_setting = true\n")
    done = run(BINARY, "serve", "--data", str(tmp_path / "d"), "--config", str(config))
    assert done.returncode != 0 and "no_such_setting" in done.stderr


@pytest.mark.threads
def test_sigterm_finishes_what_is_under_way(start_retryd, receiver):
    receiver.on("/hook", Answer(200, delay=1.0))
    retryd = start_retryd()
    retryd.subscribe("q", receiver.url("/hook"))
    retryd.send("q", *range(5))
    receiver.wait(5)
    began = time.monotonic()
    assert retryd.stop() == 0
    assert time.monotonic() - began < 15
    # Their outcomes were written: nothing is sent again.
    retryd.start()
    time.sleep(0.5)
    assert len(receiver.seen()) == 5
    assert retryd.metric("retryd_jobs_pending") == 5  # the messages themselves, not their deliveries


def test_sigterm_does_not_wait_for_the_pending(start_retryd, receiver):
    receiver.on("/hook", 500)
    retryd = start_retryd()
    retryd.subscribe("q", receiver.url("/hook"))
    retryd.send("q", 1)
    receiver.wait(4)  # the next attempt is 5 s away
    began = time.monotonic()
    assert retryd.stop() == 0
    assert time.monotonic() - began < 3


def test_an_idle_server_sleeps(retryd):
    def ticks():
        fields = open(f"/proc/{retryd.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])  # user and system time, in hundredths of a second
    retryd.send("q", 1)
    time.sleep(0.5)
    before = ticks()
    time.sleep(2)
    assert ticks() - before <= 4


def test_log_is_one_line_each_and_says_what_matters(retryd, receiver):
    receiver.on("/hook", 404)
    retryd.subscribe("q", receiver.url("/hook"))
    retryd.send("q", 1)
    retryd.wait_dead(1)
    assert "listening on" in retryd.log()
    assert "whsec" not in retryd.log()


# ---- retryctl -------------------------------------------------------------------------------------------------------


def ctl(retryd, *arguments):
    done = run(CTL, "--url", retryd.url, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not os.path.exists(CTL), reason="retryctl is not built")
def test_retryctl_lists_and_redrives_the_dead(retryd, receiver):
    receiver.on("/hook", 404)
    retryd.subscribe("q", receiver.url("/hook"))
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    assert job["id"] in ctl(retryd, "dead", "list")
    listed = json.loads(ctl(retryd, "dead", "list", "--json"))
    assert job["id"] in json.dumps(listed)
    assert "404" in ctl(retryd, "attempts", job["id"])
    receiver.on("/hook", 200)
    ctl(retryd, "dead", "redrive", job["id"])
    receiver.wait(2)
    wait_until(lambda: retryd.job(job["id"])["state"] == "done")


@pytest.mark.skipif(not os.path.exists(CTL), reason="retryctl is not built")
def test_retryctl_explains_the_default_policy():
    done = run(CTL, "policy", "explain", "--json", "{}")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["delays_ms"] == [0] * 3 + [5000] * 3 + [5000 * n for n in range(1, 13)] + [60000] * 3
    assert told["phases"] == ["immediate"] * 3 + ["pre_backoff"] * 3 + ["backoff"] * 12 + ["post_backoff"] * 3


@pytest.mark.parametrize("name", ["README.md"] + sorted(f"docs/{name}" for name in os.listdir(os.path.join(ROOT, "docs"))
                                                        if name.endswith(".md")))
def test_links_within_the_documentation_lead_somewhere(name):
    path = os.path.join(ROOT, name)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        file = os.path.join(os.path.dirname(path), file) if file else path
        assert os.path.exists(file), target
        assert not anchor or anchor in anchors(file), target


def test_the_documentation_names_no_setting_that_there_is_not():
    there = settings()
    groups = {name.split(".")[0] for name in there}
    for name in ["README.md"] + [f"docs/{name}" for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md")]:
        for named in re.findall(r"`([a-z_]+\.[a-z_0-9]+)(?:=[^`]*)?`", prose(os.path.join(ROOT, name))):
            assert named in there or named.split(".")[0] not in groups or named.endswith(".c"), (name, named)
