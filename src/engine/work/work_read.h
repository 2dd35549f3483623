/* work_read.h: what faces may know of sessions, work, backoffs and entities, on a snapshot; see read.h.
 *
 * Strings in what is listed are lent for the call. Listings go by the order of document names; `after` is
 * exclusive and 0 or empty for the first. */
#ifndef RT_ENGINE_WORK_WORK_READ_H
#define RT_ENGINE_WORK_WORK_READ_H
#include "engine/work/work.h"

/* Those that are alive at `now_ms`. */
typedef bool rt_each_session(void *ctx, const rt_session *s, int64_t deadline_ms);
rt_code rt_read_sessions(rt_view *v, rt_str tenant, rt_id after, int64_t now_ms, rt_each_session *each,
                         void *ctx);
/* RT_E_ABSENT: dead or unknown. Copies in `a`. */
rt_code rt_read_session(rt_view *v, rt_arena *a, rt_str tenant, rt_id id, int64_t now_ms, rt_session *out,
                        int64_t *deadline_ms);

typedef bool rt_each_process(void *ctx, rt_str name, const rt_process *p);
rt_code rt_read_processes(rt_view *v, rt_str tenant, rt_each_process *each, void *ctx);
rt_code rt_read_process(rt_view *v, rt_arena *a, rt_str tenant, rt_str name, rt_process *out);

/* Work that goes on, by session and age; of one session unless `session` is 0. Of dead sessions it is not
 * shown. `deadline_ms` is the session's. */
typedef bool rt_each_work(void *ctx, const rt_work *w, int64_t deadline_ms);
rt_code rt_read_work(rt_view *v, rt_arena *a, rt_str tenant, rt_id session, rt_id after_session, rt_id after,
                     int64_t now_ms, rt_each_work *each, void *ctx);

/* Backoffs by process and entity; of one process unless it is empty. */
typedef bool rt_each_rest(void *ctx, rt_str entity, rt_str process, const rt_rest *r);
rt_code rt_read_rests(rt_view *v, rt_arena *a, rt_str tenant, rt_str process, rt_str after_process,
                      rt_str after_entity, rt_each_rest *each, void *ctx);
/* RT_E_ABSENT: none. Copies in `a`. */
rt_code rt_read_rest(rt_view *v, rt_arena *a, rt_str tenant, rt_str entity, rt_str process, rt_rest *out);

/* RT_E_ABSENT: unknown; a deleted one is there as long as its history (`gone`). Copies in `a`. */
rt_code rt_read_entity(rt_view *v, rt_arena *a, rt_str tenant, rt_str name, rt_entity *out);
typedef bool rt_each_entity(void *ctx, rt_str name, const rt_entity *e);
rt_code rt_read_entities(rt_view *v, rt_arena *a, rt_str tenant, rt_str after, rt_each_entity *each,
                         void *ctx);

/* Newest first, those with a number below `before` (0: all). */
typedef bool rt_each_history(void *ctx, const rt_event *event, const rt_history *h);
rt_code rt_read_history(rt_view *v, const rt_entity *e, uint64_t before, rt_each_history *each, void *ctx);

/* What is going on in all tenants together, by the name of the process; for metrics. At most `max`
 * processes, by name; returns how many in *count. */
typedef struct rt_work_gauge {
    rt_str process; /* in the arena */
    int64_t working, resting, ready;
} rt_work_gauge;
rt_code rt_read_work_gauges(rt_view *v, rt_arena *a, rt_work_gauge out[], uint32_t max, uint32_t *count);

#endif
