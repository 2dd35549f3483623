/* order_type.h: who advances orders of a type: a plugin or an HTTP worker, how long a run may take, and what happens when
 * it cannot be done now. Each type of a tenant has a queue of its own, so that a slow plugin holds up nobody. */
#ifndef RT_ENGINE_ORDERS_ORDER_TYPE_H
#define RT_ENGINE_ORDERS_ORDER_TYPE_H
#include "engine/common/backoff.h"
#include "engine/common/name.h"
#include "port/executor.h"

/* The tenant whose types are there for all tenants that have none of that name. */
#define RT_ORDER_EVERYBODY RT_STR("*")

enum { RT_ORDER_TYPE_NAME_MAX = RT_NAME_WORD_MAX, RT_ORDER_TYPES_MAX = 256 /* of a tenant */ };

typedef struct rt_order_type {
    rt_id queue;
    int64_t changed_ms;
    rt_str target;            /* "plugin:NAME" or an http(s) URL; at most RT_URI_MAX */
    rt_str headers;           /* HTTP worker: "Name: value\n"… */
    rt_str secrets[RT_SECRETS_MAX]; /* HTTP worker: requests are signed with them */
    rt_str first_task;        /* of a new order; empty: "create_order" */
    rt_backoff backoff;       /* between runs that could not be done; not given: 1 s doubling to 5 min */
    uint32_t max_attempts;    /* failed runs in a row before the order is in ERROR; 0: no limit */
    uint32_t run_limit_ms;    /* of one run (30000); 1000..3600000 */
    uint32_t answer_limit_s;  /* after 202: how long the worker has to PUT its result (3600) */
    uint32_t concurrency;     /* runs at the same time; 0: the server's setting */
    bool cancel;              /* it is told when a PENDING order is deleted */
} rt_order_type;

/* Stored form. encode: into the arena; ptr NULL: out of memory. decode lends strings; false: corrupt. */
rt_str rt_order_type_encode(rt_arena *arena, const rt_order_type *t);
bool rt_order_type_decode(rt_str value, rt_order_type *out);

/* Registers it (with its queue), or changes what it was: takes effect at once. RT_E_TOO_LARGE: there are
 * RT_ORDER_TYPES_MAX. */
typedef struct rt_order_type_put {
    rt_command cmd;
    rt_str tenant, name;
    rt_order_type like; /* queue and changed_ms are filled in */
    bool only_new;      /* leave it alone if it is there: demo types at the start */
    bool created;       /* out */
} rt_order_type_put;
void rt_order_type_put_init(rt_order_type_put *c);

/* RT_E_ABSENT; RT_E_FENCED: orders of it are PENDING. */
typedef struct rt_order_type_delete {
    rt_command cmd;
    rt_str tenant, name;
} rt_order_type_delete;
void rt_order_type_delete_init(rt_order_type_delete *c);

#endif
