#include "engine/calls/call_read.h"

#include <string.h>

#include "engine/common/name.h"

bool rt_call_type_name_is_valid(rt_str name) {
    if (name.len == 0 || name.len > RT_CALL_TYPE_NAME_MAX) return false;
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        const bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!alnum && c != '.' && c != '_' && c != '-' && c != ':') return false;
    }
    return true;
}

rt_code rt_read_call_type(rt_view *v, rt_arena *a, rt_str tenant, rt_str name, rt_call_type *out,
                          uint64_t *version) {
    if (tenant.len > RT_TENANT_MAX || !rt_call_type_name_is_valid(name)) return RT_E_ABSENT;
    const rt_str doc_name = rt_call_type_name(a, tenant, name);
    if (doc_name.ptr == NULL) return RT_E_NOMEM;
    rt_doc doc;
    const rt_code code = rt_view_doc(v, RT_DOC_CALL_TYPE, doc_name, &doc);
    if (code != RT_OK) return code;
    const rt_str value = rt_arena_dup(a, doc.value);
    if (value.ptr == NULL) return RT_E_NOMEM;
    *version = doc.version;
    return rt_call_type_decode(value, out) ? RT_OK : RT_E_CORRUPT;
}

typedef struct types {
    rt_each_call_type *each;
    rt_each_tenant_type *each_of_all;
    void *ctx;
    bool corrupt;
} types;

static bool show_type(void *ctx, const rt_doc *doc) {
    types *t = ctx;
    rt_call_type type;
    t->corrupt = !rt_call_type_decode(doc->value, &type);
    if (t->corrupt) return false;
    const rt_str name = rt_name_rest(doc->name);
    if (t->each != NULL) return t->each(t->ctx, name, &type, doc->version);
    return t->each_of_all(t->ctx, rt_name_tenant(doc->name), name, &type);
}

static rt_code list(rt_view *v, rt_str prefix, rt_str after, types *t) {
    const rt_code code = rt_view_docs(v, RT_DOC_CALL_TYPE, prefix, after, show_type, t);
    return code == RT_OK && t->corrupt ? RT_E_CORRUPT : code;
}

rt_code rt_read_call_types(rt_view *v, rt_str tenant, rt_str after, rt_each_call_type *each, void *ctx) {
    char name[RT_DOC_NAME_MAX];
    if (tenant.len > RT_TENANT_MAX) return RT_OK;
    if (after.len > RT_CALL_TYPE_NAME_MAX) after.len = RT_CALL_TYPE_NAME_MAX; // no name is longer
    if (tenant.len > 0) memcpy(name, tenant.ptr, tenant.len);
    name[tenant.len] = '\0';
    const rt_str prefix = {.ptr = name, .len = tenant.len + 1};
    if (after.len > 0) memcpy(name + prefix.len, after.ptr, after.len);
    types t = {.each = each, .ctx = ctx};
    return list(v, prefix, (rt_str){.ptr = name, .len = prefix.len + after.len}, &t);
}
_Static_assert(RT_TENANT_MAX + 1 + RT_CALL_TYPE_NAME_MAX <= RT_DOC_NAME_MAX, "a name fits");

rt_code rt_read_all_call_types(rt_view *v, rt_each_tenant_type *each, void *ctx) {
    types t = {.each_of_all = each, .ctx = ctx};
    return list(v, RT_STR_EMPTY, RT_STR_EMPTY, &t);
}

rt_code rt_read_call(rt_view *v, const rt_job *job, rt_call *out) {
    RT_ASSERT(job->flags & RT_JOB_CALL);
    if (job->state == RT_JOB_DONE) return RT_E_ABSENT;
    rt_str body;
    const rt_code code = rt_view_body(v, job->body, &body);
    if (code != RT_OK) return code;
    return rt_call_decode(body, out) ? RT_OK : RT_E_CORRUPT;
}

/* ---- what has not ended -------------------------------------------------------------------------------- */

typedef struct calls {
    rt_view *view;
    rt_str reason;
    rt_call_place *place;
    rt_each_job *each;
    void *ctx;
    uint32_t left;
    bool more;
    rt_code code;
} calls;

static bool show_call(void *ctx, const rt_job *job) {
    calls *c = ctx;
    c->more = c->left == 0;
    if (c->more) return false;
    c->left--;
    *c->place = (rt_call_place){.due_ms = job->due_ms, .id = job->id};
    if (c->reason.len > 0) {
        rt_call call;
        c->code = rt_read_call(c->view, job, &call);
        if (c->code != RT_OK) return false;
        if (!rt_str_eq(call.reason, c->reason)) return true;
    }
    c->more = !c->each(c->ctx, job);
    return !c->more;
}

rt_code rt_read_calls(rt_view *v, const rt_call_type *type, rt_str reason, rt_call_place *place, uint32_t scan_max,
                      rt_each_job *each, void *ctx, bool *more) {
    calls c = {.view = v, .reason = reason, .place = place, .each = each, .ctx = ctx, .left = scan_max};
    const rt_job_range range = {
        .index = type->target.len == 0 ? RT_INDEX_ALL : RT_INDEX_DUE,
        .queue = type->queue,
        .after = place->id,
        .after_due_ms = place->due_ms,
        .until_ms = INT64_MAX,
    };
    const rt_code code = rt_view_jobs(v, &range, show_call, &c);
    *more = c.more;
    return code == RT_OK ? c.code : code;
}
