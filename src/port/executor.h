/* executor.h: how a try is made. The engine hands over attempts and gets outcomes back. */
#ifndef RT_PORT_EXECUTOR_H
#define RT_PORT_EXECUTOR_H
#include "port/record.h"

enum { RT_SECRETS_MAX = 2 };

/* One try. It owns its memory: everything it points to lies in one allocation, freed with rt_attempt_free.
 * Strings are NUL-terminated behind their length. */
typedef struct rt_attempt {
    rt_id job, queue;
    uint64_t token;          /* the lease; comes back with the outcome */
    uint32_t number;         /* 1 = the first */
    uint32_t timeout_ms;     /* for the whole attempt, connecting included */
    bool follow_redirects;
    uint32_t answer_max;     /* > 0: the whole answer is wanted, up to so many bytes, as rt_outcome.answer */
    rt_str url;              /* http:, https:, mailto:, plugin:NAME or kafka:TOPIC: says which executor makes it */
    rt_str headers;          /* extra header lines, "Name: value\n"…, of names that are RT_HEADER_FREE; may be empty */
    rt_str message_id;       /* stable over retries: webhook-id */
    rt_str secrets[RT_SECRETS_MAX]; /* signing keys as configured ("whsec_…"); empty: none */
    rt_str subject, from;    /* mailto only; may be empty */
    rt_str content_type;     /* http only; empty: application/json */
    rt_str key;              /* kafka only: of the record; may be empty */
    rt_str body;             /* what is sent; a plugin: the run as JSON, the same that an HTTP worker is sent */
} rt_attempt;

/* May a field of this name be among an attempt's `headers`? It must be a token (RFC 9110, 5.6.2), and neither one that
 * frames the message or belongs to the connection nor one that retryd sets itself (webhook-…). */
typedef enum rt_header_name { RT_HEADER_FREE, RT_HEADER_MALFORMED, RT_HEADER_RESERVED } rt_header_name;
rt_header_name rt_attempt_header_name(rt_str name);

/* Returns an owned attempt whose strings are copies of those of `like`. NULL: out of memory. */
rt_attempt *rt_attempt_new(const rt_attempt *like);
void rt_attempt_free(rt_attempt *attempt);

/* What came of it. RT_REASON_DELIVERED is never set here: an answer is RT_REASON_STATUS with its status, and the policy
 * judges it. Otherwise TIMEOUT, CONNECT, RESOLVE, TLS, BROKEN, CRASHED, NO_PLUGIN (retried), ADDRESS_REFUSED,
 * NO_MAIL_RELAY (final).
 * mailto: status 250 taken as 200 when the relay accepted it; its 4xx answers come as BROKEN.
 * plugin: status 200 with its answer. kafka: status 200 when the brokers have acknowledged the record.
 * An answer beyond answer_max comes as BROKEN, and says so in its text. */
typedef struct rt_outcome {
    rt_id job;
    uint64_t token;
    rt_reason reason;
    uint16_t status;
    uint32_t took_ms;
    int64_t retry_after_ms;  /* from a Retry-After header; -1: none */
    uint16_t text_len;
    uint32_t answer_len;
    char *answer;    /* owned, malloc'd; NULL: none. Goes with the outcome to the engine, which frees it */
    char text[RT_EVENT_TEXT_MAX]; /* first bytes of the answer's body, or the error in words; empty with a whole answer of
                                     success, which may hold what no history should (keys) */
} rt_outcome;

/* `start` takes the attempt, never blocks and never refuses: the engine bounds what is under way (count and bytes).
 * Each started attempt ends in exactly one outcome, at the latest its timeout + 1 s after its start. */
typedef struct rt_executor {
    void *ctx;
    void (*start)(void *ctx, rt_attempt *attempt);
} rt_executor;

/* Which executor makes an attempt. */
typedef enum rt_target { RT_TARGET_WEBHOOK, RT_TARGET_PLUGIN, RT_TARGET_KAFKA, RT_TARGET_COUNT } rt_target;
rt_target rt_attempt_target(rt_str url);

/* May it stand behind "plugin:"? 1 to RT_PLUGIN_NAME_MAX of a-z, 0-9, '_' and '-': never a path. */
enum { RT_PLUGIN_NAME_MAX = 64 };
bool rt_plugin_name_is_valid(rt_str name);

/* May a Kafka topic have this name, as behind "kafka:"? 1 to RT_TOPIC_NAME_MAX letters, digits, '.', '_' and '-', but
 * neither "." nor "..". Source: Apache Kafka, Topic.java. */
enum { RT_TOPIC_NAME_MAX = 249 };
#define RT_TOPIC_NAME_RULE "1 to 249 letters, digits, '.', '_' and '-', and neither \".\" nor \"..\""
bool rt_topic_name_is_valid(rt_str name);

#endif
