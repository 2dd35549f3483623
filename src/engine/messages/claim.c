#include "engine/messages/claim.h"

#include "engine/common/job.h"
#include "engine/common/queue.h"

enum { SET_ASIDE_MAX = 256 }; /* messages that one claim may end or move before it takes what it has found */

/* ---- holding ----------------------------------------------------------------------------------------- */

static int64_t until_of(const rt_tx *tx, uint32_t ttl_s) { return tx->now_ms + (int64_t)ttl_s * 1000; }

/* What is held must not end before its claim does. True: it was going to. */
static bool outlive(rt_job *job, const rt_lease *lease) {
    if (job->expires_ms == 0 || job->expires_ms >= lease->until_ms) return false;
    job->expires_ms = lease->until_ms + (int64_t)lease->grace_s * 1000;
    const uint64_t ttl_s = (uint64_t)lease->ttl_s + lease->grace_s;
    job->ttl_s = ttl_s < UINT32_MAX ? (uint32_t)ttl_s : UINT32_MAX;
    return true;
}

/* The lease that a command names, while it lasts. RT_E_ABSENT. */
static rt_code load_lease(rt_tx *tx, rt_str tenant, rt_str queue, rt_id id, rt_lease *out) {
    rt_doc doc;
    rt_metadata metadata;
    rt_code code = rt_metadata_load(tx, tenant, queue, &doc, &metadata);
    if (code != RT_OK) return code;
    rt_lease lease;
    code = rt_view_lease(tx->view, id, &lease);
    if (code != RT_OK) return code;
    if (lease.queue != metadata.jobs) return RT_E_ABSENT;
    *out = lease;
    return RT_OK;
}

/* The job, if it is still held by the lease. */
static rt_code load_held(rt_tx *tx, const rt_lease *lease, uint32_t at, rt_job *out, bool *held) {
    const rt_code code = rt_view_job(tx->view, lease->jobs[at], out);
    *held = code == RT_OK && out->state == RT_JOB_LEASED && out->lease == lease->id;
    return code == RT_E_ABSENT ? RT_OK : code;
}

/* ---- claiming ---------------------------------------------------------------------------------------- */

/* Whom a list's messages go to when they were claimed too often. */
typedef struct dead_letters {
    uint32_t after_claims; /* 0: nobody */
    rt_str queue;
    uint32_t ttl_s;
} dead_letters;

static dead_letters dead_letters_of(rt_str queue, const rt_metadata *m) {
    // Zaqar takes any value for the name: what cannot be a queue's, or is its own, means none.
    const bool named = rt_name_is_word(m->dead_letter_queue) && !rt_str_eq(m->dead_letter_queue, queue);
    if (!named) return (dead_letters){0};
    return (dead_letters){
        .after_claims = m->max_claim_count, .queue = m->dead_letter_queue, .ttl_s = m->dead_letter_ttl_s};
}

typedef struct picking {
    rt_tx *tx;
    rt_claim_create *c;
    dead_letters dead;
    rt_job *worn; /* SET_ASIDE_MAX; NULL where there are no dead letters */
    uint32_t worn_count, set_aside;
} picking;

static bool pick(void *ctx, const rt_job *job) {
    picking *p = ctx;
    if (job->expires_ms > 0 && job->expires_ms <= p->tx->now_ms) {
        rt_job_end(p->tx, job, RT_REASON_EXPIRED);
        return ++p->set_aside < SET_ASIDE_MAX;
    }
    if (p->worn != NULL && job->claims >= p->dead.after_claims) {
        p->worn[p->worn_count++] = *job;
        return ++p->set_aside < SET_ASIDE_MAX;
    }
    p->c->messages[p->c->count++].job = *job;
    rt_tx_want_body(p->tx, job->body);
    return p->c->count < p->c->limit;
}

static void move_to_dead_letters(rt_tx *tx, const rt_job *was, rt_id jobs, uint32_t ttl_s) {
    rt_job now = *was;
    // The event belongs to the list that it leaves.
    rt_tx_event(tx, &now, (rt_event){.type = RT_EVENT_MOVED, .reason = RT_REASON_CLAIMS_EXCEEDED});
    now.queue = jobs;
    now.claims = 0; // its own count starts there, or nobody could claim it
    if (ttl_s > 0) {
        now.ttl_s = ttl_s;
        now.expires_ms = tx->now_ms + (int64_t)ttl_s * 1000;
    }
    rt_tx_update_job(tx, was, &now);
}

static rt_code move_worn(const picking *p, rt_str tenant) {
    if (p->worn_count == 0) return RT_OK;
    rt_doc doc;
    rt_metadata to;
    const rt_code code = rt_metadata_load_or_create(p->tx, tenant, p->dead.queue, &doc, &to);
    if (code != RT_OK) return code;
    for (uint32_t i = 0; i < p->worn_count; i++) {
        move_to_dead_letters(p->tx, &p->worn[i], to.jobs, p->dead.ttl_s);
    }
    return RT_OK;
}

