"""Failed calls by way of Kafka, played by itself with a real broker: ./dev demo-kafka"""
import os
import sys
import tempfile
import threading
import time
import urllib.error

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "e2e"))

from kafka_broker import Broker                # noqa: E402
from demo import POLICY, Server, account, say  # noqa: E402
from flaky import Endpoint, paint, tell        # noqa: E402

CARDS = 8
MAILS = 3
FAILURES_MAX = 5  # the n-th card is refused n - 1 times, at most this often
PARTITIONS = 4
PATIENCE_S = 60


def show(broker, text):
    tell(paint("grey", "  " + text.replace(broker.address, "$BROKER")))


def produce(broker, kind, values, reason, **headers):
    """As any Kafka client would; one record a value."""
    show(broker, f"echo '{values[0]}' | kcat -P -b {broker.address} -t retryd.intake -H rtd-type={kind} -H rtd-reason={reason}"
         + "".join(f" -H {name.replace('_', '-')}={value}" for name, value in headers.items())
         + (f"   … {len(values)} records" if len(values) > 1 else ""))
    broker.produce("retryd.intake", values, rtd_type=kind, rtd_reason=reason, content_type="application/json", **headers)


def wait_for(truth):
    end = time.monotonic() + PATIENCE_S
    while not truth() and time.monotonic() < end:
        time.sleep(0.1)
    return truth()


def taken(server, what="taken"):
    text = server.text("/metrics")
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if line.startswith(f"retryd_kafka_records_{what}_total"))


def records(broker, topic):
    return [(headers, value) for _, _, _, headers, value in broker.records(topic)]


def cards(first, last):
    return [f'{{"card": {number}, "amount": {number * 5}}}' for number in range(first, last + 1)]


def play(broker, server, endpoint):
    say("1. A real Apache Kafka, and retryd beside it")
    began = time.monotonic()
    broker.start()
    broker.create("retryd.intake", partitions=PARTITIONS)
    broker.create("mail.again")
    tell(f"  Kafka is ready after {time.monotonic() - began:.1f} s at {broker.address}")
    tell(f"  retryd is ready after {server.start() * 1000:.0f} ms at {server.url}")

    say("2. Two kinds of calls that fail: cards are tried again at a webhook, mails go back to a topic of their consumer")
    server.call("PUT", "/v1/event-types/card.transaction",
                {"target": {"url": f"http://127.0.0.1:{endpoint.server_port}/cards"}, "policy": POLICY, "circuit": None})
    server.call("PUT", "/v1/event-types/mail", {"target": {"kafka_topic": "mail.again"}})

    say(f"3. Calls have failed. Whoever made them produces them to retryd.intake; card N is refused N - 1 times more")
    endpoint.began = time.monotonic()
    produce(broker, "card.transaction", cards(1, CARDS - 2), "api1-5xx")
    produce(broker, "mail", [f'"mail {number}"' for number in range(1, MAILS + 1)], "api2-429")
    wait_for(lambda: len(endpoint.attempts) == CARDS - 2)
    time.sleep(1.5)

    say(paint("red", "4. kill -9 of retryd, and a restart of the broker; calls fail meanwhile, too"))
    server.kill()
    broker.stop()
    broker.start()
    produce(broker, "card.transaction", cards(CARDS - 1, CARDS - 1), "api1-serverTimeout")
    for _ in range(2):  # a producer that does not know whether the first one got through
        produce(broker, "card.transaction", cards(CARDS, CARDS), "api1-serverTimeout", rtd_id=f"payment-{CARDS}")

    say("5. retryd again, on the same data: attempts go on where they were, records where they were taken over")
    tell(f"  ready after {server.start() * 1000:.0f} ms")
    wait_for(lambda: len(endpoint.delivered) == CARDS)
    wait_for(lambda: len(records(broker, "mail.again")) >= MAILS)
    tell(f"  one record was known by its id: {taken(server, 'known'):.0f}")

    say("6. What the consumer of mails finds in its topic")
    show(broker, f"kcat -C -b {broker.address} -t mail.again -e -f '%h  %s\\n'")
    for headers, value in records(broker, "mail.again"):
        tell(f"  rtd-type={headers['rtd-type']} rtd-reason={headers['rtd-reason']} rtd-attempt={headers['rtd-attempt']}  {value}")

    say("7. What nobody can make an event of holds nobody up: it is in the dead-letter topic, with the reason")
    produce(broker, "unheard.of", ['{"who": "knows"}'], "api3-5xx")
    wait_for(lambda: taken(server, "refused") == 1)
    for headers, value in records(broker, "retryd.dlq"):
        tell(f"  rtd-refused={headers['rtd-refused']}  rtd-source={headers['rtd-source']}  {value}")


def main():
    endpoint = Endpoint(0, lambda body: min(body["card"] - 1, FAILURES_MAX))
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    broker = Broker()
    try:
        with tempfile.TemporaryDirectory(prefix="retryd-demo-") as data:
            server = Server(sys.argv[1], data, [f"kafka.brokers={broker.address}", "kafka.project=demo"])
            try:
                play(broker, server, endpoint)
                mails = len(records(broker, "mail.again"))
            except urllib.error.HTTPError as refused:
                sys.exit(f"retryd answered {refused.code}: {refused.read().decode()}")
            finally:
                server.stop()
    finally:
        broker.close()
    ok = account(CARDS, CARDS, endpoint) and mails >= MAILS
    tell(paint("green", "\nNothing was lost.") if ok else paint("red", "\nSomething is missing."))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
