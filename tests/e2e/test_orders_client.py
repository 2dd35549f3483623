"""python3-barbicanclient, unmodified, against retryd."""
import time

import pytest

pytest.importorskip("barbicanclient.client")
from barbicanclient import client as barbican  # noqa: E402
from barbicanclient import exceptions  # noqa: E402

from orders import DEMO, put_type, retries, said, wait_active  # noqa: E402
from server import wait_until  # noqa: E402


@pytest.fixture
def server(start_retryd):
    return start_retryd(DEMO)


def connect(server, project="p"):
    return barbican.Client(endpoint=server.url, project_id=project)


@pytest.fixture
def client(server):
    return connect(server)


def finish(client, ref):
    """Polls as a user would."""
    def ended():
        seen = client.orders.get(ref)
        return seen if seen.status != "PENDING" else None
    return wait_until(ended, 20, f"{ref} to end")


def test_a_key_is_made_and_read(client):
    new = client.orders.create_key(name="disk", algorithm="aes", bit_length=256, mode="cbc",
                                   payload_content_type="application/octet-stream")
    ref = new.submit()
    assert new.order_ref == ref
    seen = finish(client, ref)
    assert (seen.status, seen.name, seen.algorithm, seen.bit_length, seen.mode) == ("ACTIVE", "disk", "aes", 256, "cbc")
    assert seen.error_status_code is None and seen.error_reason is None and seen.updated >= seen.created
    secret = client.secrets.get(seen.secret_ref)
    assert len(secret.payload) == 32 and secret.payload == client.secrets.get(seen.secret_ref).payload
    assert (secret.name, secret.algorithm, secret.bit_length, secret.mode) == ("disk", "aes", 256, "cbc")
    assert (secret.secret_type, secret.status) == ("symmetric", "ACTIVE")
    assert secret.content_types == {"default": "application/octet-stream"}
    other = finish(client, client.orders.create_key(name="b", algorithm="aes", bit_length=128).submit())
    assert len(client.secrets.get(other.secret_ref).payload) == 16


def test_a_key_pair_is_made_and_read(client):
    seen = finish(client, client.orders.create_asymmetric(name="pair", algorithm="rsa", bit_length=2048).submit())
    assert seen.status == "ACTIVE", seen.error_reason
    container = client.containers.get(seen.container_ref)
    assert type(container).__name__ == "RSAContainer" and container.name == "pair"
    assert container.public_key.payload.startswith(b"-----BEGIN PUBLIC KEY-----")
    assert container.private_key.payload.startswith(b"-----BEGIN")
    assert (container.public_key.secret_type, container.private_key.secret_type) == ("public", "private")


def test_a_private_key_is_encrypted_with_the_passphrase(client):
    new = client.orders.create_asymmetric(name="pair", algorithm="rsa", bit_length=2048, pass_phrase="sesame")
    seen = finish(client, new.submit())
    container = client.containers.get(seen.container_ref)
    assert container.private_key.payload.startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert container.private_key_passphrase.payload == "sesame"
    assert seen.pass_phrase == "sesame"


def test_a_certificate_comes_by_way_of_a_retry(server, client):
    begin = time.monotonic()
    ref = client.orders.create_certificate(name="web", request_type="custom", subject_dn="cn=example.org").submit()
    task, = wait_until(lambda: [t for t in retries(server, ref.rsplit("/", 1)[1]) if t["retry_count"] == 1])
    assert task["retry_task"] == "check_certificate_status"
    assert server.get(ref[len(server.url):]).json()["sub_status"] == "cert_request_pending"
    seen = finish(client, ref)
    assert seen.status == "ACTIVE" and time.monotonic() - begin >= 1
    assert type(client.containers.get(seen.container_ref)).__name__ == "CertificateContainer"
    assert server.get(ref[len(server.url):]).json()["sub_status"] == "cert_generated"


def test_what_a_plugin_refuses_is_an_error_later(client):
    seen = finish(client, client.orders.create_key(name="x", algorithm="rot13", bit_length=256).submit())
    assert seen.status == "ERROR" and seen.error_status_code == "400" and seen.error_reason
    assert seen.secret_ref is None


