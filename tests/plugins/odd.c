/* A plugin that behaves, or misbehaves, as its task asks. ODD_ABI, ODD_INIT, ODD_LOAD: how it misbehaves before. */
#include <fcntl.h>
#include <poll.h>
#include <retryd/plugin.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef ODD_ABI
#define ODD_ABI RETRYD_PLUGIN_ABI
#endif
#ifndef ODD_INIT
#define ODD_INIT ""
#endif

enum { SERVER_FD = 3, HUGE_BYTES = 60000 };

static unsigned runs; /* of this process */

static void wait_ms(int ms) { (void)poll(NULL, 0, ms); }

static void hang(void) {
    for (;;) wait_ms(1000);
}

static void crash(void) { (void)raise(SIGSEGV); }

/* To the server, past all that retryd has to say. */
static void write_all(const char *bytes, size_t len) { (void)!write(SERVER_FD, bytes, len); }

#ifdef ODD_LOAD
__attribute__((constructor)) static void load(void) {
    if (strcmp(ODD_LOAD, "crash") == 0) crash();
    else write_all("what?\n\n\n\n\n\n\n", 12);
}
#endif

static void flood(void) {
    static const char answer[] = "Artd\2\0\0\0{}";
    for (;;) write_all(answer, sizeof answer - 1);
}

static void claim_huge(void) {
    static const char head[] = "Artd\xff\xff\xff\x7f";
    write_all(head, sizeof head - 1);
    hang();
}

/* A child of the child, which keeps the socket open and outlives its parent. */
static void leave_a_child(void) {
    const pid_t pid = fork();
    if (pid == 0) hang();
    (void)fprintf(stderr, "left %d\n", (int)pid);
    crash();
}

static void print(void) {
    (void)puts("to standard output");
    (void)fputs("to standard error\nand \x1b[31mred\x1b[0m\n", stderr);
    for (int i = 0; i < 1000; i++) (void)fprintf(stderr, "line %d\n", i);
    for (int i = 0; i < 100000; i++) (void)fputc('x', stderr);
}

static void huge(struct retryd_reply *reply) {
    static char text[HUGE_BYTES];
    memset(text, 'x', sizeof text - 1);
    retryd_reply_state(reply, text);
    retryd_reply_done(reply);
}

static void describe(struct retryd_ctx *ctx, const struct retryd_task *task, const struct retryd_order *order,
                     struct retryd_reply *reply) {
    char text[1024];
    const char *colour = retryd_setting(ctx, "colour");
    (void)snprintf(text, sizeof text, "%d %u|%s|%s|%s|%s|%s|%s|%u|%s|%lld|%s", (int)getpid(), ++runs,
                   order->id, order->type, task->args, task->kwargs, order->meta,
                   order->state != NULL ? order->state : "(none)", (unsigned)ctx->attempt, ctx->token,
                   (long long)ctx->deadline_ms, colour != NULL ? colour : "(none)");
    retryd_reply_state(reply, text);
    retryd_reply_done(reply);
}

static void until_cancelled(struct retryd_ctx *ctx, struct retryd_reply *reply) {
    (void)fputs("waiting\n", stderr);
    while (!retryd_cancelled(ctx)) wait_ms(5);
    (void)fputs("cancelled\n", stderr);
    retryd_reply_unavailable(reply, -1);
}

static void slow(struct retryd_ctx *ctx, const struct retryd_order *order, struct retryd_reply *reply) {
    int64_t ms = 0;
    (void)retryd_integer(ctx, order->meta, "ms", &ms);
    wait_ms((int)ms);
    retryd_reply_done(reply);
}

static void run(struct retryd_ctx *ctx, const struct retryd_task *task, const struct retryd_order *order,
                struct retryd_reply *reply) {
    const char *t = task->name;
    if (strcmp(t, "describe") == 0) describe(ctx, task, order, reply);
    else if (strcmp(t, "hang") == 0) hang();
    else if (strcmp(t, "crash") == 0) crash();
    else if (strcmp(t, "abort") == 0) abort();
    else if (strcmp(t, "exit") == 0) _exit(7);
    else if (strcmp(t, "close") == 0) (void)close(SERVER_FD), hang();
    else if (strcmp(t, "garbage") == 0) write_all("what?\n\n\n\n\n\n\n\n\n\n", 15), hang();
    else if (strcmp(t, "flood") == 0) flood();
    else if (strcmp(t, "claim_huge") == 0) claim_huge();
    else if (strcmp(t, "leave_a_child") == 0) leave_a_child();
    else if (strcmp(t, "print") == 0) print();
    else if (strcmp(t, "huge") == 0) huge(reply);
    else if (strcmp(t, "not_utf8") == 0) retryd_reply_state(reply, "\xff");
    else if (strcmp(t, "until_cancelled") == 0) until_cancelled(ctx, reply);
    else if (strcmp(t, "slow") == 0) slow(ctx, order, reply);
}

static const char *init(struct retryd_ctx *ctx) {
    (void)ctx;
    if (strcmp(ODD_INIT, "crash") == 0) crash();
    if (strcmp(ODD_INIT, "refuse") == 0) return "no smartcard in the reader";
    return NULL;
}

static void leave(struct retryd_ctx *ctx) { retryd_log(ctx, "shutting down"); }

static const struct retryd_plugin plugin = {
    .abi = ODD_ABI, .size = sizeof plugin, .name = "odd", .init = init, .shutdown = leave, .run = run};
RETRYD_PLUGIN(plugin)
