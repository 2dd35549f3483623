"""What users of PostgreSQL expect: passwords from files, TLS, a pooler, roles, two versions side by side; and the guide's queries."""
import itertools
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess

import pytest

import events
from policies import quick
from postgres import Postgres, free_port
from server import ROOT, die_with_parent, wait_until

pytestmark = pytest.mark.postgres
PASSWORD = "open-sesame"
numbers = itertools.count()


def owned(path):
    """As PostgreSQL wants its keys to be."""
    os.chmod(path, 0o600)
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(path, user.pw_uid, user.pw_gid)


def certificate(folder):
    """(certificate, key) of 127.0.0.1, its own authority."""
    cert, key = folder / "server.crt", folder / "server.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


@pytest.fixture(scope="module")
def guarded():
    """A server with TLS that wants passwords over TCP."""
    with Postgres(tcp=True) as server:
        server.stop()
        with open(os.path.join(server.data, "pg_hba.conf"), "w", encoding="utf-8") as hba:
            hba.write("local all all trust\nhostssl all keeper 127.0.0.1/32 scram-sha-256\n")
        cert, key = certificate(pathlib.Path(server.folder))
        for path in (cert, key):
            owned(path)
        server.certificate = cert
        server.settings += ["ssl=on", f"ssl_cert_file={cert}", f"ssl_key_file={key}"]
        server.start()
        server.sql(f"CREATE ROLE keeper LOGIN PASSWORD '{PASSWORD}'")
        yield server


@pytest.fixture
def home(guarded, request):
    """The address of a database of the test's own, without a password."""
    name = f"{request.node.originalname[-50:]}_{next(numbers)}"
    guarded.sql(f"CREATE DATABASE {name} OWNER keeper", database="postgres")
    return f"postgresql://keeper@127.0.0.1:{guarded.port}/{name}?sslmode=verify-full&sslrootcert={guarded.certificate}"


@pytest.fixture
def password_file(tmp_path, monkeypatch):
    path = tmp_path / "pgpass"
    path.write_text(f"*:*:*:keeper:{PASSWORD}\n", encoding="utf-8")
    path.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(path))


def name_of(address):
    return address.split("?")[0].rsplit("/", 1)[1]


def refused(start_retryd, store, **more):
    """What a server says that does not start."""
    server = start_retryd(store=store, wait=False, name="refused", **more)
    with pytest.raises(AssertionError, match="retryd ended with"):
        server.start()
    server.process = None
    return server.log()


def use(server, receiver):
    server.subscribe("q", receiver.url("/hook"), _retry_policy=quick(1))
    server.send("q", "hello")
    receiver.wait(1, "/hook")


def test_tls_with_a_password_file(start_retryd, receiver, guarded, home, password_file):
    server = start_retryd(store=home)
    use(server, receiver)
    name = name_of(home)
    assert guarded.sql("SELECT DISTINCT ssl FROM pg_stat_ssl s JOIN pg_stat_activity a ON a.pid = s.pid "
                       f"WHERE a.datname = '{name}'") == "t"


def test_a_certificate_that_is_not_trusted_is_refused(start_retryd, guarded, home, password_file, tmp_path):
    other, _ = certificate(tmp_path)
    assert "certificate" in refused(start_retryd, home.replace(str(guarded.certificate), str(other)))


def test_a_service_file_names_the_database(start_retryd, receiver, home, password_file, tmp_path, monkeypatch):
    name = name_of(home)
    host, port = home.split("@")[1].split("/")[0].split(":")
    service = tmp_path / "services"
    service.write_text(f"[retryd]\nhost={host}\nport={port}\nuser=keeper\ndbname={name}\nsslmode=require\n", encoding="utf-8")
    monkeypatch.setenv("PGSERVICEFILE", str(service))
    use(start_retryd(store="postgresql:///?service=retryd"), receiver)


def test_secrets_are_never_shown(start_retryd, guarded, home):
    secret = "do-not-tell"
    wrong = home.replace("keeper@", f"keeper:{secret}@")
    said = refused(start_retryd, wrong)
    assert "password authentication failed" in said and secret not in said
    assert secret not in refused(start_retryd, f"postgresql://keeper:{secret}@127.0.0.1:1/x")
    assert secret not in refused(start_retryd, f"postgresql://keeper:{secret}@[broken/x")
    node = start_retryd(store=home.replace("keeper@", f"keeper:{PASSWORD}@"), settings={"log.level": "debug"})
    guarded.stop("immediate")
    wait_until(lambda: node.get("/readyz").status_code == 503)
    texts = [node.get("/readyz").text, node.put("/v2/queues/x").text, node.get("/metrics").text]
    guarded.start()
    wait_until(lambda: node.get("/readyz").status_code == 200)
    assert node.stop() == 0
    assert PASSWORD not in "".join(texts) + node.log()


