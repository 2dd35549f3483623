/* call_rig.h: failed calls on a whole engine over a memory store, whose time goes as the test says, and whose targets answer
 * what the test says. One type, "t" of tenant "p". */
#ifndef CALL_RIG_H
#define CALL_RIG_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/calls/call_claim.h"
#include "engine/calls/circuit.h"
#include "engine/engine.h"
#include "store/memory/store_memory.h"

enum { START_MS = 1000000, ATTEMPTS_MAX = 512, RIG_EVENTS_KEPT = 100 };

typedef struct rig {
    rt_memory_disk *disk;
    rt_store *store;
    rt_engine *engine;
    rt_arena arena; /* of claims */
    uint64_t seed;  /* of its life */
    int64_t now_ms, next_ms;
    rt_attempt *under_way[ATTEMPTS_MAX]; /* the first first */
    uint32_t count;                      /* under way */
    uint32_t started;                    /* in all */
} rig;

/* cmocka's setup and teardown: *state is an owned rig. */
int rig_setup(void **state);
int rig_setup_forgetful(void **state); /* RIG_EVENTS_KEPT lines of history are kept */
int rig_teardown(void **state);
/* Two nodes on one disk; *state is an owned rig[2]. What happens at one does not step the other: rig_pass_both. */
int rig_setup_both(void **state);
int rig_teardown_both(void **state);
void rig_pass_both(rig r[2], int64_t ms);
/* The node dies, with what it has under way; another one comes up in its place. */
void rig_restart(rig *r);

/* Goes `ms` on, and does what is due on the way when it is due. */
void rig_pass(rig *r, int64_t ms);
/* Until it is done, which is at once. */
rt_code rig_run(rig *r, rt_command *cmd);
/* To be done at some time: sets *done. */
void rig_submit(rig *r, rt_command *cmd, bool *done);

/* Its first thousand retries come at once; its circuit opens after four attempts, without a release rate. */
rt_call_type rig_type(const char *target);
void rig_put(rig *r, rt_call_type like);
void rig_schedule_init(rt_calls_schedule *c, rt_call_item *item); /* of one, which stays the caller's */
void rig_schedule(rig *r, uint32_t count, rt_id ids[]); /* ids may be NULL */
void rig_order(rig *r, rt_circuit_order what);          /* an operator's, for its circuit */
rt_queue rig_queue(rig *r);                             /* of the type; no name */
rt_job rig_job(rig *r, rt_id id);
rt_circuit_state rig_circuit(rig *r);

/* The target answers the attempt that has been under way for the longest, or all that are under way now. */
void rig_answer(rig *r, uint16_t status, uint32_t took_ms);
void rig_answer_all(rig *r, uint16_t status);

/* By a worker; leases of 60 s. */
void rig_claim_init(rig *r, rt_call_claim *c, uint32_t limit);
rt_call_claim rig_claim(rig *r, uint32_t limit);
void rig_end(rig *r, const rt_claimed_call *call, rt_call_verb verb);

#endif
