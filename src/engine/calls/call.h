/* call.h: a failed call that was handed over, to be tried until it succeeds ("event" on the wire; events of the engine are
 * lines of history).
 *
 * A call is a job (RT_JOB_CALL; with RT_JOB_PULL if workers fetch it). Its body begins with what is known of it, then its
 * payload as it came in. Calls of one order key are in line: the next starts after the one before it ended. */
#ifndef RT_ENGINE_CALLS_CALL_H
#define RT_ENGINE_CALLS_CALL_H
#include "engine/calls/call_type.h"
#include "engine/common/cursor.h"

enum {
    RT_CALL_REASON_MAX = 128,       /* bytes */
    RT_CALL_ORDER_KEY_MAX = 256,
    RT_CALL_KEY_MAX = 256,          /* idempotency key */
    RT_CALL_CONTENT_TYPE_MAX = 256,
    RT_CALLS_PER_REQUEST_MAX = 1000,
    RT_CALL_LEASE_S_MAX = 12 * 3600
};

/* What a call's body holds. `type` and `tenant` find its type again. */
typedef struct rt_call {
    rt_str tenant, type;
    rt_str reason, order_key, content_type;
    rt_id past;      /* the dead call that it continues, see dead_type; 0: none */
    rt_str payload;
} rt_call;
rt_str rt_call_encode(rt_arena *arena, const rt_call *c); /* ptr NULL: out of memory */
bool rt_call_decode(rt_str body, rt_call *out);           /* lends; false: corrupt */

typedef struct rt_call_item {
    rt_str type;            /* empty: the request's */
    rt_str payload, content_type, reason, order_key;
    rt_str key;             /* idempotency key; empty: none */
    int64_t delay_ms;       /* not before; 0: now */
    rt_id id;               /* out: its job; that of the first one if the key is known */
    bool existed;           /* out */
} rt_call_item;

/* Schedules all or none. RT_E_ABSENT: no such type; RT_E_FENCED: a key is known for another payload (bad_item
 * says which). */
typedef struct rt_calls_schedule {
    rt_command cmd;
    rt_str tenant, type;
    rt_call_item *items;
    uint32_t count;         /* 1..RT_CALLS_PER_REQUEST_MAX */
    uint32_t bad_item;      /* out, with an error */
} rt_calls_schedule;
void rt_calls_schedule_init(rt_calls_schedule *c);

/* For decisions: the same within a change that does more (Kafka intake). */
rt_code rt_call_schedule(rt_tx *tx, rt_str tenant, const rt_call_type *type, rt_str type_name, rt_call_item *item);
/* What died on one type goes on as a new call of another: `of` with another type and past. */
rt_code rt_call_continue(rt_tx *tx, const rt_call_type *type, rt_str type_name, const rt_call *of, rt_id past,
                         rt_id *id);

/* A dead call is tried afresh, as its type is now. *there false: its type is gone, nothing was done. */
rt_code rt_call_redrive(rt_tx *tx, const rt_job *was, bool *there);
/* The age that its job notes has come: dead, if it is too old by its type as it is now and nobody is at it. *left: its line
 * has moved within this change already; it is for another one. */
rt_code rt_call_expire(rt_tx *tx, const rt_job *job, bool *left);
rt_cursor_slice rt_age_slice;
/* Ends it, wherever it stands. */
rt_code rt_call_delete(rt_tx *tx, const rt_job *job);

#endif
