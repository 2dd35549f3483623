/* load_calls.c: failed calls: schedule, claim, finish. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

enum { SCHEDULE, CLAIM, FINISH, CLAIM_MAX = 20 };

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

/* ---- a backlog: laid many a request, then claimed and finished by the twenty --------------------------- */

static void prepare_backlog(load *l) {
    char *body = json_of(l->bytes);
    const size_t room = l->per_request * (strlen(body) + 16) + 32;
    char *events = malloc(room);
    if (body == NULL || events == NULL) die("out of memory");
    size_t at = (size_t)snprintf(events, room, "{\"events\": [");
    for (size_t i = 0; i < l->per_request; i++)
        at += (size_t)snprintf(events + at, room - at, "%s{\"body\": %s}", i == 0 ? "" : ", ", body);
    (void)snprintf(events + at, room - at, "]}");
    char path[256];
    (void)snprintf(path, sizeof path, "POST /v1/events/%.128s/batch", l->what);
    http_prepare(l, SCHEDULE, path, events);
    free(events);
    free(body);
}

static void prepare_process(load *l) {
    char path[256], body[96];
    (void)snprintf(path, sizeof path, "POST /v1/event-types/%.128s/claim", l->what);
    (void)snprintf(body, sizeof body, "{\"worker\": \"bench\", \"limit\": %d, \"lease_s\": 60}", CLAIM_MAX);
    http_prepare(l, CLAIM, path, body);
}

/* All that were claimed are finished by one request. */
static next processed(load *l, conn *c, const char *in, const char *answer) {
    (void)l;
    if (c->step == FINISH) return is_status(in, "200") && strstr(answer, "\"code\"") == NULL ? NEXT_STEP : NEXT_WRONG;
    if (is_status(in, "204")) return NEXT_OVER;
    if (!is_status(in, "200")) return NEXT_WRONG;
    char id[ID_MAX], token[ID_MAX], body[REQUEST_MAX - 512] = "{\"jobs\": [";
    size_t at = strlen(body);
    c->held = 0;
    for (const char *job = strstr(answer, "\"id\""); job != NULL; job = strstr(job + 1, "\"id\"")) {
        if (!json_string(job, "id", id) || !json_string(job, "token", token) || at >= sizeof body - 2 * ID_MAX - 32)
            return NEXT_WRONG;
        at += (size_t)snprintf(body + at, sizeof body - at, "%s{\"id\": \"%s\", \"token\": \"%s\"}",
                               c->held == 0 ? "" : ", ", id, token);
        c->held++;
    }
    (void)snprintf(body + at, sizeof body - at, "]}");
    (void)http_request(c->line, sizeof c->line, "POST /v1/jobs/finish", body);
    return NEXT_STEP;
}

const protocol calls_post = {"schedule", SCHEDULE, SCHEDULE, http_message, prepare, NULL, answered};
const protocol calls_cycle = {"call", SCHEDULE, FINISH, http_message, prepare, NULL, answered};
const protocol calls_backlog = {"backlog", SCHEDULE, SCHEDULE, http_message, prepare_backlog, NULL, answered};
const protocol calls_process = {"process", CLAIM, FINISH, http_message, prepare_process, NULL, processed};
