"""Runs Zaqar's own tests of its v2 API (Debian's python3-zaqar) against a server on PORT, those whose names ONLY matches if it
is given, and prints one JSON object: {"ran": N, "failed": {name: last line of why}}. Its tests call a WSGI application inside the process; here each call is a
real request instead, and each test has projects of its own, since they expect an empty store."""
import http.client
import importlib
import io
import json
import os
import re
import sys
import unittest
import uuid
from unittest import mock
from urllib.parse import quote

os.environ["ZAQAR_TEST_MONGODB"] = "1"  # so that nothing is skipped; no MongoDB is ever spoken to

import testtools                                                        # noqa: E402
from oslo_config import cfg                                             # noqa: E402
from oslo_utils import uuidutils                                        # noqa: E402
from requests.structures import CaseInsensitiveDict                     # noqa: E402
from zaqar.conf import default, drivers_transport_wsgi, notification    # noqa: E402
from zaqar.conf import signed_url, transport                            # noqa: E402
from zaqar.tests.unit.transport.wsgi import base                        # noqa: E402

MODULES = ["auth", "claims", "default_limits", "health", "home", "media_type", "messages", "ping", "purge",
           "queue_lifecycle", "subscriptions", "topic_lifecycle", "urls", "validation"]
PORT = int(sys.argv[1])
ONLY = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")


class Answer:
    """What the tests look at: falcon's StartResponseMock."""

    def __init__(self):
        self.status, self.headers, self.headers_dict = None, [], CaseInsensitiveDict()


def request(self, path, project_id=None, method="GET", headers=None, body=None, query_string="", need_project_id=True, **_):
    headers = dict(self.headers if headers is None else headers)
    if need_project_id:
        headers.setdefault("X-Project-ID", "518b51ea133c4facadae42c328d6b77b" if project_id is None else project_id)
    if headers.get("X-Project-ID"):
        headers["X-Project-ID"] += self.own
    target = quote(path, safe="/%~:@!$&'()*+,;=-._")
    if query_string:
        target += "?" + quote(query_string, safe="%/?:@!$&'()*+,;=-._~")
    data = body.encode() if isinstance(body, str) else body or b""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20)
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value.encode())
    if data:
        connection.putheader("Content-Length", str(len(data)))
    connection.endheaders(data or None)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    self.srmock.status = f"{answer.status} {answer.reason}"
    self.srmock.headers = answer.getheaders()
    self.srmock.headers_dict = CaseInsensitiveDict(answer.getheaders())
    return [text] if text else []


def set_up(self):
    testtools.TestCase.setUp(self)
    self.conf = cfg.ConfigOpts()
    self.conf(args=[], project="zaqar", default_config_files=[])
    for group, options in ((None, default), (transport.GROUP_NAME, transport), (signed_url.GROUP_NAME, signed_url),
                           (notification.GROUP_NAME, notification),
                           (drivers_transport_wsgi.GROUP_NAME, drivers_transport_wsgi)):
        self.conf.register_opts(options.ALL_OPTS, group=group)
    self.transport_cfg = self.conf[transport.GROUP_NAME]
    self.wsgi_cfg = self.conf[drivers_transport_wsgi.GROUP_NAME]
    self.boot = mock.MagicMock()
    defaults = self.boot.transport._defaults
    defaults.claim_ttl, defaults.claim_grace, defaults.message_ttl, defaults.subscription_ttl = 300, 60, 3600, 3600
    self.app = mock.MagicMock()
    self.srmock = Answer()
    self.own = "-" + uuid.uuid4().hex[:8]
    self.headers = {"Client-ID": uuidutils.generate_uuid(), "X-ROLES": "admin", "X-USER-ID": "u", "X-TENANT-ID": "t"}


def main():
    base.TestBase.setUp = set_up
    base.TestBase.tearDown = lambda self: testtools.TestCase.tearDown(self)
    base.TestBase.config = lambda self, group=None, **options: [
        self.conf.set_override(name, value, group) for name, value in options.items()]
    base.TestBase.simulate_request = request
    found = (unittest.defaultTestLoader.loadTestsFromModule(
        importlib.import_module("zaqar.tests.unit.transport.wsgi.v2_0.test_" + name)) for name in MODULES)
    suite = unittest.TestSuite(test for module in found for tests in module for test in tests if ONLY.search(test.id()))
    result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    failed = {test.id().split("v2_0.")[1]: why.strip().splitlines()[-1] for test, why in result.failures + result.errors}
    print(json.dumps({"ran": result.testsRun - len(result.skipped), "failed": failed}))


main()
