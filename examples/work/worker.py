#!/usr/bin/env python3
"""A worker on Python's standard library: heartbeats in the background, a new session when one has expired.

    worker.py PROCESS KIND      runs `install` below for each claim; $RETRYD_URL
"""
import json
import os
import sys
import threading
import urllib.error
import urllib.request

URL = os.environ.get("RETRYD_URL", "http://127.0.0.1:8888")


def post(path, body=None):
    """(status, JSON or None)"""
    request = urllib.request.Request(URL + path, json.dumps(body or {}).encode(), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=70) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.loads(refusal.read())


def start_session():
    status, session = post("/v1/sessions", {"component": "worker.py", "interval_s": 10})
    assert status == 201, session
    over = threading.Event()

    def live():
        while not over.wait(3):
            if post(f"/v1/sessions/{session['session']}/heartbeat")[0] == 410:
                over.set()

    threading.Thread(target=live, daemon=True).start()
    return session["session"], over


def install(entity, value):
    """The work. Its return is merged into the entity's value; an exception is a failure, with its words as the cause."""
    if value.get("broken"):
        raise RuntimeError(f"{entity} does not answer")
    return {"installed": True}


def main(process, kind, once=False):
    session, over = start_session()
    while True:
        if over.is_set():
            session, over = start_session()
        status, work = post("/v1/work/claim",
                            {"session": session, "process": process, "kind": kind, "wait_ms": 2000 if once else 60000})
        if status == 410:
            over.set()
        elif status == 204 and once:
            return
        if status != 200:
            continue
        end = {"session": session, "token": work["token"]}
        try:
            patch = install(work["entity"], work["value"])
        except Exception as failure:  # whatever it was: it is tried again later
            post(f"/v1/work/{work['work']}/fail", {**end, "cause": str(failure)})
        else:
            post(f"/v1/work/{work['work']}/finish", {**end, "entity_patch": patch})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], once="--once" in sys.argv)