def test_orders_are_listed_counted_and_deleted(client):
    refs = [client.orders.create_key(name=f"k{i}", algorithm="aes", bit_length=128).submit() for i in range(12)]
    assert client.orders.total() == 12
    assert [o.order_ref for o in client.orders.list()] == refs[:10]
    assert [o.name for o in client.orders.list(limit=5, offset=9)] == ["k9", "k10", "k11"]
    assert client.orders.list(limit=5, offset=100) == []
    client.orders.delete(refs[3])
    client.orders.get(refs[4]).delete()
    assert client.orders.total() == 10
    assert [o.order_ref for o in client.orders.list(limit=100)] == refs[:3] + refs[5:]
    with pytest.raises(exceptions.HTTPClientError) as found:
        client.orders.get(refs[3])
    assert found.value.status_code == 404 and "Order not found." in str(found.value)


def test_a_deleted_order_takes_its_secret_along(client):
    ref = client.orders.create_key(name="k", algorithm="aes", bit_length=128).submit()
    secret = finish(client, ref).secret_ref
    client.orders.delete(ref)
    with pytest.raises(exceptions.HTTPClientError) as found:
        client.secrets.get(secret).payload
    assert found.value.status_code == 404


def test_errors_are_read_by_the_client(client):
    with pytest.raises(exceptions.HTTPClientError) as found:
        client.orders.create_key(name="k", algorithm="aes", bit_length=7).submit()
    assert found.value.status_code == 400 and "multiple of 8" in str(found.value)
    with pytest.raises(exceptions.HTTPClientError):
        client.orders.create_key(name="k", bit_length=8).submit()


def test_projects_see_their_own(server, client):
    ref = client.orders.create_key(name="k", algorithm="aes", bit_length=128).submit()
    secret = finish(client, ref).secret_ref
    other = connect(server, "q")
    assert other.orders.total() == 0 and other.orders.list() == []
    for call in (lambda: other.orders.get(ref), lambda: other.secrets.get(secret).payload):
        with pytest.raises(exceptions.HTTPClientError) as found:
            call()
        assert found.value.status_code == 404


def test_payloads_come_as_what_they_are(server, client):
    secret = finish(client, client.orders.create_key(algorithm="aes", bit_length=128).submit()).secret_ref
    path = secret[len(server.url):] + "/payload"
    for accept, status in ((None, 200), ("application/octet-stream", 200), ("application/*", 200), ("*/*", 200),
                           ("text/plain, application/octet-stream;q=0.5", 200), ("text/plain", 406), ("text/*", 406)):
        answer = server.get(path, headers={"Accept": accept})
        assert answer.status_code == status, accept
        if status == 200:
            assert len(answer.content) == 16 and answer.headers["Content-Type"] == "application/octet-stream"
            assert answer.headers["Cache-Control"] == "no-store"
        else:
            assert answer.json()["code"] == 406


def test_orders_wait_for_a_worker_that_was_stopped(retryd, start_receiver):
    client, worker = connect(retryd), start_receiver()
    worker.close()
    for kind in ("key", "certificate"):
        put_type(retryd, kind, target={"url": worker.url(f"/{kind}")},
                 backoff={"initial_ms": 1000, "maximum_ms": 1000, "exponent": 1})
    made = [client.orders.create_key(algorithm="aes", bit_length=128).submit(),
            client.orders.create_certificate(subject_dn="cn=a").submit()]
    for ref in made:
        wait_until(lambda: [t for t in retries(retryd, ref.rsplit("/", 1)[1]) if t["failures"] > 0])
    assert [o.status for o in client.orders.list()] == ["PENDING", "PENDING"]
    back = start_receiver(port=worker.port)
    back.on("/key", said("done", secret={"payload": "made by hand", "content_type": "text/plain"}))
    back.on("/certificate", said("failed", code=403, reason="The authority refuses."))
    assert client.secrets.get(finish(client, made[0]).secret_ref).payload == "made by hand"
    failed = finish(client, made[1])
    assert (failed.status, failed.error_status_code, failed.error_reason) == ("ERROR", "403", "The authority refuses.")


def test_orders_outlive_the_server(start_retryd):
    server = start_retryd({**DEMO, "simple_certificate.delay_before_update_seconds": "2"})
    client = connect(server)
    made = client.orders.create_certificate(name="c", subject_dn="cn=a").submit().rsplit("/", 1)[1]
    key = finish(client, client.orders.create_key(algorithm="aes", bit_length=128).submit())
    payload = client.secrets.get(key.secret_ref).payload
    server.kill()
    server.start()
    client = connect(server)
    assert client.secrets.get(key.secret_ref).payload == payload
    assert wait_active(server, made)["container_ref"]
