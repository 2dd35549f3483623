/* webhook.h: pushes attempts to http:, https: and mailto: targets.
 *
 * One thread of its own drives all transfers through libcurl's multi-socket interface on epoll.
 * Connections are kept and used again; https speaks HTTP/2 where the server does. Where a connection goes
 * is judged after the name was resolved, for each address and each redirect, so a name cannot lead into a
 * network that is refused.
 *
 * What is sent: a POST of the attempt's body with its headers, Content-Type application/json unless they
 * say otherwise, and webhook-id, webhook-timestamp, webhook-attempt and, with secrets, webhook-signature
 * (https://github.com/standard-webhooks/standard-webhooks, "v1" symmetric signatures). What comes back: an
 * answer counts once it is complete. One that breaks off is BROKEN, whatever its status was; of one longer
 * than RT_WEBHOOK_ANSWER_MAX only the status and the beginning are taken. mailto: accepted by the relay is
 * status 200; refused for good (5xx) is status 400, which no policy retries; anything else is one of the
 * failures that are retried. */
#ifndef RT_EXECUTOR_WEBHOOK_H
#define RT_EXECUTOR_WEBHOOK_H
#include "executor/webhook/address.h"
#include "port/executor.h"

enum {
    RT_WEBHOOK_ANSWER_MAX = 1 << 20, /* bytes read of an answer's body before the connection is dropped */
    RT_WEBHOOK_REDIRECTS_MAX = 5,
    RT_WEBHOOK_CONNECT_MS_MAX = 10000
};

typedef struct rt_webhook rt_webhook;

/* Strings are borrowed until rt_webhook_close. */
typedef struct rt_webhook_config {
    /* Called on the executor's thread with an outcome that is lent for the call. May not call into the executor. */
    void (*outcome)(void *ctx, const rt_outcome *outcome);
    void *ctx;
    rt_address_list allow;      /* delivery.allow_networks */
    uint32_t connections_max;   /* >= 1 and >= what the engine ever has under way; idle connections count too */
    uint32_t host_attempts_max; /* under way to one host and port, the others wait their turn; 0: no limit */
    uint32_t connect_ms;        /* resolving and handshakes included; 0 or more than the maximum: the maximum */
    uint32_t drain_ms;          /* how long rt_webhook_close waits for what is under way */
    uint32_t excerpt_bytes;     /* kept of an answer; at most RT_EVENT_TEXT_MAX */
    const char *user_agent;     /* NULL: "retryd/VERSION" */
    const char *ca_file;        /* PEM; NULL: the system's authorities */
    const char *mail_relay;     /* "smtp://HOST:PORT" or "smtps://…"; NULL: mailto ends as NO_MAIL_RELAY */
    const char *mail_user;      /* NULL: no login; with a login, smtp:// insists on STARTTLS */
    const char *mail_password;
    const char *mail_from;      /* sender of mails whose attempt names none; NULL: "retryd@localhost" */
} rt_webhook_config;

/* Copies `cfg`, starts the thread. RT_OK: returns owned *out. */
RT_MUST_USE rt_code rt_webhook_open(const rt_webhook_config *cfg, rt_webhook **out, rt_err *err);

/* The port's view of it; lives as long as `webhook`. `start` may be called from any thread, never blocks
 * and never refuses; more than connections_max attempts at a time are a bug of the caller (asserted). */
rt_executor rt_webhook_executor(rt_webhook *webhook);

/* Nobody may call `start` any more. Waits for what is under way, at most drain_ms; what is left then is
 * dropped without an outcome, as by a crash. Joins the thread. NULL is a no-op. */
void rt_webhook_close(rt_webhook *webhook);

#endif
