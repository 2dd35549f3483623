#include "engine/work/process.h"

#include <string.h>

enum { FORMAT = 1 };

/* ---- stored form ------------------------------------------------------------------------------------- */

rt_str rt_process_encode(rt_arena *arena, const rt_process *p) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_i64(&b, p->changed_ms);
    rt_pack_u8(&b, (uint8_t)p->excludes_count);
    for (uint32_t i = 0; i < p->excludes_count; i++) rt_pack_str(&b, p->excludes[i]);
    rt_backoff_pack(&b, &p->backoff);
    return rt_pack_finish(&b, arena);
}

bool rt_process_decode(rt_str value, rt_process *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_process){.changed_ms = rt_unpack_i64(&u)};
    out->excludes_count = rt_unpack_u8(&u);
    if (out->excludes_count > RT_PROCESS_EXCLUDES_MAX) return false;
    for (uint32_t i = 0; i < out->excludes_count; i++) out->excludes[i] = rt_unpack_str(&u);
    rt_backoff_unpack(&u, &out->backoff);
    return !u.failed && u.rest.len == 0;
}

/* ---- in decisions ------------------------------------------------------------------------------------ */

rt_code rt_process_load(rt_tx *tx, rt_str tenant, rt_str name, rt_process *out) {
    rt_doc doc;
    const rt_code code = rt_doc_load(tx, RT_DOC_PROCESS, rt_name(tx->arena, tenant, name), &doc);
    if (code != RT_OK) return code;
    if (rt_process_decode(doc.value, out)) return RT_OK;
    return rt_fail(tx->err, RT_E_CORRUPT, 0, "process %.*s cannot be read", RT_STR_ARG(name));
}

static bool names(const rt_process *p, rt_str name) {
    for (uint32_t i = 0; i < p->excludes_count; i++) {
        if (rt_str_eq(p->excludes[i], name)) return true;
    }
    return false;
}

rt_code rt_process_excludes(rt_tx *tx, rt_str tenant, rt_str name, const rt_process *process, rt_str other,
                            bool *out) {
    *out = rt_str_eq(name, other) || names(process, other);
    if (*out) return RT_OK;
    rt_process of_other;
    const rt_code code = rt_process_load(tx, tenant, other, &of_other);
    if (code == RT_OK) *out = names(&of_other, name);
    return code == RT_E_ABSENT ? RT_OK : code;
}

typedef struct listing {
    rt_arena *arena;
    rt_str *out;
    uint32_t count;
    bool no_memory;
} listing;

static bool add_name(void *ctx, const rt_doc *doc) {
    listing *l = ctx;
    const rt_str name = rt_arena_dup(l->arena, rt_name_rest(doc->name));
    l->no_memory = name.ptr == NULL;
    l->out[l->count++] = name;
    return !l->no_memory && l->count < RT_PROCESSES_MAX;
}

rt_code rt_process_names(rt_tx *tx, rt_str tenant, rt_str out[], uint32_t *count) {
    listing l = {.arena = tx->arena, .out = out};
    const rt_str prefix = rt_name(tx->arena, tenant, RT_STR_EMPTY);
    if (prefix.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a name");
    const rt_code code = rt_view_docs(tx->view, RT_DOC_PROCESS, prefix, RT_STR_EMPTY, add_name, &l);
    *count = l.count;
    return l.no_memory ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a name") : code;
}

/* ---- command ----------------------------------------------------------------------------------------- */

/* Does it stand less in the way of others? */
static bool is_relaxed(const rt_doc *was, const rt_process *now) {
    rt_process before;
    if (!rt_process_decode(was->value, &before)) return true;
    for (uint32_t i = 0; i < before.excludes_count; i++) {
        if (!names(now, before.excludes[i])) return true;
    }
    return false;
}

static rt_code decide_put(rt_tx *tx, rt_command *cmd) {
    rt_process_put *c = (rt_process_put *)cmd;
    RT_ASSERT(rt_name_is_word(c->name));
    rt_doc was;
    const rt_str name = rt_name(tx->arena, c->tenant, c->name);
    rt_code code = rt_doc_load(tx, RT_DOC_PROCESS, name, &was);
    c->created = code == RT_E_ABSENT;
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    if (c->created) {
        rt_str all[RT_PROCESSES_MAX];
        uint32_t count;
        code = rt_process_names(tx, c->tenant, all, &count);
        if (code != RT_OK) return code;
        if (count == RT_PROCESSES_MAX) {
            return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "there are at most %d processes", RT_PROCESSES_MAX);
        }
    }
    rt_process process = c->like;
    process.changed_ms = tx->now_ms;
    rt_doc now = was;
    now.value = rt_process_encode(tx->arena, &process);
    if (now.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a process");
    rt_tx_put_doc(tx, c->created ? NULL : &was, &now);
    // What was excluded on any entity may be claimed now, of this process or of the other. That is rare, and all ask again.
    if (!c->created && is_relaxed(&was, &process)) rt_tx_tell_all(tx);
    return RT_OK;
}

void rt_process_put_init(rt_process_put *c) { *c = (rt_process_put){.cmd = {.decide = decide_put}}; }
