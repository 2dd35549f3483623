#include "engine/work/session.h"

#include "engine/work/work.h"

enum { FORMAT = 1 };

/* ---- stored form ------------------------------------------------------------------------------------- */

rt_str rt_session_encode(rt_arena *arena, const rt_session *s) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, s->id);
    rt_pack_i64(&b, s->created_ms);
    rt_pack_u32(&b, s->interval_s);
    rt_pack_u8(&b, s->closed);
    rt_pack_str(&b, s->component);
    rt_pack_str(&b, s->runtime);
    return rt_pack_finish(&b, arena);
}

bool rt_session_decode(rt_str value, rt_session *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_session){.id = rt_unpack_u64(&u)};
    out->created_ms = rt_unpack_i64(&u);
    out->interval_s = rt_unpack_u32(&u);
    out->closed = rt_unpack_bool(&u);
    out->component = rt_unpack_str(&u);
    out->runtime = rt_unpack_str(&u);
    return !u.failed && u.rest.len == 0;
}

/* ---- in decisions ------------------------------------------------------------------------------------ */

static rt_code load(rt_tx *tx, rt_str tenant, rt_id id, rt_doc *doc, rt_session *out) {
    const rt_code code = rt_doc_load(tx, RT_DOC_SESSION, rt_name_id(tx->arena, tenant, id), doc);
    if (code != RT_OK) return code;
    return rt_session_decode(doc->value, out) ? RT_OK
                                              : rt_fail(tx->err, RT_E_CORRUPT, 0, "a session cannot be read");
}

static rt_code refuse_dead(rt_tx *tx) {
    return rt_fail(tx->err, RT_E_FENCED, 0, "The session has expired; start a new one.");
}

rt_code rt_session_alive(rt_tx *tx, rt_str tenant, rt_id id, int64_t *deadline_ms) {
    rt_doc doc;
    rt_session session;
    const rt_code code = load(tx, tenant, id, &doc, &session);
    if (code == RT_E_ABSENT) return refuse_dead(tx);
    if (code != RT_OK) return code;
    if (doc.expires_ms <= tx->now_ms) return refuse_dead(tx);
    rt_tx_guard(tx, RT_DOC_SESSION, doc.name, doc.version);
    if (deadline_ms != NULL) *deadline_ms = doc.expires_ms;
    return RT_OK;
}

rt_code rt_session_is_dead(rt_tx *tx, rt_str tenant, rt_id id, bool *dead) {
    rt_doc doc;
    const rt_code code = rt_doc_load(tx, RT_DOC_SESSION, rt_name_id(tx->arena, tenant, id), &doc);
    *dead = code == RT_E_ABSENT || (code == RT_OK && doc.expires_ms <= tx->now_ms);
    return code == RT_E_ABSENT ? RT_OK : code;
}

/* ---- ending ------------------------------------------------------------------------------------------ */

typedef struct works {
    rt_arena *arena;
    rt_doc docs[RT_SESSION_END_SLICE];
    uint32_t count;
    bool more, no_memory;
} works;

static bool add_work(void *ctx, const rt_doc *doc) {
    works *w = ctx;
    if (w->count == RT_SESSION_END_SLICE) {
        w->more = true;
        return false;
    }
    rt_doc *kept = &w->docs[w->count++];
    *kept = *doc;
    kept->name = rt_arena_dup(w->arena, doc->name);
    kept->value = rt_arena_dup(w->arena, doc->value);
    w->no_memory = kept->name.ptr == NULL || kept->value.ptr == NULL;
    return !w->no_memory;
}

