#include "engine/work/work_read.h"

static rt_code read_doc(rt_view *v, rt_arena *a, rt_doc_kind kind, rt_str name, rt_doc *out) {
    if (name.ptr == NULL) return RT_E_NOMEM;
    const rt_code code = rt_view_doc(v, kind, name, out);
    if (code != RT_OK) return code;
    out->value = rt_arena_dup(a, out->value);
    return out->value.ptr == NULL ? RT_E_NOMEM : RT_OK;
}

/* What every listing carries. */
typedef struct listing {
    rt_view *view;
    rt_arena *arena;
    rt_str tenant;
    int64_t now_ms;
    void (*each)(void); /* of the listing's own type */
    void *ctx;
    rt_code code;
    rt_id session; /* whose deadline is known */
    int64_t deadline_ms;
} listing;

static rt_code list(listing *l, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *show) {
    if (prefix.ptr == NULL || after.ptr == NULL) return RT_E_NOMEM;
    const rt_code code = rt_view_docs(l->view, kind, prefix, after, show, l);
    return code == RT_OK ? l->code : code;
}

static bool corrupt(listing *l) {
    l->code = RT_E_CORRUPT;
    return false;
}

/* ---- sessions ------------------------------------------------------------------------------------------ */

static bool show_session(void *ctx, const rt_doc *doc) {
    listing *l = ctx;
    rt_session s;
    if (doc->expires_ms <= l->now_ms) return true;
    if (!rt_session_decode(doc->value, &s)) return corrupt(l);
    return ((rt_each_session *)l->each)(l->ctx, &s, doc->expires_ms);
}

rt_code rt_read_sessions(rt_view *v, rt_str tenant, rt_id after, int64_t now_ms, rt_each_session *each,
                         void *ctx) {
    rt_arena a = {0};
    listing l = {.view = v, .now_ms = now_ms, .each = (void (*)(void))each, .ctx = ctx};
    const rt_code code = list(&l, RT_DOC_SESSION, rt_name(&a, tenant, RT_STR_EMPTY),
                              after == 0 ? RT_STR_EMPTY : rt_name_id(&a, tenant, after), show_session);
    rt_arena_deinit(&a);
    return code;
}

rt_code rt_read_session(rt_view *v, rt_arena *a, rt_str tenant, rt_id id, int64_t now_ms, rt_session *out,
                        int64_t *deadline_ms) {
    rt_doc doc;
    const rt_code code = read_doc(v, a, RT_DOC_SESSION, rt_name_id(a, tenant, id), &doc);
    if (code != RT_OK) return code;
    if (doc.expires_ms <= now_ms) return RT_E_ABSENT;
    *deadline_ms = doc.expires_ms;
    return rt_session_decode(doc.value, out) ? RT_OK : RT_E_CORRUPT;
}

/* ---- processes ----------------------------------------------------------------------------------------- */

static bool show_process(void *ctx, const rt_doc *doc) {
    listing *l = ctx;
    rt_process p;
    if (!rt_process_decode(doc->value, &p)) return corrupt(l);
    return ((rt_each_process *)l->each)(l->ctx, rt_name_rest(doc->name), &p);
}

rt_code rt_read_processes(rt_view *v, rt_str tenant, rt_each_process *each, void *ctx) {
    rt_arena a = {0};
    listing l = {.view = v, .each = (void (*)(void))each, .ctx = ctx};
    const rt_code code =
        list(&l, RT_DOC_PROCESS, rt_name(&a, tenant, RT_STR_EMPTY), RT_STR_EMPTY, show_process);
    rt_arena_deinit(&a);
    return code;
}

rt_code rt_read_process(rt_view *v, rt_arena *a, rt_str tenant, rt_str name, rt_process *out) {
    rt_doc doc;
    const rt_code code = read_doc(v, a, RT_DOC_PROCESS, rt_name(a, tenant, name), &doc);
    if (code != RT_OK) return code;
    return rt_process_decode(doc.value, out) ? RT_OK : RT_E_CORRUPT;
}

