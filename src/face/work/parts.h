/* parts.h: what the pages of this face share: the caller's tenant, fields of a request, what is shown. */
#ifndef RT_FACE_WORK_PARTS_H
#define RT_FACE_WORK_PARTS_H
#include "engine/work/work_read.h"
#include "face/common/fields.h"
#include "face/common/problem.h"
#include "face/common/reply.h"
#include "face/common/values.h"

enum { RT_WORK_PAGE_DEFAULT = 100, RT_WORK_PAGE_MAX = 1000 };

/* ---- fields.c ------------------------------------------------------------------------------------------ */

/* Each replies with 400 and returns false if the field breaks its rule; strings are copies in the exchange's
 * arena. */

/* A list of names; `entities`: of entities, otherwise of processes. Absent or null: *out NULL. Twice the
 * same counts once. */
bool rt_field_names(rt_exchange *x, const json_t *body, const char *name, bool entities, uint32_t max,
                    const rt_str **out, uint32_t *count);
/* "session": one that cannot be one is as dead as any other: 410. */
bool rt_field_session(rt_exchange *x, const json_t *body, rt_id *out);

/* Path parameters and queries; 400 too. */
bool rt_param_word(rt_exchange *x, size_t i, const char *what, rt_str *out);
bool rt_param_entity(rt_exchange *x, size_t i, rt_str *out);

/* ---- shown --------------------------------------------------------------------------------------------- */

json_t *rt_json_work(const rt_exchange *x, const rt_work *w); /* without its token */
json_t *rt_json_rest(rt_str entity, rt_str process, const rt_rest *r, int64_t now_ms);
void rt_problem_dead(rt_exchange *x); /* 410 session_expired */
/* What RT_E_FENCED and the other codes mean. `what`: not there, if it is RT_E_ABSENT. */
void rt_problem_work(rt_exchange *x, const rt_command *cmd, rt_work_refusal refusal, const char *what);

/* ---- pages, one file a noun ---------------------------------------------------------------------------- */
void rt_page_session_list(rt_exchange *x), rt_page_session_post(rt_exchange *x),
    rt_page_session_get(rt_exchange *x);
void rt_page_session_beat(rt_exchange *x), rt_page_session_delete(rt_exchange *x);
void rt_page_process_list(rt_exchange *x), rt_page_process_get(rt_exchange *x),
    rt_page_process_put(rt_exchange *x);
void rt_page_work_list(rt_exchange *x), rt_page_work_claim(rt_exchange *x);
void rt_page_work_finish(rt_exchange *x), rt_page_work_fail(rt_exchange *x),
    rt_page_work_cancel(rt_exchange *x);
void rt_page_backoff_list(rt_exchange *x), rt_page_backoff_delete(rt_exchange *x);
void rt_page_entity_list(rt_exchange *x), rt_page_entity_get(rt_exchange *x),
    rt_page_entity_put(rt_exchange *x);
void rt_page_entity_delete(rt_exchange *x), rt_page_entity_history(rt_exchange *x);

#endif
