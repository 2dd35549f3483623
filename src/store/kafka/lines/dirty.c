#include "store/kafka/lines/dirty.h"

static uint64_t hash_of(const rt_dirty_key *k) {
    const uint64_t hash =
        rt_hash_u64(k->key ^ rt_hash_str(k->name)) ^ rt_hash_u64((uint64_t)k->kind << 8 | k->doc_kind);
    return hash != 0 ? hash : 1;
}

static bool is_same(const rt_dirty_key *a, const rt_dirty_key *b) {
    return a->kind == b->kind && a->key == b->key && a->doc_kind == b->doc_kind &&
           rt_str_eq(a->name, b->name);
}

static void add(rt_dirty *d, const rt_dirty_key *key) {
    const uint64_t hash = hash_of(key);
    rt_dirty_key *first = rt_map_get(&d->by_hash, hash);
    rt_dirty_key *k = first;
    while (k != NULL && !is_same(k, key)) k = k->same_hash;
    if (k != NULL) {
        if (key->offset > k->offset) k->offset = key->offset;
        return;
    }
    k = rt_arena_alloc(&d->arena, sizeof *k);
    if (k != NULL) {
        *k = *key;
        k->name = rt_arena_dup(&d->arena, key->name);
        k->same_hash = first;
        k->next = d->first;
    }
    if (k == NULL || k->name.ptr == NULL || !rt_map_put(&d->by_hash, hash, k)) {
        d->incomplete = true;
        return;
    }
    d->first = k;
    d->count++;
}

static void add_number(rt_dirty *d, rt_op_kind kind, uint64_t key, int64_t offset) {
    if (key != 0) add(d, &(rt_dirty_key){.kind = kind, .key = key, .name = RT_STR_EMPTY, .offset = offset});
}

static void add_op(rt_dirty *d, const rt_entry_op *op, int64_t offset) {
    if (op->kind == RT_OP_DOC) {
        rt_dirty_key key = {.kind = op->kind, .doc_kind = op->doc_kind, .name = op->name, .offset = offset};
        add(d, &key);
        return;
    }
    add_number(d, op->kind, op->key, offset);
    if (op->kind != RT_OP_JOB) return;
    // A body is written again when another number of jobs needs it, not with each attempt.
    const rt_id was = op->was ? op->was_body : 0;
    const rt_id now = op->now && op->job.state != RT_JOB_DONE ? op->job.body : 0;
    if (was == now) return;
    add_number(d, RT_OP_BODY, was, offset);
    add_number(d, RT_OP_BODY, now, offset);
}

void rt_dirty_add(rt_dirty *d, rt_str items, int64_t offset) {
    rt_unpack u = {.rest = items};
    rt_entry_item item;
    while (rt_entry_next(&u, &item)) {
        rt_unpack dropped = {.rest = item.dropped};
        bool is_job;
        uint64_t key;
        while (item.is_tidy && rt_entry_next_dropped(&dropped, &is_job, &key))
            add_number(d, is_job ? RT_OP_JOB : RT_OP_EVENT, key, offset);
        rt_guard guard;
        for (uint32_t i = 0; i < item.guards && rt_entry_read_guard(&u, &guard); i++) continue;
        rt_entry_op op;
        for (uint32_t i = 0; i < item.ops && rt_entry_read_op(&u, &item, &op); i++) add_op(d, &op, offset);
    }
}

void rt_dirty_add_since(rt_dirty *d, const rt_dirty *from, int64_t least) {
    for (const rt_dirty_key *k = from->first; k != NULL; k = k->next) {
        if (k->offset >= least) add(d, k);
    }
    d->incomplete = d->incomplete || from->incomplete;
}

void rt_dirty_deinit(rt_dirty *d) {
    rt_map_deinit(&d->by_hash);
    rt_arena_deinit(&d->arena);
    *d = (rt_dirty){0};
}
