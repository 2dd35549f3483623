"""Zaqar's API: claims and dead letters by claim count."""
import pytest

from zaqar import API, BODY, NOT_FOUND, bodies, post, queue, raw, refused, server  # noqa: F401

TTL_RANGE = "The TTL for a claim may not exceed 43200 seconds, and must be at least 60 seconds long."
GRACE_RANGE = "The grace for a claim may not exceed 43200 seconds, and must be at least 60 seconds long."
LIMIT = "Limit must be at least 1 and may not be greater than 20."


def claim(server, queue, limit=10, **terms):
    return server.post(f"/v2/queues/{queue}/claims?limit={limit}", json=terms or None)


def test_claim_takes_the_first_messages_even_ones_own(server, queue):
    ids = post(server, queue, *[{"body": i} for i in range(3)])
    answer = claim(server, queue, 2, ttl=300, grace=60)
    assert answer.status_code == 201
    location = answer.headers["Location"]
    assert location.startswith(f"/v2/queues/{queue}/claims/")
    id = location.rsplit("/", 1)[1]
    assert [m["href"] for m in answer.json()["messages"]] == [
        f"/v2/queues/{queue}/messages/{one}?claim_id={id}" for one in ids[:2]]
    assert list(answer.json()["messages"][0]) == ["id", "href", "ttl", "age", "body"]
    assert bodies(claim(server, queue)) == [2]
    nothing = claim(server, queue)
    assert (nothing.status_code, nothing.content) == (204, b"")
    assert "Location" not in nothing.headers


def test_claim_of_nothing_is_no_content(server, queue):
    assert claim(server, queue).status_code == 204


def test_claim_takes_ten_unless_asked_otherwise(server, queue):
    post(server, queue, *[{"body": i} for i in range(40)])
    assert len(server.post(f"/v2/queues/{queue}/claims").json()["messages"]) == 10
    assert len(claim(server, queue, 20).json()["messages"]) == 20


@pytest.mark.parametrize("query,terms,title,description", [
    ("", {"ttl": 59}, API, TTL_RANGE),
    ("", {"ttl": 43201}, API, TTL_RANGE),
    ("", {"grace": 59}, API, GRACE_RANGE),
    ("", {"grace": 43201}, API, GRACE_RANGE),
    ("?limit=0", {}, API, LIMIT),
    ("?limit=21", {}, API, LIMIT),
    ("?limit=21", {"ttl": 59, "grace": 59}, API, TTL_RANGE),
    ("?limit=21", {"grace": 59}, API, LIMIT),
    ("", {"ttl": "60"}, BODY, 'The value of the "ttl" field must be a int.'),
    ("", {"ttl": 60, "grace": 60.5}, BODY, 'The value of the "grace" field must be a int.'),
    ("", [], BODY, "Document type not supported."),
    ("?limit=x", {"ttl": 59}, "Invalid parameter", 'The "limit" parameter is invalid. The value must be an integer.'),
])
def test_claim_refuses(server, queue, query, terms, title, description):
    post(server, queue, {"body": 1})
    refused(server.post(f"/v2/queues/{queue}/claims{query}", json=terms), 400, title, description)
    assert len(claim(server, queue).json()["messages"]) == 1


def test_claim_prolongs_messages_that_would_end_before_it(server, queue):
    post(server, queue, {"body": "short", "ttl": 60}, {"body": "long", "ttl": 3600})
    taken = claim(server, queue, ttl=300, grace=100).json()["messages"]
    assert [(m["ttl"], m["age"]) for m in taken] == [(400, 0), (3600, 0)]


def test_claim_is_shown_renewed_and_released(server, queue):
    ids = post(server, queue, {"body": 1}, {"body": 2})
    url = claim(server, queue, ttl=100).headers["Location"]
    shown = server.get(url)
    assert shown.status_code == 200
    assert list(shown.json()) == ["age", "ttl", "messages", "href"]
    assert (shown.json()["ttl"], shown.json()["href"]) == (100, url)
    assert 0 <= shown.json()["age"] < 60
    assert [m["id"] for m in shown.json()["messages"]] == ids

    renewed = server.patch(url, json={"ttl": 200, "grace": 70})
    assert (renewed.status_code, renewed.content) == (204, b"")
    assert server.get(url).json()["ttl"] == 200
    assert server.patch(url, json={}).status_code == 204
    assert server.get(url).json()["ttl"] == 300

    assert (server.delete(url).status_code, server.delete(url).status_code) == (204, 204)
    assert server.get(url).status_code == 404
    assert server.patch(url, json={}).status_code == 404
    assert bodies(claim(server, queue)) == [1, 2]


