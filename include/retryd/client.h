/* client.h: hand failed calls to retryd, run them again, and work in a fleet. Link with `pkg-config --libs
 * retryd-client`.
 *
 *     retry_client *client;
 *     retry_client_config config = RETRY_CLIENT_CONFIG("http://127.0.0.1:8888");
 *     config.spool_dir = "/var/spool/shop";                       // for when the server is away
 *     if (retry_client_open(&config, &client, &error) < 0) ...
 *
 *     retry_request request = RETRY_REQUEST(body, body_bytes);
 *     retry_code code = retry_schedule(client, "card.transaction", &request, NULL, &error);
 *
 * Errors. A call returns a retry_code: negative when it failed, 0 or positive when it did not, where the
 * number says how. What went wrong stands in *error, in words; it may be NULL, and is left alone by a call
 * that succeeds.
 *
 * Threads. A client and a session may be used by any number of threads at once, from open until close. A
 * retry_call and a retry_work belong to one thread at a time. No object may be used while another thread
 * closes or ends it. The threads that the library starts (see retry_client_open, retry_register) block all
 * signals. A child of fork() must not use, and not close, what its parent opened.
 *
 * Ownership. What is handed in is borrowed for the call and copied where it is kept. `const char *` that
 * comes out is owned by the object it was asked of and lives as long. What is for the caller to release
 * says so.
 *
 * Stability. Programs built with an older header run with a newer library of the same soname:
 * configurations carry their size (the macros set it), members that an old program does not know are taken
 * as 0, and 0 is always the default. */
#ifndef RETRYD_CLIENT_H
#define RETRYD_CLIENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RETRY_API __attribute__((visibility("default")))

typedef enum retry_code {
    RETRY_OK = 0,
    RETRY_SCHEDULED = 1, /* on the disk of the server */
    RETRY_SPOOLED = 2,   /* on the disk of this machine, in the spool; sent as soon as the server answers */
    RETRY_NOTHING = 3,   /* nothing to do within the time to wait */
    RETRY_E_INVALID = -1, /* an argument breaks a rule; the message names both */
    RETRY_E_NOMEM = -2,
    RETRY_E_AWAY = -3,    /* no answer, or one that says "later" (408, 429, 5xx), until the time was over */
    RETRY_E_REFUSED = -4, /* the server will not have it; the message has its words */
    RETRY_E_STALE = -5,   /* what one held is no longer one's own: lease over, session expired, work ended */
    RETRY_E_FULL = -6,    /* the server is away and the spool has no room */
    RETRY_E_IO = -7,      /* the spool's disk, or a thread that could not be started */
    RETRY_E_GAVE_UP = -8  /* retry_run: the callback said that trying again is of no use; nothing is kept */
} retry_code;

typedef struct retry_error {
    retry_code code;
    int status; /* HTTP status that the server answered with; 0: none */
    char message[248];
} retry_error;

/* "RETRY_E_AWAY", … */
RETRY_API const char *retry_code_name(retry_code code);
/* Of the library in use, as "1.2.3". */
RETRY_API const char *retry_version(void);

/* ---- client -------------------------------------------------------------------------------------------- */

typedef struct retry_client retry_client;

typedef enum retry_log_level { RETRY_LOG_INFO, RETRY_LOG_WARNING } retry_log_level;
/* What the library has nobody to return it to: the server went away and came back, a lease was lost.
 * Called from any thread, also from several at once. */
typedef void (*retry_log)(void *arg, retry_log_level level, const char *message);

