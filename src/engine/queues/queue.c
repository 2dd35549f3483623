#include "engine/queues/queue.h"

#include "engine/calls/line.h"
#include "engine/common/cursor.h"
#include "engine/common/job.h"
#include "engine/messages/message.h"
#include "engine/messages/subscription.h"
#include "policy/circuit.h"

/* ---- records of lists -------------------------------------------------------------------------------- */

rt_str rt_queue_label(rt_arena *arena, rt_str tenant, rt_str queue, rt_str uri) {
    const char *slash = uri.len > 0 ? "/" : "";
    const rt_str label = rt_arena_printf(arena, "%.*s/%.*s%s%.*s", RT_STR_ARG(tenant), RT_STR_ARG(queue),
                                         slash, RT_STR_ARG(uri));
    if (label.len <= RT_QUEUE_NAME_MAX) return label;
    size_t len = RT_QUEUE_NAME_MAX;
    // The first byte that is cut off must not continue a UTF-8 character.
    while (len > 0 && ((unsigned char)label.ptr[len] & 0xC0u) == 0x80u) len--;
    return (rt_str){.ptr = label.ptr, .len = len};
}

rt_code rt_queue_load(rt_tx *tx, rt_id id, rt_queue *out) {
    const rt_code code = rt_view_queue(tx->view, id, out);
    if (code != RT_OK) return code;
    out->name = rt_arena_dup(tx->arena, out->name);
    return out->name.ptr == NULL ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's name") : RT_OK;
}

rt_code rt_queue_is_paused(rt_tx *tx, rt_id id, bool *paused) {
    rt_queue queue = {0};
    const rt_code code = rt_view_queue(tx->view, id, &queue);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    const bool forced_open = queue.brakes.forced && queue.brakes.circuit == RT_CIRCUIT_OPEN;
    *paused = code == RT_OK && (queue.paused_until_ms > tx->now_ms || forced_open);
    return RT_OK;
}

/* ---- emptying ---------------------------------------------------------------------------------------- */

rt_code rt_queue_drain(rt_tx *tx, rt_id id, rt_reason reason, bool keep_dead) {
    rt_queue was;
    rt_code code = rt_queue_load(tx, id, &was);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    rt_counts counts;
    code = rt_view_counts(tx->view, id, &counts);
    if (code != RT_OK) return code;
    const int64_t work = counts.scheduled + counts.free + counts.leased + (keep_dead ? 0 : counts.dead);
    if (work <= 0 && counts.dead <= 0) {
        rt_tx_put_queue(tx, &was, NULL);
        return RT_OK;
    }
    rt_queue now = was;
    now.gone = 1;
    rt_tx_put_queue(tx, &was, &now);
    if (work <= 0) return RT_OK;
    rt_cursor cursor = {.kind = RT_CURSOR_DRAIN, .queue = id, .reason = reason, .keep_dead = keep_dead};
    return rt_cursor_start(tx, &cursor);
}

rt_code rt_queue_forget(rt_tx *tx, rt_id id, uint32_t removed) {
    rt_queue was;
    rt_code code = rt_queue_load(tx, id, &was);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    if (!was.gone) return RT_OK;
    rt_counts counts;
    code = rt_view_counts(tx->view, id, &counts);
    if (code != RT_OK) return code;
    const int64_t left = counts.scheduled + counts.free + counts.leased + counts.dead - (int64_t)removed;
    if (left <= 0) rt_tx_put_queue(tx, &was, NULL);
    return RT_OK;
}

typedef struct page {
    rt_job jobs[RT_CURSOR_SLICE];
    uint32_t count;
} page;

static bool add_job(void *ctx, const rt_job *job) {
    page *p = ctx;
    p->jobs[p->count++] = *job;
    return p->count < RT_CURSOR_SLICE;
}

rt_code rt_drain_slice(rt_tx *tx, rt_cursor *c, bool *finished) {
    // A job may be in two of these, so a slice takes from one; what has ended is in none.
    const rt_job_index indexes[] = {RT_INDEX_ALL, RT_INDEX_DUE, RT_INDEX_DEAD};
    const size_t count = c->keep_dead ? 2 : 3;
    page p = {.count = 0};
    tx->frees = true;
    for (size_t i = 0; i < count && p.count == 0; i++) {
        const rt_job_range range = {
            .index = indexes[i], .queue = c->queue, .after_queue = c->queue, .until_ms = INT64_MAX};
        const rt_code code = rt_view_jobs(tx->view, &range, add_job, &p);
        if (code != RT_OK) return code;
    }
    for (uint32_t i = 0; i < p.count; i++) rt_job_end(tx, &p.jobs[i], c->reason);
    uint32_t places = 0; // calls in line leave them behind
    if (p.count == 0) {
        const rt_code code = rt_line_forget(tx, c->queue, RT_CURSOR_SLICE, &places);
        if (code != RT_OK) return code;
    }
    *finished = p.count == 0 && places == 0;
    return *finished ? rt_queue_forget(tx, c->queue, 0) : RT_OK;
}

