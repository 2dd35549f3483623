#include "engine/calls/line.h"

#include <string.h>

#include "base/pack.h"
#include "engine/common/name.h"

enum { FORMAT = 1, LINE_LEN = 16, PLACE_LEN = 24, IDS_MAX = 1 << 16 };

typedef struct line {
    rt_doc doc; /* version 0: there is none */
    uint32_t count;
    rt_id head, last; /* last: the largest that has joined */
} line;

/* ---- names and values ---------------------------------------------------------------------------------- */

static rt_str name_of(rt_arena *arena, rt_id queue, uint64_t key, rt_id job, size_t len) {
    unsigned char *name = rt_arena_alloc(arena, PLACE_LEN);
    if (name == NULL) return (rt_str){0};
    rt_put_be64(name, queue);
    rt_put_be64(name + 8, key);
    rt_put_be64(name + 16, job);
    return (rt_str){.ptr = (const char *)name, .len = len};
}

static rt_code no_memory(rt_tx *tx) { return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an order key"); }

static rt_str encode_line(rt_arena *arena, const line *l) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u32(&b, l->count);
    rt_pack_u64(&b, l->head);
    rt_pack_u64(&b, l->last);
    return rt_pack_finish(&b, arena);
}

static bool decode_line(rt_str value, line *l) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    l->count = rt_unpack_u32(&u);
    l->head = rt_unpack_u64(&u);
    l->last = rt_unpack_u64(&u);
    return !u.failed && u.rest.len == 0 && l->count > 0;
}

/* The line as this change leaves it so far. */
static rt_code load(rt_tx *tx, const rt_job *job, line *out) {
    *out = (line){0};
    const rt_str name = name_of(tx->arena, job->queue, job->key_hash, 0, LINE_LEN);
    if (name.ptr == NULL) return no_memory(tx);
    const rt_op *written = rt_tx_doc_op(tx, RT_DOC_CALL_LINE, name);
    if (written != NULL) {
        out->doc = (rt_doc){.kind = RT_DOC_CALL_LINE, .name = name};
        if (written->doc.now == NULL) return RT_OK;
        out->doc = *written->doc.now;
    } else {
        const rt_code code = rt_doc_load(tx, RT_DOC_CALL_LINE, name, &out->doc);
        if (code == RT_E_ABSENT) return RT_OK;
        if (code != RT_OK) return code;
    }
    return decode_line(out->doc.value, out)
               ? RT_OK
               : rt_fail(tx->err, RT_E_CORRUPT, 0, "a line of calls cannot be read");
}

static rt_code save(rt_tx *tx, const line *l) {
    rt_doc now = l->doc;
    now.value = encode_line(tx->arena, l);
    if (now.value.ptr == NULL) return no_memory(tx);
    rt_op *written = rt_tx_doc_op(tx, RT_DOC_CALL_LINE, l->doc.name);
    if (written != NULL) rt_tx_change_doc(tx, written, l->count > 0 ? &now : NULL);
    else rt_tx_put_doc(tx, l->doc.version == 0 ? NULL : &l->doc, l->count > 0 ? &now : NULL);
    return RT_OK;
}

/* ---- joining ------------------------------------------------------------------------------------------- */

rt_code rt_line_new_id(rt_tx *tx, rt_id queue, uint64_t key_hash, rt_id *out) {
    line l;
    const rt_code code = load(tx, &(const rt_job){.queue = queue, .key_hash = key_hash}, &l);
    if (code != RT_OK) return code;
    // Nodes have blocks of ids of their own: what is given out here may be smaller than what another node gave out before.
    rt_id id = rt_tx_new_id(tx);
    for (int i = 0; i < IDS_MAX && id <= l.last; i++) id = rt_tx_new_id(tx);
    if (id <= l.last) return rt_fail(tx->err, RT_E_UNAVAILABLE, 0, "no id behind those that stand in line");
    *out = id;
    return RT_OK;
}

rt_code rt_line_join(rt_tx *tx, rt_job *job) {
    RT_ASSERT(job->key_hash != 0);
    line l;
    rt_code code = load(tx, job, &l);
    if (code != RT_OK) return code;
    rt_buf b = {0};
    rt_pack_i64(&b, job->due_ms); // not before, when its turn has come
    const rt_doc place = {.kind = RT_DOC_CALL_PLACE,
                          .name = name_of(tx->arena, job->queue, job->key_hash, job->id, PLACE_LEN),
                          .value = rt_pack_finish(&b, tx->arena)};
    if (place.name.ptr == NULL || place.value.ptr == NULL) return no_memory(tx);
    rt_tx_put_doc(tx, NULL, &place);
    if (l.count == 0) {
        l.head = job->id;
    } else {
        job->state = RT_JOB_SCHEDULED;
        job->due_ms = RT_LINE_DUE_MS;
    }
    l.count++;
    if (job->id > l.last) l.last = job->id;
    return save(tx, &l);
}

/* ---- leaving ------------------------------------------------------------------------------------------- */

typedef struct search {
    rt_id but, found;
    int64_t due_ms;
    bool corrupt;
} search;

static bool look(void *ctx, const rt_doc *doc) {
    search *s = ctx;
    rt_unpack u = {.rest = doc->value};
    const rt_id id = rt_get_be64((const unsigned char *)doc->name.ptr + 16);
    if (id == s->but) return true;
    s->found = id;
    s->due_ms = rt_unpack_i64(&u);
    s->corrupt = u.failed;
    return false;
}