typedef struct retry_client_config {
    size_t size;              /* of this struct: RETRY_CLIENT_CONFIG sets it */
    const char *url;          /* of the server: "http://HOST:PORT" */
    const char *project;      /* sent as X-Project-ID. NULL: the server's default */
    const char *token;        /* sent as X-Auth-Token. NULL: none */
    const char *ca_file;      /* PEM, for https. NULL: the system's */
    uint32_t timeout_ms;      /* for one call, repeats included, and for one request. 0: 10,000 */
    const char *spool_dir;    /* folder of the spool, made if its parent is there. NULL: no spool */
    uint64_t spool_bytes_max; /* 0: 64 MiB. A spool that is shared is judged by the limit of who writes */
    retry_log log;            /* NULL: silent */
    void *log_arg;
} retry_client_config;
#define RETRY_CLIENT_CONFIG(url_) {.size = sizeof(retry_client_config), .url = (url_)}

/* Returns an owned *client; does not ask whether the server is there. With a spool it starts a thread that
 * sends what is in the folder, also what an earlier process left. */
RETRY_API retry_code retry_client_open(const retry_client_config *config, retry_client **client,
                                       retry_error *error);
/* Ends the library's threads; stop workers and close sessions before. What is in the spool stays there for
 * whoever opens it next. NULL is a no-op. */
RETRY_API void retry_client_close(retry_client *client);

/* One request of any kind, for all that has no function here:
 *     retry_ask(client, "PUT", "/v1/event-types/T", "{\"target\": {\"pull\": true}}", NULL, &error);
 * `json`: the body, or NULL. RETRY_OK: answered with 2xx; *answer (`answer` may be NULL) is the body with
 * a NUL behind it, for retry_free. Not repeated: RETRY_E_AWAY leaves open whether it was done. */
RETRY_API retry_code retry_ask(retry_client *client, const char *method, const char *path, const char *json,
                               char **answer, retry_error *error);
RETRY_API void retry_free(void *memory);

/* ---- scheduling ---------------------------------------------------------------------------------------- */

enum {
    RETRY_TYPE_BYTES_MAX = 128,
    RETRY_REASON_BYTES_MAX = 128,
    RETRY_WORD_BYTES_MAX = 256,     /* idempotency keys, order keys, content types */
    RETRY_BODY_BYTES_MAX = 16 << 20 /* the server's own limit may be lower */
};

typedef struct retry_request {
    size_t size;              /* RETRY_REQUEST sets it */
    const void *body;         /* any bytes; may be NULL if there are none */
    size_t body_bytes;
    const char *content_type; /* NULL: "application/octet-stream" */
    const char *key;          /* idempotency key: within a day it makes one event. NULL: a random one */
    const char *reason;       /* why the call failed: "api1-429", "api1-5xx", … NULL: none */
    const char *order_key;    /* events of one key are run one after the other. NULL: none */
    uint32_t deliver_after_s; /* not before so many seconds have passed */
} retry_request;
#define RETRY_REQUEST(body_, bytes_) {.size = sizeof(retry_request), .body = (body_), .body_bytes = (bytes_)}

typedef struct retry_receipt {
    char id[32];                        /* of the job on the server; "" while it is in the spool */
    char key[RETRY_WORD_BYTES_MAX + 1]; /* the idempotency key that it went or will go by */
} retry_receipt;

/* Hands an event over, and returns once it is on a disk: RETRY_SCHEDULED: the server's. RETRY_SPOOLED:
 * this machine's, because the server did not answer or has not answered of late, or because events with an
 * order key wait in the spool and this one has to stand behind them. Repeats, also those out of the spool,
 * carry the same idempotency key: nothing is there twice. Without a spool a server that is away is asked
 * again, with growing pauses, until timeout_ms is over. `receipt` may be NULL. After RETRY_E_AWAY it may
 * be there all the same; ask again with receipt->key, which is filled in whatever happens. */
RETRY_API retry_code retry_schedule(retry_client *client, const char *type, const retry_request *request,
                                    retry_receipt *receipt, retry_error *error);

/* Waits until the spool is empty, at most `timeout_ms`. RETRY_OK: it is; RETRY_E_AWAY: it is not. */
RETRY_API retry_code retry_flush(retry_client *client, uint32_t timeout_ms, retry_error *error);

