/* load_beanstalk.c: put, reserve, delete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

enum { PUT, RESERVE, DELETE };

static void prepare(load *l) {
    char *one = json_of(l->bytes);
    const size_t room = l->bytes + 64;
    l->request[PUT] = malloc(room);
    l->request[RESERVE] = malloc(room);
    if (l->request[PUT] == NULL || l->request[RESERVE] == NULL) die("out of memory");
    l->request_len[PUT] = (size_t)snprintf(l->request[PUT], room, "put 0 0 60 %zu\r\n%s\r\n", l->bytes, one);
    l->request_len[RESERVE] = (size_t)snprintf(l->request[RESERVE], room, "reserve\r\n");
    free(one);
}

static size_t message(const char *in, size_t len, size_t *body) {
    *body = 0;
    const char *end = memmem(in, len, "\r\n", 2);
    if (end == NULL) return 0;
    size_t line = (size_t)(end - in) + 2;
    if (strncmp(in, "RESERVED ", 9) != 0) return line;
    char *after;
    (void)strtoull(in + 9, &after, 10);
    line += strtoul(after, NULL, 10) + 2;
    return line <= len ? line : 0;
}

static next answered(load *l, conn *c, const char *in, const char *body) {
    static const char *const WANTED[] = {[PUT] = "INSERTED", [RESERVE] = "RESERVED", [DELETE] = "DELETED"};
    (void)l;
    (void)body;
    if (strncmp(in, WANTED[c->step], strlen(WANTED[c->step])) != 0) return NEXT_WRONG;
    if (c->step == RESERVE)
        (void)snprintf(c->line, sizeof c->line, "delete %llu\r\n", strtoull(in + 9, NULL, 10));
    return NEXT_STEP;
}

const protocol beanstalk = {"beanstalk", PUT, DELETE, message, prepare, NULL, answered};
