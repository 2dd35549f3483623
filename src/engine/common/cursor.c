#include "engine/common/cursor.h"

#include "engine/common/stored.h"

enum { FORMAT = 1 };

/* ---- stored form ------------------------------------------------------------------------------------- */

rt_str rt_cursor_encode(rt_arena *arena, const rt_cursor *c) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, c->id);
    rt_pack_u8(&b, (uint8_t)c->kind);
    rt_pack_u64(&b, c->queue);
    rt_pack_u64(&b, c->after);
    rt_pack_u64(&b, c->last);
    rt_pack_u64(&b, c->from);
    rt_pack_u64(&b, c->after_queue);
    rt_pack_u8(&b, (uint8_t)c->reason);
    rt_pack_u8(&b, c->keep_dead);
    rt_pack_u8(&b, c->confirmed_only);
    rt_pack_u8(&b, c->remove);
    rt_pack_u64(&b, c->filter.queue);
    rt_pack_u64(&b, c->filter.owner);
    rt_pack_u8(&b, (uint8_t)c->filter.reason);
    rt_pack_u32(&b, c->rate);
    rt_pack_i64(&b, c->next_ms);
    rt_pack_u8(&b, (uint8_t)c->filter.failure);
    rt_pack_u16(&b, c->filter.status_low);
    rt_pack_u16(&b, c->filter.status_high);
    rt_pack_i64(&b, c->filter.after_ms);
    rt_pack_i64(&b, c->filter.before_ms);
    rt_pack_str(&b, c->filter.told);
    rt_pack_str(&b, c->filter.text);
    return rt_pack_finish(&b, arena);
}

static bool take_filter(rt_unpack *u, rt_dead_filter *out) {
    const uint8_t failure = rt_unpack_u8(u);
    out->status_low = rt_unpack_u16(u);
    out->status_high = rt_unpack_u16(u);
    out->after_ms = rt_unpack_i64(u);
    out->before_ms = rt_unpack_i64(u);
    out->told = rt_unpack_str(u);
    out->text = rt_unpack_str(u);
    out->failure = (rt_reason)failure;
    return failure < RT_REASON_COUNT;
}

bool rt_cursor_decode(rt_str value, rt_cursor *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_cursor){.id = rt_unpack_u64(&u)};
    const uint8_t kind = rt_unpack_u8(&u);
    out->queue = rt_unpack_u64(&u);
    out->after = rt_unpack_u64(&u);
    out->last = rt_unpack_u64(&u);
    out->from = rt_unpack_u64(&u);
    out->after_queue = rt_unpack_u64(&u);
    const uint8_t reason = rt_unpack_u8(&u);
    out->keep_dead = rt_unpack_bool(&u);
    out->confirmed_only = rt_unpack_bool(&u);
    out->remove = rt_unpack_bool(&u);
    out->filter.queue = rt_unpack_u64(&u);
    out->filter.owner = rt_unpack_u64(&u);
    const uint8_t filter_reason = rt_unpack_u8(&u);
    out->rate = rt_unpack_u32(&u);
    out->next_ms = rt_unpack_i64(&u);
    if (u.rest.len > 0 && !take_filter(&u, &out->filter)) return false; // cursors of before had none
    if (u.failed || u.rest.len > 0) return false;
    if (kind == RT_CURSOR_NONE || kind >= RT_CURSOR_KIND_COUNT) return false;
    if (reason >= RT_REASON_COUNT || filter_reason >= RT_REASON_COUNT) return false;
    out->kind = (rt_cursor_kind)kind;
    out->reason = (rt_reason)reason;
    out->filter.reason = (rt_reason)filter_reason;
    return true;
}

/* ---- in decisions ------------------------------------------------------------------------------------ */

rt_code rt_cursor_write(rt_tx *tx, const rt_doc *was, const rt_cursor *c) {
    unsigned char *name = rt_arena_alloc(tx->arena, RT_CURSOR_NAME_LEN);
    const rt_str value = rt_cursor_encode(tx->arena, c);
    if (name == NULL || value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a cursor");
    rt_put_be64(name, c->id);
    const rt_doc now = {
        .kind = RT_DOC_CURSOR, .name = {.ptr = (const char *)name, .len = RT_CURSOR_NAME_LEN}, .value = value};
    rt_tx_put_doc(tx, was, &now);
    return RT_OK;
}

rt_code rt_cursor_start(rt_tx *tx, rt_cursor *c) {
    if (c->id == 0) c->id = rt_tx_new_id(tx);
    return rt_cursor_write(tx, NULL, c);
}

/* ---- slices ------------------------------------------------------------------------------------------ */

static bool add_job(void *ctx, const rt_job *job) {
    rt_cursor_jobs *page = ctx;
    page->jobs[page->count++] = *job;
    return page->count < RT_CURSOR_SLICE;
}

rt_code rt_cursor_read_jobs(rt_tx *tx, const rt_job_range *range, rt_cursor_jobs *out) {
    out->count = 0;
    return rt_view_jobs(tx->view, range, add_job, out);
}
