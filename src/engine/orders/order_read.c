#include "engine/orders/order_read.h"

#include "engine/common/name.h"
#include "engine/orders/order_count.h"

/* The document's value as a copy in `a`. */
static rt_code read_value(rt_view *v, rt_arena *a, rt_doc_kind kind, rt_str name, rt_str *out) {
    if (name.ptr == NULL) return RT_E_NOMEM;
    if (name.len > RT_DOC_NAME_MAX) return RT_E_ABSENT; // of no document
    rt_doc doc;
    const rt_code code = rt_view_doc(v, kind, name, &doc);
    if (code != RT_OK) return code;
    *out = rt_arena_dup(a, doc.value);
    return out->ptr == NULL ? RT_E_NOMEM : RT_OK;
}

typedef struct listing {
    void (*each)(void); /* of the listing's own type */
    void *ctx;
    bool corrupt;
} listing;

static rt_code list(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *show,
                    listing *l) {
    if (prefix.ptr == NULL || after.ptr == NULL) return RT_E_NOMEM;
    const rt_code code = rt_view_docs(v, kind, prefix, after, show, l);
    return code == RT_OK && l->corrupt ? RT_E_CORRUPT : code;
}

/* ---- orders ------------------------------------------------------------------------------------------ */

rt_code rt_read_order(rt_view *v, rt_arena *a, rt_str tenant, rt_id id, rt_order *out) {
    rt_str value;
    const rt_code code = read_value(v, a, RT_DOC_ORDER, rt_order_name(a, tenant, id), &value);
    if (code != RT_OK) return code;
    return rt_order_decode(value, out) ? RT_OK : RT_E_CORRUPT;
}

static bool show_order(void *ctx, const rt_doc *doc) {
    listing *l = ctx;
    rt_order o;
    l->corrupt = !rt_order_decode(doc->value, &o);
    return !l->corrupt && ((rt_each_order *)l->each)(l->ctx, &o);
}

rt_code rt_read_orders(rt_view *v, rt_str tenant, rt_id after, rt_each_order *each, void *ctx) {
    rt_arena a = {0};
    listing l = {.each = (void (*)(void))each, .ctx = ctx};
    const rt_str behind = after == 0 ? RT_STR_EMPTY : rt_order_name(&a, tenant, after);
    const rt_code code =
        list(v, RT_DOC_ORDER, rt_name(&a, tenant, RT_STR_EMPTY), behind, show_order, &l);
    rt_arena_deinit(&a);
    return code;
}

typedef struct sum {
    int64_t total;
    bool counted, corrupt;
} sum;

static bool add_count(void *ctx, const rt_doc *doc) {
    sum *s = ctx;
    int64_t count = 0;
    s->counted = true;
    s->corrupt = !rt_order_count_decode(doc->value, &count);
    s->total += count;
    return !s->corrupt;
}

rt_code rt_read_order_count(rt_view *v, rt_str tenant, int64_t *out) {
    rt_arena a = {0};
    sum s = {0};
    const rt_str prefix = rt_name(&a, tenant, RT_STR_EMPTY);
    rt_code code = RT_E_NOMEM;
    if (prefix.ptr != NULL) code = rt_view_docs(v, RT_DOC_ORDER_COUNT, prefix, RT_STR_EMPTY, add_count, &s);
    rt_arena_deinit(&a);
    if (code != RT_OK) return code;
    if (s.corrupt) return RT_E_CORRUPT;
    if (!s.counted) return RT_E_ABSENT;
    *out = s.total;
    return RT_OK;
}

rt_code rt_read_order_task(rt_view *v, const rt_order *o, rt_job *out) {
    return o->job == 0 ? RT_E_ABSENT : rt_view_job(v, o->job, out);
}

/* ---- types ------------------------------------------------------------------------------------------- */

rt_code rt_read_order_type(rt_view *v, rt_arena *a, rt_str tenant, rt_str name, rt_order_type *out) {
    rt_str value;
    const rt_code code = read_value(v, a, RT_DOC_ORDER_TYPE, rt_name(a, tenant, name), &value);
    if (code != RT_OK) return code;
    return rt_order_type_decode(value, out) ? RT_OK : RT_E_CORRUPT;
}

static bool show_type(void *ctx, const rt_doc *doc) {
    listing *l = ctx;
    rt_order_type t;
    l->corrupt = !rt_order_type_decode(doc->value, &t);
    return !l->corrupt && ((rt_each_order_type *)l->each)(l->ctx, rt_name_rest(doc->name), &t);
}

rt_code rt_read_order_types(rt_view *v, rt_str tenant, rt_each_order_type *each, void *ctx) {
    rt_arena a = {0};
    listing l = {.each = (void (*)(void))each, .ctx = ctx};
    const rt_code code =
        list(v, RT_DOC_ORDER_TYPE, rt_name(&a, tenant, RT_STR_EMPTY), RT_STR_EMPTY, show_type, &l);
    rt_arena_deinit(&a);
    return code;
}

/* ---- what they made, and locks ----------------------------------------------------------------------- */

rt_code rt_read_secret(rt_view *v, rt_arena *a, rt_str tenant, rt_id id, rt_secret *out) {
    rt_str value;
    const rt_code code = read_value(v, a, RT_DOC_SECRET, rt_name_id(a, tenant, id), &value);
    if (code != RT_OK) return code;
    return rt_secret_decode(value, out) ? RT_OK : RT_E_CORRUPT;
}

static bool show_lock(void *ctx, const rt_doc *doc) {
    listing *l = ctx;
    rt_lock lock;
    l->corrupt = !rt_lock_decode(doc->value, &lock);
    return !l->corrupt && ((rt_each_lock *)l->each)(l->ctx, doc->name, &lock);
}

rt_code rt_read_locks(rt_view *v, rt_each_lock *each, void *ctx) {
    listing l = {.each = (void (*)(void))each, .ctx = ctx};
    return list(v, RT_DOC_LOCK, RT_STR_EMPTY, RT_STR_EMPTY, show_lock, &l);
}
