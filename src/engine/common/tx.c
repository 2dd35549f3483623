#include <string.h>

#include "engine/common/command.h"

/* The next free op, or NULL when the change has grown too large (the engine then refuses it). */
static rt_op *next_op(rt_tx *tx, rt_op_kind kind) {
    if (tx->ops_count == RT_CHANGE_OPS_MAX) {
        tx->overflow = true;
        return NULL;
    }
    rt_op *op = &tx->ops[tx->ops_count++];
    op->kind = kind;
    return op;
}

/* A copy of a record that lives until the decision is applied. Out of memory counts as too large: refused whole. */
static void *keep(rt_tx *tx, const void *record, size_t bytes) {
    if (record == NULL) return NULL;
    void *copy = rt_arena_alloc(tx->arena, bytes);
    if (copy == NULL) tx->overflow = true;
    else memcpy(copy, record, bytes);
    return copy;
}

static void put_job(rt_tx *tx, const rt_job *was, const rt_job *now) {
    rt_op *op = next_op(tx, RT_OP_JOB);
    if (op == NULL) return;
    rt_job *kept = keep(tx, now, sizeof *now);
    if (kept != NULL) kept->version = was == NULL ? 1 : was->version + 1;
    op->job.was = keep(tx, was, sizeof *was);
    op->job.now = kept;
}

void rt_tx_insert_job(rt_tx *tx, const rt_job *now) { put_job(tx, NULL, now); }
void rt_tx_update_job(rt_tx *tx, const rt_job *was, const rt_job *now) { put_job(tx, was, now); }
void rt_tx_remove_job(rt_tx *tx, const rt_job *was) { put_job(tx, was, NULL); }

void rt_tx_put_queue(rt_tx *tx, const rt_queue *was, const rt_queue *now) {
    rt_op *op = next_op(tx, RT_OP_QUEUE);
    if (op == NULL) return;
    rt_queue *kept = keep(tx, now, sizeof *now);
    if (kept != NULL) kept->version = was == NULL ? 1 : was->version + 1;
    op->queue.was = keep(tx, was, sizeof *was);
    op->queue.now = kept;
}

void rt_tx_put_lease(rt_tx *tx, const rt_lease *was, const rt_lease *now) {
    rt_op *op = next_op(tx, RT_OP_LEASE);
    if (op == NULL) return;
    rt_lease *kept = keep(tx, now, sizeof *now);
    if (kept != NULL) kept->version = was == NULL ? 1 : was->version + 1;
    op->lease.was = keep(tx, was, sizeof *was);
    op->lease.now = kept;
}

void rt_tx_put_doc(rt_tx *tx, const rt_doc *was, const rt_doc *now) {
    rt_op *op = next_op(tx, RT_OP_DOC);
    if (op == NULL) return;
    rt_doc *kept = keep(tx, now, sizeof *now);
    if (kept != NULL) kept->version = was == NULL ? 1 : was->version + 1;
    op->doc.was = keep(tx, was, sizeof *was);
    op->doc.now = kept;
}

void rt_tx_put_body(rt_tx *tx, rt_id id, rt_str bytes) {
    rt_op *op = next_op(tx, RT_OP_BODY);
    if (op == NULL) return;
    op->body.id = id;
    op->body.bytes = bytes;
}

void rt_tx_event(rt_tx *tx, rt_job *job, rt_event event) {
    rt_op *op = next_op(tx, RT_OP_EVENT);
    if (op == NULL) return;
    event.seq = rt_store_new_seq(tx->store);
    event.prev = job->last_event;
    event.job = job->id;
    event.queue = job->queue;
    event.at_ms = tx->now_ms;
    job->last_event = event.seq;
    op->event = keep(tx, &event, sizeof event);
}

/* ---- once more ----------------------------------------------------------------------------------------- */

rt_op *rt_tx_doc_op(rt_tx *tx, rt_doc_kind kind, rt_str name) {
    for (uint32_t i = tx->ops_count; i > 0; i--) {
        rt_op *op = &tx->ops[i - 1];
        if (op->kind != RT_OP_DOC) continue;
        const rt_doc *doc = op->doc.was != NULL ? op->doc.was : op->doc.now;
        if (doc != NULL && doc->kind == kind && rt_str_eq(doc->name, name)) return op;
    }
    return NULL;
}

rt_op *rt_tx_queue_op(rt_tx *tx, rt_id id) {
    for (uint32_t i = tx->ops_count; i > 0; i--) {
        rt_op *op = &tx->ops[i - 1];
        if (op->kind != RT_OP_QUEUE) continue;
        const rt_queue *queue = op->queue.was != NULL ? op->queue.was : op->queue.now;
        if (queue != NULL && queue->id == id) return op;
    }
    return NULL;
}

void rt_tx_change_doc(rt_tx *tx, rt_op *op, const rt_doc *now) {
    RT_ASSERT(op->kind == RT_OP_DOC);
    RT_ASSERT(op->doc.was != NULL || now != NULL);
    rt_doc *kept = keep(tx, now, sizeof *now);
    if (kept != NULL) kept->version = op->doc.was == NULL ? 1 : op->doc.was->version + 1;
    op->doc.now = kept;
}

void rt_tx_change_queue(rt_tx *tx, rt_op *op, const rt_queue *now) {
    RT_ASSERT(op->kind == RT_OP_QUEUE);
    rt_queue *kept = keep(tx, now, sizeof *now);
    if (kept != NULL) kept->version = op->queue.was == NULL ? 1 : op->queue.was->version + 1;
    op->queue.now = kept;
}

void rt_tx_guard(rt_tx *tx, rt_doc_kind kind, rt_str name, uint64_t version) {
    for (uint32_t i = 0; i < tx->guards_count; i++) {
        const rt_guard *g = &tx->guards[i];
        if (g->kind == kind && rt_str_eq(g->name, name)) return;
    }
    if (tx->guards_count == RT_CHANGE_GUARDS_MAX) {
        tx->overflow = true;
        return;
    }
    tx->guards[tx->guards_count++] = (rt_guard){.kind = kind, .name = name, .version = version};
}

void rt_tx_want_body(rt_tx *tx, rt_id body) {
    rt_str unused;
    if (tx->store->loads) (void)!rt_view_body(tx->view, body, &unused); // who reads it hears what is wrong with it
}

rt_id rt_tx_new_id(rt_tx *tx) { return rt_store_new_id(tx->store); }

void rt_tx_tell(rt_tx *tx, uint64_t topic) {
    if (tx->topics_count < RT_TX_TOPICS_MAX) tx->topics[tx->topics_count] = topic;
    if (tx->topics_count <= RT_TX_TOPICS_MAX) tx->topics_count++; // one more than there is room for: too many
}

void rt_tx_tell_all(rt_tx *tx) { tx->topics_count = RT_TX_TOPICS_MAX + 1; }
