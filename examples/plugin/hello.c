/* hello: the smallest plugin that does all that plugins do. Build it where retryd is installed:
 *
 *     cc -shared -fPIC -o hello.so hello.c
 *
 * put it into the directory of plugins (retryd config --explain: plugins.directory), and order:
 *
 *     curl -X PUT $URL/v1/order-types/hello -d '{"target": {"plugin": "hello"}}'
 *     curl -X POST $URL/v1/orders -H 'Content-Type: application/json' -H 'X-Project-Id: default' \
 *          -d '{"type": "hello", "meta": {"who": "world"}}'
 *
 * The first task says hello and comes back after a second; the second one is done, and keeps the greeting as
 * a secret. */
#include <retryd/plugin.h>
#include <stdio.h>
#include <string.h>

static const char *greeting = "Hello";

static const char *init(struct retryd_ctx *ctx) {
    const char *configured = retryd_setting(ctx, "greeting"); /* [plugin.hello] greeting = Good morning */
    if (configured != NULL) greeting = configured;
    return NULL;
}

static void validate(struct retryd_ctx *ctx, const struct retryd_order *order, struct retryd_reply *reply) {
    if (retryd_text(ctx, order->meta, "who") == NULL) retryd_reply_failed(reply, 400, "meta.who is missing");
}

static void create(struct retryd_ctx *ctx, const struct retryd_order *order, struct retryd_reply *reply) {
    char text[256];
    const char *who = retryd_text(ctx, order->meta, "who"); /* there is one: validate has looked */
    (void)snprintf(text, sizeof text, "%s, %.200s!", greeting, who);
    retryd_log(ctx, text);
    retryd_reply_state(reply, text);
    retryd_reply_progress(reply, "greeted", "Waiting for an answer.");
    retryd_reply_retry(reply, 1000, "finish", NULL, NULL);
}

static void finish(const struct retryd_order *order, struct retryd_reply *reply) {
    const struct retryd_secret secret = {
        .size = sizeof secret,
        .name = "greeting",
        .content_type = "text/plain",
        .payload = order->state,
        .payload_len = strlen(order->state),
    };
    retryd_reply_secret(reply, &secret);
    retryd_reply_progress(reply, "finished", "That was all.");
    retryd_reply_done(reply);
}

static void run(struct retryd_ctx *ctx, const struct retryd_task *task, const struct retryd_order *order,
                struct retryd_reply *reply) {
    /* Each task may run more than once: after a crash, or when its answer was lost. */
    if (strcmp(task->name, "finish") == 0 && order->state != NULL) finish(order, reply);
    else create(ctx, order, reply);
}

static const struct retryd_plugin plugin = {
    .abi = RETRYD_PLUGIN_ABI,
    .size = sizeof plugin,
    .name = "hello",
    .init = init,
    .validate = validate,
    .run = run,
};
RETRYD_PLUGIN(plugin)
