"""Client of retryd: durable retries of failed calls, and worker fleets. Standard library only; one file, and beside it
retryd_spool.py for those who want a spool on disk.

    client = retryd.Client("http://127.0.0.1:8888", spool="/var/spool/shop")

    @client.retryable("card.transaction")
    def charge(request):                # any JSON value, str or bytes
        ...                             # whatever it raises is a failure

    charge({"card": 7})                 # now; if it fails it is scheduled, and a Receipt returned
    charge.schedule({"card": 7})        # not now
    client.start()                      # threads that run what was scheduled, here or in any other process

A Client may be used by any number of threads. docs/clients.md says more.
"""
import collections
import contextlib
import functools
import http.client
import json
import os
import random
import secrets
import socket
import threading
import time
import urllib.parse
from base64 import b64decode, b64encode

__all__ = ["Client", "Receipt", "Failure", "GiveUp", "Error", "Away", "Refused", "Stale", "SpoolFull", "current"]
__version__ = "0.1.0"

Receipt = collections.namedtuple("Receipt", "id key spooled")
Receipt.__doc__ = "id: of the job, None while in the spool. key: its idempotency key. spooled: on this machine's disk."


class Error(Exception):
    """status: what the server answered with, if it did."""

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class Away(Error):
    """No answer, or one that says "later", until the time was over."""


class Refused(Error):
    """The server will not have it; the message has its words."""


class Stale(Refused):
    """What one held is no longer one's own: lease over, session expired, work ended."""


class SpoolFull(Error):
    """The server is away and the spool has no room."""


class Failure(Exception):
    """What a call may raise to say more than that it failed: a reason that can be counted, words, seconds to wait at least."""

    def __init__(self, reason, details="", not_before_s=0):
        super().__init__(f"{reason}: {details}" if details else reason)
        self.reason, self.not_before_s = reason, not_before_s


class GiveUp(Failure):
    """Trying again is of no use: it becomes a dead letter at once."""


# One run of a call. attempt: 0 when called directly, 1, 2, … by a worker. lost(): another worker may have it by now.
Call = collections.namedtuple("Call", "type id attempt reason order_key lost")
_running = threading.local()


def current():
    """The Call that this thread runs, or None."""
    return getattr(_running, "call", None)


def _pause(n):
    """The n-th pause of a series: 100 ms doubling to 10 s, the upper half of it by chance."""
    return min(10.0, 0.1 * 2 ** min(n, 7)) * random.uniform(0.5, 1)


def _encode(body):
    if isinstance(body, (bytes, bytearray)):
        return bytes(body), "application/octet-stream"
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return json.dumps(body).encode(), "application/json"


def _decode(job):
    if "body_base64" in job:
        return b64decode(job["body_base64"])
    return job.get("body")


