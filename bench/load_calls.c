/* load_calls.c: failed calls: schedule, claim, finish. */
#include <stdio.h>
#include <stdlib.h>

#include "load.h"

enum { SCHEDULE, CLAIM, FINISH };

static void prepare(load *l) {
    char path[256];
    char *body = json_of(l->bytes);
    (void)snprintf(path, sizeof path, "POST /v1/events/%.128s", l->what);
    http_prepare(l, SCHEDULE, path, body);
    free(body);
    (void)snprintf(path, sizeof path, "POST /v1/event-types/%.128s/claim", l->what);
    http_prepare(l, CLAIM, path, "{\"worker\": \"bench\", \"limit\": 1, \"lease_s\": 60}");
}

static next answered(load *l, conn *c, const char *in, const char *answer) {
    (void)l;
    if (c->step != CLAIM) return is_status(in, "20") ? NEXT_STEP : NEXT_WRONG;
    if (is_status(in, "204")) return NEXT_AGAIN;
    char id[ID_MAX], token[ID_MAX], path[160], body[128];
    if (!is_status(in, "200") || !json_string(answer, "id", id) || !json_string(answer, "token", token))
        return NEXT_WRONG;
    (void)snprintf(path, sizeof path, "POST /v1/jobs/%s/finish", id);
    (void)snprintf(body, sizeof body, "{\"token\": \"%s\"}", token);
    (void)http_request(c->line, sizeof c->line, path, body);
    return NEXT_STEP;
}

const protocol calls_post = {"schedule", SCHEDULE, SCHEDULE, http_message, prepare, NULL, answered};
const protocol calls_cycle = {"call", SCHEDULE, FINISH, http_message, prepare, NULL, answered};