static rt_code take(rt_tx *tx, rt_claim_create *c, rt_message *m) {
    const rt_code code = rt_message_answer_body(tx, &c->cmd, c->arena, m);
    if (code != RT_OK) return code;
    const rt_job was = m->job;
    m->job.state = RT_JOB_LEASED;
    m->job.lease = c->lease.id;
    m->job.due_ms = c->lease.until_ms;
    m->job.claims++;
    (void)outlive(&m->job, &c->lease);
    rt_tx_update_job(tx, &was, &m->job);
    c->lease.jobs[c->lease.jobs_count++] = m->job.id;
    return RT_OK;
}

static rt_code decide_create(rt_tx *tx, rt_command *cmd) {
    rt_claim_create *c = (rt_claim_create *)cmd;
    RT_ASSERT(c->limit >= 1);
    RT_ASSERT(c->limit <= RT_LEASE_JOBS_MAX);
    c->count = 0;
    tx->frees = true; // a store that is full is emptied by those who claim and delete
    rt_doc doc;
    rt_metadata queue;
    rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &queue);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    bool paused;
    code = rt_queue_is_paused(tx, queue.jobs, &paused);
    if (code != RT_OK || paused) return code;

    picking p = {.tx = tx, .c = c, .dead = dead_letters_of(c->queue, &queue)};
    if (p.dead.after_claims > 0) {
        p.worn = rt_arena_alloc(tx->arena, SET_ASIDE_MAX * sizeof *p.worn);
        if (p.worn == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a claim");
    }
    const rt_job_range range = {.index = RT_INDEX_FREE, .queue = queue.jobs, .to_take = true, .want = c->limit};
    code = rt_view_jobs(tx->view, &range, pick, &p);
    if (code == RT_OK) code = move_worn(&p, c->tenant);
    if (code != RT_OK || c->count == 0) return code;

    c->lease = (rt_lease){
        .id = rt_tx_new_id(tx),
        .queue = queue.jobs,
        .version = 1,
        .from_ms = tx->now_ms,
        .until_ms = until_of(tx, c->ttl_s),
        .ttl_s = c->ttl_s,
        .grace_s = c->grace_s,
    };
    for (uint32_t i = 0; i < c->count && code == RT_OK; i++) code = take(tx, c, &c->messages[i]);
    rt_tx_put_lease(tx, NULL, &c->lease);
    return code;
}

void rt_claim_create_init(rt_claim_create *c) { *c = (rt_claim_create){.cmd = {.decide = decide_create}}; }

/* ---- renewing and ending ----------------------------------------------------------------------------- */

static rt_code decide_renew(rt_tx *tx, rt_command *cmd) {
    rt_claim_renew *c = (rt_claim_renew *)cmd;
    tx->frees = true;
    rt_lease was;
    rt_code code = load_lease(tx, c->tenant, c->queue, c->id, &was);
    if (code != RT_OK) return code;
    if (was.until_ms <= tx->now_ms) return RT_E_ABSENT;
    rt_lease now = was;
    now.from_ms = tx->now_ms;
    now.until_ms = until_of(tx, c->ttl_s);
    now.ttl_s = c->ttl_s;
    now.grace_s = c->grace_s;
    rt_tx_put_lease(tx, &was, &now);
    for (uint32_t i = 0; i < was.jobs_count; i++) {
        rt_job job;
        bool held;
        code = load_held(tx, &was, i, &job, &held);
        if (code != RT_OK) return code;
        rt_job longer = job;
        if (held && outlive(&longer, &now)) rt_tx_update_job(tx, &job, &longer);
    }
    return RT_OK;
}

void rt_claim_renew_init(rt_claim_renew *c) { *c = (rt_claim_renew){.cmd = {.decide = decide_renew}}; }

rt_code rt_claim_end(rt_tx *tx, const rt_lease *lease) {
    tx->frees = true;
    for (uint32_t i = 0; i < lease->jobs_count; i++) {
        rt_job was;
        bool held;
        const rt_code code = load_held(tx, lease, i, &was, &held);
        if (code != RT_OK) return code;
        // One whose own time is over too is left to the sweep, which may end it in this very change.
        if (!held || (was.expires_ms > 0 && was.expires_ms <= tx->now_ms)) continue;
        rt_job now = was;
        now.state = RT_JOB_FREE;
        now.lease = 0;
        now.due_ms = 0;
        rt_tx_update_job(tx, &was, &now);
    }
    rt_tx_put_lease(tx, lease, NULL);
    return RT_OK;
}

static rt_code decide_release(rt_tx *tx, rt_command *cmd) {
    rt_claim_release *c = (rt_claim_release *)cmd;
    tx->frees = true;
    rt_lease lease;
    const rt_code code = load_lease(tx, c->tenant, c->queue, c->id, &lease);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    return rt_claim_end(tx, &lease);
}

void rt_claim_release_init(rt_claim_release *c) {
    *c = (rt_claim_release){.cmd = {.decide = decide_release}};
}
