/* call_type.h: a type of failed calls ("event type" on the wire): how they are retried, where they go, and what protects
 * their target. Each type of a tenant has one queue. */
#ifndef RT_ENGINE_CALLS_CALL_TYPE_H
#define RT_ENGINE_CALLS_CALL_TYPE_H
#include "engine/common/backoff.h"
#include "engine/common/command.h"
#include "policy/circuit.h"
#include "policy/pace.h"
#include "port/executor.h"
#include "retryd/policy.h"

enum {
    RT_CALL_TYPE_NAME_MAX = 128, /* letters, digits, '.', '_', '-', ':' */
    RT_CALL_TYPES_MAX = 4096,    /* of a tenant */
    RT_CALL_TYPE_JSON_MAX = 64 * 1024
};

/* Which of the two schedules governs it. */
typedef enum rt_call_policy { RT_CALL_DELIVERY_POLICY, RT_CALL_BACKOFF } rt_call_policy;

typedef struct rt_call_type {
    rt_id queue;
    int64_t changed_ms;
    rt_call_policy policy;
    rt_delivery_policy delivery; /* also under BACKOFF: what fails an attempt (retry_on, …), timeout, maximum_age_s */
    rt_backoff backoff;
    uint32_t max_attempts;       /* BACKOFF: 1..; 0: no limit */
    rt_str target;               /* http(s) URL, "plugin:NAME", "kafka:TOPIC"; empty: fetched by workers */
    rt_str headers;              /* webhook: "Name: value\n"… */
    rt_str secrets[RT_SECRETS_MAX];
    rt_circuit_settings circuit;
    rt_pace_settings pace;
    uint32_t concurrency;        /* attempts or leases at the same time, of all nodes; 0: the setting of each server,
                                  * and no limit of leases */
    uint32_t rate_per_s;         /* starts a second, of all nodes; 0: no limit */
    bool ordered;                /* calls without an order key of their own share one */
    rt_str dead_type;            /* another type that gets what died here as a new call; empty, or not there: it
                                  * stays, dead, on its queue */
    uint32_t dead_keep_s;        /* those that die from now on are deleted after so long; 0: never */
    uint32_t buckets;            /* partitions on Kafka (1); 1..1024 */
    rt_str json;                 /* as the client gave it */
} rt_call_type;

rt_str rt_call_type_name(rt_arena *arena, rt_str tenant, rt_str name); /* of its document; ptr NULL: out of memory */
rt_str rt_call_type_encode(rt_arena *arena, const rt_call_type *t);
bool rt_call_type_decode(rt_str value, rt_call_type *out); /* lends */

/* Makes it (with its queue) or changes what it was: takes effect at once, for what waits too. `version` 0:
 * whatever is there; otherwise RT_E_CONFLICT if it has another one; also where only a new one, or only one that is there,
 * is wanted and it is not that. RT_E_TOO_LARGE: RT_CALL_TYPES_MAX. RT_E_FENCED:
 * between a target that is pushed and pull while calls wait. RT_E_INVALID: by their dead_types, dead calls would
 * come back to it. */
typedef struct rt_call_type_put {
    rt_command cmd;
    rt_str tenant, name;
    rt_call_type like; /* queue and changed_ms are filled in */
    uint64_t version;
    bool only_new, only_known;
    bool created;         /* out */
    uint64_t version_now; /* out */
} rt_call_type_put;
void rt_call_type_put_init(rt_call_type_put *c);

/* Deletes it with all its calls (an event each stays). RT_E_ABSENT; RT_E_FENCED: calls wait, and not `force`. */
typedef struct rt_call_type_delete {
    rt_command cmd;
    rt_str tenant, name;
    bool force;
} rt_call_type_delete;
void rt_call_type_delete_init(rt_call_type_delete *c);

/* For decisions, in the arena. RT_E_ABSENT. `version` may be NULL. */
rt_code rt_call_type_load(rt_tx *tx, rt_str tenant, rt_str name, rt_call_type *out, uint64_t *version);
/* The type whose calls are on `queue`, and that queue's record. RT_E_ABSENT: the queue has none (any more). */
rt_code rt_call_type_of_queue(rt_tx *tx, rt_id queue, rt_queue *record, rt_call_type *out);
/* What the name of a type's queue says. False: not such a name. */
bool rt_call_type_split(rt_str queue_name, rt_str *tenant, rt_str *name);

#endif
