"""Who cannot start says what is wrong, and what to do."""
import os
import socket
import subprocess

import pytest

from server import BINARY

MAP = ["--set", "store.lmdb_map_bytes=4G"]  # sanitizers leave no room for the usual one


def words(*command):
    """The one line on stderr of who refuses to; the log may say more before it."""
    done = subprocess.run([BINARY, *command], capture_output=True, text=True, timeout=30)
    assert done.returncode != 0 and done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("retryd: ")]
    assert len(lines) == 1 and done.stderr.endswith(lines[0] + "\n"), done.stderr
    return lines[0]


def refused(*flags, data):
    return words("serve", "--listen", "127.0.0.1:0", "--data", str(data), *MAP, *flags)


def kafka(tmp_path, properties=None, **settings):
    """Flags for a broker that nobody reaches."""
    given = {"brokers": "127.0.0.1:1", **settings}
    if properties is not None:
        path = tmp_path / "properties"
        path.touch(mode=0o600)
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        given["properties_file"] = path
    return [flag for name, value in given.items() for flag in ("--set", f"kafka.{name}={value}")]


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        said = refused("--listen", f"127.0.0.1:{port}", data=tmp_path / "d")
    assert f"port {port}: Address already in use" in said and "choose another port" in said


@pytest.mark.parametrize("setting", ["auth.tokens_file", "mail.password_file", "delivery.ca_file"])
def test_a_file_that_is_not_there_is_named_with_its_setting(tmp_path, setting):
    said = refused("--set", f"{setting}=/no/such/file", data=tmp_path / "d")
    assert said == f"retryd: {setting}: /no/such/file: No such file or directory"


def test_a_relay_that_is_no_address(tmp_path):
    assert 'smtp://HOST:PORT|smtps://HOST:PORT, not "localhost"' in refused("--set", "mail.relay=localhost",
                                                                           data=tmp_path / "d")


def test_a_setting_that_is_like_no_other(tmp_path):
    assert "`retryd config --explain` lists them all" in refused("--set", "a.b=c", data=tmp_path / "d")


def test_a_folder_within_one_that_is_not_there(tmp_path):
    said = refused(data=tmp_path / "no" / "data")
    assert "cannot make the data folder" in said and "No such file or directory" in said


def test_a_folder_in_use_names_the_process(start_retryd, tmp_path):
    server = start_retryd(store=f"lmdb:{tmp_path}/d")
    assert f"in use by another retryd (process {server.process.pid})" in refused(data=tmp_path / "d")


def test_data_that_is_none(tmp_path):
    folder = tmp_path / "d"
    folder.mkdir(mode=0o700)
    (folder / "data.mdb").write_bytes(b"nothing of retryd's" * 1000)
    assert "restore a backup" in refused(data=folder)


def test_data_that_was_cut_short(start_retryd, tmp_path):
    folder = tmp_path / "d"
    assert start_retryd(store=f"lmdb:{folder}").stop() == 0
    os.truncate(folder / "data.mdb", 8192)  # the two pages that say where everything is; nothing of it
    said = refused(data=folder)
    assert "data.mdb was cut short" in said and "restore a backup" in said


# ---- the same, said beforehand ----------------------------------------------------------------------------------------


SASL = {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "PLAIN"}


@pytest.mark.parametrize("settings, part", [
    ({"prefix": "a b"}, 'kafka.prefix: "a b" cannot begin a topic\'s name'),
    ({"prefix": "x" * 240}, "cannot begin a topic's name"),
    ({"source_topics": "fine,not fine:pay"}, 'kafka.source_topics: "not fine" can be no topic\'s name'),
    ({"source_topics": ",".join(f"t{i}" for i in range(65))}, "kafka.source_topics: more than 64 topics"),
    ({"type_pointer": "type"}, "kafka.type_pointer: a JSON pointer begins with '/'"),
    ({"reason_pointer": "/a~2"}, "kafka.reason_pointer: in a JSON pointer '~' is followed by 0 or 1"),
    ({"key_pointer": "/a" * 100}, "kafka.key_pointer: more than"),
    ({"id_pointer": "id"}, "kafka.id_pointer: "),
    ({"brokers": "me:secret@127.0.0.1:1"}, "name and password belong in kafka.properties_file"),
    ({"properties_file": "/no/such/file"}, "kafka.properties_file: /no/such/file: No such file or directory"),
    ({"properties": {"client.nonsense": 1}}, 'kafka.properties_file, line 1: librdkafka has no property "client.nonsense"'),
    ({"properties": {"linger.ms": "x"}}, 'line 1: librdkafka does not take this value of "linger.ms"'),
    ({"properties": {"acks": 1}}, '"acks" is set by retryd and must not be here'),
    ({"properties": SASL}, "a Kafka producer: sasl.username and sasl.password must be set"),
    ({"properties": {"security.protocol": "ssl", "ssl.ca.location": "/no/such/file"}}, "a Kafka producer: "),
])
def test_check_says_of_kafka_what_a_start_says(tmp_path, settings, part):
    flags = kafka(tmp_path, **settings)
    said = words("config", "--check", *flags)
    assert part in said and "secret" not in said
    assert said == refused(*flags, data=tmp_path / "d")


@pytest.mark.parametrize("flags", [["--set", "auth.tokens_file=/no/such/file"], ["--set", "server.listen=0.0.0.0:0"]])
def test_check_says_of_other_settings_what_a_start_says(tmp_path, flags):
    assert words("config", "--check", *flags) == words("serve", "--data", str(tmp_path / "d"), *flags)


def test_check_reaches_nobody(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as broker:
        flags = kafka(tmp_path, {**SASL, "sasl.username": "me", "sasl.password": "secret"},
                      brokers=f"127.0.0.1:{broker.getsockname()[1]}", source_topics="calls:pay,more")
        done = subprocess.run([BINARY, "config", "--check", "--listen", "0.0.0.0:0", "--insecure", *flags],
                              capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (0, "The configuration is fine.\n", "")
        broker.setblocking(False)
        with pytest.raises(BlockingIOError):
            broker.accept()
    assert list(tmp_path.iterdir()) == [tmp_path / "properties"]