/* ---- commands ---------------------------------------------------------------------------------------- */

static rt_code decide_create(rt_tx *tx, rt_command *cmd) {
    rt_queue_create *c = (rt_queue_create *)cmd;
    rt_doc doc;
    rt_metadata metadata;
    const rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &metadata);
    c->existed = code == RT_OK;
    if (code != RT_E_ABSENT) return code;
    return rt_metadata_create(tx, c->tenant, c->queue, &c->like, &doc, &metadata);
}

void rt_queue_create_init(rt_queue_create *c) { *c = (rt_queue_create){.cmd = {.decide = decide_create}}; }

static rt_code decide_replace(rt_tx *tx, rt_command *cmd) {
    rt_queue_replace *c = (rt_queue_replace *)cmd;
    rt_doc doc;
    rt_metadata was;
    const rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &was);
    if (code != RT_OK) return code;
    if (doc.version != c->version) {
        return rt_fail(tx->err, RT_E_CONFLICT, 0, "the queue has changed meanwhile");
    }
    rt_metadata now = c->like;
    now.id = was.id;
    now.jobs = was.jobs;
    if (now.json.len == 0) now.json = RT_STR("{}");
    return rt_metadata_update(tx, &doc, &now);
}

void rt_queue_replace_init(rt_queue_replace *c) {
    *c = (rt_queue_replace){.cmd = {.decide = decide_replace}};
}

static rt_code decide_delete(rt_tx *tx, rt_command *cmd) {
    rt_queue_delete *c = (rt_queue_delete *)cmd;
    tx->frees = true;
    rt_doc doc;
    rt_metadata metadata;
    rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &metadata);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    rt_tx_put_doc(tx, &doc, NULL);
    code = rt_queue_drain(tx, metadata.jobs, RT_REASON_DELETED, false);
    if (code != RT_OK) return code;
    bool rest;
    return rt_subscriptions_remove(tx, metadata.id, &rest);
}

void rt_queue_delete_init(rt_queue_delete *c) { *c = (rt_queue_delete){.cmd = {.decide = decide_delete}}; }

/* The list's record belongs to the identity of its queue, which has changed. */
static rt_code own_anew(rt_tx *tx, const rt_metadata *metadata) {
    rt_queue was;
    const rt_code code = rt_queue_load(tx, metadata->jobs, &was);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    rt_queue now = was;
    now.owner = metadata->id;
    rt_tx_put_queue(tx, &was, &now);
    return RT_OK;
}

static rt_code purge_messages(rt_tx *tx, const rt_queue_purge *c, rt_metadata *metadata) {
    const rt_code code = rt_queue_drain(tx, metadata->jobs, RT_REASON_DELETED, false);
    if (code != RT_OK) return code;
    metadata->jobs = rt_tx_new_id(tx);
    const rt_queue list = {
        .id = metadata->jobs,
        .owner = metadata->id,
        .kind = RT_QUEUE_MESSAGES,
        .name = rt_queue_label(tx->arena, c->tenant, c->queue, RT_STR_EMPTY),
    };
    if (list.name.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's name");
    rt_tx_put_queue(tx, NULL, &list);
    return RT_OK;
}

static rt_code decide_purge(rt_tx *tx, rt_command *cmd) {
    rt_queue_purge *c = (rt_queue_purge *)cmd;
    tx->frees = true;
    rt_doc doc;
    rt_metadata metadata;
    rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &metadata);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    bool rest = false;
    if (c->subscriptions) {
        code = rt_subscriptions_remove(tx, metadata.id, &rest);
        if (code != RT_OK) return code;
    }
    // With a new identity those that the cursor has yet to reach are gone for every reader, and a subscriber
    // that comes back at once is a new one, which the cursor leaves alone.
    if (rest) metadata.id = rt_tx_new_id(tx);
    if (c->messages) code = purge_messages(tx, c, &metadata);
    else if (rest) code = own_anew(tx, &metadata);
    if (code != RT_OK) return code;
    return c->messages || rest ? rt_metadata_update(tx, &doc, &metadata) : RT_OK;
}

void rt_queue_purge_init(rt_queue_purge *c) { *c = (rt_queue_purge){.cmd = {.decide = decide_purge}}; }

static rt_code decide_pause(rt_tx *tx, rt_command *cmd) {
    rt_queue_pause *c = (rt_queue_pause *)cmd;
    tx->frees = true; // to resume is what gives room back
    rt_queue was;
    const rt_code code = rt_queue_load(tx, c->id, &was);
    if (code != RT_OK) return code;
    if (was.gone) return rt_fail(tx->err, RT_E_ABSENT, 0, "the queue is being removed");
    if (was.paused_until_ms == c->until_ms) return RT_OK;
    rt_queue now = was;
    now.paused_until_ms = c->until_ms;
    rt_tx_put_queue(tx, &was, &now);
    return RT_OK;
}

void rt_queue_pause_init(rt_queue_pause *c) { *c = (rt_queue_pause){.cmd = {.decide = decide_pause}}; }