/* ---- work ---------------------------------------------------------------------------------------------- */

/* The deadline of the session that a work belongs to, remembered from one to the next; 0: it is dead. */
static rt_code find_deadline(listing *l, rt_id session) {
    if (l->session == session) return RT_OK;
    rt_doc doc;
    const rt_str name = rt_name_id(l->arena, l->tenant, session);
    if (name.ptr == NULL) return RT_E_NOMEM;
    const rt_code code = rt_view_doc(l->view, RT_DOC_SESSION, name, &doc);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    l->session = session;
    l->deadline_ms = code == RT_OK && doc.expires_ms > l->now_ms ? doc.expires_ms : 0;
    return RT_OK;
}

static bool show_work(void *ctx, const rt_doc *doc) {
    listing *l = ctx;
    rt_work w;
    if (!rt_work_decode(doc->value, &w)) return corrupt(l);
    l->code = find_deadline(l, w.session);
    if (l->code != RT_OK || l->deadline_ms == 0) return l->code == RT_OK;
    return ((rt_each_work *)l->each)(l->ctx, &w, l->deadline_ms);
}

rt_code rt_read_work(rt_view *v, rt_arena *a, rt_str tenant, rt_id session, rt_id after_session, rt_id after,
                     int64_t now_ms, rt_each_work *each, void *ctx) {
    listing l = {
        .view = v, .arena = a, .tenant = tenant, .now_ms = now_ms, .each = (void (*)(void))each, .ctx = ctx};
    const rt_str prefix =
        session == 0 ? rt_name(a, tenant, RT_STR_EMPTY) : rt_name_id(a, tenant, session);
    const rt_str behind = after == 0 ? RT_STR_EMPTY : rt_name_ids(a, tenant, after_session, after);
    return list(&l, RT_DOC_WORK, prefix, behind, show_work);
}

/* ---- backoffs ------------------------------------------------------------------------------------------ */

static bool show_rest(void *ctx, const rt_doc *doc) {
    listing *l = ctx;
    rt_rest r;
    rt_str process, entity;
    if (!rt_rest_decode(doc->value, &r)) return corrupt(l);
    if (!rt_str_cut(rt_name_rest(doc->name), '\0', &process, &entity)) return corrupt(l);
    return ((rt_each_rest *)l->each)(l->ctx, entity, process, &r);
}

rt_code rt_read_rests(rt_view *v, rt_arena *a, rt_str tenant, rt_str process, rt_str after_process,
                      rt_str after_entity, rt_each_rest *each, void *ctx) {
    listing l = {.view = v, .each = (void (*)(void))each, .ctx = ctx};
    const rt_str prefix = process.len == 0 ? rt_name(a, tenant, RT_STR_EMPTY)
                                           : rt_name_pair(a, tenant, process, RT_STR_EMPTY);
    const rt_str behind =
        after_entity.len == 0 ? RT_STR_EMPTY : rt_name_pair(a, tenant, after_process, after_entity);
    return list(&l, RT_DOC_BACKOFF, prefix, behind, show_rest);
}

rt_code rt_read_rest(rt_view *v, rt_arena *a, rt_str tenant, rt_str entity, rt_str process, rt_rest *out) {
    rt_doc doc;
    const rt_code code = read_doc(v, a, RT_DOC_BACKOFF, rt_name_pair(a, tenant, process, entity), &doc);
    if (code != RT_OK) return code;
    return rt_rest_decode(doc.value, out) ? RT_OK : RT_E_CORRUPT;
}

/* ---- entities ------------------------------------------------------------------------------------------ */

rt_code rt_read_entity(rt_view *v, rt_arena *a, rt_str tenant, rt_str name, rt_entity *out) {
    rt_doc doc;
    const rt_code code = read_doc(v, a, RT_DOC_ENTITY, rt_name(a, tenant, name), &doc);
    if (code != RT_OK) return code;
    return rt_entity_decode(doc.value, out) ? RT_OK : RT_E_CORRUPT;
}

