/* order.h: a long-lived order, which a plugin or worker advances task by task until it is ACTIVE or in ERROR.
 *
 * An order is one document; as long as it is PENDING one job (RT_JOB_TASK on its type's queue) stands for its live task.
 * The result of a task, the plugin's state, the order's state and the next task change in one change. ACTIVE and ERROR are
 * final. Source: Barbican, "Add Worker Retry/Update Support"; see also docs/orders.md. */
#ifndef RT_ENGINE_ORDERS_ORDER_H
#define RT_ENGINE_ORDERS_ORDER_H
#include "engine/orders/order_type.h"
#include "port/run.h"

enum {
    RT_ORDER_META_MAX = 64 * 1024,     /* bytes of JSON */
    RT_ORDER_SUB_STATUS_MAX = 36,      /* characters, as the next three; longer ones are cut at a whole character */
    RT_ORDER_MESSAGE_MAX = 255,
    RT_ORDER_ERROR_CODE_MAX = 16,
    RT_ORDER_ERROR_REASON_MAX = 255,
    RT_ORDER_CREATOR_MAX = 255,
    RT_ORDER_KEY_MAX = 128             /* bytes of an idempotency key */
};

typedef enum rt_order_status { RT_ORDER_PENDING = 1, RT_ORDER_ACTIVE, RT_ORDER_ERROR } rt_order_status;
const char *rt_order_status_name(rt_order_status s); /* "PENDING", … */

typedef struct rt_order {
    rt_id id, job;               /* job 0: no live task */
    int64_t created_ms, updated_ms;
    rt_order_status status;
    rt_str type, meta, creator;  /* meta: JSON object as text */
    bool has_sub_status;         /* a run has said something */
    rt_str sub_status, sub_status_message, error_code, error_reason;
    rt_str state;                /* the plugin's own */
    rt_str task, args, kwargs;   /* of the live task; args and kwargs are JSON text */
    uint32_t retries;            /* tasks and repetitions scheduled after the first run */
    uint32_t failures;           /* runs in a row that could not be done */
    uint64_t interval_s;         /* the backoff's last interval; 0: the last run could be done */
    uint64_t answered;           /* token of the run whose result was last taken from rt_order_result */
    rt_id secret, container;     /* made by it and kept here; 0: none */
    rt_str secret_ref, container_ref; /* of another service; empty: none */
} rt_order;

/* Its document's name is "<tenant>\0"<id, 8 bytes big endian>, so that a listing is in order of creation. */
rt_str rt_order_name(rt_arena *arena, rt_str tenant, rt_id id);
rt_str rt_order_encode(rt_arena *arena, const rt_order *o);
bool rt_order_decode(rt_str value, rt_order *out); /* lends */

/* Creates it with its first task. RT_E_ABSENT: no such type. The same `key` (empty: none) gets the same order, for a day;
 * RT_E_FENCED: it came with another type or meta before. */
typedef struct rt_order_create {
    rt_command cmd;
    rt_str tenant, type, meta, creator, key;
    rt_id id; /* out */
} rt_order_create;
void rt_order_create_init(rt_order_create *c);

/* Deletes it, its live task, and what it made. RT_E_ABSENT. A run under way is not recalled; its answer changes nothing. */
typedef struct rt_order_delete {
    rt_command cmd;
    rt_str tenant;
    rt_id id;
} rt_order_delete;
void rt_order_delete_init(rt_order_delete *c);

/* What a worker that answered 202 says later, or says before its answer has come. RT_E_ABSENT; RT_E_FENCED: the token does
 * not hold the task (any more). The same token again: RT_OK, and nothing changes. */
typedef struct rt_order_result {
    rt_command cmd;
    rt_str tenant;
    rt_id id;
    uint64_t token;
    rt_run_answer answer; /* strings are the caller's, until done */
} rt_order_result;
void rt_order_result_init(rt_order_result *c);

/* "Retry now": the live task is due at once, unless it is under way. RT_E_ABSENT; RT_E_FENCED: it is not PENDING. */
typedef struct rt_order_wake {
    rt_command cmd;
    rt_str tenant;
    rt_id id;
} rt_order_wake;
void rt_order_wake_init(rt_order_wake *c);

#endif
