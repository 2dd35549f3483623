"""What retryctl makes of its command line, and of the terminal."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

from server import BINARY, ROOT

CTL = os.path.join(os.path.dirname(BINARY), "retryctl")
pytestmark = pytest.mark.skipif(not os.path.exists(CTL), reason="retryctl is not built")


def ctl(*arguments):
    return subprocess.run([CTL, "--url", "http://127.0.0.1:1", *arguments], capture_output=True, text=True, timeout=30)


def mistaken(*arguments):
    done = ctl(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    return done.stderr


def asks(*arguments):
    """It was understood: the server that is not there would have been asked."""
    done = ctl(*arguments)
    return done.returncode == 1 and "cannot reach" in done.stderr


def test_an_option_of_other_commands_is_refused_and_not_ignored():
    said = mistaken("queues", "--queue", "orders")
    assert "takes no --queue" in said and "usage: retryctl queues [--limit N]" in said
    assert "takes no --by" in mistaken("dead", "list", "--by", "reason")
    assert asks("messages", "q", "--limit", "5") and asks("dead", "list", "--queue", "q", "--after", "2h") and asks("dead", "count", "--by", "reason")


def test_both_forms_of_a_value():
    assert asks("queues", "--limit=5") and asks("queues", "--limit", "5")
    assert "--limit wants a whole number, not many" in mistaken("queues", "--limit=many")
    assert "--limit wants a value" in mistaken("queues", "--limit")
    assert "--json takes no value" in mistaken("queues", "--json=1")
    assert "there is no option --limt=5" in mistaken("queues", "--limt=5")


def test_behind_two_dashes_nothing_is_an_option():
    assert asks("post", "q", "--", "-5") and asks("events", "schedule", "t", "--", "-5")
    assert "usage: retryctl entity ENTITY" in mistaken("entity", "--", "a", "--json")
    assert asks("entity", "--", "--json")


def test_a_verb_that_is_none_shows_those_that_there_are():
    for words in (["dead"], ["dead", "lst"]):
        said = mistaken(*words)
        assert "dead redrive ID" in said and "FILTER: --queue" in said and "orders" not in said
    assert "see retryctl --help" in mistaken("qeues")


def test_help_of_one_command_all_of_a_noun_and_everything():
    for words in (["dead", "export", "--help"], ["help", "dead", "export"], ["-h", "dead", "export"]):
        done = ctl(*words)
        assert done.returncode == 0 and "dead export [FILTER]" in done.stdout and "dead list" not in done.stdout
    assert "dead list" in ctl("dead", "--help").stdout and "orders list" not in ctl("dead", "--help").stdout
    assert "orders list" in ctl("--help").stdout and "migrate-store FROM TO" in ctl("migrate-store", "--help").stdout


def test_the_usage_of_what_cannot_be_explained_is_said_once():
    assert mistaken("policy", "explain").count("usage:") == 1
    assert mistaken("backoff", "explain", "{}", "--count", "0").count("usage:") == 1


def test_the_backoff_of_the_guide_is_explained():
    with open(os.path.join(ROOT, "docs", "work.md"), encoding="utf-8") as guide:
        shown = re.search(r"## Backoff\n\n```json\n(.*?)```", guide.read(), re.S).group(1)
    done = ctl("backoff", "explain", "--json", "--count", "14", shown)
    assert json.loads(done.stdout)["intervals_s"] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17]
    assert "half of the interval" in ctl("backoff", "explain", '{"initial_ms": 5000, "jitter": "equal"}').stdout


def test_a_misspelt_key_of_a_policy_is_named():
    done = ctl("policy", "explain", '{"minimum_dely": 1}')
    assert done.returncode == 0 and '"minimum_dely" is no key of a policy' in done.stderr
    assert ctl("policy", "explain", '{"minimum_delay": 1}').stderr == ""


# ---- terminals ------------------------------------------------------------------------------------------------------


def on_terminal(columns, *arguments):
    """The lines that retryctl writes on a terminal of so many columns, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([CTL, *arguments], stdout=theirs, env={**os.environ, "NO_COLOR": "1"}) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # nobody has the other side any more
                break
            if not part:
                break
            said += part
        assert process.wait(30) == 0
    os.close(ours)
    return said.decode().split("\r\n")[:-1]


def test_a_table_goes_on_on_further_lines_where_the_terminal_is_narrow(retryd):
    for queue in ("first", "second"):
        assert retryd.put(f"/v2/queues/{queue}").status_code == 201
    wide = on_terminal(200, "--url", retryd.url, "queues")
    narrow = on_terminal(60, "--url", retryd.url, "queues")
    assert len(wide) == 3 and max(map(len, wide)) > 60 >= max(map(len, narrow))
    assert len(narrow) % len(wide) == 0  # each row takes as many lines as the titles
    assert " ".join(narrow).split() == " ".join(wide).split()
    assert narrow[1].startswith("  ") and not narrow[0].startswith(" ")