/* Releases what a session holds, a slice of it at most. *left: there is more. */
static rt_code release_all(rt_tx *tx, rt_str tenant, const rt_session *s, bool *left) {
    works *w = rt_arena_alloc(tx->arena, sizeof *w);
    const rt_str prefix = rt_name_id(tx->arena, tenant, s->id);
    if (w == NULL || prefix.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a sweep");
    w->arena = tx->arena;
    rt_code code = rt_view_docs(tx->view, RT_DOC_WORK, prefix, RT_STR_EMPTY, add_work, w);
    if (w->no_memory) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a sweep");
    *left = w->more;
    for (uint32_t i = 0; i < w->count && code == RT_OK; i++) {
        bool released;
        code = rt_work_release(tx, tenant, &w->docs[i], s->closed ? RT_EVENT_CANCELED : RT_EVENT_EXPIRED,
                               s->closed ? RT_STR("session closed") : RT_STR("session expired"), &released);
        if (!released) *left = true;
    }
    return code;
}

rt_code rt_session_end(rt_tx *tx, const rt_doc *doc, bool *left) {
    tx->frees = true;
    rt_session session;
    if (!rt_session_decode(doc->value, &session)) {
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "a session cannot be read");
    }
    const rt_code code = release_all(tx, rt_name_tenant(doc->name), &session, left);
    // What is left keeps the document where the sweep finds it: first in the list of what is over.
    if (code == RT_OK && !*left) rt_tx_put_doc(tx, doc, NULL);
    return code;
}

/* ---- commands ---------------------------------------------------------------------------------------- */

static rt_code write(rt_tx *tx, const rt_doc *was, const rt_session *s, rt_str name, int64_t deadline_ms) {
    const rt_doc now = {.kind = RT_DOC_SESSION,
                        .name = name,
                        .version = was == NULL ? 0 : was->version,
                        .expires_ms = deadline_ms,
                        .value = rt_session_encode(tx->arena, s)};
    if (name.ptr == NULL || now.value.ptr == NULL) {
        return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a session");
    }
    rt_tx_put_doc(tx, was, &now);
    return RT_OK;
}

static rt_code decide_create(rt_tx *tx, rt_command *cmd) {
    rt_session_create *c = (rt_session_create *)cmd;
    RT_ASSERT(c->interval_s >= 1);
    RT_ASSERT(c->interval_s <= RT_SESSION_INTERVAL_MAX_S);
    c->id = rt_tx_new_id(tx);
    c->deadline_ms = tx->now_ms + (int64_t)c->interval_s * 1000;
    const rt_session session = {.id = c->id,
                                .created_ms = tx->now_ms,
                                .interval_s = c->interval_s,
                                .component = c->component,
                                .runtime = c->runtime};
    return write(tx, NULL, &session, rt_name_id(tx->arena, c->tenant, c->id), c->deadline_ms);
}

void rt_session_create_init(rt_session_create *c) {
    *c = (rt_session_create){.cmd = {.decide = decide_create}};
}

static rt_code decide_beat(rt_tx *tx, rt_command *cmd) {
    rt_session_beat *c = (rt_session_beat *)cmd;
    rt_doc was;
    rt_session session;
    const rt_code code = load(tx, c->tenant, c->id, &was, &session);
    if (code == RT_E_ABSENT || (code == RT_OK && was.expires_ms <= tx->now_ms)) return refuse_dead(tx);
    if (code != RT_OK) return code;
    c->deadline_ms = tx->now_ms + (int64_t)session.interval_s * 1000;
    if (c->deadline_ms <= was.expires_ms) { // the clock was set back
        c->deadline_ms = was.expires_ms;
        return RT_OK;
    }
    return write(tx, &was, &session, was.name, c->deadline_ms);
}

void rt_session_beat_init(rt_session_beat *c) { *c = (rt_session_beat){.cmd = {.decide = decide_beat}}; }

static rt_code decide_close(rt_tx *tx, rt_command *cmd) {
    rt_session_close *c = (rt_session_close *)cmd;
    tx->frees = true;
    rt_doc was;
    rt_session session;
    rt_code code = load(tx, c->tenant, c->id, &was, &session);
    if (code == RT_E_ABSENT || (code == RT_OK && was.expires_ms <= tx->now_ms)) return RT_OK;
    if (code != RT_OK) return code;
    session.closed = true;
    bool left;
    code = release_all(tx, c->tenant, &session, &left);
    if (code != RT_OK) return code;
    // Over from this moment; the sweep releases what is left.
    if (left) return write(tx, &was, &session, was.name, tx->now_ms);
    rt_tx_put_doc(tx, &was, NULL);
    return RT_OK;
}

void rt_session_close_init(rt_session_close *c) { *c = (rt_session_close){.cmd = {.decide = decide_close}}; }
