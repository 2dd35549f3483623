/* call_read.h: what faces may know of event types and their calls, on a snapshot; see read.h. */
#ifndef RT_ENGINE_CALLS_CALL_READ_H
#define RT_ENGINE_CALLS_CALL_READ_H
#include "engine/calls/call.h"

/* Is it 1 to RT_CALL_TYPE_NAME_MAX letters, digits, '.', '_', '-' or ':'? */
bool rt_call_type_name_is_valid(rt_str name);

/* RT_E_ABSENT: no such type. Copies in `a`. */
rt_code rt_read_call_type(rt_view *v, rt_arena *a, rt_str tenant, rt_str name, rt_call_type *out,
                          uint64_t *version);
/* Types of a tenant by name, behind `after`. Lent for the call. */
typedef bool rt_each_call_type(void *ctx, rt_str name, const rt_call_type *t, uint64_t version);
rt_code rt_read_call_types(rt_view *v, rt_str tenant, rt_str after, rt_each_call_type *each, void *ctx);
/* Types of all tenants; for metrics. */
typedef bool rt_each_tenant_type(void *ctx, rt_str tenant, rt_str name, const rt_call_type *t);
rt_code rt_read_all_call_types(rt_view *v, rt_each_tenant_type *each, void *ctx);

/* Where a listing of a type's calls stands. All zero: at its beginning. */
typedef struct rt_call_place {
    int64_t due_ms;
    rt_id id;
} rt_call_place;
/* Calls of a type that have not ended, behind *place, which is then the last one that was looked at: those that are
 * fetched by age, those that are pushed by due time. Not among them: pushed ones that are about to start for the first
 * time. At most `scan_max` are looked at; `reason`: only those scheduled with it, unless it is empty. *more says that it
 * stopped there or because `each` had enough. */
rt_code rt_read_calls(rt_view *v, const rt_call_type *type, rt_str reason, rt_call_place *place, uint32_t scan_max,
                      rt_each_job *each, void *ctx, bool *more);

/* What a job with RT_JOB_CALL holds, lent by the view. RT_E_ABSENT: it has ended, and its body is gone. */
rt_code rt_read_call(rt_view *v, const rt_job *job, rt_call *out);

#endif
