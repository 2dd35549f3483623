"""Runs the functional tests of Zaqar's client (Debian's python3-zaqarclient) for v2 against a server on PORT, and prints one
JSON object: {"ran": N, "failed": {name: last line of why}}. Pools and flavors are left out: there are none."""
import io
import json
import os
import sys
import types
import unittest
from unittest import mock

os.environ["ZAQARCLIENT_TEST_FUNCTIONAL"] = "1"
# What they import and never use here.
sys.modules.update({"mock": mock, "openstack": types.ModuleType("openstack"), "openstack.config": types.ModuleType("config")})
sys.modules["openstack"].config = sys.modules["openstack.config"]
from zaqarclient.tests.queues import claims, health, queues, subscriptions  # noqa: E402
from zaqarclient.transport import http                                      # noqa: E402

PORT = int(sys.argv[1])
TESTS = [claims.QueuesV2ClaimFunctionalTest, health.QueuesV2HealthFunctionalTest, queues.QueuesV2QueueFunctionalTest,
         subscriptions.QueuesV2SubscriptionFunctionalTest]


def main():
    how = {"is_functional": True, "transport_cls": http.HttpTransport, "url": f"http://127.0.0.1:{PORT}", "version": 2}
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(type(tests.__name__, (tests,), how))
                               for tests in TESTS)
    result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    failed = {test.id().split(".", 1)[1]: why.strip().splitlines()[-1] for test, why in result.failures + result.errors}
    print(json.dumps({"ran": result.testsRun - len(result.skipped), "failed": failed}))


main()
