#include "executor/plugin/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/plugin/frame.h"
#include "executor/plugin/load.h"
#include "executor/plugin/reply.h"
#include "executor/plugin/request.h"
#include "os/clock.h"

enum { REQUEST_MAX = 8 * 1024 * 1024, LIMIT_BYTES = 4 };

typedef struct host {
    struct retryd_ctx ctx; /* first: what the plugin has in its hands */
    struct retryd_calls calls;
    struct retryd_plugin plugin;
    json_t *settings;
    rt_request request;
} host;

static const host *host_of(const struct retryd_ctx *ctx) { return (const host *)(const void *)ctx; }

/* ---- what a plugin may call, besides its reply --------------------------------------------------------- */

static const char *host_setting(const struct retryd_ctx *ctx, const char *key) {
    return json_string_value(json_object_get(host_of(ctx)->settings, key));
}

/* While a call is under way the server has nothing to say but that it hangs up. */
static bool hung_up(void) {
    struct pollfd fd = {.fd = RT_PLUGIN_HOST_FD, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

static bool host_cancelled(const struct retryd_ctx *ctx) {
    return (ctx->deadline_ms > 0 && rt_wall_ms() >= ctx->deadline_ms) || hung_up();
}

static void host_log(const struct retryd_ctx *ctx, const char *text) {
    (void)ctx;
    (void)fprintf(stderr, "%.*s\n", RETRYD_LOG_LINE_MAX, text);
}

static const char *host_text(const struct retryd_ctx *ctx, const char *json, const char *name) {
    const json_t *value = json_object_get(rt_request_object(&host_of(ctx)->request, json), name);
    const char *text = json_string_value(value);
    // Rather none than one that ends early.
    return text != NULL && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool host_integer(const struct retryd_ctx *ctx, const char *json, const char *name, int64_t *out) {
    const json_t *value = json_object_get(rt_request_object(&host_of(ctx)->request, json), name);
    if (!json_is_integer(value)) return false;
    *out = json_integer_value(value);
    return true;
}

/* ---- one call ------------------------------------------------------------------------------------------ */

static void call(host *h, rt_reply *reply) {
    const rt_request *q = &h->request;
    const struct retryd_plugin *p = &h->plugin;
    h->ctx.attempt = q->attempt;
    h->ctx.token = q->token;
    h->ctx.deadline_ms = q->deadline_ms;
    if (q->verb == RT_VERB_CANCEL) {
        if (p->cancel != NULL) p->cancel(&h->ctx, &q->order, &reply->face);
        if (!reply->decided)
            (void)retryd_reply_done(&reply->face); // a reply that cannot be made says so itself
    } else {
        if (p->validate != NULL) p->validate(&h->ctx, &q->order, &reply->face);
        if (q->verb == RT_VERB_RUN && !reply->decided) p->run(&h->ctx, &q->task, &q->order, &reply->face);
    }
    // What was printed without an end of line belongs to this call, not to the next.
    (void)fflush(stdout);
}

/* False: the server is gone. */
static bool send_reply(rt_reply *reply, rt_verb verb, uint32_t limit) {
    char *text = NULL;
    if (reply->wrong[0] == '\0') {
        text = verb == RT_VERB_VALIDATE ? rt_reply_verdict(reply) : rt_reply_answer(reply);
    }
    const rt_str answer = rt_str_of(text);
    bool sent;
    if (text == NULL) {
        const char *why = reply->wrong[0] != '\0' ? reply->wrong : "the reply did not fit into memory";
        sent = rt_frame_send(RT_PLUGIN_HOST_FD, RT_FRAME_NONSENSE, rt_str_of(why));
    } else if (answer.len > limit) {
        sent = rt_frame_send(RT_PLUGIN_HOST_FD, RT_FRAME_TOO_LARGE, RT_STR_EMPTY);
    } else {
        sent = rt_frame_send(RT_PLUGIN_HOST_FD, RT_FRAME_ANSWER, answer);
    }
    if (text != NULL) explicit_bzero(text, answer.len);
    free(text);
    return sent;
}

static bool serve_run(host *h, rt_str body) {
    rt_err err = {.msg = ""};
    rt_reply reply;
    uint32_t limit = 0;
    if (body.len < LIMIT_BYTES || !rt_reply_init(&reply, &h->calls)) return false;
    for (size_t i = 0; i < LIMIT_BYTES; i++) limit |= (uint32_t)(unsigned char)body.ptr[i] << (8 * i);
    const rt_str json = {.ptr = body.ptr + LIMIT_BYTES, .len = body.len - LIMIT_BYTES};
    bool sent;
    if (rt_request_init(&h->request, json, &err) == RT_OK) {
        call(h, &reply);
        sent = send_reply(&reply, h->request.verb, limit);
    } else {
        sent = rt_frame_send(RT_PLUGIN_HOST_FD, RT_FRAME_NONSENSE, rt_str_of(err.msg));
    }
    rt_request_deinit(&h->request);
    rt_reply_deinit(&reply);
    return sent;
}

/* ---- its life ------------------------------------------------------------------------------------------ */

static bool is_socket(int fd) {
    struct stat what;
    return fstat(fd, &what) == 0 && S_ISSOCK(what.st_mode);
}

static void write_file(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)!write(fd, text, strlen(text));
    (void)close(fd);
}

/* The server may have ended before we could ask to go with it. */
static bool orphaned(void) {
    struct pollfd fd = {.fd = RT_PLUGIN_HOST_FD};
    return poll(&fd, 1, 0) > 0;
}

/* A child does not outlive its server, leaves no core with secrets in it, gains no rights by what it starts,
 * and when memory runs out it goes first. */
static void confine(void) {
    const struct rlimit none = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)setrlimit(RLIMIT_CORE, &none);
    write_file("/proc/self/oom_score_adj", "500");
}

/* WHOLE, or the end. */
static bool receive(rt_frame *f) {
    rt_frame_clear(f);
    return rt_frame_read(f, RT_PLUGIN_HOST_FD, REQUEST_MAX) == RT_FRAME_WHOLE;
}

static bool prepare(host *h, const char *file, rt_err *err) {
    h->calls = (struct retryd_calls){.size = sizeof h->calls,
                                     .setting = host_setting,
                                     .cancelled = host_cancelled,
                                     .log = host_log,
                                     .text = host_text,
                                     .integer = host_integer};
    rt_reply_fill(&h->calls);
    h->ctx = (struct retryd_ctx){.size = sizeof h->ctx, .token = "", .calls = &h->calls};
    if (rt_plugin_load(file, &h->plugin, err) != RT_OK) return false;
    const char *why = h->plugin.init != NULL ? h->plugin.init(&h->ctx) : NULL;
    if (why != NULL) (void)rt_fail(err, RT_E_INVALID, 0, "%s: init says: %s", file, why);
    return why == NULL;
}

static int live(host *h, const char *file) {
    rt_frame f = {.kind = RT_FRAME_NONE};
    rt_err err = {.msg = ""};
    if (!receive(&f) || f.kind != RT_FRAME_SETTINGS) return 2;
    h->settings = json_loadb(f.body, f.len, 0, NULL);
    if (!prepare(h, file, &err)) {
        rt_frame_clear(&f);
        json_decref(h->settings);
        (void)rt_frame_send(RT_PLUGIN_HOST_FD, RT_FRAME_PROBLEM, rt_str_of(err.msg));
        return 1;
    }
    bool on = rt_frame_send(RT_PLUGIN_HOST_FD, RT_FRAME_READY, RT_STR_EMPTY);
    while (on && receive(&f) && f.kind == RT_FRAME_RUN)
        on = serve_run(h, (rt_str){.ptr = f.body, .len = f.len});
    rt_frame_clear(&f);
    h->ctx.deadline_ms = 0;
    if (h->plugin.shutdown != NULL) h->plugin.shutdown(&h->ctx);
    json_decref(h->settings);
    return 0;
}

int rt_plugin_host(int argc, char **argv) {
    if (argc != RT_PLUGIN_HOST_ARGS || !is_socket(RT_PLUGIN_HOST_FD)) {
        (void)fputs("retryd: " RT_PLUGIN_HOST_COMMAND " is what the server starts for itself\n", stderr);
        return 2;
    }
    confine();
    if (orphaned()) return 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    host h = {.settings = NULL};
    return live(&h, argv[1]);
}