def test_a_role_without_the_right_to_make_tables_serves_what_is_there(start_retryd, receiver, guarded, home, password_file):
    assert start_retryd(store=home).stop() == 0
    name = name_of(home)
    for grant in statements("Roles and rights"):
        guarded.sql(grant, database=name)
    guarded.sql(f"REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE node LOGIN PASSWORD '{PASSWORD}' IN ROLE retryd_node",
                database=name)
    hba = os.path.join(guarded.data, "pg_hba.conf")
    with open(hba, "a", encoding="utf-8") as more:
        more.write("hostssl all node 127.0.0.1/32 scram-sha-256\n")
    guarded.sql("SELECT pg_reload_conf()")
    use(start_retryd(store=home.replace("keeper@", f"node:{PASSWORD}@"), name="node"), receiver)


@pytest.mark.parametrize("oldest", [1, 99])
def test_tables_of_a_later_version_are_used_if_they_allow_it(start_retryd, guarded, home, password_file, oldest):
    name = name_of(home)
    assert start_retryd(store=home).stop() == 0
    guarded.sql(f"UPDATE retryd_schema SET version = 99, oldest = {oldest}", database=name)
    if oldest == 1:
        start_retryd(store=home, name="beside").make_queue("q")
        assert guarded.sql("SELECT version FROM retryd_schema", database=name) == "99"
    else:
        assert "the database's tables are of version 99" in refused(start_retryd, home)


def test_a_first_start_that_was_killed_is_made_up_for(start_retryd, guarded, home, password_file):
    """Its table of the version was made, the row that belongs in it was not."""
    guarded.sql("CREATE TABLE retryd_schema (one smallint PRIMARY KEY, version integer NOT NULL, oldest integer NOT NULL, "
                "tag bigint NOT NULL); ALTER TABLE retryd_schema OWNER TO keeper", database=name_of(home))
    start_retryd(store=home).make_queue("q")


# ---- PgBouncer -------------------------------------------------------------------------------------------------------


@pytest.fixture
def pooled(guarded, home, tmp_path):
    """The address of the same database behind a pooler in transaction mode with few sessions."""
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    if not os.path.exists(program):
        pytest.skip("no PgBouncer here")
    name = name_of(home)
    port = free_port()
    folder = tmp_path / "bouncer"
    folder.mkdir()
    (folder / "users").write_text('"retryd" ""\n', encoding="utf-8")
    (folder / "ini").write_text(
        f"[databases]\n{name} = host={guarded.folder} port={guarded.port} user=retryd\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\nauth_file = {folder}/users\npool_mode = transaction\n"
        "default_pool_size = 6\nmax_client_conn = 200\nignore_startup_parameters = extra_float_digits,options\n",
        encoding="utf-8")
    line = [program, str(folder / "ini")]
    if os.geteuid() == 0:  # it refuses to be root
        line = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *line]
        for path in (tmp_path, *tmp_path.parents):
            if path == path.parent:
                break
            os.chmod(path, os.stat(path).st_mode | 0o055)
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(line, stdout=log, stderr=log, preexec_fn=die_with_parent)
    yield f"postgresql://retryd@127.0.0.1:{port}/{name}"
    process.send_signal(signal.SIGINT)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def test_two_nodes_behind_a_pooler_in_transaction_mode(start_retryd, receiver, pooled):
    wait_until(lambda: answers(pooled), what="PgBouncer")
    one, two = (start_retryd(store=pooled, name=name) for name in ("one", "two"))
    use(one, receiver)
    events.put_type(one, "pay")
    ids = {events.schedule(one if i % 2 else two, "pay", b"{}", Order_Key="k") for i in range(20)}
    done = set()
    while len(done) < len(ids):
        for node in (one, two):
            for job in events.claim(node, "pay", limit=5, wait_ms=2000):
                events.end(node, job, "finish")
                done.add(job["id"])
    assert done == ids


def answers(address):
    return subprocess.run(["psql", "-X", "-q", "-c", "SELECT 1", address], capture_output=True).returncode == 0


# ---- the guide -------------------------------------------------------------------------------------------------------


def statements(heading):
    """The SQL of one section of docs/postgresql.md, statement by statement."""
    with open(os.path.join(ROOT, "docs", "postgresql.md"), encoding="utf-8") as page:
        section = page.read().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```sql\n(.*?)```", section, re.S)
    assert blocks
    return [statement for block in blocks for statement in block.split(";\n") if statement.strip()]


def test_the_guides_queries_answer(start_retryd, receiver, guarded, home, password_file):
    server = start_retryd(store=home)
    receiver.on("/hook", 404)
    use(server, receiver)
    server.wait_dead(1)
    name = name_of(home)
    waiting, dead, overdue, nodes, sessions, vacuum = [guarded.sql(each, database=name)
                                                       for each in statements("Looking at it")]
    assert "p/q|1|0|0|" in waiting
    assert "rejected|1|" in dead and dead.startswith("p/q/")
    assert overdue == "" and len(nodes.splitlines()) >= 1 and "127.0.0.1" in sessions and "retryd_jobs|" in vacuum
