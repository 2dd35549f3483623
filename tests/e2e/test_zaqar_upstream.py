"""Zaqar's own tests of its v2 API, as Debian ships them in python3-zaqar, against the real binary."""
import json
import os
import re
import subprocess
import sys

import pytest

SUITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "upstream", "zaqar_suite.py")

# These look into Zaqar's own process or want it configured otherwise; they say nothing of an API. Why, for each:
NOT_OF_THE_API = {
    r"FaultyDriver\.test_simple$": "wants a storage driver that always fails",
    r"test_list_returns_503_on_nopoolfound_exception$": "replaces a method of the storage driver",
    r"test_health\..*\.test_(message_volume|operation_status)$": "replaces a method of the storage driver",
    r"test_subscriptions\..*\.test_(list_works|listing_.*)$": "writes its subscriptions into Zaqar's storage driver",
    r"test_subscriptions\..*\.test_(create_and_send_notification|recreate|recreate_after_confirmed)$":
        "counts the calls of Zaqar's notifier",
    r"test_create_with_trust$": "needs Keystone; retryd says so with a 400",
    r"test_auth\.": "needs Keystone's middleware",
    r"test_json_only_endpoints_with_wrong_accept_header$": "calls the WSGI application itself",
    r"test_bulk_delete_without_claim_ids": "wants message_delete_with_claim_id",
    r"test_basics_thoroughly_with_different_client_id": "wants client_id_uuid_safe=off",
    r"test_validation\..*\.test_(metadata_deserialization|queue_metadata_putting)$": "wants max_queue_metadata=64",
}


def test_zaqars_own_api_tests_pass(start_retryd):
    if subprocess.run([sys.executable, "-c", "import zaqar.tests, testtools, ddt"], cwd="/", check=False,
                      capture_output=True).returncode != 0:
        pytest.skip("python3-zaqar, python3-testtools and python3-ddt are not installed")
    server = start_retryd()
    done = subprocess.run([sys.executable, SUITE, str(server.port)], cwd="/", check=True, capture_output=True,
                          text=True, timeout=300)
    result = json.loads(done.stdout.splitlines()[-1])
    ours = {name: why for name, why in result["failed"].items()
            if not any(re.search(pattern, name) for pattern in NOT_OF_THE_API)}
    assert not ours, json.dumps(ours, indent=2)
    assert result["ran"] >= 200, "most of the suite was left out"
