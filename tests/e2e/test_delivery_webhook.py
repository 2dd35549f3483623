"""What a webhook looks like on the wire: headers, signature, body, TLS, HTTP/2."""
import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest

from policies import quick, steady
from server import die_with_parent, wait_until


def signatures(request, *secrets):
    """By the text of the Standard Webhooks specification."""
    signed = b".".join([request.headers["webhook-id"].encode(), request.headers["webhook-timestamp"].encode(), request.body])
    return ["v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in secrets]


def test_id_is_stable_and_attempts_are_numbered(retryd, receiver):
    receiver.on("/hook", 500, 500, 200)
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy=steady(1))
    began = int(time.time())
    retryd.send("q", {"n": 1})
    seen = receiver.wait(3)
    assert len({request.headers["webhook-id"] for request in seen}) == 1
    assert [request.headers["webhook-attempt"] for request in seen] == ["1", "2", "3"]
    stamps = [int(request.headers["webhook-timestamp"]) for request in seen]
    assert began <= stamps[0] <= began + 5 and stamps == sorted(stamps) and stamps[2] > stamps[0]
    assert "webhook-signature" not in seen[0].headers
    assert seen[0].headers["content-type"] == "application/json"
    assert "expect" not in seen[0].headers


def test_signature_is_that_of_standard_webhooks(retryd, receiver):
    key = os.urandom(24)
    receiver.on("/hook", 500, 200)
    retryd.subscribe("q", receiver.url("/hook"), secret="whsec_" + base64.b64encode(key).decode(), _retry_policy=steady(1))
    retryd.send("q", {"text": "grüße ☃", "n": [1, 2.5, None, True]})
    for request in receiver.wait(2):
        assert request.headers["webhook-signature"].split(" ") == signatures(request, key)


def test_two_secrets_give_two_signatures(retryd, receiver):
    keys = [os.urandom(32), os.urandom(32)]
    retryd.subscribe("q", receiver.url("/hook"), secret=["whsec_" + base64.b64encode(key).decode() for key in keys])
    retryd.send("q", {"n": 1})
    [request] = receiver.wait(1)
    assert sorted(request.headers["webhook-signature"].split(" ")) == sorted(signatures(request, *keys))


def test_body_is_zaqars_notification(retryd, receiver):
    retryd.subscribe("q", receiver.url("/hook"))
    retryd.send("q", {"x": [1, "ü", {"y": None}]}, ttl=300)
    [request] = receiver.wait(1)
    assert request.json == {"ttl": 300, "body": {"x": [1, "ü", {"y": None}]}, "Message_Type": "Notification", "queue_name": "q"}


@pytest.mark.parametrize("headers, data", [("post_headers", "post_data"), ("_post_headers", "_post_data")])
def test_post_headers_and_post_data(retryd, receiver, headers, data):
    retryd.subscribe("q", receiver.url("/hook"), **{
        headers: {"X-Token": "abc", "Content-Type": "text/x-special"}, data: '{"text": "$zaqar_message$", "more": 1}'})
    retryd.send("q", {"n": 1}, ttl=60)
    [request] = receiver.wait(1)
    assert request.headers["x-token"] == "abc" and request.headers["content-type"] == "text/x-special"
    body = json.loads(request.body)
    assert body["more"] == 1 and body["text"]["body"] == {"n": 1}


def test_connections_are_reused(retryd, receiver):
    retryd.subscribe("q", receiver.url("/hook"))
    for n in range(30):
        retryd.send("q", n)
        receiver.wait(n + 1)
    assert len({request.connection for request in receiver.seen()}) < 10


# ---- TLS ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate authority of our own and a certificate for 127.0.0.1 and localhost by it."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
            "-subj", "/CN=Test CA")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "cert.pem")
    return folder


def tls_context(certificates):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    return context


@pytest.mark.threads
def test_tls_by_a_private_authority(start_retryd, start_receiver, certificates):
    receiver = start_receiver(tls=tls_context(certificates))
    retryd = start_retryd({"delivery.ca_file": certificates / "ca.pem"})
    retryd.subscribe("q", receiver.url("/hook"))
    retryd.send("q", {"n": 1})
    assert receiver.wait(1)[0].message == {"n": 1}


def test_tls_by_an_unknown_authority_is_refused(retryd, start_receiver, certificates):
    receiver = start_receiver(tls=tls_context(certificates))
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy=quick(1))
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    assert job["reason"] == "exhausted"
    assert {event["reason"] for event in retryd.attempts(job["id"])} <= {"tls", "exhausted"}
    assert retryd.attempts(job["id"])[0]["reason"] == "tls"
    assert receiver.seen() == []


def test_tls_for_another_name_is_refused(start_retryd, start_receiver, certificates):
    receiver = start_receiver(tls=tls_context(certificates), host="127.0.0.2")
    retryd = start_retryd({"delivery.ca_file": certificates / "ca.pem"})
    retryd.subscribe("q", receiver.url("/hook"), _retry_policy=quick(1))
    retryd.send("q", {"n": 1})
    [job] = retryd.wait_dead(1)
    assert retryd.attempts(job["id"])[0]["reason"] == "tls"
    assert receiver.seen() == []


def test_http_2_where_the_endpoint_speaks_it(start_retryd, certificates, tmp_path):
    nghttpd = shutil.which("nghttpd", path=os.environ["PATH"] + ":/usr/sbin")
    if not nghttpd:
        pytest.skip("nghttpd is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path / "nghttpd.log"
    with open(log, "wb") as out:
        server = subprocess.Popen([nghttpd, "-v", "--echo-upload", "-a", "127.0.0.1", str(port),
                                   certificates / "key.pem", certificates / "cert.pem"], stdout=out, stderr=out,
                                  preexec_fn=die_with_parent)
    try:
        retryd = start_retryd({"delivery.ca_file": certificates / "ca.pem"})
        retryd.subscribe("q", f"https://localhost:{port}/hook", _retry_policy=steady(1))
        retryd.send("q", {"n": 1})
        wait_until(lambda: retryd.metric("retryd_deliveries_succeeded_total") == 1, what="the delivery")
        server.send_signal(signal.SIGTERM)
        server.wait()
        text = log.read_text(errors="replace")
        assert ":method: POST" in text and "webhook-id:" in text and ":path: /hook" in text
    finally:
        server.kill()
        server.wait()
