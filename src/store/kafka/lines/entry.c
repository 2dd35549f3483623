#include "store/kafka/lines/entry.h"

#include <string.h>

#include "store/lmdb/stored.h"

enum { FLAG_WAS = 1, FLAG_NOW = 2, ITEM_CHANGE = 'C', ITEM_IMPORT = 'I', ITEM_TIDY = 'T' };

/* ---- heads --------------------------------------------------------------------------------------------- */

void rt_entry_write_head(rt_buf *out, const rt_entry_head *head) {
    rt_pack_u8(out, RT_ENTRY_FORMAT);
    rt_pack_u8(out, head->kind);
    rt_pack_u64(out, head->node);
    rt_pack_u32(out, head->epoch);
    rt_pack_u64(out, head->no);
    rt_pack_i64(out, head->at_ms);
    rt_pack_u32(out, head->part);
    rt_pack_u32(out, head->parts);
}

bool rt_entry_read_head(rt_str *record, rt_entry_head *out) {
    rt_unpack u = {.rest = *record};
    const uint8_t format = rt_unpack_u8(&u);
    out->kind = rt_unpack_u8(&u);
    out->node = rt_unpack_u64(&u);
    out->epoch = rt_unpack_u32(&u);
    out->no = rt_unpack_u64(&u);
    out->at_ms = rt_unpack_i64(&u);
    out->part = rt_unpack_u32(&u);
    out->parts = rt_unpack_u32(&u);
    *record = u.rest;
    return !u.failed && format == RT_ENTRY_FORMAT && out->kind >= RT_ENTRY_BIRTH &&
           out->kind < RT_ENTRY_KIND_END && out->part < out->parts;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/* Room for `bytes` behind what is there, as a counted string. NULL: out of memory. */
static unsigned char *pack_room(rt_buf *out, size_t bytes) {
    static const char ZEROS[64];
    rt_pack_u32(out, (uint32_t)bytes);
    const size_t at = out->len;
    for (size_t left = bytes; left > 0 && !out->failed;) {
        const size_t some = left < sizeof ZEROS ? left : sizeof ZEROS;
        rt_buf_add(out, (rt_str){.ptr = ZEROS, .len = some});
        left -= some;
    }
    return out->failed ? NULL : (unsigned char *)out->ptr + at;
}

static void begin_op(rt_buf *out, rt_op_kind kind, bool was, bool now) {
    rt_pack_u8(out, (uint8_t)kind);
    rt_pack_u8(out, (uint8_t)((was ? FLAG_WAS : 0) | (now ? FLAG_NOW : 0)));
}

#define ID_OF(op) ((op)->was != NULL ? (op)->was->id : (op)->now->id)
#define VERSION_OF(op) ((op)->was != NULL ? (op)->was->version : 0)

static void add_op(rt_buf *out, const rt_op *op, bool imports) {
    unsigned char *to;
    switch (op->kind) {
    case RT_OP_JOB:
        begin_op(out, op->kind, op->job.was != NULL, op->job.now != NULL);
        rt_pack_u64(out, ID_OF(&op->job));
        rt_pack_u64(out, VERSION_OF(&op->job));
        if (op->job.was != NULL) rt_pack_u64(out, op->job.was->body);
        if (op->job.now == NULL) return;
        to = pack_room(out, RT_STORED_JOB_BYTES);
        if (to != NULL) rt_stored_write_job(to, op->job.now);
        return;
    case RT_OP_QUEUE:
        begin_op(out, op->kind, op->queue.was != NULL, op->queue.now != NULL);
        rt_pack_u64(out, ID_OF(&op->queue));
        rt_pack_u64(out, VERSION_OF(&op->queue));
        if (op->queue.now == NULL) return;
        to = pack_room(out, rt_stored_queue_bytes(op->queue.now));
        if (to != NULL) rt_stored_write_queue(to, op->queue.now);
        return;
    case RT_OP_LEASE:
        begin_op(out, op->kind, op->lease.was != NULL, op->lease.now != NULL);
        rt_pack_u64(out, ID_OF(&op->lease));
        rt_pack_u64(out, VERSION_OF(&op->lease));
        if (op->lease.now == NULL) return;
        to = pack_room(out, rt_stored_lease_bytes(op->lease.now));
        if (to != NULL) rt_stored_write_lease(to, op->lease.now);
        return;
    case RT_OP_DOC: {
        const rt_doc *doc = op->doc.now != NULL ? op->doc.now : op->doc.was;
        begin_op(out, op->kind, op->doc.was != NULL, op->doc.now != NULL);
        rt_pack_u8(out, (uint8_t)doc->kind);
        rt_pack_str(out, doc->name);
        rt_pack_u64(out, VERSION_OF(&op->doc));
        if (op->doc.now == NULL) return;
        to = pack_room(out, rt_stored_doc_bytes(op->doc.now));
        if (to != NULL) rt_stored_write_doc(to, op->doc.now);
        return;
    }
    case RT_OP_BODY:
        begin_op(out, op->kind, false, true);
        rt_pack_u64(out, op->body.id);
        if (imports) rt_pack_u64(out, op->body.users);
        rt_pack_str(out, op->body.bytes);
        return;
    case RT_OP_EVENT:
        begin_op(out, op->kind, false, true);
        rt_pack_u64(out, op->event->seq);
        to = pack_room(out, rt_stored_event_bytes(op->event));
        if (to != NULL) rt_stored_write_event(to, op->event);
        return;
    }
}

static void begin_import(rt_buf *out, const rt_change *change) {
    RT_ASSERT(change->guards_count == 0);
    rt_pack_u8(out, ITEM_IMPORT);
    rt_pack_u32(out, change->import->tag);
    rt_pack_u64(out, change->import->ids_from);
    rt_pack_u64(out, change->import->seqs_from);
    rt_pack_u32(out, change->ops_count);
}

static void begin_change(rt_buf *out, const rt_change *change) {
    rt_pack_u8(out, ITEM_CHANGE);
    rt_pack_u32(out, change->guards_count);
    rt_pack_u32(out, change->ops_count);
}

void rt_entry_add_change(rt_buf *out, const rt_change *change) {
    const bool imports = change->import != NULL;
    if (imports) begin_import(out, change);
    else begin_change(out, change);
    for (uint32_t i = 0; i < change->guards_count; i++) {
        const rt_guard *g = &change->guards[i];
        rt_pack_u8(out, (uint8_t)g->kind);
        rt_pack_str(out, g->name);
        rt_pack_u64(out, g->version);
    }
    for (uint32_t i = 0; i < change->ops_count; i++) add_op(out, &change->ops[i], imports);
}

void rt_entry_add_dropped(rt_buf *dropped, bool is_job, uint64_t key) {
    rt_pack_u8(dropped, is_job);
    rt_pack_u64(dropped, key);
}

bool rt_entry_next_dropped(rt_unpack *u, bool *is_job, uint64_t *key) {
    if (u->failed || u->rest.len < RT_ENTRY_DROPPED_BYTES) return false;
    *is_job = rt_unpack_u8(u) == 1;
    *key = rt_unpack_u64(u);
    return true;
}

void rt_entry_add_tidy(rt_buf *out, const rt_retention *bounds, int64_t now_ms, uint32_t ops_max,
                       rt_str dropped) {
    rt_pack_u8(out, ITEM_TIDY);
    rt_pack_i64(out, now_ms);
    rt_pack_u32(out, ops_max);
    rt_pack_i64(out, bounds->age_ms);
    rt_pack_u64(out, bounds->events);
    rt_pack_str(out, dropped);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static bool refuse(rt_unpack *u) {
    u->failed = true;
    return false;
}

bool rt_entry_next(rt_unpack *u, rt_entry_item *out) {
    *out = (rt_entry_item){0};
    if (u->failed || u->rest.len == 0) return false;
    const uint8_t tag = rt_unpack_u8(u);
    if (tag == ITEM_CHANGE || tag == ITEM_IMPORT) {
        out->imports = tag == ITEM_IMPORT;
        if (out->imports) {
            out->import.tag = rt_unpack_u32(u);
            out->import.ids_from = rt_unpack_u64(u);
            out->import.seqs_from = rt_unpack_u64(u);
        } else {
            out->guards = rt_unpack_u32(u);
        }
        out->ops = rt_unpack_u32(u);
        if (out->guards > RT_CHANGE_GUARDS_MAX || out->ops > RT_CHANGE_OPS_MAX) return refuse(u);
    } else if (tag == ITEM_TIDY) {
        out->is_tidy = true;
        out->now_ms = rt_unpack_i64(u);
        out->ops_max = rt_unpack_u32(u);
        out->bounds.age_ms = rt_unpack_i64(u);
        out->bounds.events = rt_unpack_u64(u);
        out->dropped = rt_unpack_str(u);
        if (out->ops_max < 2 || out->bounds.age_ms < 1 || out->bounds.events < 1) return refuse(u);
    } else {
        return refuse(u);
    }
    return !u->failed;
}

bool rt_entry_read_guard(rt_unpack *u, rt_guard *out) {
    const uint8_t kind = rt_unpack_u8(u);
    out->kind = (rt_doc_kind)kind;
    out->name = rt_unpack_str(u);
    out->version = rt_unpack_u64(u);
    return (!u->failed && kind > RT_DOC_NONE && kind < RT_DOC_KIND_COUNT) || refuse(u);
}

/* Each write raises the version by one; an insert makes it 1, and one of an import brings it along. */
static bool is_next(const rt_entry_op *op, uint64_t version, bool imports) {
    if (op->was != (op->was_version > 0)) return false;
    if (!op->now) return true;
    return imports && !op->was ? version >= 1 : version == op->was_version + 1;
}

static bool read_now(rt_entry_op *op, rt_str value, bool imports) {
    switch (op->kind) {
    case RT_OP_JOB:
        return rt_stored_read_job(op->key, value, &op->job) && is_next(op, op->job.version, imports);
    case RT_OP_QUEUE:
        return rt_stored_read_queue(op->key, value, &op->queue) && is_next(op, op->queue.version, imports);
    case RT_OP_LEASE:
        return rt_stored_read_lease(op->key, value, &op->lease) && is_next(op, op->lease.version, imports);
    case RT_OP_DOC:
        return rt_stored_read_doc(op->doc_kind, op->name, value, &op->doc) &&
               is_next(op, op->doc.version, imports);
    case RT_OP_BODY: op->body.bytes = value; return true;
    case RT_OP_EVENT: return rt_stored_read_event(op->key, value, &op->event);
    }
    return false;
}

bool rt_entry_read_op(rt_unpack *u, const rt_entry_item *item, rt_entry_op *op) {
    *op = (rt_entry_op){0};
    const uint8_t kind = rt_unpack_u8(u);
    const uint8_t flags = rt_unpack_u8(u);
    if (kind > RT_OP_EVENT || flags == 0 || flags > (FLAG_WAS | FLAG_NOW)) return refuse(u);
    op->kind = (rt_op_kind)kind;
    op->was = (flags & FLAG_WAS) != 0;
    op->now = (flags & FLAG_NOW) != 0;
    const bool once = op->kind == RT_OP_BODY || op->kind == RT_OP_EVENT;
    if (op->kind == RT_OP_DOC) {
        op->doc_kind = (rt_doc_kind)rt_unpack_u8(u);
        op->name = rt_unpack_str(u);
        if (op->doc_kind <= RT_DOC_NONE || op->doc_kind >= RT_DOC_KIND_COUNT) return refuse(u);
    } else {
        op->key = rt_unpack_u64(u);
        if (op->key == 0) return refuse(u);
    }
    if (once && op->was) return refuse(u);
    if (!once) op->was_version = rt_unpack_u64(u);
    if (op->kind == RT_OP_JOB && op->was) op->was_body = rt_unpack_u64(u);
    if (op->kind == RT_OP_BODY && item->imports) op->body.users = rt_unpack_u64(u);
    const rt_str value = op->now ? rt_unpack_str(u) : RT_STR_EMPTY;
    if (u->failed || (!op->now && !is_next(op, 0, false)) || (op->now && !read_now(op, value, item->imports)))
        return refuse(u);
    return true;
}
