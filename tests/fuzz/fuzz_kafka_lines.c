/* What is read from a broker where Kafka is the store: whatever bytes they are, they are refused or say what writes back as
 * the same; and nothing is read beyond the end. The input: a byte that says what it is, then that. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "store/kafka/lines/dirty.h"
#include "store/kafka/lines/ledger.h"
#include "store/kafka/lines/parts.h"
#include "store/kafka/lines/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- heads --------------------------------------------------------------------------------------------- */

static void read_head(rt_str record) {
    rt_entry_head head;
    rt_str rest = record;
    if (!rt_entry_read_head(&rest, &head)) return;
    rt_buf out = {0};
    rt_entry_write_head(&out, &head);
    rt_buf_add(&out, rest);
    RT_ASSERT(rt_str_eq(rt_buf_str(&out), record));
    rt_buf_deinit(&out);
}

/* ---- items --------------------------------------------------------------------------------------------- */

/* The records that an op was written from, as far as it says them. */
typedef struct was {
    rt_job job;
    rt_queue queue;
    rt_lease lease;
    rt_doc doc;
} was;

static rt_op op_of(const rt_entry_op *from, was *w) {
    rt_op op = {.kind = from->kind};
    *w = (was){.job = {.id = from->key, .version = from->was_version, .body = from->was_body},
               .queue = {.id = from->key, .version = from->was_version},
               .lease = {.id = from->key, .version = from->was_version},
               .doc = {.kind = from->doc_kind, .name = from->name, .version = from->was_version}};
    switch (from->kind) {
    case RT_OP_JOB:
        op.job.was = from->was ? &w->job : NULL;
        op.job.now = from->now ? &from->job : NULL;
        break;
    case RT_OP_QUEUE:
        op.queue.was = from->was ? &w->queue : NULL;
        op.queue.now = from->now ? &from->queue : NULL;
        break;
    case RT_OP_LEASE:
        op.lease.was = from->was ? &w->lease : NULL;
        op.lease.now = from->now ? &from->lease : NULL;
        break;
    case RT_OP_DOC:
        op.doc.was = from->was ? &w->doc : NULL;
        op.doc.now = from->now ? &from->doc : NULL;
        break;
    case RT_OP_BODY:
        op.body.id = from->key;
        op.body.bytes = from->body.bytes;
        op.body.users = from->body.users;
        break;
    case RT_OP_EVENT: op.event = &from->event; break;
    }
    return op;
}

/* Adds to *out what it reads, as changes of one op each. False: it is no batch. */
static bool read_item(rt_unpack *u, const rt_entry_item *item, rt_buf *out) {
    rt_guard guard;
    rt_entry_op from;
    was w;
    for (uint32_t i = 0; i < item->guards; i++) {
        if (!rt_entry_read_guard(u, &guard)) return false;
        rt_entry_add_change(out, &(rt_change){.guards = &guard, .guards_count = 1});
    }
    for (uint32_t i = 0; i < item->ops; i++) {
        if (!rt_entry_read_op(u, item, &from)) return false;
        const rt_op op = op_of(&from, &w);
        rt_entry_add_change(out, &(rt_change){.ops = &op, .ops_count = 1, .import = item->imports ? &item->import : NULL});
    }
    if (item->is_tidy) rt_entry_add_tidy(out, &item->bounds, item->now_ms, item->ops_max, item->dropped);
    return true;
}

static bool read_items(rt_str items, rt_buf *out) {
    rt_unpack u = {.rest = items};
    rt_entry_item item;
    bool good = true;
    while (good && rt_entry_next(&u, &item)) good = read_item(&u, &item, out);
    return good && !u.failed;
}

static void read_batch(rt_str items) {
    rt_buf once = {0}, twice = {0};
    rt_dirty dirty = {0};
    rt_dirty_add(&dirty, items, 1); // as far as it goes
    if (read_items(items, &once)) {
        RT_ASSERT(read_items(rt_buf_str(&once), &twice));
        RT_ASSERT(rt_str_eq(rt_buf_str(&once), rt_buf_str(&twice)));
    }
    rt_dirty_deinit(&dirty);
    rt_buf_deinit(&once);
    rt_buf_deinit(&twice);
}

/* ---- lines of several records -------------------------------------------------------------------------- */

/* Each record: node, number, part, parts, how many bytes, then those. */
static void read_parts(rt_str bytes) {
    rt_parts parts = {0};
    rt_unpack u = {.rest = bytes};
    for (int64_t offset = 0; u.rest.len >= 5; offset += 97) {
        rt_entry_head head = {.kind = RT_ENTRY_BATCH, .epoch = 1};
        head.node = rt_unpack_u8(&u);
        head.no = rt_unpack_u8(&u);
        head.part = rt_unpack_u8(&u);
        head.parts = rt_unpack_u8(&u);
        size_t len = rt_unpack_u8(&u);
        if (len > u.rest.len) len = u.rest.len;
        if (head.part >= head.parts) break; // no head is like that
        const rt_str part = {.ptr = u.rest.ptr, .len = len};
        rt_str whole;
        const rt_parts_end end = rt_parts_add(&parts, &head, offset, part, &whole);
        RT_ASSERT(parts.count <= RT_PARTS_MAX);
        RT_ASSERT(rt_parts_from(&parts, offset + 1) <= offset + 1);
        if (end == RT_PARTS_WHOLE) {
            RT_ASSERT(head.part + 1 == head.parts && whole.len >= len);
            RT_ASSERT(len == 0 || memcmp(whole.ptr + whole.len - len, part.ptr, len) == 0);
        }
        u.rest.ptr += len;
        u.rest.len -= len;
    }
    rt_parts_deinit(&parts);
}

/* ---- the retry topic ----------------------------------------------------------------------------------- */

static void read_ledger(rt_str note) {
    static rt_ledger ledger;
    if (!rt_ledger_decode(note, &ledger)) return;
    rt_buf out = {0};
    rt_ledger_encode(&ledger, &out);
    RT_ASSERT(rt_str_eq(rt_buf_str(&out), note));
    rt_buf_deinit(&out);
}

static void read_key(rt_str text) {
    rt_dirty_key key, again;
    if (!rt_row_read_key(text, &key)) return;
    rt_buf out = {0};
    rt_row_write_key(&out, &key);
    RT_ASSERT(rt_row_read_key(rt_buf_str(&out), &again)); // "doc/05/n" is written "doc/5/n"
    RT_ASSERT(again.kind == key.kind && again.key == key.key && again.doc_kind == key.doc_kind);
    RT_ASSERT(rt_str_eq(again.name, key.name));
    rt_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const rt_str rest = {.ptr = (const char *)data + 1, .len = size - 1};
    switch (data[0]) {
    case 'h': read_head(rest); break;
    case 'b': read_batch(rest); break;
    case 'p': read_parts(rest); break;
    case 'l': read_ledger(rest); break;
    case 'k': read_key(rest); break;
    default: break;
    }
    return 0;
}
