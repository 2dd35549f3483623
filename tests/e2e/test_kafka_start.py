"""Kafka as the store, and a start that cannot go on: it says at once what it waits for, and at the end why it could not."""
import itertools
import os
import re
import signal
import socket
import time

import pytest

from kafka_broker import Broker, Unreachable, free_port
from kafka_node import Node, nodes
from server import wait_until

NAMES = itertools.count()
GIVES_UP_S = 30  # a good deal more than a start waits here
SASL = """\
listeners=PLAINTEXT://127.0.0.1:{{broker}},CONTROLLER://127.0.0.1:{{controller}},SASL://127.0.0.1:{sasl}
advertised.listeners=PLAINTEXT://127.0.0.1:{{broker}},SASL://127.0.0.1:{sasl}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_retryd="right-word";
"""


@pytest.fixture(scope="module")
def kafka():
    """With a second listener, `sasl`, that wants to know who asks."""
    port = free_port()
    try:
        broker = Broker(SASL.format(sasl=port))
    except Unreachable as why:
        pytest.skip(f"no Apache Kafka: {why}")
    broker.sasl = f"127.0.0.1:{port}"
    try:
        yield broker.start()
    finally:
        broker.close()


@pytest.fixture
def prefix():
    return f"start{next(NAMES)}"


@pytest.fixture
def begin(kafka, tmp_path, prefix):
    """begin(settings…, brokers=…, properties=…): a process that was started, whether or not it comes to serve."""
    made = []

    def start(brokers=None, properties=None, **settings):
        each = Node(tmp_path, len(made), kafka, prefix, {"kafka.start_seconds": 12, **settings})
        if brokers:
            each.store = f"kafka://{brokers}/{prefix}"
        if properties:
            path = tmp_path / f"properties{len(made)}"
            path.touch(mode=0o600)
            path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
            each.settings["kafka.properties_file"] = path
        made.append(each)
        each.launch()
        return each

    yield start
    for each in made:
        each.kill()


def wait_end(node, timeout=GIVES_UP_S):
    """(exit code, what it said last)"""
    code = node.process.wait(timeout)
    return code, node.log().splitlines()[-1]


def waiting(node):
    """When it said what, since the process began."""
    return [line for line in node.log().splitlines() if "waits for the brokers" in line]


def nobody():
    """An address where nobody listens, for as long as it is held."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    return held, f"127.0.0.1:{held.getsockname()[1]}"


def test_it_says_at_once_and_ever_more_rarely_what_it_waits_for_and_can_be_stopped(begin):
    held, address = nobody()
    with held:
        began = time.monotonic()
        node = begin(address)
        wait_until(lambda: waiting(node), 5, "a word")
        line = waiting(node)[0]
        assert f"the brokers {address}: " in line and "Connection refused" in line
        wait_until(lambda: len(waiting(node)) == 3, 10, "more words")  # after 1, 3 and 7 s
        assert time.monotonic() - began > 6
        node.process.send_signal(signal.SIGTERM)
        code, said = wait_end(node, 5)
        assert code == 1 and "told to stop" in said


def test_a_broker_that_comes_is_enough(kafka, begin):
    kafka.stop()
    try:
        node = begin(**{"kafka.start_seconds": 300})
        wait_until(lambda: waiting(node), 10, "a word")
    finally:
        kafka.start()
    wait_until(lambda: "listening on" in node.log(), 120, "it to serve")
    assert node.stop() == 0


def test_what_was_wrong_is_said_at_once_and_at_the_end(kafka, begin):
    sasl = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "retryd"}
    held, address = nobody()
    with held:
        cases = [(begin(address), "Connection refused"),
                 (begin("no-such-host.invalid:9092"), "resolve"),
                 (begin(kafka.sasl, {**sasl, "sasl.password": "wrong-word"}), "Authentication failed"),
                 (begin(properties={"security.protocol": "ssl"}), "SSL")]
        for node, why in cases:
            wait_until(lambda node=node: waiting(node), 10, "a word")
        wait_until(lambda: all(why in waiting(node)[-1] for node, why in cases), 25,
                   f"the reasons: {[waiting(node)[-1] for node, _ in cases]}")
        for node, why in cases:
            code, said = wait_end(node)
            assert code == 1 and "no answer from the brokers" in said and why in said, said
            assert "-word" not in node.log()  # neither password
    right = begin(kafka.sasl, {**sasl, "sasl.password": "right-word"})
    wait_until(lambda: "listening on" in right.log(), 30, "it to serve")
    assert right.stop() == 0


def test_topics_that_are_missing_are_named(kafka, begin, prefix):
    settings = {"kafka.create_topics": "false"}
    for topic in ("journal", "retry", "dlq", "audit", "circuit.open"):
        code, said = wait_end(begin(**settings), 20)
        assert code == 2 and f"there is no topic {prefix}.{topic}, and kafka.create_topics is false" in said, said
        policy = {"journal": {"retention_ms": -1}, "retry": {"cleanup_policy": "compact"}}.get(topic, {})
        kafka.create(f"{prefix}.{topic}", **policy)
    node = begin(**settings)
    wait_until(lambda: "listening on" in node.log(), 30, "it to serve")
    assert node.stop() == 0


def test_more_replicas_than_brokers_are_refused_in_the_brokers_words(begin, prefix):
    code, said = wait_end(begin(**{"kafka.replication": 3}), 20)
    assert code == 2
    assert f"the topic {prefix}.journal cannot be made with kafka.replication=3: " in said
    assert re.search(r"replication factor.* 3|only 1 broker", said), said


def test_a_journal_that_would_forget_is_refused(kafka, begin, prefix):
    kafka.create(f"{prefix}.journal")
    code, said = wait_end(begin(), 20)
    assert code == 2 and f"the topic {prefix}.journal must have retention.ms=-1, and has 604800000" in said


def test_names_and_passwords_in_the_address_are_refused_and_not_repeated(kafka, begin):
    code, said = wait_end(begin(f"retryd:right-word@{kafka.address}"), 10)
    assert code == 2 and "kafka.properties_file" in said and "right-word" not in said


def test_a_journal_that_is_shorter_than_what_was_read_of_it_is_not_taken_for_an_empty_store(kafka, tmp_path, prefix):
    with nodes(tmp_path, kafka, prefix) as start:
        node = start(0)
        assert node.stop() == 0
        kafka.java("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", kafka.address, "--delete", "--topic",
                   f"{prefix}.journal")
        wait_until(lambda: f"{prefix}.journal" not in kafka.kcat("-L"), 20, "the topic to be gone")
        node.launch()
        code, said = wait_end(node, 20)
        assert code == 1 and f"{prefix}.journal ends at line 0, and has been read to" in said and node.copy in said
        for name in os.listdir(node.copy):
            os.unlink(os.path.join(node.copy, name))
        node.start()
