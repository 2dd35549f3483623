"""What bash offers behind `retryctl` and `retryd`: all that the programs take, and nothing else."""
import os
import re
import subprocess

import pytest

from server import BINARY, ROOT

CTL = os.path.join(os.path.dirname(BINARY), "retryctl")
EVERYWHERE = {"--url", "--project", "--token", "--json", "--help"}
ASK = """
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"_$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def told(*command, cwd=None):
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd)
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def offered(tmp_path_factory):
    """offered("retryctl dead "): what may follow. As bash cuts it, '=' is a word of its own."""
    pages = {}
    for program in (CTL, BINARY):
        pages[os.path.basename(program)] = page = tmp_path_factory.mktemp("completion") / "page"
        page.write_text(told(f"{ROOT}/tools/completion", program))

    def ask(line, cwd=None):
        words = line.replace("=", " = ").split(" ")
        words = [word for word in words[:-1] if word] + ([words[-1]] if words[-1] or words[-2] != "=" else [])
        return set(told("bash", "--norc", "-c", ASK, "bash", pages[words[0]], *words, cwd=cwd).split())
    return ask


def commands():
    """(words, options) as retryctl's own table has them."""
    with open(f"{ROOT}/cli/main.c", encoding="utf-8") as source:
        table = source.read().split("} COMMANDS[] = {")[1].split("\n};")[0]
    for noun, verb, usage in re.findall(r'\{"([a-z-]+)", (NULL|"[a-z-]+"), \w+,\s+"([^"]*)"', table):
        words = [noun] if verb == "NULL" else [noun, verb.strip('"')]
        assert usage.split()[:len(words)] == words
        options = set(re.findall("--[a-z-]+", usage))
        if "FILTER" in usage:
            options |= {"--queue", "--type", "--reason", "--failure", "--after", "--before", "--text"}
        yield words, options


def test_every_command_and_its_options_are_offered(offered):
    table = list(commands())
    assert len(table) >= 50
    nouns = {words[0] for words, _ in table}
    assert offered("retryctl ") == nouns
    assert offered("retryctl --") == EVERYWHERE | {"--version"}
    for noun in nouns:
        verbs = {words[1] for words, _ in table if words[0] == noun and len(words) == 2}
        assert offered(f"retryctl {noun} ") == verbs, noun
    for words, options in table:
        everywhere = {"--json", "--help"} if words == ["migrate-store"] else EVERYWHERE
        assert offered(f"retryctl {' '.join(words)} --") == options | everywhere, words


def test_every_option_that_retryctl_reads_is_offered_somewhere():
    with open(f"{ROOT}/cli/options.c", encoding="utf-8") as source:
        read = set(re.findall(r'\{"(--[a-z-]+)", ', source.read()))
    assert len(read) > 20
    assert read <= set().union(EVERYWHERE, {"--version"}, *(options for _, options in commands()))


@pytest.mark.parametrize("line, expected", [
    ("retryctl de", {"dead"}),
    ("retryctl --json --limit 5 dead re", {"redrive"}),
    ("retryctl --url=http://h:1 dead re", {"redrive"}),
    ("retryctl job 0123 ", set()),
    ("retryctl queue pause orders --sec", {"--seconds"}),
    ("retryctl dead count --by ", {"reason", "retry_reason", "failure", "queue"}),
    ("retryctl dead count --by=re", {"reason", "retry_reason"}),
    ("retryctl dead count --by=", {"reason", "retry_reason", "failure", "queue"}),
    ("retryctl dead list --queue ", set()),
    ("retryctl plugin check ho", {"host.so"}),
    ("retryctl migrate-store lmdb --config ho", {"host.so"}),
    ("retryd ", {"serve", "config", "migrate-store"}),
    ("retryd --", {"--help", "--version"}),
    ("retryd serve --", {"--listen", "--data", "--store", "--config", "--set", "--insecure", "--help"}),
    ("retryd config --", {"--explain", "--check", "--config", "--set", "--listen", "--insecure", "--help"}),
    ("retryd serve --store ", {"lmdb:", "postgresql://", "kafka://", "plugin:"}),
    ("retryd serve --data ho", {"home"}),
    ("retryd config --check --config ho", {"home", "host.so"}),
    ("retryd config --check --set kafka.br", {"kafka.brokers="}),
    ("retryd serve --set log.level=", {"debug", "info", "warn", "error"}),
    ("retryd serve --set=log.level=w", {"warn"}),
    ("retryd serve --set log.level=warn --ins", {"--insecure"}),
])
def test_what_is_offered_behind_a_line(offered, tmp_path, line, expected):
    (tmp_path / "host.so").touch()
    (tmp_path / "home").mkdir()
    seen = offered(line, cwd=tmp_path)
    assert seen - {"home"} == expected - {"home"} and ("retryctl" in line or seen == expected)


def test_every_setting_is_offered(offered):
    settings, group = set(), ""
    for line in told(BINARY, "config", "--explain").splitlines():
        group = line[1:-1] if line.startswith("[") else group
        if re.match("#[^ ]", line):
            settings.add(f"{group}.{line[1:].split(' ')[0]}=")
    assert len(settings) > 50 and offered("retryd serve --set ") == settings
