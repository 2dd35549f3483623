#!/usr/bin/env python3
"""A PostgreSQL of our own in a temporary folder, for tests and benchmarks.

As a program: `postgres.py COMMAND…` runs COMMAND with its address in RETRYD_TEST_POSTGRES, and takes it away again.
"""
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

URL_VARIABLE = "RETRYD_TEST_POSTGRES"
NOT_TESTED = 77  # what meson takes as "skipped"


def programs():
    """Debian keeps them out of the path, a folder for each version."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: float(path.split("/")[4]))
    if folders:
        return folders[-1]
    found = shutil.which("initdb")
    return os.path.dirname(found) if found else None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def database_url(name):
    """Of the server that this program runs under; the database is made if it is not there."""
    there = os.environ[URL_VARIABLE]
    sql = f"SELECT 1 FROM pg_database WHERE datname = '{name}'"
    ask = [os.path.join(programs(), "psql"), "-X", "-q", "-A", "-t", "-d", there, "-c"]
    if not subprocess.run([*ask, sql], check=True, stdout=subprocess.PIPE).stdout.strip():
        subprocess.run([*ask, f"CREATE DATABASE {name}"], check=True)
    parts = urllib.parse.urlsplit(there)
    return parts._replace(path="/" + name).geturl()


class Postgres:
    """Listens on a socket in its folder; with `tcp` also on a free port of 127.0.0.1."""

    def __init__(self, tcp=False, durable=False, settings=()):
        self.bin = programs()
        if self.bin is None:
            raise RuntimeError("no PostgreSQL here: install Debian's package postgresql")
        self.folder = tempfile.mkdtemp(prefix="retryd-pg-")
        self.port = free_port() if tcp else 5432
        self.settings = [f"port={self.port}", f"unix_socket_directories={self.folder}",
                         f"listen_addresses={'127.0.0.1' if tcp else ''}", "max_connections=200",
                         *([] if durable else ["fsync=off"]), *settings]
        self.tcp = tcp
        self.process = None
        os.chmod(self.folder, 0o755)
        if os.geteuid() == 0:  # it refuses to be root
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self._run("initdb", "-D", self.data, "-U", "retryd", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
        self.start()
        self.sql("CREATE DATABASE retryd", database="postgres")

    @property
    def data(self):
        return os.path.join(self.folder, "data")

    def _command(self, program, *arguments):
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        return [*as_postgres, os.path.join(self.bin, program), *arguments]

    def _run(self, program, *arguments):
        subprocess.run(self._command(program, *arguments), check=True, cwd=self.folder, stdout=subprocess.DEVNULL)

    def start(self):
        options = [word for setting in self.settings for word in ("-c", setting)]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(self._command("postgres", "-D", self.data, *options), cwd=self.folder,
                                            stdout=log, stderr=log)
        for _ in range(600):
            if self._ready():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            raise RuntimeError("PostgreSQL does not start:\n" + log.read()[-2000:])

    def _ready(self):
        ask = self._command("pg_isready", "-q", "-h", self.folder, "-p", str(self.port), "-d", "postgres", "-U", "retryd")
        return subprocess.run(ask, check=False, cwd=self.folder).returncode == 0

    def stop(self, how="fast"):
        """how: "fast" in order, "immediate" like a crash."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGQUIT if how == "immediate" else signal.SIGINT)
        self.process.wait(timeout=60)
        self.process = None

    def restart(self, how="fast"):
        self.stop(how)
        self.start()

    def url(self, database="retryd"):
        if self.tcp:
            return f"postgresql://retryd@127.0.0.1:{self.port}/{database}"
        return f"postgresql://retryd@/{database}?host={self.folder}&port={self.port}"

    def sql(self, text, database="retryd"):
        """What psql prints for it, a line a row, columns separated by |."""
        done = subprocess.run(self._command("psql", "-h", self.folder, "-p", str(self.port), "-U", "retryd", "-d", database,
                                            "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text),
                              check=True, cwd=self.folder, stdout=subprocess.PIPE)
        return done.stdout.decode().strip()

    def close(self):
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main(command):
    if programs() is None:
        print("postgres.py: no PostgreSQL here: install Debian's package postgresql", file=sys.stderr)
        return NOT_TESTED
    with Postgres(durable="RETRYD_TEST_POSTGRES_DURABLE" in os.environ) as server:
        return subprocess.run(command, check=False, env={**os.environ, URL_VARIABLE: server.url()}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