static rt_code release(rt_tx *tx, rt_id id, int64_t due_ms) {
    rt_job was;
    const rt_code code = rt_view_job(tx->view, id, &was);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_E_CORRUPT : code;
    // Where others write too, what was read may be of two moments.
    if (!rt_line_waits(&was)) return rt_fail(tx->err, RT_E_CORRUPT, 0, "a call that stands in line does not wait for it");
    rt_job now = was;
    rt_call_wait(tx, &now, due_ms);
    rt_tx_update_job(tx, &was, &now);
    return RT_OK;
}

/* The view does not show who has joined within this change: the first of them is a job that it inserts. */
static rt_code release_joined(rt_tx *tx, rt_str line_name, rt_id *id) {
    const rt_doc *place = NULL;
    for (uint32_t i = 0; i < tx->ops_count && place == NULL; i++) {
        const rt_op *op = &tx->ops[i];
        const rt_doc *put = op->kind == RT_OP_DOC && op->doc.was == NULL ? op->doc.now : NULL;
        if (put != NULL && put->kind == RT_DOC_CALL_PLACE && rt_str_starts(put->name, line_name)) place = put;
    }
    if (place == NULL) return RT_E_CORRUPT;
    *id = rt_get_be64((const unsigned char *)place->name.ptr + 16);
    rt_unpack u = {.rest = place->value};
    const int64_t due_ms = rt_unpack_i64(&u);
    for (uint32_t i = 0; i < tx->ops_count; i++) {
        rt_op *op = &tx->ops[i];
        if (op->kind != RT_OP_JOB || op->job.was != NULL || op->job.now->id != *id) continue;
        rt_job *now = rt_arena_alloc(tx->arena, sizeof *now);
        if (now == NULL) return no_memory(tx);
        *now = *op->job.now;
        rt_call_wait(tx, now, due_ms);
        op->job.now = now;
        return RT_OK;
    }
    return RT_E_CORRUPT;
}

rt_code rt_line_leave(rt_tx *tx, const rt_job *job) {
    if (job->key_hash == 0) return RT_OK;
    line l;
    rt_code code = load(tx, job, &l);
    if (code != RT_OK) return code;
    rt_doc place;
    const rt_str name = name_of(tx->arena, job->queue, job->key_hash, job->id, PLACE_LEN);
    code = rt_doc_load(tx, RT_DOC_CALL_PLACE, name, &place);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_E_CORRUPT : code;
    if (l.count == 0) return rt_fail(tx->err, RT_E_CORRUPT, 0, "a call stands in no line");
    rt_tx_put_doc(tx, &place, NULL);
    l.count--;
    if (l.head == job->id && l.count > 0) {
        search s = {.but = job->id};
        const rt_str prefix = {.ptr = name.ptr, .len = LINE_LEN};
        code = rt_view_docs(tx->view, RT_DOC_CALL_PLACE, prefix, RT_STR_EMPTY, look, &s);
        if (code == RT_OK && s.corrupt) code = RT_E_CORRUPT;
        if (code == RT_OK)
            code = s.found == 0 ? release_joined(tx, prefix, &s.found) : release(tx, s.found, s.due_ms);
        if (code != RT_OK) return code;
        l.head = s.found;
    }
    return save(tx, &l);
}

static bool writes_one_of(const rt_tx *tx, const rt_job *job) {
    for (uint32_t i = 0; i < tx->ops_count; i++) {
        if (tx->ops[i].kind != RT_OP_JOB) continue;
        const rt_job *other = tx->ops[i].job.was != NULL ? tx->ops[i].job.was : tx->ops[i].job.now;
        if (other->queue == job->queue && other->key_hash == job->key_hash) return true;
    }
    return false;
}

bool rt_line_is_written(rt_tx *tx, const rt_job *job) {
    if (job->key_hash == 0) return false;
    if (writes_one_of(tx, job)) return true;
    unsigned char name[LINE_LEN];
    rt_put_be64(name, job->queue);
    rt_put_be64(name + 8, job->key_hash);
    return rt_tx_doc_op(tx, RT_DOC_CALL_LINE, (rt_str){.ptr = (const char *)name, .len = sizeof name}) !=
           NULL;
}

/* ---- forgetting ---------------------------------------------------------------------------------------- */

typedef struct page {
    rt_tx *tx;
    uint32_t count, max;
} page;

static bool remove_doc(void *ctx, const rt_doc *doc) {
    page *p = ctx;
    rt_doc was = *doc;
    was.name = rt_arena_dup(p->tx->arena, doc->name);
    was.value = rt_arena_dup(p->tx->arena, doc->value);
    if (was.name.ptr == NULL || was.value.ptr == NULL) p->tx->overflow = true;
    rt_tx_put_doc(p->tx, &was, NULL);
    return ++p->count < p->max && !p->tx->overflow;
}

rt_code rt_line_forget(rt_tx *tx, rt_id queue, uint32_t max, uint32_t *count) {
    page p = {.tx = tx, .max = max};
    const rt_str prefix = name_of(tx->arena, queue, 0, 0, 8);
    if (prefix.ptr == NULL) return no_memory(tx);
    rt_code code = rt_view_docs(tx->view, RT_DOC_CALL_PLACE, prefix, RT_STR_EMPTY, remove_doc, &p);
    if (code == RT_OK && p.count < max)
        code = rt_view_docs(tx->view, RT_DOC_CALL_LINE, prefix, RT_STR_EMPTY, remove_doc, &p);
    *count = p.count;
    return code;
}
