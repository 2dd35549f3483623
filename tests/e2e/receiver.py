"""A webhook endpoint that does as it is told, well or badly, and remembers every request."""
import json
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass, field

from server import wait_until


@dataclass
class Request:
    at: float  # time.time() when it had come in whole
    method: str
    path: str
    headers: dict  # names in lower case
    body: bytes
    connection: int  # number of the connection that brought it

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self):
        """The body that the client posted."""
        return self.json["body"]


@dataclass
class Answer:
    status: int = 200
    headers: dict = field(default_factory=dict)
    body: bytes = b""
    delay: float = 0.0


# Besides statuses and Answers, a behaviour may be one of these words.
HANG = "hang"          # reads the request and never answers
RESET = "reset"        # resets the connection instead of answering
CLOSE = "close"        # closes it without a word
EARLY = "early"        # promises a body and closes in the middle of it
GARBAGE = "garbage"    # answers something that is no HTTP


class Receiver:
    """`on(path, behaviour…)`: the n-th request to the path meets the n-th behaviour, the last one stays."""

    def __init__(self, tls=None, host="127.0.0.1", port=0):
        self.requests = []
        self.lock = threading.Lock()
        self.scripts = {}
        self.default = [200]
        self.hung = threading.Event()  # set at the end: lets go of those who hang
        self.tls = tls
        self.connections = 0
        self.open = set()
        self.listener = socket.create_server((host, port), backlog=1024)
        self.host, self.port = self.listener.getsockname()[:2]
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, path="/", host=None):
        return f"{'https' if self.tls else 'http'}://{host or self.host}:{self.port}{path}"

    def on(self, path, *behaviours):
        with self.lock:
            self.scripts[path] = list(behaviours)

    def always(self, *behaviours):
        with self.lock:
            self.default = list(behaviours)

    def seen(self, path=None):
        with self.lock:
            return [r for r in self.requests if path is None or r.path == path]

    def wait(self, count, path=None, timeout=30.0):
        """Waits for at least `count` requests and returns all there are."""
        def enough():
            return len(self.seen(path)) >= count
        try:
            wait_until(enough, timeout)
        except AssertionError:
            raise AssertionError(f"{len(self.seen(path))} of {count} requests to {path} after {timeout} s") from None
        return self.seen(path)

    def close(self):
        self.hung.set()
        # shutdown first: close alone does not wake the thread that waits in accept.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            for connection in self.open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    # ---- threads ----------------------------------------------------------------------------------------------------

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection, self.connections), daemon=True).start()

    def serve(self, connection, number):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with self.lock:
                self.open.add(connection)
            stream = connection.makefile("rb")
            while True:
                request = self.read(stream, number)
                if request is None or not self.answer(connection, self.choose(request)):
                    break
        except (OSError, ssl.SSLError, ValueError):
            pass
        finally:
            with self.lock:
                self.open.discard(connection)
            connection.close()

    def read(self, stream, number):
        line = stream.readline(65536)
        if not line:
            return None
        method, path, _ = line.decode("latin-1").split(" ", 2)
        headers = {}
        while True:
            line = stream.readline(65536).decode("latin-1").rstrip("\r\n")
            if not line:
                break
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", 0)))
        return Request(time.time(), method, path, headers, body, number)

    def choose(self, request):
        with self.lock:
            script = self.scripts.get(request.path, self.default)
            behaviour = script[0]
            if len(script) > 1:
                script.pop(0)
        if callable(behaviour):
            behaviour = behaviour(request)
        with self.lock:
            self.requests.append(request)
        return behaviour

    def answer(self, connection, behaviour):
        """False: the connection is over."""
        if behaviour == HANG:
            self.hung.wait()
            return False
        if behaviour == RESET:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if behaviour == CLOSE:
            return False
        if behaviour == EARLY:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of")
            return False
        if behaviour == GARBAGE:
            connection.sendall(b"\x00\x17 this is not the protocol you are looking for\r\n\r\n")
            return False
        if isinstance(behaviour, int):
            behaviour = Answer(behaviour)
        if behaviour.delay:
            self.hung.wait(behaviour.delay)
        head = f"HTTP/1.1 {behaviour.status} Scripted\r\n"
        headers = dict(behaviour.headers)
        if behaviour.status >= 200 and behaviour.status != 204:
            headers.setdefault("Content-Length", str(len(behaviour.body)))
        for name, value in headers.items():
            head += f"{name}: {value}\r\n"
        connection.sendall(head.encode("latin-1") + b"\r\n" + behaviour.body)
        return headers.get("Connection") != "close"
