/* load.c: many connections that each ask, wait for the answer, and ask again, for some seconds. One thread.
 *
 *   load post      PORT CONNECTIONS SECONDS QUEUE [BYTES [PER-REQUEST]]   posts messages to retryd
 *   load cycle     …                                                      posts, claims as many, deletes them
 *   load take      …                                                      claims and deletes what is there
 *   load bare      PORT CONNECTIONS SECONDS - [BYTES [PER-REQUEST]]       like post, whatever the status
 *   load beanstalk PORT CONNECTIONS SECONDS - [BYTES]                     put, reserve, delete: beanstalkd
 *
 * Prints one JSON object. "done" counts messages; the times are those of a whole round. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

enum { IN_MAX = 64 * 1024, REQUEST_MAX = 2048, CLAIM_MAX = 20, WARM_US = 500000 };

typedef enum step { POST, CLAIM, DELETE } step;

typedef struct conn {
    int fd;
    step step;
    const char *out; /* what is still to be sent */
    size_t out_len;
    uint64_t asked_us, began_us; /* this request; this cycle */
    size_t in_len;
    uint64_t held;          /* messages that were claimed */
    char line[REQUEST_MAX]; /* a request made of an answer */
    char in[IN_MAX];
} conn;

typedef struct load load;
struct load {
    step first, last;
    bool beanstalk, strict;
    uint64_t per_request;
    char *post; /* the whole request */
    size_t post_len;
    char claim[512];
    size_t claim_len;
    bool counting;
    uint64_t done, errors, empty;
    spread took;
    char queue[128];
};

static void ask(load *l, conn *c) {
    c->asked_us = now_us();
    if (c->step == l->first) c->began_us = c->asked_us;
    if (c->step == POST) {
        c->out = l->post;
        c->out_len = l->post_len;
    } else if (c->step == CLAIM) {
        c->out = l->claim;
        c->out_len = l->claim_len;
    } else {
        c->out = c->line;
        c->out_len = strlen(c->line);
    }
}

static void send_out(conn *c, int epoll_fd) {
    while (c->out_len > 0) {
        ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) die("send: %s", strerror(errno));
        c->out += n;
        c->out_len -= (size_t)n;
    }
    struct epoll_event e = {.events = c->out_len > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = c};
    static bool writing; // saves the system call in all cases but the rare one
    if (c->out_len > 0 || writing) {
        writing = true;
        if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &e) != 0) die("epoll_ctl: %s", strerror(errno));
    }
}

/* Writes the request that deletes what the claim's answer lists: a single message by its href, which names
 * the claim; several by their ids. */
static bool delete_claimed(conn *c, const char *answer) {
    static const char tail[] = " HTTP/1.1\r\nHost: x\r\nX-Project-ID: bench\r\n"
                               "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n\r\n";
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
            len = (size_t)snprintf(c->line, sizeof c->line, "DELETE %.*s?ids=", (int)(id + 9 - from), from);
        }
        len += (size_t)snprintf(c->line + len, sizeof c->line - len, "%s%.*s", c->held > 0 ? "," : "",
                                (int)(query - id - 10), id + 10);
        if (++c->held > CLAIM_MAX || len + sizeof tail > sizeof c->line) return false;
    }
    if (c->held == 1) len = (size_t)snprintf(c->line, sizeof c->line, "DELETE %.*s", one_len, one);
    memcpy(c->line + len, tail, sizeof tail);
    return c->held > 0;
}

/* What follows the answer c->in[0, len); its body, for HTTP, from `body` on. */
static void answered(load *l, conn *c, size_t len, size_t body) {
    char *in = c->in;
    bool ok = true;
    const char saved = in[len];
    in[len] = '\0';
    if (l->beanstalk) {
        static const char *const wanted[] = {[POST] = "INSERTED", [CLAIM] = "RESERVED", [DELETE] = "DELETED"};
        ok = strncmp(in, wanted[c->step], strlen(wanted[c->step])) == 0;
        if (ok && c->step == CLAIM)
            (void)snprintf(c->line, sizeof c->line, "delete %llu\r\n", strtoull(in + 9, NULL, 10));
    } else if (c->step == CLAIM) {
        if (strncmp(in, "HTTP/1.1 204", 12) == 0) {
            l->empty++;
            in[len] = saved;
            return; // somebody else has it: claim again
        }
        ok = delete_claimed(c, in + body);
    } else {
        ok = !l->strict || strncmp(in, "HTTP/1.1 20", 11) == 0;
    }
    if (!ok) {
        if (l->errors++ == 0) fprintf(stderr, "unexpected answer:\n%.600s\n", in);
        c->step = l->first;
    } else if (c->step == l->last) {
        if (l->counting) {
            l->done += l->last == DELETE && !l->beanstalk ? c->held : l->per_request;
            spread_add(&l->took, now_us() - c->began_us);
        }
        c->step = l->first;
    } else {
        c->step++;
    }
    in[len] = saved;
}

/* Length of the answer at the start of in[len], 0 if more must come. */
static size_t beanstalk_message(const char *in, size_t len) {
    const char *end = memmem(in, len, "\r\n", 2);
    if (end == NULL) return 0;
    size_t line = (size_t)(end - in) + 2;
    if (strncmp(in, "RESERVED ", 9) != 0) return line;
    char *after;
    (void)strtoull(in + 9, &after, 10);
    line += strtoul(after, NULL, 10) + 2;
    return line <= len ? line : 0;
}

