"""A webhook endpoint that fails first: python3 tools/tour/flaky.py [PORT [FAILURES]]

Each message is answered 503 for its first FAILURES attempts (2), then 200. Prints a line for each attempt."""
import http.server
import json
import sys
import threading
import time

COLOURS = {"red": 31, "green": 32, "yellow": 33, "grey": 90, "bold": 1}


def paint(colour, text):
    return f"\033[{COLOURS[colour]}m{text}\033[0m" if sys.stdout.isatty() else text


saying = threading.Lock()


def tell(text):
    """A line, whole, whichever threads have one to say."""
    with saying:
        print(text, flush=True)


class Endpoint(http.server.ThreadingHTTPServer):
    """`failures(body)`: how many attempts of that message fail; `attempts`: for each message id, what arrived when."""
    daemon_threads = True

    def __init__(self, port, failures):
        super().__init__(("127.0.0.1", port), Handler)
        self.failures = failures
        self.attempts = {}
        self.delivered = {}  # message id → how often it was answered 200
        self.lock = threading.Lock()
        self.began = time.monotonic()

    def judge(self, message_id, body):
        """The answer, and the seconds since the attempt before this one (None: the first)."""
        now = time.monotonic()
        with self.lock:
            seen = self.attempts.setdefault(message_id, [])
            status = 503 if len(seen) < self.failures(body) else 200
            waited = now - seen[-1] if seen else None
            seen.append(now)
            if status == 200:
                self.delivered[message_id] = self.delivered.get(message_id, 0) + 1
        return status, waited


def content(data):
    """What a message carries; an event may be anything."""
    try:
        value = json.loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")
    return value["body"] if isinstance(value, dict) and "body" in value else value


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = content(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        status, waited = self.server.judge(self.headers["webhook-id"], body)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
        after = "at once" if waited is None else f"after {waited:4.1f} s"
        tell(f"  {time.monotonic() - self.server.began:6.1f} s  attempt {self.headers['webhook-attempt']:>2} {after:>12}  "
              + paint("green" if status == 200 else "yellow", str(status))
              + f"  {json.dumps(body)}")

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    failures = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    try:
        endpoint = Endpoint(port, lambda _: failures)
    except OSError as error:
        sys.exit(f"flaky.py: cannot listen on port {port}: {error.strerror}")
    tell(f"http://127.0.0.1:{port}/ answers 503 to the first {failures} attempts of each message, then 200")
    try:
        endpoint.serve_forever()
    except KeyboardInterrupt:
        pass
