/* simple_certificate: the demonstration of the orders design: a certificate authority that takes its time.
 *
 * The first task hands the request in and answers "waiting": check again after delay_before_update_seconds.
 * The check finds the certificate generated. Nothing is signed; what it shows is an order that stays PENDING
 * between two tasks, over restarts. Source: OpenStack Barbican, "Add worker retry and future updates
 * support", NF-3. */
#include <errno.h>
#include <retryd/plugin.h>
#include <stdlib.h>
#include <string.h>

enum { DELAY_S = 5, DELAY_S_MAX = 30 * 24 * 3600 };

static int64_t delay_ms;

static const char *init(struct retryd_ctx *ctx) {
    const char *text = retryd_setting(ctx, "delay_before_update_seconds");
    long seconds = DELAY_S;
    if (text != NULL) {
        char *end;
        errno = 0;
        seconds = strtol(text, &end, 10);
        if (errno != 0 || *end != '\0' || end == text || seconds < 0 || seconds > DELAY_S_MAX) {
            return "delay_before_update_seconds is a whole number of seconds, at most 30 days";
        }
    }
    delay_ms = seconds * INT64_C(1000);
    return NULL;
}

static void issue(const struct retryd_order *order, struct retryd_reply *reply) {
    // The order's id stands for the number under which a real authority would find the request again.
    retryd_reply_state(reply, order->id);
    retryd_reply_progress(reply, "cert_request_pending",
                          "The request was handed in; the authority has not decided yet.");
    retryd_reply_retry(reply, delay_ms, "check_certificate_status", NULL, NULL);
}

static void check(struct retryd_reply *reply) {
    static const char text[] = "This is where the certificate would be.\n";
    const struct retryd_secret certificate = {
        .size = sizeof certificate,
        .content_type = "text/plain",
        .payload = text,
        .payload_len = sizeof text - 1,
    };
    retryd_reply_progress(reply, "cert_generated", "The certificate was generated.");
    retryd_reply_member(reply, "certificate", &certificate);
    retryd_reply_done(reply);
}

static void run(struct retryd_ctx *ctx, const struct retryd_task *task, const struct retryd_order *order,
                struct retryd_reply *reply) {
    (void)ctx;
    if (strcmp(task->name, "check_certificate_status") == 0) check(reply);
    else if (strcmp(task->name, "create_order") == 0) issue(order, reply);
    else retryd_reply_failed(reply, 400, "there is no such task of certificate orders");
}

static void cancel(struct retryd_ctx *ctx, const struct retryd_order *order, struct retryd_reply *reply) {
    (void)order;
    retryd_log(ctx, "a request was withdrawn");
    retryd_reply_done(reply);
}

static const struct retryd_plugin plugin = {
    .abi = RETRYD_PLUGIN_ABI,
    .size = sizeof plugin,
    .name = "simple_certificate",
    .init = init,
    .run = run,
    .cancel = cancel,
};
RETRYD_PLUGIN(plugin)
