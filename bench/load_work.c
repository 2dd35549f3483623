/* load_work.c: work on entities: claim, then finish or fail, each connection in a session of its own. Who finishes wants the
 * same again, so that there is always as much to do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

enum { CLAIM, END };

/* Line c->number of the file. */
static void begin(load *l, conn *c) {
    char body[256];
    if (c->name[0] == '\0') {
        FILE *sessions = fopen(l->what, "r");
        if (sessions == NULL) die("cannot read %s", l->what);
        for (unsigned i = 0; i <= c->number; i++)
            if (fgets(c->name, sizeof c->name, sessions) == NULL) die("%s has too few sessions", l->what);
        (void)fclose(sessions);
        c->name[strcspn(c->name, "\n")] = '\0';
    }
    (void)snprintf(body, sizeof body, "{\"session\": \"%s\", \"process\": \"bench\", \"kind\": \"bench\"}",
                   c->name);
    (void)http_request(c->line, sizeof c->line, "POST /v1/work/claim", body);
}

static next answered(load *l, conn *c, const char *in, const char *answer) {
    if (c->step == END) return is_status(in, "200") ? NEXT_STEP : NEXT_WRONG;
    if (is_status(in, "204")) return NEXT_AGAIN;
    char work[ID_MAX], token[ID_MAX], path[160], body[256];
    if (!is_status(in, "200") || !json_string(answer, "work", work) || !json_string(answer, "token", token))
        return NEXT_WRONG;
    const bool fails = l->protocol == &work_fail;
    (void)snprintf(path, sizeof path, "POST /v1/work/%s/%s", work, fails ? "fail" : "finish");
    (void)snprintf(body, sizeof body, "{\"session\": \"%s\", \"token\": \"%s\", %s}", c->name, token,
                   fails ? "\"cause\": \"bench\"" : "\"processes\": [\"bench\"]");
    (void)http_request(c->line, sizeof c->line, path, body);
    return NEXT_STEP;
}

static void begin_entity(load *l, conn *c) {
    char path[128];
    (void)snprintf(path, sizeof path, "PUT /v1/entities/e%lu", l->begun);
    (void)http_request(c->line, sizeof c->line, path,
                       "{\"kind\": \"bench\", \"value\": {\"rack\": 7}, \"processes\": [\"bench\"]}");
}

static next put_answered(load *l, conn *c, const char *in, const char *body) {
    (void)l;
    (void)c;
    (void)body;
    return is_status(in, "20") ? NEXT_STEP : NEXT_WRONG;
}

const protocol work_cycle = {"work", CLAIM, END, http_message, NULL, begin, answered};
const protocol work_fail = {"fail", CLAIM, END, http_message, NULL, begin, answered};
const protocol work_fill = {"entities", CLAIM, CLAIM, http_message, NULL, begin_entity, put_answered};
