"""The README's tour, played by itself: ./dev demo"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from flaky import Endpoint, paint, tell

MESSAGES = 8
FAILURES_MAX = 6  # the n-th message is refused n - 1 times, at most this often
POLICY = {"retries_with_no_delay": 1, "minimum_delay_retries": 2, "minimum_delay": 1, "maximum_delay": 4,
          "backoff_retries": 4, "retry_backoff_function": "exponential", "maximum_delay_retries": 2}


def say(text):
    tell("\n" + paint("bold", text))


class Server:
    def __init__(self, binary, data, settings=()):
        self.binary, self.data, self.url, self.process = binary, data, None, None
        self.settings = [word for each in ("delivery.allow_networks=loopback", *settings) for word in ("--set", each)]

    def start(self):
        began = time.monotonic()
        self.process = subprocess.Popen(
            [self.binary, "serve", "--listen", "127.0.0.1:0", "--data", self.data, *self.settings],
            stderr=subprocess.PIPE, text=True)
        log = []
        for line in self.process.stderr:
            log.append(line)
            found = re.match(r"retryd: listening on (\S+)", line)
            if found:
                self.url = found.group(1)
                break
        else:
            sys.exit("retryd did not start:\n" + "".join(log))
        # Somebody has to read what it logs, or it would wait for us.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        return time.monotonic() - began

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def call(self, method, path, value=None):
        body = None if value is None else json.dumps(value)
        tell(paint("grey", f"  curl -X {method} $URL{path}" + (f" -d '{body}'" if body and len(body) < 300 else "")))
        request = urllib.request.Request(self.url + path, method=method, data=body.encode() if body else None, headers={
            "Client-ID": "3381af92-2b9e-11e3-b191-71861300734c", "X-Project-ID": "demo", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def text(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read().decode()


def play(server, endpoint):
    say("1. retryd, with an empty data folder, and an endpoint that refuses each message some times first")
    tell(f"  ready after {server.start() * 1000:.0f} ms at {server.url}")

    say("2. A queue, its delivery policy, and a webhook subscription")
    server.call("PUT", "/v2/queues/orders", {"_retry_policy": POLICY})
    server.call("POST", "/v2/queues/orders/subscriptions", {"subscriber": f"http://127.0.0.1:{endpoint.server_port}/hook"})

    say(f"3. {MESSAGES} messages. Each is on disk before its 201; order N is refused N - 1 times")
    endpoint.began = time.monotonic()
    posted = server.call("POST", "/v2/queues/orders/messages",
                         {"messages": [{"body": {"order": n}} for n in range(1, MESSAGES + 1)]})
    time.sleep(2.5)

    say(paint("red", "4. kill -9, in the middle of it"))
    server.kill()
    before = {message: len(attempts) for message, attempts in endpoint.attempts.items()}
    tell(f"  {sum(before.values())} attempts were made, {len(endpoint.delivered)} messages delivered, "
          f"{MESSAGES - len(endpoint.delivered)} are waiting on disk")
    time.sleep(2)

    say("5. Started again on the same data: attempt numbers go on where they were, what is overdue runs at once")
    tell(f"  ready after {server.start() * 1000:.0f} ms")
    end = time.monotonic() + 30
    while len(endpoint.delivered) < MESSAGES and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)
    return len(posted["resources"])


def account(acknowledged, wanted, endpoint):
    delivered = len(endpoint.delivered)
    twice = sum(1 for times in endpoint.delivered.values() if times > 1)
    attempts = sum(len(each) for each in endpoint.attempts.values())
    say("The account")
    tell(f"  acknowledged {acknowledged}   delivered {delivered}   lost {acknowledged - delivered}   "
          f"delivered twice {twice}   attempts {attempts}")
    return acknowledged == delivered == wanted


def main():
    endpoint = Endpoint(0, lambda body: min(body["order"] - 1, FAILURES_MAX))
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="retryd-demo-") as data:
        server = Server(sys.argv[1], data)
        try:
            acknowledged = play(server, endpoint)
        except urllib.error.HTTPError as refused:
            sys.exit(f"retryd answered {refused.code}: {refused.read().decode()}")
        finally:
            server.stop()
        ok = account(acknowledged, MESSAGES, endpoint)
    tell(paint("green", "\nNothing was lost.") if ok else paint("red", "\nSomething is missing."))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