typedef struct retry_spool_state {
    uint64_t bytes;         /* in the folder, not yet sent */
    uint64_t refused_bytes; /* of refused.ndjson: events that the server would never have, to look at */
    uint64_t sent;          /* events sent out of the spool by this client since it was opened */
    uint64_t refused;       /* and those refused */
    uint64_t damaged;       /* lines with a wrong checksum, skipped: cut short by a crash, or a sick disk */
} retry_spool_state;
/* Zeros without a spool. */
RETRY_API void retry_spool_look(retry_client *client, retry_spool_state *out);

/* ---- calls that are tried again ------------------------------------------------------------------------ */

/* One run of a registered callback. */
typedef struct retry_call retry_call;
/* Does the call. Returns 0 if it succeeded; anything else: it failed and is tried again. A callback may be
 * run by several threads at once, and, when it is known whether it succeeded only here, more than once for
 * the same event. */
typedef int (*retry_callback)(retry_call *call, void *arg);

RETRY_API const char *retry_call_type(const retry_call *call);
/* With a NUL behind it. A worker gets what has the content type application/json as JSON that means the
 * same. */
RETRY_API const void *retry_call_body(const retry_call *call, size_t *bytes);
RETRY_API const char *retry_call_content_type(const retry_call *call);
RETRY_API const char *retry_call_reason(const retry_call *call); /* that it was scheduled with; "" if none */
RETRY_API const char *retry_call_order_key(const retry_call *call); /* "" if none */
RETRY_API const char *retry_call_id(const retry_call *call);   /* of the job; "" when run by retry_run */
RETRY_API uint32_t retry_call_attempt(const retry_call *call); /* 0: run by retry_run; 1, 2, … by a worker */
/* True once the lease is over: another worker may have it, so leave no more traces. For long callbacks. */
RETRY_API bool retry_call_lost(const retry_call *call);
/* What to tell of a failure: a reason that can be counted ("api1-429"), and details; either may be NULL. */
RETRY_API void retry_call_failed(retry_call *call, const char *reason, const char *details);
/* The dependency has said when: not before so many seconds have passed (as in Retry-After). */
RETRY_API void retry_call_not_before(retry_call *call, uint32_t seconds);
/* Trying again is of no use: it becomes a dead letter at once. */
RETRY_API void retry_call_give_up(retry_call *call);

/* Says how events of a type are run. Once a type; before retry_run and retry_workers_start of it. */
RETRY_API retry_code retry_register(retry_client *client, const char *type, retry_callback callback,
                                    void *arg, retry_error *error);
/* Runs the callback now, in this thread. RETRY_OK: it succeeded, nothing is kept. If it fails it is
 * scheduled as by retry_schedule, to be run by whoever works on the type: RETRY_SCHEDULED or
 * RETRY_SPOOLED. request->reason counts unless the callback gives one. */
RETRY_API retry_code retry_run(retry_client *client, const char *type, const retry_request *request,
                               retry_receipt *receipt, retry_error *error);

typedef struct retry_workers_config {
    size_t size;      /* RETRY_WORKERS_CONFIG sets it */
    uint32_t threads; /* 1..256; 0: 1 */
    uint32_t lease_s; /* 3..43,200; 0: 30. Extended in the background for as long as the callback runs */
    uint32_t batch;   /* 1..20 events a claim, run one after the other; 0: 1 */
    uint32_t wait_ms; /* 1..60,000: how long a claim waits for events, and so a stop for it; 0: 5,000 */
    const char *name; /* shown to operators. NULL: host name and process id */
} retry_workers_config;
#define RETRY_WORKERS_CONFIG {.size = sizeof(retry_workers_config)}

typedef struct retry_workers retry_workers;
/* Starts threads that claim events of a registered type (its target on the server must be {"pull": true}),
 * run the callback, and finish or fail them. A server that is away is asked again with growing pauses.
 * `config` may be NULL. Returns an owned *workers. */