static void receive(load *l, conn *c) {
    ssize_t n = recv(c->fd, c->in + c->in_len, IN_MAX - 1 - c->in_len, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) die("the server closed a connection");
    c->in_len += (size_t)n;
    size_t body = 0;
    size_t len = l->beanstalk ? beanstalk_message(c->in, c->in_len) : http_message(c->in, c->in_len, &body);
    if (len == 0) {
        if (c->in_len == IN_MAX - 1) die("an answer is too long");
        return;
    }
    answered(l, c, len, body);
    c->in_len -= len;
    memmove(c->in, c->in + len, c->in_len);
    ask(l, c);
}

static void prepare(load *l, size_t bytes, size_t per_request) {
    char *one = json_of(bytes);
    const size_t room = (bytes + 64) * per_request + 1024;
    char *all = malloc(room), *whole = malloc(room + 1024);
    if (all == NULL || whole == NULL) die("out of memory");
    if (l->beanstalk) {
        l->post_len = (size_t)snprintf(whole, room, "put 0 0 60 %zu\r\n%s\r\n", bytes, one);
        l->claim_len = (size_t)snprintf(l->claim, sizeof l->claim, "reserve\r\n");
    } else {
        size_t at = (size_t)snprintf(all, room, "{\"messages\": [");
        for (size_t i = 0; i < per_request; i++)
            at += (size_t)snprintf(all + at, room - at, "%s{\"ttl\": 86400, \"body\": %s}", i > 0 ? "," : "",
                                   one);
        at += (size_t)snprintf(all + at, room - at, "]}");
        static const char head[] = "POST /v2/queues/%s/%s HTTP/1.1\r\nHost: x\r\nX-Project-ID: bench\r\n"
                                   "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n"
                                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s";
        char claims[48];
        (void)snprintf(claims, sizeof claims, "claims?limit=%zu", per_request);
        l->post_len = (size_t)snprintf(whole, room + 1024, head, l->queue, "messages", at, all);
        l->claim_len = (size_t)snprintf(l->claim, sizeof l->claim, head, l->queue, claims, (size_t)2, "{}");
    }
    l->post = whole;
    free(all);
    free(one);
}

static uint64_t run(load *l, uint16_t port, size_t conns_count, uint64_t seconds) {
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    conn *conns = calloc(conns_count, sizeof *conns);
    if (epoll_fd < 0 || conns == NULL) die("out of resources");
    for (size_t i = 0; i < conns_count; i++) {
        conns[i].fd = connect_local(port);
        conns[i].step = l->first;
        watch(epoll_fd, conns[i].fd, &conns[i]);
        ask(l, &conns[i]);
        send_out(&conns[i], epoll_fd);
    }
    const uint64_t count_from = now_us() + WARM_US, until = count_from + seconds * 1000000;
    uint64_t now;
    while ((now = now_us()) < until) {
        l->counting = now >= count_from;
        struct epoll_event events[256];
        int n = epoll_wait(epoll_fd, events, 256, 100);
        for (int i = 0; i < n; i++) {
            conn *c = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(l, c);
            if (c->out_len > 0) send_out(c, epoll_fd);
        }
    }
    for (size_t i = 0; i < conns_count; i++) (void)close(conns[i].fd);
    free(conns);
    (void)close(epoll_fd);
    return now - count_from;
}

int main(int argc, char **argv) {
    if (argc < 6)
        die("usage: load post|cycle|take|bare|beanstalk PORT CONNECTIONS SECONDS QUEUE [BYTES "
            "[PER-REQUEST]]");
    static load l;
    const char *what = argv[1];
    const size_t bytes = argc > 6 ? number(argv[6], "BYTES") : 1024;
    const size_t per_request = argc > 7 ? number(argv[7], "PER-REQUEST") : 1;
    l.beanstalk = strcmp(what, "beanstalk") == 0;
    l.per_request = per_request;
    if (per_request < 1 ||
        (per_request > CLAIM_MAX && strcmp(what, "post") != 0 && strcmp(what, "bare") != 0))
        die("1 to %d messages a request", CLAIM_MAX);
    l.strict = strcmp(what, "bare") != 0;
    l.first = strcmp(what, "take") == 0 ? CLAIM : POST;
    l.last = strcmp(what, "post") == 0 || strcmp(what, "bare") == 0 ? POST : DELETE;
    (void)snprintf(l.queue, sizeof l.queue, "%s", argv[5]);
    prepare(&l, bytes, per_request);
    const uint64_t took_us = run(&l, (uint16_t)number(argv[2], "PORT"), number(argv[3], "CONNECTIONS"),
                                 number(argv[4], "SECONDS"));
    printf("{\"done\": %lu, \"per_second\": %.0f, \"p50_us\": %lu, \"p99_us\": %lu, \"errors\": %lu, "
           "\"empty\": %lu}\n",
           l.done, (double)l.done * 1e6 / (double)took_us, spread_at(&l.took, 0.5), spread_at(&l.took, 0.99),
           l.errors, l.empty);
    free(l.post);
    return l.errors > 0;
}
