/* engine_kit.h: asks decisions of a memory store one after the other, without an engine around them. */
#ifndef ENGINE_KIT_H
#define ENGINE_KIT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "engine/common/answers.h"
#include "engine/common/queue.h"
#include "engine/common/schedule.h"
#include "engine/engine.h"
#include "engine/messages/claim.h"
#include "engine/messages/message.h"
#include "engine/messages/message_queue.h"
#include "engine/messages/message_read.h"
#include "engine/messages/subscription.h"
#include "engine/queues/cursor_step.h"
#include "engine/queues/dead.h"
#include "engine/queues/expiry.h"
#include "engine/queues/queue.h"
#include "engine/queues/read.h"
#include "store/memory/store_memory.h"

typedef struct kit {
    rt_memory_disk *disk;
    rt_store *store;
    rt_engine_settings settings;
    rt_schedule schedule;
    rt_answers answers;
    rt_rng rng;
    rt_arena arena, out; /* of decisions; of results, kept to the end */
    rt_op *ops;
    int64_t now_ms;      /* the time of decisions and reads; starts at KIT_START_MS */
    uint64_t batch_no;
    rt_err err;          /* of the last command */
} kit;

enum { KIT_START_MS = 1000000 };

/* cmocka's setups: *state is an owned kit. The second one makes the store ask for records to be loaded and
 * refuse changes at random, so that decisions are taken again and again. */
int kit_setup(void **state);
int kit_setup_troubled(void **state);
int kit_teardown(void **state);

/* The queue has jobs that are due: fresh ones line up behind them. */
void kit_busy(kit *k, rt_id queue);

/* Decides, applies and commits. Returns what the command's owner would be told. */
rt_code kit_run(kit *k, rt_command *cmd);
/* Carries all cursors on until none is left or all wait for a later time; returns how many slices it took. */
uint32_t kit_run_cursors(kit *k);
/* Sweeps until nothing is over any more; returns how many records ended. */
uint32_t kit_sweep(kit *k);

/* ---- commands with everything that does not matter filled in; "p" is the tenant ---------------------- */
rt_id kit_post(kit *k, const char *queue, const char *body);
rt_id kit_subscribe(kit *k, const char *queue, const char *uri);
void kit_create_queue(kit *k, const char *queue, rt_metadata like);
/* A claim of up to `limit` messages for 60 s with 60 s of grace. */
rt_claim_create kit_claim(kit *k, const char *queue, uint32_t limit);
/* The delivery dies, as if its attempts were exhausted. */
void kit_kill(kit *k, rt_id job, rt_reason reason);

/* ---- what is stored ---------------------------------------------------------------------------------- */
rt_view *kit_view(kit *k);            /* lent until the next one is asked for */
rt_metadata kit_metadata(kit *k, const char *queue); /* must be there */
rt_job kit_job(kit *k, rt_id id);     /* state RT_JOB_NONE: absent */
rt_counts kit_counts(kit *k, rt_id queue);
uint32_t kit_docs(kit *k, rt_doc_kind kind);
/* The deliveries of a message that have not ended, in order; at most `max` are written. */
uint32_t kit_deliveries(kit *k, rt_id message, rt_job *out, uint32_t max);
rt_event kit_last_event(kit *k, rt_id job);
bool kit_has_body(kit *k, rt_id id);

/* For the table of tests: once as it is, once with a store that makes decisions start over. */
#define KIT_CALM(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
#define KIT_TROUBLED(f) {#f "__troubled", f, kit_setup_troubled, kit_teardown, NULL}
#define KIT_BOTH(f) KIT_CALM(f), KIT_TROUBLED(f)

#endif
