/* kit.h: short words for the store's tests. Functions that return nothing fail the test when they meet an
 * error. */
#ifndef RT_TESTS_STORE_KIT_H
#define RT_TESTS_STORE_KIT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/conformance.h"

enum { KIT_IDS_MAX = 4096 };

typedef struct kit {
    const store_factory *factory;
    rt_store *store;
    uint64_t batch_no;
    rt_err err; /* of the last refusal */
} kit;

/* For cmocka: the initial state is the store_factory, the test gets a kit with a store of its own. The
 * history bounds are so wide that nothing is ever trimmed; kit_recreate sets others. */
int kit_setup(void **state);
int kit_teardown(void **state);
void kit_recreate(kit *k, rt_retention retention);
void kit_reopen(kit *k);
void kit_crash(kit *k);

/* ---- changes ------------------------------------------------------------------------------------------- */

#define OP_JOB(was_, now_) ((rt_op){.kind = RT_OP_JOB, .job = {.was = (was_), .now = (now_)}})
#define OP_QUEUE(was_, now_) ((rt_op){.kind = RT_OP_QUEUE, .queue = {.was = (was_), .now = (now_)}})
#define OP_LEASE(was_, now_) ((rt_op){.kind = RT_OP_LEASE, .lease = {.was = (was_), .now = (now_)}})
#define OP_DOC(was_, now_) ((rt_op){.kind = RT_OP_DOC, .doc = {.was = (was_), .now = (now_)}})
#define OP_BODY(id_, bytes_) ((rt_op){.kind = RT_OP_BODY, .body = {.id = (id_), .bytes = (bytes_)}})
#define OP_EVENT(event_) ((rt_op){.kind = RT_OP_EVENT, .event = (event_)})
#define OPS(...) (const rt_op[]){__VA_ARGS__}, sizeof((const rt_op[]){__VA_ARGS__}) / sizeof(rt_op)

rt_code kit_try(kit *k, const rt_op *ops, size_t ops_count);
rt_code kit_try_guarded(kit *k, rt_guard guard, const rt_op *ops, size_t ops_count);
void kit_apply(kit *k, const rt_op *ops, size_t ops_count);
rt_batch_end kit_end(kit *k); /* commits and waits */
void kit_commit(kit *k);      /* … and it must be durable */

/* ---- records ------------------------------------------------------------------------------------------- */

/* Version 1, a new id, placed_ms 1000, due_ms 2000, no body; DONE jobs get a last_event. Not in the store
 * yet. */
rt_job kit_job(kit *k, rt_id queue, rt_job_state state, uint8_t flags);
rt_job kit_insert(kit *k, rt_id queue, rt_job_state state, uint8_t flags); /* … and applied */
rt_job kit_after(rt_job job);                    /* the same with its version raised, to be altered */
void kit_replace(kit *k, rt_job *job, rt_job now); /* applies *job -> now, and *job becomes now */
void kit_delete(kit *k, const rt_job *job);
rt_doc kit_doc(rt_doc_kind kind, rt_str name, rt_str value);
rt_event kit_event(kit *k, const rt_job *job, int64_t at_ms);

/* ---- reading ------------------------------------------------------------------------------------------- */

rt_view *kit_batch(kit *k);
rt_view *kit_view(kit *k); /* to be closed */

typedef struct kit_ids {
    rt_id ids[KIT_IDS_MAX];
    size_t count;
    size_t stop_at; /* 0: take all there are */
} kit_ids;
/* Jobs of a range, in its order. */
void kit_list(rt_view *v, rt_job_range range, kit_ids *out);
bool kit_is_in(rt_view *v, rt_job_range range, rt_id id);
#define IDS(...) (const rt_id[]){__VA_ARGS__}, sizeof((const rt_id[]){__VA_ARGS__}) / sizeof(rt_id)
void kit_assert_list(rt_view *v, rt_job_range range, const rt_id *want, size_t want_count);

rt_counts kit_counts(rt_view *v, rt_id queue);
void kit_assert_job(rt_view *v, const rt_job *want);
void kit_assert_no_job(rt_view *v, rt_id id);
void kit_assert_str(rt_str got, rt_str want);
void kit_assert_body(rt_view *v, rt_id id, rt_str want);
bool kit_has_body(rt_view *v, rt_id id);

/* What expires until `until_ms`, by time: ids of jobs and leases, for documents the first byte of the
 * name. */
void kit_expiries(rt_view *v, int64_t until_ms, kit_ids *out);

#endif