def test_claim_shows_what_it_still_holds(server, queue):
    ids = post(server, queue, {"body": 1}, {"body": 2})
    url = claim(server, queue).headers["Location"]
    server.delete(f"/v2/queues/{queue}/messages/{ids[0]}?claim_id={url.rsplit('/', 1)[1]}")
    assert [m["id"] for m in server.get(url).json()["messages"]] == [ids[1]]


@pytest.mark.parametrize("id", ["nosuch", "0" * 24])
def test_claims_that_are_not_there(server, queue, id):
    url = f"/v2/queues/{queue}/claims/{id}"
    text = f"Claim {id} does not exist in queue {queue} for project p"
    refused(server.get(url), 404, NOT_FOUND, text)
    refused(server.patch(url, json={"ttl": 60}), 404, NOT_FOUND, text)
    assert server.delete(url).status_code == 204


def test_claim_of_one_queue_is_none_of_another(server, queue):
    post(server, queue, {"body": 1})
    server.make_queue(queue + "x")
    id = claim(server, queue).headers["Location"].rsplit("/", 1)[1]
    assert server.get(f"/v2/queues/{queue}x/claims/{id}").status_code == 404
    server.delete(f"/v2/queues/{queue}x/claims/{id}")
    assert server.get(f"/v2/queues/{queue}/claims/{id}").status_code == 200


def test_patch_of_a_claim_checks_its_ttl_only(server, queue):
    post(server, queue, {"body": 1})
    url = claim(server, queue).headers["Location"]
    refused(server.patch(url, json={"ttl": 59}), 400, API, TTL_RANGE)
    refused(server.patch(url, json={"ttl": "x"}), 400, BODY, 'The value of the "ttl" field must be a int.')
    refused(raw(server, "PATCH", url, b"x"), 400, BODY, "Request body could not be parsed.")
    assert server.patch(url, json={"ttl": 60, "grace": 5}).status_code == 204


# ---- dead letters -----------------------------------------------------------------------------------------------------

def test_a_message_claimed_too_often_becomes_a_dead_letter(server, queue):
    dead = queue + "-dead"
    server.make_queue(dead)
    server.make_queue(queue, _max_claim_count=2, _dead_letter_queue=dead, _dead_letter_queue_messages_ttl=77)
    [id] = post(server, queue, {"body": "poison"})
    for _ in range(2):
        answer = claim(server, queue)
        assert bodies(answer) == ["poison"]
        server.delete(answer.headers["Location"])
    assert claim(server, queue).status_code == 204
    assert server.get(f"/v2/queues/{queue}/messages/{id}").status_code == 404
    letter = server.get(f"/v2/queues/{dead}/messages/{id}").json()
    assert (letter["id"], letter["body"], letter["ttl"]) == (id, "poison", 77)


def test_a_claim_goes_on_behind_dead_letters(server, queue):
    server.make_queue(queue, _max_claim_count=1, _dead_letter_queue=queue + "-dead")
    post(server, queue, {"body": "poison"})
    server.delete(claim(server, queue).headers["Location"])
    post(server, queue, {"body": "fine"})
    assert bodies(claim(server, queue, 1)) == ["fine"]
    listed = server.get(f"/v2/queues/{queue}-dead/messages?echo=true&include_claimed=true")
    assert bodies(listed) == ["poison"]


@pytest.mark.parametrize("metadata", [{"_max_claim_count": 1}, {"_dead_letter_queue": "nobody"},
                                      {"_max_claim_count": 0, "_dead_letter_queue": "nobody"}])
def test_dead_letters_want_both_a_count_and_a_queue(server, queue, metadata):
    server.make_queue(queue, **metadata)
    post(server, queue, {"body": 1})
    for _ in range(4):
        server.delete(claim(server, queue).headers["Location"])
