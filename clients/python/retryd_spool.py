"""The spool of retryd.py: a bounded queue in a folder, shared by any number of processes, also those of the C client,
whose client/spool.h says how it is laid out: lines "CRC32 TEXT" in segments, how far has been sent in "position"."""
import errno
import fcntl
import json
import os
import re
import threading
import time
import zlib
from base64 import b64decode
from contextlib import contextmanager

from retryd import Away, Error, Refused, SpoolFull, _pause

SEGMENT_BYTES, BATCH, BATCH_BYTES, LOOK_AGAIN_S = 1 << 20, 64, 256 << 10, 2.0


def _private(path, flags):
    """Calls may hold secrets: they are for those alone who make them."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


class Spool:
    def __init__(self, folder, bytes_max):
        self._folder, self._bytes_max, self._lock = os.fspath(folder), bytes_max, threading.Lock()
        os.makedirs(self._folder, 0o700, exist_ok=True)
        if os.stat(self._folder).st_uid not in (os.geteuid(), 0):
            raise PermissionError(errno.EPERM, "belongs to another user", self._folder)
        self._fds = {name: _private(self._path(name), os.O_RDWR | os.O_CREAT) for name in ("lock", "sender", "position")}
        self._sync_folder()

    def close(self):
        for fd in self._fds.values():
            os.close(fd)

    def _path(self, name):
        return os.path.join(self._folder, name)

    def _segment(self, number):
        return self._path(f"{number:010}.spool")

    def _sync_folder(self):
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    @contextmanager
    def _locked(self):
        with self._lock:
            fcntl.flock(self._fds["lock"], fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._fds["lock"], fcntl.LOCK_UN)

    def _position(self):
        """(segment, offset) up to which has been sent."""
        text = os.pread(self._fds["position"], 41, 0).decode("ascii", "replace")
        found = re.fullmatch(r"(\d{10} \d{20}) ([0-9a-f]{8})\n", text)
        if not found or int(found[2], 16) != zlib.crc32(found[1].encode()):
            return 0, 0
        segment, offset = found[1].split()
        return int(segment), int(offset)

    def _set_position(self, segment, offset):
        numbers = f"{segment:010} {offset:020}"
        os.pwrite(self._fds["position"], f"{numbers} {zlib.crc32(numbers.encode()):08x}\n".encode(), 0)
        os.fdatasync(self._fds["position"])

    def _files(self):
        """({segment: bytes}, bytes of refused.ndjson)"""
        segments, refused = {}, 0
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if re.fullmatch(r"\d{10}\.spool", entry.name):
                    try:
                        segments[int(entry.name[:10])] = entry.stat().st_size
                    except FileNotFoundError:
                        pass  # sent and deleted meanwhile
                elif entry.name == "refused.ndjson":
                    refused = entry.stat().st_size
        return segments, refused

    def is_empty(self):
        sent, offset = self._position()
        return all(number < sent or (number == sent and size <= offset) for number, size in self._files()[0].items())

    def add(self, text):
        """On disk when it returns."""
        line = b"%08x %s\n" % (zlib.crc32(text), text)
        with self._locked():
            segments, refused = self._files()
            used = sum(segments.values()) + refused
            if used + len(line) > self._bytes_max:
                raise SpoolFull(f"the spool has {used} of at most {self._bytes_max} bytes")
            last, sent = max(segments, default=0), self._position()[0]
            begun = last > 0 and last >= sent and segments[last] < SEGMENT_BYTES
            # Behind the position too: it outlives the segments that it names.
            number = last if begun else max(last, sent) + 1
            with open(self._segment(number), "ab+", buffering=0, opener=_private) as file:
                size = file.seek(0, os.SEEK_END)
                try:
                    if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                        line = b"\n" + line  # a crash cut the last one short
                    if file.write(line) != len(line):
                        raise OSError(f"{file.name}: no room")
                    os.fdatasync(file.fileno())
                except OSError:
                    os.ftruncate(file.fileno(), size)
                    raise
            if not begun:
                self._sync_folder()

    def read(self):
        """(segment, [(text, where the next one begins)]), the oldest; empty if there is nothing."""
        with self._locked():
            while True:
                segments = self._files()[0]
                sent, offset = self._position()
                if not segments:
                    return 0, []
                first = min(segments)
                if first >= sent:
                    lines = self._read_segment(first, offset if first == sent else 0)
                    if lines:
                        return first, lines
                    if first > sent:  # a later segment must not get this one's number
                        self._set_position(first, segments[first])
                os.unlink(self._segment(first))

    def _read_segment(self, number, offset):
        lines, size = [], 0
        with open(self._segment(number), "rb", opener=_private) as file:
            file.seek(offset)
            while len(lines) < BATCH and size < BATCH_BYTES:
                line = file.readline()
                if not line:
                    break
                offset, size = offset + len(line), size + len(line)
                found = re.fullmatch(rb"([0-9a-f]{8}) (.*)\n", line, re.S)
                if found and int(found[1], 16) == zlib.crc32(found[2]):
                    lines.append((found[2], offset))
        return lines

    def done(self, segment, offset):
        with self._locked():
            self._set_position(segment, offset)

    def refuse(self, record):
        with self._locked(), open(self._path("refused.ndjson"), "ab", opener=_private) as file:
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fdatasync(file.fileno())

    @contextmanager
    def leading(self):
        """Sending is for one at a time, of all processes: True for that one."""
        try:
            fcntl.flock(self._fds["sender"], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.flock(self._fds["sender"], fcntl.LOCK_UN)


class Sender:
    """The thread that sends what is in the spool."""

    def __init__(self, client, spool):
        self._client, self._spool = client, spool
        self._news, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wake(self):
        self._news.set()

    def stop(self):
        self._stopping.set()
        self._news.set()
        self._thread.join()

    def _run(self):
        failures = 0
        while not self._stopping.is_set():
            try:
                empty = self._send_all()
            except (Error, OSError) as error:
                if not isinstance(error, Away):
                    self._client._log(f"spool: {error}")
                self._stopping.wait(_pause(failures))
                failures += 1
                continue
            failures = 0
            if empty:
                self._news.wait(LOOK_AGAIN_S)  # others may fill it, and die
                self._news.clear()
            else:
                self._stopping.wait(_pause(0))

    def _send_all(self):
        """False: somebody else sends."""
        if self._spool.is_empty():
            self._client._away = False  # the next one to schedule finds out
            return True
        with self._spool.leading() as leading:
            while leading and not self._stopping.is_set():
                segment, lines = self._spool.read()
                if not lines:
                    return True
                self._send(segment, lines)
        return False

    def _send(self, segment, lines):
        try:
            self._post([json.loads(text) for text, _ in lines])
        except Refused as refusal:
            if refusal.status in (401, 403):  # a token that is wrong may be put right; no event is to blame for it
                raise Away(str(refusal), refusal.status) from refusal
            if len(lines) > 1:
                for line in lines:  # to find out which
                    self._send(segment, [line])
                return
            self._client._log(f"an event of the spool is refused, see refused.ndjson: {refusal}")
            self._spool.refuse({"status": refusal.status, "why": str(refusal), "event": json.loads(lines[0][0])})
        if self._client._away:  # before the spool is empty: whoever sees that it is must find the server back as well
            self._client._away = False
            self._client._log("the server answers again")
        self._spool.done(segment, lines[-1][1])

    def _post(self, events):
        for event in events:
            rested = int(time.time()) - event.pop("spooled_at", 0)
            if "deliver_after" in event:
                event["deliver_after"] = max(0, event["deliver_after"] - max(0, rested))
        if len(events) == 1:  # in the way of its first attempt: what fits into a request then fits now
            self._client._post(events[0], b64decode(events[0]["body_base64"]))
        else:
            self._client.ask("POST", "/v1/events", {"events": events})
