/* order_rig.h: a whole engine over a memory store that outlives it, and a worker whose every word the test
 * chooses. */
#ifndef ORDER_RIG_H
#define ORDER_RIG_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/uuid.h"
#include "engine/engine.h"
#include "engine/orders/order_read.h"
#include "engine/queues/read.h"
#include "store/memory/store_memory.h"

enum { RIG_START_MS = 1000000, RIG_TAG = 0x1234, RIG_ATTEMPTS_MAX = 64 };

typedef struct rig {
    rt_memory_disk *disk;
    rt_store *store;
    rt_engine *engine;
    rt_arena arena;
    rt_view *view; /* of the last look */
    int64_t now_ms;
    uint64_t lives;
    rt_attempt *attempts[RIG_ATTEMPTS_MAX]; /* started, not yet taken by the test */
    uint32_t attempts_count;
} rig;

int rig_setup(void **state);        /* the store has one owner */
int rig_setup_shared(void **state); /* others may take from it as well */
int rig_teardown(void **state);
#define RIG_SOLE(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
#define RIG_BOTH(f) RIG_SOLE(f), {#f "__shared", f, rig_setup_shared, rig_teardown, NULL}

/* Steps until nothing is to be done at this time. */
void rig_settle(rig *r);
/* Lets time pass, stopping at whatever the engine wants to do in between. */
void rig_pass(rig *r, int64_t ms);
void rig_restart(rig *r);          /* as after a crash: what was under way is forgotten */
/* Settles and returns the code. */
rt_code rig_run(rig *r, rt_command *cmd);

/* ---- commands with everything that does not matter filled in; "p" is the tenant ------------------------ */
/* Target "plugin:NAME", no backoff of its own, runs of 30 s, an hour to answer. */
rt_order_type rig_like(const char *target);
rt_code rig_put_type(rig *r, const char *name, rt_order_type like);
rt_code rig_delete_type(rig *r, const char *name);
rt_id rig_create(rig *r, const char *type);
rt_code rig_delete(rig *r, rt_id order);
rt_code rig_wake(rig *r, rt_id order);
/* Action and what else is said. */
rt_code rig_result(rig *r, rt_id order, uint64_t token, rt_run_answer answer);

/* ---- the worker ---------------------------------------------------------------------------------------- */
/* The first attempt that was started and not taken, now the caller's, to be answered. Fails the test if
 * there is none. */
rt_attempt *rig_attempt(rig *r);
void rig_answer(rig *r, rt_attempt *a, uint16_t status, const char *text); /* takes it */
void rig_outcome(rig *r, rt_attempt *a, const rt_outcome *outcome); /* takes it; fills in whose it is */
/* rig_attempt and rig_answer with 200. */
void rig_say(rig *r, const char *answer);

/* ---- what is stored ------------------------------------------------------------------------------------ */
rt_order rig_order(rig *r, rt_id id); /* must be there */
bool rig_has_order(rig *r, rt_id id);
rt_job rig_job(rig *r, rt_id id);     /* state RT_JOB_NONE: absent */
rt_job rig_task(rig *r, rt_id order); /* its live task; state RT_JOB_NONE: it has none */
rt_event rig_last_event(rig *r, rt_id job);
rt_counts rig_counts(rig *r);
uint32_t rig_docs(rig *r, rt_doc_kind kind);
uint64_t rig_metric(rig *r, rt_order_count what);

#define assert_text(str, want) assert_true(rt_str_eq((str), rt_str_of(want)))

#endif