class Client:
    """spool: a folder for what the server does not take; may be shared with other processes, also those of the C client."""

    def __init__(self, url, project=None, token=None, timeout=10.0, spool=None, spool_bytes_max=64 << 20, log=None):
        self._url, self._timeout = urllib.parse.urlsplit(url), timeout
        self._headers = {name: value for name, value in (("X-Project-ID", project), ("X-Auth-Token", token)) if value}
        self._log = log or (lambda message: None)
        self._local = threading.local()
        self._callbacks, self._threads, self._stopping = {}, [], threading.Event()
        self._away = False  # the server did not answer: events go to the spool until the sender gets through
        self._spool = self._sender = None
        if spool:
            import retryd_spool
            self._spool = retryd_spool.Spool(spool, spool_bytes_max)
            self._sender = retryd_spool.Sender(self, self._spool)
        self._keeper = _Keeper(self)

    def close(self):
        """What is in the spool stays there for whoever opens it next."""
        self.stop()
        self._keeper.stop()
        if self._sender:
            self._sender.stop()
            self._spool.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- requests -----------------------------------------------------------------------------------------------------

    def _connection(self, timeout):
        """(connection, has it been used before?) of this thread."""
        link = getattr(self._local, "link", None)
        if link is not None:
            link.timeout = timeout
            link.sock.settimeout(timeout)
            return link, True
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        return kind(self._url.netloc, timeout=timeout), False

    def _once(self, method, path, body, headers, timeout):
        while True:
            link, used = self._connection(timeout)
            try:
                link.request(method, self._url.path.rstrip("/") + path, body, {**self._headers, **headers})
                answer = link.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self._local.link = None
                link.close()
                # The server may have closed a connection that nobody used for a while.
                if used and isinstance(error, (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)):
                    continue
                raise Away(f"no answer from {self._url.netloc}: {error}") from error
            self._local.link = None if answer.will_close else link
            return answer.status, text

    def _request(self, method, path, body=None, headers=None, timeout=None, until=0.0):
        """(status, bytes) of a 2xx. Asked again with growing pauses while the server is away and `until` is not over."""
        for n in range(1 << 30):
            try:
                status, text = self._once(method, path, body, headers or {}, timeout or self._timeout)
                if 200 <= status < 300:
                    return status, text
                words = _words(text)
                message = f"the server answered {status}" + (f": {words}" if words else "")
                if status not in (408, 429) and status < 500:
                    raise (Stale if status in (409, 410) else Refused)(message, status)
                raise Away(message, status)
            except Away:
                pause = _pause(n)
                if time.monotonic() + pause >= (until() if callable(until) else until):
                    raise
                time.sleep(pause)

    def ask(self, method, path, body=None, **more):
        """One request of any kind; `body` is sent as JSON. Returns the JSON of the answer, None if it is empty."""
        headers = {"Content-Type": "application/json", **more.pop("headers", {})}
        text = self._request(method, path, None if body is None else json.dumps(body).encode(), headers, **more)[1]
        return json.loads(text) if text else None

    # ---- scheduling ---------------------------------------------------------------------------------------------------

    def schedule(self, type, body, *, key=None, reason=None, order_key=None, deliver_after=0, content_type=None):
        """Hands an event over; returns a Receipt once it is on the server's disk, or on this machine's (the spool)."""
        key = key or secrets.token_hex(16)
        payload, usual_type = _encode(body)
        event = {"type": type, "idempotency_key": key, "content_type": content_type or usual_type}
        event.update({name: value for name, value in (("reason", reason), ("order_key", order_key),
                                                      ("deliver_after", deliver_after)) if value})
        # What has an order key must not overtake what waits.
        waits = self._spool and (self._away or (order_key and not self._spool.is_empty()))
        if not waits:
            try:
                return self._post(event, payload)
            except Away as error:
                if not self._spool:
                    raise
                if not self._away:
                    self._log(f"{error}; events go to the spool")
                self._away = True
        if deliver_after:
            event["spooled_at"] = int(time.time())
        try:
            self._spool.add(json.dumps({**event, "body_base64": b64encode(payload).decode()}).encode())
        finally:
            self._sender.wake()  # also where nothing was added: it finds out whether the server is back
        return Receipt(None, key, True)

    def _post(self, event, payload):
        headers = {"Idempotency-Key": event["idempotency_key"], "Content-Type": event["content_type"]}
        for name, header in (("reason", "Retry-Reason"), ("order_key", "Order-Key"), ("deliver_after", "Deliver-After")):
            if name in event:
                headers[header] = str(event[name]).encode()
        until = 0 if self._spool else time.monotonic() + self._timeout
        path = "/v1/events/" + urllib.parse.quote(event["type"], safe="")
        answer = json.loads(self._request("POST", path, payload, headers, until=until)[1])
        return Receipt(answer["id"], event["idempotency_key"], False)

    def flush(self, timeout):
        """Waits until the spool is empty; False: it is not."""
        end = time.monotonic() + timeout
        while self._spool and not self._spool.is_empty():
            if time.monotonic() >= end:
                return False
            self._sender.wake()
            time.sleep(0.01)
        return True

    # ---- calls that are tried again -----------------------------------------------------------------------------------

    def retryable(self, type, **options):
        """Decorates a function of one argument. `options`: those of schedule, for what fails."""
        def decorate(function):
            if type in self._callbacks:
                raise ValueError(f"'{type}' is registered already")
            self._callbacks[type] = function

            @functools.wraps(function)
            def call(body):
                try:
                    with _as_current(Call(type, None, 0, None, None, lambda: False)):
                        return function(body)
                except GiveUp:
                    raise
                except Exception as error:
                    said = {"reason": _reason(error), "deliver_after": getattr(error, "not_before_s", 0), **options}
                    return self.schedule(type, body, **said)

            call.schedule = lambda body, **more: self.schedule(type, body, **{**options, **more})
            call.now = function
            return call
        return decorate

    def start(self, *types, threads=1, lease_s=30, wait_ms=5000):
        """Starts so many threads a type (without any: all that are registered) that run what was scheduled."""
        self._stopping.clear()
        for type in types or list(self._callbacks):
            for _ in range(threads):
                thread = threading.Thread(target=self._work, args=(type, self._callbacks[type], lease_s, wait_ms), daemon=True)
                thread.start()
                self._threads.append(thread)

    def stop(self):
        """Waits for the calls and claims under way."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _work(self, type, function, lease_s, wait_ms):
        name, failures = f"{socket.gethostname()}-{os.getpid()}", 0
        path = "/v1/event-types/" + urllib.parse.quote(type, safe="") + "/claim"
        claim = {"worker": name, "limit": 1, "lease_s": lease_s, "wait_ms": wait_ms}
        while not self._stopping.is_set():
            since = time.monotonic()
            try:
                claimed = self.ask("POST", path, claim, timeout=self._timeout + wait_ms / 1000)
                failures = 0
            except Error as error:
                self._log(f"{path}: {error}")
                self._stopping.wait(_pause(failures))
                failures += 1
                continue
            for job in claimed["jobs"] if claimed else ():
                self._run_job(function, job, since, lease_s)

    def _run_job(self, function, job, since, lease_s):
        path, token = "/v1/jobs/" + job["id"], {"token": job["token"]}
        beat = self._keeper.add(path + "/extend", {**token, "lease_s": lease_s}, since, lease_s)
        if self._stopping.is_set():
            verb, said = "release", {}
        else:
            try:
                with _as_current(Call(job["type"], job["id"], job["attempt"], job["reason"], job["order_key"], beat.lost)):
                    function(_decode(job))
                verb, said = "finish", {}
            except Exception as error:
                verb, said = "fail", {"error": f"{_reason(error)}: {error}" if str(error) else _reason(error),
                                      "give_up": isinstance(error, GiveUp)}
                if getattr(error, "not_before_s", 0):
                    said["retry_after_s"] = error.not_before_s
        # No more extensions from here on: they could arrive behind the end, and be taken for a loss.
        beat.stopped = True
        try:
            self.ask("POST", f"{path}/{verb}", {**token, **said}, until=lambda: beat.good_until)
        except Error as error:
            self._log(f"{path}: {error}")

    # ---- work in a fleet ----------------------------------------------------------------------------------------------

    def session(self, component="", runtime=None, interval_s=5):
        """A Session of a worker fleet, with heartbeats in the background; see docs/work.md."""
        return Session(self, component, runtime or f"{socket.gethostname()}-{os.getpid()}", interval_s)


class Session:
    """Alive as long as this process; one that has expired is replaced by a new one at the next claim."""

    def __init__(self, client, component, runtime, interval_s):
        self._client, self._interval_s, self._lock = client, interval_s, threading.Lock()
        self._opening = {"component": component, "runtime": runtime, "interval_s": interval_s}
        self._id = self._beat = None
        self._living()

    def _living(self):
        with self._lock:
            if self._beat is None or self._beat.lost():
                since = time.monotonic()
                self._id = self._client.ask("POST", "/v1/sessions", self._opening, until=since + self._client._timeout)["session"]
                self._beat = self._client._keeper.add(f"/v1/sessions/{self._id}/heartbeat", {}, since, self._interval_s)
            return self._id, self._beat

    def claim(self, process, *, kind=None, candidates=None, strict=False, ignore_backoff=False, wait_ms=0):
        """A Work, or None if there is nothing to do."""
        what = {"kind": kind} if kind is not None else {"candidates": list(candidates)}
        timeout = self._client._timeout + wait_ms / 1000
        for _ in range(3):
            session, beat = self._living()
            try:
                got = self._client.ask("POST", "/v1/work/claim",
                                       {"session": session, "process": process, "strict": strict,
                                        "ignore_backoff": ignore_backoff, "wait_ms": wait_ms, **what},
                                       headers={"Idempotency-Key": secrets.token_hex(16)},
                                       timeout=timeout, until=time.monotonic() + timeout)
                return Work(self._client, beat, got) if got else None
            except Stale as stale:
                if stale.status == 409:  # strict, and somebody else has it
                    return None
                beat.over = True
        raise Stale("sessions expire as soon as they begin", 410)

    def close(self):
        self._beat.stopped = True
        with contextlib.suppress(Error):
            self._client.ask("DELETE", f"/v1/sessions/{self._id}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Work:
    """Held work: id, entity, process, value, previous_interval_s. As a context manager it is finished at the end of the
    block with `patch`, and failed if the block raises an exception (which goes no further)."""

    def __init__(self, client, beat, got):
        self._client, self._beat = client, beat
        self._holder = {"session": got["session"], "token": got["token"]}
        self.id, self.entity, self.process, self.value = got["work"], got["entity"], got["process"], got["value"]
        self.previous_interval_s, self.patch = got["previous_interval_s"], None

    def _end(self, verb, **said):
        return self._client.ask("POST", f"/v1/work/{self.id}/{verb}", {**self._holder, **said},
                                until=lambda: self._beat.good_until)

    def lost(self):
        """Another may have it by now."""
        return self._beat.lost()

    def finish(self, patch=None):
        return self._end("finish", **({} if patch is None else {"entity_patch": patch}))

    def fail(self, cause, **backoff):
        """backoff=…: instead of the process's own; None is no descriptor."""
        return self._end("fail", cause=str(cause), **backoff)

    def cancel(self):
        return self._end("cancel")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if error is None:
            self.finish(self.patch)
        elif isinstance(error, Exception):
            self.fail(f"{_reason(error)}: {error}")
        else:
            self.cancel()  # interrupted
        return isinstance(error, Exception)


