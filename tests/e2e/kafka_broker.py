"""Apache Kafka for the tests: one real node (KRaft), fetched once from Maven Central, on free ports and in a folder that goes
away with it.

    kafka_broker.py fetch          fetches it now and says so loudly where that cannot be done
    kafka_broker.py run COMMAND…   runs COMMAND with a broker's address in RETRYD_TEST_KAFKA
"""
import fcntl
import hashlib
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile

from server import ROOT, die_with_parent, wait_until

POM = os.path.join(ROOT, "tests", "kafka", "pom.xml")
READY = re.compile(r"Kafka Server started")
FETCH_SECONDS = 600
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"  # one node a cluster: they may all have one id
ADDRESS_VARIABLE = "RETRYD_TEST_KAFKA"
NONE_VARIABLE = "RETRYD_TEST_NO_KAFKA"  # set: nobody needs to try
NOT_TESTED = 77  # what meson takes as "skipped"

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/log
num.partitions=4
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=8388608
log.cleaner.backoff.ms=500
"""

LOGGING = """\
log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
"""


class Unreachable(Exception):
    """Kafka is not here and cannot be had."""


def fetch():
    """The folder with Kafka's jars; Maven fetches them if they are not there yet. Raises Unreachable."""
    with open(POM, "rb") as pom:
        version = hashlib.sha256(pom.read()).hexdigest()[:12]
    home = os.path.join(ROOT, "build", "kafka")
    jars = os.path.join(home, version)
    if NONE_VARIABLE in os.environ:
        raise Unreachable(f"{NONE_VARIABLE} is set")
    os.makedirs(home, exist_ok=True)
    with open(os.path.join(home, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may want it at once
        if os.path.isdir(jars):
            return jars
        for tool in ("mvn", "java"):
            if shutil.which(tool) is None:
                raise Unreachable(f"there is no {tool}")
        part = jars + ".part"
        shutil.rmtree(part, ignore_errors=True)
        try:
            done = subprocess.run(["mvn", "-B", "-q", "-f", POM, "dependency:copy-dependencies",
                                   "-DincludeScope=runtime", f"-DoutputDirectory={part}"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=FETCH_SECONDS, preexec_fn=die_with_parent)
        except subprocess.TimeoutExpired:
            raise Unreachable(f"Maven did not get it in {FETCH_SECONDS} s") from None
        if done.returncode != 0:
            raise Unreachable("Maven could not get it:\n" + done.stdout.decode("utf-8", "replace")[-1500:])
        os.rename(part, jars)
    return jars


def free_port():
    """Below the ports that the system gives to clients, so that nobody takes it while the broker restarts."""
    while True:
        port = random.randint(20000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Broker:
    """`address` stays the same over restarts. `more`: lines of its properties file, in place of those that they name."""

    def __init__(self, more=""):
        self.jars = fetch()
        self.folder = tempfile.mkdtemp(prefix="retryd-kafka-")
        self.log_path = os.path.join(self.folder, "kafka.out")
        self.process = None
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.write("log4j.properties", LOGGING)
        properties = (PROPERTIES + more).format(broker=self.port, controller=free_port(), folder=self.folder)
        self.write("server.properties", properties)
        self.java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", os.path.join(self.folder, "server.properties"))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def line(self, *arguments):
        return ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                f"-Dlog4j.configuration=file:{self.folder}/log4j.properties", "-cp", f"{self.jars}/*", *arguments]

    def java(self, *arguments):
        """Runs one of Kafka's own tools; returns what it said."""
        done = subprocess.run(self.line(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120, preexec_fn=die_with_parent)
        said = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0, said[-3000:]
        return said

    def log(self, begin=0):
        with open(self.log_path, "rb") as log:
            log.seek(begin)
            return log.read().decode("utf-8", "replace")

    def start(self):
        begin = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.line("kafka.Kafka", os.path.join(self.folder, "server.properties")),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)

        def ready():
            assert self.process.poll() is None, f"Kafka ended with {self.process.returncode}:\n{self.log(begin)[-4000:]}"
            return READY.search(self.log(begin))

        wait_until(ready, 90, "Kafka to start")
        return self

    def stop(self):
        """In good order."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- what tests say, by an independent client ---------------------------------------------------------------------

    def kcat(self, *arguments, lines=None, timeout=60):
        done = subprocess.run(["kcat", "-b", self.address, "-q", *arguments],
                              input=None if lines is None else "".join(f"{line}\n" for line in lines).encode(),
                              stdin=subprocess.DEVNULL if lines is None else None,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                              preexec_fn=die_with_parent)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-2000:]
        return done.stdout.decode("utf-8", "replace")

    def create(self, topic, partitions=1, **config):
        more = [word for name, value in config.items() for word in ("--config", f"{name.replace('_', '.')}={value}")]
        self.java("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.address, "--create", "--topic", topic,
                  "--partitions", str(partitions), *more)

    def produce(self, topic, lines, key=None, partition=None, **headers):
        """One record a line, all with these headers ('_' stands for '-'); `key`: what ends the key of a line."""
        words = ["-P", "-t", topic]
        if key is not None:
            words += ["-K", key]
        if partition is not None:
            words += ["-p", str(partition)]
        for name, value in headers.items():
            words += ["-H", f"{name.replace('_', '-')}={value}"]
        self.kcat(*words, lines=lines)

    def records(self, topic):
        """Everything that is in it: a list of (partition, offset, key, headers, value)."""
        said = self.kcat("-C", "-t", topic, "-e", "-o", "beginning", "-f", r"%p\x1f%o\x1f%k\x1f%h\x1f%s\x1e")
        found = []
        for record in said.split("\x1e")[:-1]:
            partition, offset, key, headers, value = record.split("\x1f")
            pairs = dict(pair.partition("=")[::2] for pair in headers.split(",") if pair)
            found.append((int(partition), int(offset), key, pairs, value))
        return found


def run(command):
    """With a broker of its own; its exit code, or NOT_TESTED."""
    broker = Broker()
    try:
        broker.start()
        return subprocess.run(command, env={**os.environ, ADDRESS_VARIABLE: broker.address}).returncode
    finally:
        broker.close()


def main(words):
    try:
        if words[:1] == ["run"]:
            return run(words[1:])
        fetch()
        return 0
    except Unreachable as why:
        print("=" * 110, f"Apache Kafka is not here and cannot be fetched, so ALL TESTS WITH KAFKA ARE SKIPPED: {why}",
              "=" * 110, sep="\n", file=sys.stderr)
        return NOT_TESTED if words[:1] == ["run"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
