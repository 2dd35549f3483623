"""Runs Zaqar's functional tests (Debian's python3-zaqar) against a server on PORT, and prints one JSON object:
{"ran": N, "failed": {name: last line of why}}. Those of subscriptions are v2's; those of queues, messages and claims are
v1.1's, which Zaqar holds v2 to nowhere else: here their requests go to /v2. Each test has a project of its own."""
import importlib
import io
import json
import os
import sys
import tempfile
import unittest
import uuid
from unittest import mock

import requests
import testtools
from oslo_config import cfg

HERE = tempfile.TemporaryDirectory()
os.environ["ZAQAR_TESTS_CONFIGS_DIR"] = HERE.name
sys.modules.update({name: mock.MagicMock() for name in ["redis", "redis.sentinel"]})  # never spoken to
from zaqar.tests.functional import base, config, helpers, http  # noqa: E402
from zaqar.transport import base as transport                   # noqa: E402
from zaqar.transport import validation                          # noqa: E402

MODULES = ["v2.test_subscriptions", "v1_1.test_claims", "v1_1.test_messages", "v1_1.test_queues"]
PORT = int(sys.argv[1])
send = requests.Session.request


def set_up(self):
    testtools.TestCase.setUp(self)
    conf = cfg.ConfigOpts()
    conf(args=[], project="zaqar", default_config_files=[])
    self.cfg = config.load_config()
    self.cfg.set_override("project_id", uuid.uuid4().hex, "headers")
    self.limits = validation.Validator(conf)._limits_conf
    self.resource_defaults = transport.ResourceDefaults(conf)
    type(self).class_ttl_gc_interval = 60  # makes those that wait for a minute be left out
    self.client = http.Client()
    self.headers = helpers.create_zaqar_headers(self.cfg)
    self.headers_response_with_body = {"location", "content-type"}
    self.client.set_headers(self.headers)


def main():
    with open(os.path.join(HERE.name, "functional-tests.conf"), "w", encoding="utf-8") as file:
        file.write(f"[zaqar]\nurl = http://127.0.0.1:{PORT}\n")
    base.FunctionalTestBase.setUp = set_up
    base.FunctionalTestBase.tearDown = testtools.TestCase.tearDown
    base.FunctionalTestBase.tearDownClass = classmethod(lambda cls: None)
    base.response_v1_1 = base.response_v2
    requests.Session.request = lambda self, method, url, **more: send(self, method, url.replace("/v1.1/", "/v2/"), **more)
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromModule(
        importlib.import_module("zaqar.tests.functional.wsgi." + name)) for name in MODULES)
    result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    failed = {test.id().split("wsgi.")[1]: why.strip().splitlines()[-1] for test, why in result.failures + result.errors}
    print(json.dumps({"ran": result.testsRun - len(result.skipped), "failed": failed}))


main()
