"""What docs/events.md shows, as it stands."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys

import pytest

from events import put_type
from server import ROOT


def blocks(language):
    with open(os.path.join(ROOT, "docs", "events.md"), encoding="utf-8") as page:
        return re.findall(rf"```{language}\n(.*?)```", page.read(), re.S)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_guide_runs_from_top_to_bottom(start_retryd):
    server = start_retryd()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    script = "\n".join(blocks("sh")).replace("http://127.0.0.1:8888", server.url).replace("9000", port)
    script = script.replace("python3 ", f"{sys.executable} ")
    done = subprocess.run(["bash", "-eu", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.stdout, done.stderr)
    said = done.stdout
    assert re.search(r'"retries_with_no_delay":3', said) and re.search(r'\["delivered",\d+,200,0\]', said)
    assert re.search(r'^3$', said, re.M)  # the batch
    for state in ("closed", "open"):
        assert re.search(rf'"state":"{state}"', said)
    assert '{"state":"scheduled"}\n[2,{"to":"x@example.org"}]\n{"state":"done"}' in said
    assert '["exhausted","api1-429",3,"connect"]' in said
    assert '{"count":2,"counted_all":true,"by":{"api1-429":1,"api1-5xx":1}}' in said
    assert '[{"n":1},"connect"]\n[{"n":2},"connect"]' in said
    assert '{"count":1,"counted_all":true,"dry_run":true}' in said


def test_the_type_of_the_guide_is_one(retryd):
    shown, = blocks("json")
    put_type(retryd, "t", **json.loads(shown.replace("whsec_…", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")))
