"""Who cannot start says what is wrong, and what to do."""
import os
import socket
import subprocess

import pytest

from server import BINARY

MAP = ["--set", "store.lmdb_map_bytes=4G"]  # sanitizers leave no room for the usual one


def refused(*flags, data):
    """The one line on stderr of a server that does not start."""
    done = subprocess.run([BINARY, "serve", "--listen", "127.0.0.1:0", "--data", str(data), *MAP, *flags],
                          capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("retryd: "), done.stderr
    return lines[0]


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