static bool show_entity(void *ctx, const rt_doc *doc) {
    listing *l = ctx;
    rt_entity e;
    if (!rt_entity_decode(doc->value, &e)) return corrupt(l);
    return e.gone || ((rt_each_entity *)l->each)(l->ctx, rt_name_rest(doc->name), &e);
}

rt_code rt_read_entities(rt_view *v, rt_arena *a, rt_str tenant, rt_str after, rt_each_entity *each,
                         void *ctx) {
    listing l = {.view = v, .each = (void (*)(void))each, .ctx = ctx};
    return list(&l, RT_DOC_ENTITY, rt_name(a, tenant, RT_STR_EMPTY),
                after.len == 0 ? RT_STR_EMPTY : rt_name(a, tenant, after), show_entity);
}

rt_code rt_read_history(rt_view *v, const rt_entity *e, uint64_t before, rt_each_history *each, void *ctx) {
    for (uint64_t seq = e->last_event; seq != 0;) {
        rt_event event;
        const rt_code code = rt_view_event(v, seq, &event);
        if (code == RT_E_ABSENT) return RT_OK; // older ones have been trimmed
        if (code != RT_OK) return code;
        rt_history h;
        if (!rt_history_read(event.text, &h)) return RT_E_CORRUPT;
        seq = event.prev;
        if (before != 0 && event.seq >= before) continue;
        if (!each(ctx, &event, &h)) return RT_OK;
    }
    return RT_OK;
}

/* ---- gauges -------------------------------------------------------------------------------------------- */

typedef struct gauges {
    rt_view *view;
    rt_arena *arena;
    rt_work_gauge *out;
    uint32_t count, max;
    rt_code code;
} gauges;

static rt_work_gauge *gauge_of(gauges *g, rt_str process) {
    for (uint32_t i = 0; i < g->count; i++) {
        if (rt_str_eq(g->out[i].process, process)) return &g->out[i];
    }
    if (g->count == g->max) return NULL;
    rt_work_gauge *gauge = &g->out[g->count++];
    *gauge = (rt_work_gauge){.process = rt_arena_dup(g->arena, process)};
    if (gauge->process.ptr == NULL) g->code = RT_E_NOMEM;
    return gauge;
}

static bool add_process(void *ctx, const rt_doc *doc) {
    gauges *g = ctx;
    (void)gauge_of(g, rt_name_rest(doc->name));
    return g->code == RT_OK && g->count < g->max;
}

static bool add_queue(void *ctx, const rt_doc *doc) {
    gauges *g = ctx;
    rt_str kind, process;
    rt_counts counts;
    if (!rt_str_cut(rt_name_rest(doc->name), '\0', &kind, &process) || doc->value.len != 8) return true;
    rt_work_gauge *gauge = gauge_of(g, process);
    if (gauge == NULL || g->code != RT_OK) return g->code == RT_OK;
    g->code = rt_view_counts(g->view, rt_get_be64((const unsigned char *)doc->value.ptr), &counts);
    if (g->code != RT_OK) return false;
    gauge->working += counts.leased;
    gauge->resting += counts.scheduled;
    if (kind.len > 0) gauge->ready += counts.free;
    return true;
}

rt_code rt_read_work_gauges(rt_view *v, rt_arena *a, rt_work_gauge out[], uint32_t max, uint32_t *count) {
    gauges g = {.view = v, .arena = a, .out = out, .max = max};
    rt_code code = rt_view_docs(v, RT_DOC_PROCESS, RT_STR_EMPTY, RT_STR_EMPTY, add_process, &g);
    if (code == RT_OK && g.code == RT_OK) {
        code = rt_view_docs(v, RT_DOC_WORK_QUEUE, RT_STR_EMPTY, RT_STR_EMPTY, add_queue, &g);
    }
    *count = g.count;
    return code == RT_OK ? g.code : code;
}