# ---- below the surface ------------------------------------------------------------------------------------------------


def _words(text):
    try:
        problem = json.loads(text)
        return problem.get("detail") or problem.get("title")
    except (ValueError, AttributeError):
        return None


def _reason(error):
    return getattr(error, "reason", None) or type(error).__name__


@contextlib.contextmanager
def _as_current(call):
    before, _running.call = current(), call
    try:
        yield
    finally:
        _running.call = before


class _Beat:
    """A sign of life that is sent again and again: a heartbeat, the extension of a lease."""

    def __init__(self, path, body, asked, life):
        # The life began between the question and now, far apart after a long poll: hoped for the later, renewed as for the earlier.
        self.path, self.body, self.life = path, body, life
        self.due, self.good_until = asked + life / 3, time.monotonic() + life
        self.over = self.stopped = False

    def lost(self):
        return self.over or time.monotonic() >= self.good_until


class _Keeper:
    """One thread that sends the beats of a client."""

    def __init__(self, client):
        self._client, self._beats, self._changed, self._thread = client, [], threading.Condition(), None

    def add(self, path, body, asked, life):
        beat = _Beat(path, body, asked, life)
        with self._changed:
            self._beats.append(beat)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
            self._changed.notify()
        return beat

    def stop(self):
        with self._changed:
            self._beats = None
            self._changed.notify()
        if self._thread:
            self._thread.join()

    def _run(self):
        while True:
            with self._changed:
                if self._beats is None:
                    return
                self._beats = [beat for beat in self._beats if not beat.stopped and not beat.lost()]
                beat = min(self._beats, key=lambda beat: beat.due, default=None)
                wait = None if beat is None else beat.due - time.monotonic()
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
            self._send(beat)

    def _send(self, beat):
        asked = time.monotonic()
        try:
            self._client.ask("POST", beat.path, beat.body, timeout=min(3, beat.life / 3))
            beat.good_until, beat.due = asked + beat.life, asked + beat.life / 3
        except (Stale, Refused) as error:
            beat.over = True
            if not beat.stopped:
                self._client._log(f"{beat.path}: lost: {error}")
        except Away:
            beat.due = time.monotonic() + beat.life / 12