RETRY_API retry_code retry_workers_start(retry_client *client, const char *type,
                                         const retry_workers_config *config, retry_workers **workers,
                                         retry_error *error);
/* Waits for the callbacks and claims under way, gives back what was claimed and not begun, and releases
 * `workers`. Not from a callback. NULL is a no-op. */
RETRY_API void retry_workers_stop(retry_workers *workers);

/* ---- work in a fleet: sessions, claims (docs/work.md) -------------------------------------------------- */

typedef struct retry_session retry_session;

typedef struct retry_session_config {
    size_t size;           /* RETRY_SESSION_CONFIG sets it */
    const char *component; /* shown to operators */
    const char *runtime;   /* NULL: host name and process id */
    uint32_t interval_s;   /* 1..3600; 0: 5. Dead if not heard of for so long */
} retry_session_config;
#define RETRY_SESSION_CONFIG {.size = sizeof(retry_session_config)}

/* Opens a session, whose heartbeats are sent in the background, three an interval. Returns an owned
 * *session. */
RETRY_API retry_code retry_session_open(retry_client *client, const retry_session_config *config,
                                        retry_session **session, retry_error *error);
/* Ends it on the server too, as far as that can be reached. End its work before. NULL is a no-op. */
RETRY_API void retry_session_close(retry_session *session);

typedef struct retry_claim_config {
    size_t size;                   /* RETRY_CLAIM_CONFIG sets it */
    const char *process;           /* what to do */
    const char *kind;              /* with any entity of a kind … */
    const char *const *candidates; /* … or with the first of these that is free; exactly one of the two */
    size_t candidate_count;        /* 1..1000 */
    bool strict;                   /* the first candidate or none */
    bool ignore_backoff;
    uint32_t wait_ms;              /* at most 60,000; 0: do not wait */
} retry_claim_config;
#define RETRY_CLAIM_CONFIG {.size = sizeof(retry_claim_config)}

/* One piece of work that is held. */
typedef struct retry_work retry_work;
/* RETRY_OK: *work is held, and owned: end it by finish, fail or cancel. RETRY_NOTHING: nothing to do
 * (strict: the candidate is taken, excluded or rests). A session that has expired is replaced by a new one
 * first; what was held in the old one is lost. Repeated with an idempotency key while the server is away,
 * until timeout_ms (and wait_ms) are over. */
RETRY_API retry_code retry_claim(retry_session *session, const retry_claim_config *config, retry_work **work,
                                 retry_error *error);

RETRY_API const char *retry_work_id(const retry_work *work);
RETRY_API const char *retry_work_entity(const retry_work *work);
RETRY_API const char *retry_work_process(const retry_work *work);
RETRY_API const char *retry_work_value(const retry_work *work); /* the entity's value, as JSON */
/* Of the backoff; 0: the last run did not fail. */
RETRY_API double retry_work_previous_interval_s(const retry_work *work);
/* True once the session is over: another may have the work, so leave no more traces. */
RETRY_API bool retry_work_lost(const retry_work *work);

/* Each takes `work`: it is released even on failure. Repeated while the server is away and the session can
 * be alive; the effect is that of one. RETRY_E_STALE: it was no longer held, nothing was changed. */

/* Done. `entity_patch`: JSON merged into the entity's value in the same commit (RFC 7396), or NULL. */
RETRY_API retry_code retry_work_finish(retry_work *work, const char *entity_patch, retry_error *error);
/* Failed, with a cause in words. `backoff`: JSON, or NULL for the process's own. */
RETRY_API retry_code retry_work_fail(retry_work *work, const char *cause, const char *backoff,
                                     retry_error *error);
/* As if nothing had been tried. */
RETRY_API retry_code retry_work_cancel(retry_work *work, retry_error *error);

#ifdef __cplusplus
}
#endif
#endif
