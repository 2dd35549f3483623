/* load.c: many connections that each ask, wait for the answer, and ask again, for some seconds. One thread.
 *
 *   load PROTOCOL PORT CONNECTIONS SECONDS WHAT [BYTES [PER-REQUEST [ENOUGH]]]
 *
 *   post, cycle, take   messages of queue WHAT: post; post, claim, delete; claim and delete what is there
 *   bare                like post, whatever the status
 *   beanstalk           put, reserve, delete: beanstalkd
 *   work, fail          claims by the sessions that file WHAT lists, finish or fail
 *   entities            puts ENOUGH entities, each with a name of its own
 *   schedule, call      failed calls of type WHAT: schedule; schedule, claim, finish
 *   backlog, process    lays ENOUGH requests of them; claims and finishes, twenty a request, until there are none
 *
 * Prints one JSON object. "done" counts messages, jobs or entities; the times are those of a whole round. */
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WARM_US = 500000 };

static const protocol *const PROTOCOLS[] = {&zaqar_post, &zaqar_cycle, &zaqar_take, &zaqar_bare,
                                            &beanstalk,  &work_cycle,  &work_fail,  &work_fill,
                                            &calls_post, &calls_cycle, &calls_backlog, &calls_process};

static void ask(load *l, conn *c) {
    if (c->step == l->protocol->first) {
        c->began_us = now_us();
        c->held = l->per_request;
        l->begun++;
        if (l->protocol->begin != NULL) l->protocol->begin(l, c);
    }
    const char *fixed = l->request[c->step];
    c->out = fixed != NULL ? fixed : c->line;
    c->out_len = fixed != NULL ? l->request_len[c->step] : strlen(c->line);
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

/* What follows the answer c->in[0, len). False: the connection has done enough. */
static bool answered(load *l, conn *c, size_t len, size_t body) {
    const char saved = c->in[len];
    c->in[len] = '\0';
    const next what = l->protocol->answered(l, c, c->in, c->in + body);
    if (what == NEXT_WRONG && l->errors++ == 0) fprintf(stderr, "unexpected answer:\n%.600s\n", c->in);
    c->in[len] = saved;
    if (what == NEXT_AGAIN) {
        l->empty++;
    } else if (what == NEXT_STEP && c->step < l->protocol->last) {
        c->step++;
    } else {
        if (what == NEXT_STEP && l->counting) {
            l->done += c->held;
            spread_add(&l->took, now_us() - c->began_us);
        }
        c->step = l->protocol->first;
    }
    return what != NEXT_OVER;
}

/* False: the connection has done enough. */
static bool receive(load *l, conn *c) {
    ssize_t n = recv(c->fd, c->in + c->in_len, IN_MAX - 1 - c->in_len, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) die("the server closed a connection");
    c->in_len += (size_t)n;
    size_t body = 0;
    size_t len = l->protocol->message(c->in, c->in_len, &body);
    if (len == 0) {
        if (c->in_len == IN_MAX - 1) die("an answer is too long");
        return true;
    }
    if (!answered(l, c, len, body)) return false;
    c->in_len -= len;
    memmove(c->in, c->in + len, c->in_len);
    if (c->step == l->protocol->first && l->enough > 0 && l->begun >= l->enough) return false;
    ask(l, c);
    return true;
}

static uint64_t run(load *l, uint16_t port, size_t conns_count, uint64_t seconds) {
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    conn *conns = calloc(conns_count, sizeof *conns);
    if (epoll_fd < 0 || conns == NULL) die("out of resources");
    size_t busy = conns_count;
    for (size_t i = 0; i < conns_count; i++) {
        conns[i].fd = connect_local(port);
        conns[i].number = (unsigned)i;
        conns[i].step = l->protocol->first;
        watch(epoll_fd, conns[i].fd, &conns[i]);
        ask(l, &conns[i]);
        send_out(&conns[i], epoll_fd);
    }
    const uint64_t count_from = now_us() + (l->enough > 0 || l->protocol == &calls_process ? 0 : WARM_US),
                   until = count_from + seconds * 1000000;
    uint64_t now;
    while ((now = now_us()) < until && busy > 0) {
        l->counting = now >= count_from;
        struct epoll_event events[256];
        int n = epoll_wait(epoll_fd, events, 256, 100);
        for (int i = 0; i < n; i++) {
            conn *c = events[i].data.ptr;
            if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !receive(l, c)) {
                (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
                busy--;
            } else if (c->out_len > 0) {
                send_out(c, epoll_fd);
            }
        }
    }
    for (size_t i = 0; i < conns_count; i++) (void)close(conns[i].fd);
    free(conns);
    (void)close(epoll_fd);
    return now - count_from;
}

static const protocol *find(const char *name) {
    for (size_t i = 0; i < sizeof PROTOCOLS / sizeof PROTOCOLS[0]; i++)
        if (strcmp(PROTOCOLS[i]->name, name) == 0) return PROTOCOLS[i];
    die("no protocol %s: see the head of bench/load.c", name);
}

int main(int argc, char **argv) {
    if (argc < 6) die("usage: load PROTOCOL PORT CONNECTIONS SECONDS WHAT [BYTES [PER-REQUEST [ENOUGH]]]");
    static load l;
    l.protocol = find(argv[1]);
    l.what = argv[5];
    l.bytes = argc > 6 ? number(argv[6], "BYTES") : 1024;
    l.per_request = argc > 7 ? number(argv[7], "PER-REQUEST") : 1;
    l.enough = argc > 8 ? number(argv[8], "ENOUGH") : 0;
    if (l.per_request < 1) die("PER-REQUEST is at least 1");
    if (l.protocol->prepare != NULL) l.protocol->prepare(&l);
    const uint64_t took_us = run(&l, (uint16_t)number(argv[2], "PORT"), number(argv[3], "CONNECTIONS"),
                                 number(argv[4], "SECONDS"));
    printf("{\"done\": %lu, \"per_second\": %.0f, \"p50_us\": %lu, \"p99_us\": %lu, \"errors\": %lu, "
           "\"empty\": %lu}\n",
           l.done, (double)l.done * 1e6 / (double)took_us, spread_at(&l.took, 0.5), spread_at(&l.took, 0.99),
           l.errors, l.empty);
    for (int i = 0; i < STEPS_MAX; i++) free(l.request[i]);
    return l.errors > 0;
}
