/* load_zaqar.c: messages: post, claim, delete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

enum { CLAIM_MAX = 20, DELETES_MAX = 2048 };
enum { POST, CLAIM, DELETE };

/* All messages of one request. */
static char *messages(const load *l) {
    char *one = json_of(l->bytes);
    const size_t room = (l->bytes + 64) * l->per_request + 64;
    char *all = malloc(room);
    if (all == NULL) die("out of memory");
    size_t at = (size_t)snprintf(all, room, "{\"messages\": [");
    for (size_t i = 0; i < l->per_request; i++)
        at +=
            (size_t)snprintf(all + at, room - at, "%s{\"ttl\": 86400, \"body\": %s}", i > 0 ? "," : "", one);
    (void)snprintf(all + at, room - at, "]}");
    free(one);
    return all;
}

static void prepare(load *l) {
    char path[256];
    if (l->protocol->first == POST) {
        char *body = messages(l);
        (void)snprintf(path, sizeof path, "POST /v2/queues/%.64s/messages", l->what);
        http_prepare(l, POST, path, body);
        free(body);
    }
    if (l->protocol->last == POST) return;
    if (l->per_request > CLAIM_MAX) die("a claim takes at most %d messages", CLAIM_MAX);
    (void)snprintf(path, sizeof path, "POST /v2/queues/%.64s/claims?limit=%zu", l->what, l->per_request);
    http_prepare(l, CLAIM, path, "{}");
}

/* Writes the request that deletes what the claim's answer lists: a single message by its href, which names
 * the claim; several by their ids. */
static bool delete_claimed(conn *c, const char *answer) {
    char path[DELETES_MAX];
    const char *one = NULL;
    int one_len = 0;
    size_t len = 0;
    c->held = 0;
    for (const char *href = strstr(answer, "\"href\""); href != NULL; href = strstr(href + 6, "\"href\"")) {
        const char *from = strchr(href, '/');
        const char *end = from != NULL ? strchr(from, '"') : NULL;
        const char *id = from != NULL ? strstr(from, "/messages/") : NULL;
        const char *query = id != NULL ? strchr(id, '?') : NULL;
        if (end == NULL || id == NULL || query == NULL || query > end) return false;
        if (c->held == 0) {
            one = from;
            one_len = (int)(end - from);
            len = (size_t)snprintf(path, sizeof path, "DELETE %.*s?ids=", (int)(id + 9 - from), from);
        }
        len += (size_t)snprintf(path + len, sizeof path - len, "%s%.*s", c->held > 0 ? "," : "",
                                (int)(query - id - 10), id + 10);
        if (++c->held > CLAIM_MAX || len >= sizeof path) return false;
    }
    if (c->held == 1) (void)snprintf(path, sizeof path, "DELETE %.*s", one_len, one);
    if (c->held > 0) (void)http_request(c->line, sizeof c->line, path, NULL);
    return c->held > 0;
}

static next answered(load *l, conn *c, const char *in, const char *body) {
    if (c->step == CLAIM) {
        if (is_status(in, "204")) return NEXT_AGAIN; // somebody else has it
        return delete_claimed(c, body) ? NEXT_STEP : NEXT_WRONG;
    }
    return is_status(in, "20") || l->protocol == &zaqar_bare ? NEXT_STEP : NEXT_WRONG;
}

const protocol zaqar_post = {"post", POST, POST, http_message, prepare, NULL, answered};
const protocol zaqar_cycle = {"cycle", POST, DELETE, http_message, prepare, NULL, answered};
const protocol zaqar_take = {"take", CLAIM, DELETE, http_message, prepare, NULL, answered};
const protocol zaqar_bare = {"bare", POST, POST, http_message, prepare, NULL, answered};
