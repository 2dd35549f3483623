"""What the tests of Zaqar's API share: one server for a file, fresh names, and Zaqar's words for refusals."""
import itertools
import uuid

import pytest

from server import Retryd

CLIENT = "3381af92-2b9e-11e3-b191-71861300734c"
PATCH = {"Content-Type": "application/openstack-messaging-v2.0-json-patch"}
API, BODY, NOT_FOUND = "Invalid API request", "Invalid request body", "Not found"
names = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Retryd(tmp_path_factory.mktemp("zaqar") / "data").start()
    yield server
    try:
        code = server.stop()
    finally:
        server.kill()
    assert code == 0, server.log()[-4000:]


@pytest.fixture
def queue():
    """A name that no other test uses."""
    return f"queue-{next(names)}"


def other_client():
    return {"Client-ID": str(uuid.uuid4())}


def refused(answer, status, title, description=None):
    """Is this Zaqar's refusal, word for word?"""
    want = {"title": title} if description is None else {"title": title, "description": description}
    assert (answer.status_code, answer.json()) == (status, want)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Vary"] == "Accept"
    return True


def raw(server, method, path, body, **headers):
    """A body as it stands."""
    return server.request(method, path, data=body, headers={"Content-Type": "application/json", **headers})


def post(server, queue, *messages):
    answer = server.post(f"/v2/queues/{queue}/messages", json={"messages": list(messages)})
    assert answer.status_code == 201, answer.text
    return [resource.rsplit("/", 1)[1] for resource in answer.json()["resources"]]


def bodies(answer):
    return [message["body"] for message in answer.json()["messages"]]


def pages(server, path, key, limit):
    """Follows the links until an empty page; returns what the pages held."""
    link = f"{path}{'&' if '?' in path else '?'}limit={limit}"
    found = []
    for _ in range(1000):
        answer = server.get(link)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        if not page[key]:
            assert page["links"] == []
            return found
        found.append(page[key])
        assert [one["rel"] for one in page["links"]] == ["next"]
        link = page["links"][0]["href"]
    raise AssertionError("the pages never end")
