#include "engine/queues/expiry.h"

#include "engine/calls/call_claim.h"
#include "engine/common/job.h"
#include "engine/messages/claim.h"
#include "engine/messages/message.h"
#include "engine/messages/subscription.h"
#include "engine/work/session.h"

typedef struct page {
    rt_arena *arena;
    int64_t now_ms, next_ms;
    rt_expiry entries[RT_EXPIRY_SLICE];
    uint32_t count;
    bool no_memory;
} page;

static bool add(void *ctx, const rt_expiry *expiry) {
    page *p = ctx;
    if (expiry->at_ms > p->now_ms || p->count == RT_EXPIRY_SLICE) {
        p->next_ms = expiry->at_ms;
        return false;
    }
    rt_expiry *entry = &p->entries[p->count++];
    *entry = *expiry;
    if (expiry->kind == RT_EXPIRY_DOC) {
        entry->doc_name = rt_arena_dup(p->arena, expiry->doc_name);
        p->no_memory = entry->doc_name.ptr == NULL;
    }
    return !p->no_memory;
}

static rt_code end_job(rt_tx *tx, rt_id id, bool *left) {
    rt_job job;
    const rt_code code = rt_view_job(tx->view, id, &job);
    if (code != RT_OK) return code;
    if (job.flags & RT_JOB_CALL) return rt_call_expire(tx, &job, left);
    if (job.state != RT_JOB_DEAD && job.state != RT_JOB_DONE) rt_job_end(tx, &job, RT_REASON_EXPIRED);
    return RT_OK;
}

/* A lease is of jobs of one queue, so they are of one kind. */
static rt_code end_lease(rt_tx *tx, rt_id id, bool *left) {
    rt_lease lease;
    rt_code code = rt_view_lease(tx->view, id, &lease);
    if (code != RT_OK) return code;
    rt_job first = {.id = 0};
    if (lease.jobs_count > 0) code = rt_view_job(tx->view, lease.jobs[0], &first);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    return first.flags & RT_JOB_CALL ? rt_call_lease_end(tx, &first, &lease, left) : rt_claim_end(tx, &lease);
}

/* A call was dead for as long as its type keeps it, unless it was redriven meanwhile. */
static rt_code end_dead_call(rt_tx *tx, rt_str name) {
    rt_job job;
    const rt_code code = rt_view_job(tx->view, rt_get_be64((const unsigned char *)name.ptr), &job);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    const uint64_t generation = rt_get_be64((const unsigned char *)name.ptr + 8);
    if (code == RT_OK && job.state == RT_JOB_DEAD && job.generation == generation)
        rt_job_end(tx, &job, RT_REASON_EXPIRED);
    return RT_OK;
}

static rt_code end_doc(rt_tx *tx, const rt_expiry *entry, bool *left) {
    rt_doc doc;
    const rt_code code = rt_view_doc(tx->view, entry->doc_kind, entry->doc_name, &doc);
    if (code != RT_OK) return code;
    doc.name = entry->doc_name;
    if (entry->doc_kind == RT_DOC_SUBSCRIPTION) return rt_subscription_remove(tx, &doc);
    if (entry->doc_kind == RT_DOC_SESSION) return rt_session_end(tx, &doc, left);
    rt_tx_put_doc(tx, &doc, NULL);
    return entry->doc_kind == RT_DOC_CALL_DEAD ? end_dead_call(tx, doc.name) : RT_OK;
}

/* *left: it is not over yet, the next step goes on with it. */
static rt_code end_entry(rt_tx *tx, const rt_expiry *entry, bool *left) {
    switch (entry->kind) {
    case RT_EXPIRY_JOB: return end_job(tx, entry->id, left);
    case RT_EXPIRY_LEASE: return end_lease(tx, entry->id, left);
    case RT_EXPIRY_DOC: return end_doc(tx, entry, left);
    }
    return rt_fail(tx->err, RT_E_CORRUPT, 0, "unknown kind of expiry");
}

static rt_code decide_step(rt_tx *tx, rt_command *cmd) {
    rt_expiry_step *c = (rt_expiry_step *)cmd;
    tx->frees = true;
    page p = {.arena = tx->arena, .now_ms = tx->now_ms, .next_ms = INT64_MAX};
    rt_code code = rt_view_expiries(tx->view, INT64_MAX, add, &p);
    if (p.no_memory) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a sweep");
    for (uint32_t i = 0; i < p.count && code == RT_OK; i++) {
        bool left = false;
        code = end_entry(tx, &p.entries[i], &left);
        if (left) p.next_ms = tx->now_ms;
        if (code == RT_E_ABSENT) code = RT_OK; // an entry of a record that is gone says nothing
    }
    c->count = p.count;
    c->next_ms = p.next_ms;
    return code;
}

void rt_expiry_step_init(rt_expiry_step *c) { *c = (rt_expiry_step){.cmd = {.decide = decide_step}}; }
