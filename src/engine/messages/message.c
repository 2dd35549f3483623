#include "engine/messages/message.h"

#include "engine/common/answers.h"
#include "engine/common/job.h"
#include "engine/common/queue.h"
#include "engine/common/settings.h"
#include "engine/messages/fanout.h"

/* ---- shared ------------------------------------------------------------------------------------------ */

bool rt_message_is_there(const rt_job *job, rt_id jobs, int64_t now_ms) {
    if (job->queue != jobs || !(job->flags & RT_JOB_PULL)) return false;
    if (job->state == RT_JOB_DEAD || job->state == RT_JOB_DONE) return false;
    return job->expires_ms == 0 || job->expires_ms > now_ms;
}

rt_code rt_message_copy_body(rt_view *v, rt_arena *arena, rt_message *m) {
    rt_str body;
    const rt_code code = rt_view_body(v, m->job.body, &body);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_E_CORRUPT : code;
    m->body = rt_arena_dup(arena, body);
    return m->body.ptr == NULL ? RT_E_NOMEM : RT_OK;
}

rt_code rt_message_answer_body(rt_tx *tx, rt_command *cmd, rt_arena *arena, rt_message *m) {
    const rt_code code = rt_view_body(tx->view, m->job.body, &m->body);
    if (code == RT_OK) return rt_answers_copy(tx, cmd, arena, &m->body);
    return rt_fail(tx->err, code == RT_E_ABSENT ? RT_E_CORRUPT : code, 0, "the body of a message cannot be read");
}

/* The live lease of list `jobs` with this id; *live false: none. */
static rt_code find_lease(rt_tx *tx, rt_id jobs, rt_id id, bool *live) {
    rt_lease lease;
    const rt_code code = rt_view_lease(tx->view, id, &lease);
    *live = code == RT_OK && lease.queue == jobs && lease.until_ms > tx->now_ms;
    return code == RT_E_ABSENT ? RT_OK : code;
}

/* ---- posting ----------------------------------------------------------------------------------------- */

static uint32_t ttl_of(const rt_tx *tx, const rt_metadata *queue, const rt_post_item *item) {
    if (item->ttl_s > 0) return item->ttl_s < UINT32_MAX ? (uint32_t)item->ttl_s : UINT32_MAX;
    return queue->default_ttl_s > 0 ? queue->default_ttl_s : tx->settings->message_ttl_s;
}

static int64_t delay_of(const rt_tx *tx, const rt_metadata *queue, const rt_post_item *item) {
    const uint32_t preset_s = queue->default_delay_s > 0 ? queue->default_delay_s : tx->settings->message_delay_s;
    if (preset_s == 0) return 0;
    return item->delay_s >= 0 ? item->delay_s : (int64_t)preset_s;
}

static rt_job place_message(rt_tx *tx, const rt_post *p, const rt_metadata *queue, rt_post_item *item) {
    item->id = rt_tx_new_id(tx);
    const uint32_t ttl_s = ttl_of(tx, queue, item);
    const int64_t delay_s = delay_of(tx, queue, item);
    const rt_job job = {
        .id = item->id,
        .queue = queue->jobs,
        .body = item->id,
        .key_hash = p->client_hash,
        .due_ms = delay_s > 0 ? tx->now_ms + delay_s * 1000 : 0,
        .placed_ms = tx->now_ms,
        .expires_ms = tx->now_ms + (int64_t)ttl_s * 1000,
        .ttl_s = ttl_s,
        .delay_s = (uint16_t)delay_s,
        .body_bytes = (uint32_t)item->body.len,
        .state = delay_s > 0 ? RT_JOB_SCHEDULED : RT_JOB_FREE,
        .flags = RT_JOB_PULL,
    };
    rt_tx_put_body(tx, item->id, item->body);
    rt_tx_insert_job(tx, &job);
    return job;
}

static rt_code decide_post(rt_tx *tx, rt_command *cmd) {
    rt_post *p = (rt_post *)cmd;
    RT_ASSERT(p->count >= 1);
    RT_ASSERT(p->count <= RT_POST_MESSAGES_MAX);
    rt_doc doc;
    rt_metadata queue;
    rt_code code = rt_metadata_load_or_create(tx, p->tenant, p->queue, &doc, &queue);
    if (code != RT_OK) return code;
    p->limit_bytes = queue.max_post_bytes;
    if (queue.max_post_bytes > 0 && p->bytes > queue.max_post_bytes) {
        return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "the queue takes at most %u bytes", queue.max_post_bytes);
    }
    rt_targets targets;
    const uint32_t inline_max = RT_FANOUT_INLINE_MAX / p->count;
    code = rt_targets_read(tx, queue.id, 0, UINT64_MAX, p->confirmed_only, inline_max, &targets);
    if (code != RT_OK) return code;
    rt_job *jobs = NULL; // only a fan-out that goes on needs them again
    if (targets.more) {
        jobs = rt_arena_alloc(tx->arena, p->count * sizeof *jobs);
        if (jobs == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a post");
    }
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->items[i].body.len > RT_BODY_BYTES_MAX) {
            return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "a message has at most %d bytes", RT_BODY_BYTES_MAX);
        }
        const rt_job job = place_message(tx, p, &queue, &p->items[i]);
        rt_fanout_deliver(tx, queue.id, &job, targets.ids, targets.count);
        if (jobs != NULL) jobs[i] = job;
    }
    if (jobs == NULL) return RT_OK;
    return rt_fanout_start(tx, queue.id, targets.seen, p->confirmed_only, jobs, p->count);
}

void rt_post_init(rt_post *p) { *p = (rt_post){.cmd = {.decide = decide_post}}; }

/* ---- deleting ---------------------------------------------------------------------------------------- */

static rt_code refuse(rt_tx *tx, rt_delete_refusal *out, rt_delete_refusal refusal, const char *why) {
    *out = refusal;
    return rt_fail(tx->err, RT_E_FENCED, 0, "%s", why);
}

static rt_code is_claimed(rt_tx *tx, const rt_job *job, bool *out) {
    *out = false;
    return job->state == RT_JOB_LEASED ? find_lease(tx, job->queue, job->lease, out) : RT_OK;
}

/* Does anything forbid to delete a message that is there? */
static rt_code check_delete(rt_tx *tx, rt_message_delete *c, const rt_job *job) {
    bool claimed;
    rt_code code = is_claimed(tx, job, &claimed);
    if (code != RT_OK) return code;
    if (!c->has_claim) {
        return claimed ? refuse(tx, &c->refusal, RT_DELETE_CLAIMED, "the message is claimed") : RT_OK;
    }
    if (c->claim == 0) return refuse(tx, &c->refusal, RT_DELETE_CLAIM_UNKNOWN, "no such claim");
    if (!claimed) return refuse(tx, &c->refusal, RT_DELETE_NOT_CLAIMED, "the message is not claimed");
    if (job->lease == c->claim) return RT_OK;
    bool other_lives;
    code = find_lease(tx, job->queue, c->claim, &other_lives);
    if (code != RT_OK) return code;
    if (other_lives) return refuse(tx, &c->refusal, RT_DELETE_CLAIMED, "the message is claimed by another claim");
    return refuse(tx, &c->refusal, RT_DELETE_CLAIM_UNKNOWN, "no such claim");
}

static rt_code decide_delete(rt_tx *tx, rt_command *cmd) {
    rt_message_delete *c = (rt_message_delete *)cmd;
    tx->frees = true;
    rt_doc doc;
    rt_metadata queue;
    rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &queue);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    rt_job job;
    code = rt_view_job(tx->view, c->id, &job);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    if (!rt_message_is_there(&job, queue.jobs, tx->now_ms)) return RT_OK;
    code = check_delete(tx, c, &job);
    if (code == RT_OK) rt_job_end(tx, &job, RT_REASON_DELETED);
    return code;
}

void rt_message_delete_init(rt_message_delete *c) {
    *c = (rt_message_delete){.cmd = {.decide = decide_delete}};
}

/* A change may write a job once, however often a client names it. */
static bool is_repeated(const rt_messages_delete *c, uint32_t at) {
    for (uint32_t i = 0; i < at; i++) {
        if (c->ids[i] == c->ids[at]) return true;
    }
    return false;
}

/* The same where one of several claims has to hold it. */
static rt_code check_delete_of_many(rt_tx *tx, rt_messages_delete *c, const rt_job *job) {
    bool claimed;
    if (!c->has_claims) return RT_OK;
    const rt_code code = is_claimed(tx, job, &claimed);
    if (code != RT_OK) return code;
    if (!claimed) return refuse(tx, &c->refusal, RT_DELETE_NOT_CLAIMED, "a message is not claimed");
    for (uint32_t i = 0; i < c->claims_count; i++) {
        if (job->lease == c->claims[i]) return RT_OK;
    }
    return refuse(tx, &c->refusal, RT_DELETE_CLAIMED, "a message is claimed by another claim");
}

static rt_code decide_delete_many(rt_tx *tx, rt_command *cmd) {
    rt_messages_delete *c = (rt_messages_delete *)cmd;
    RT_ASSERT(c->count <= RT_MESSAGES_PER_REQUEST_MAX);
    tx->frees = true;
    rt_doc doc;
    rt_metadata queue;
    rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &queue);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    for (uint32_t i = 0; i < c->count; i++) {
        rt_job job;
        if (is_repeated(c, i)) continue;
        code = rt_view_job(tx->view, c->ids[i], &job);
        if (code != RT_OK && code != RT_E_ABSENT) return code;
        if (code == RT_E_ABSENT || !rt_message_is_there(&job, queue.jobs, tx->now_ms)) continue;
        code = check_delete_of_many(tx, c, &job);
        if (code != RT_OK) return code;
        rt_job_end(tx, &job, RT_REASON_DELETED);
    }
    return RT_OK;
}

void rt_messages_delete_init(rt_messages_delete *c) {
    *c = (rt_messages_delete){.cmd = {.decide = decide_delete_many}};
}

/* ---- popping ----------------------------------------------------------------------------------------- */

typedef struct popping {
    rt_tx *tx;
    rt_pop *c;
} popping;

static bool add_free(void *ctx, const rt_job *job) {
    const popping *p = ctx;
    // Those whose time is over are passed over: the sweep ends them.
    if (job->expires_ms > 0 && job->expires_ms <= p->tx->now_ms) return true;
    p->c->messages[p->c->count++].job = *job;
    rt_tx_want_body(p->tx, job->body);
    return p->c->count < p->c->limit;
}

static rt_code decide_pop(rt_tx *tx, rt_command *cmd) {
    rt_pop *c = (rt_pop *)cmd;
    RT_ASSERT(c->limit >= 1);
    RT_ASSERT(c->limit <= RT_LEASE_JOBS_MAX);
    c->count = 0;
    tx->frees = true;
    rt_doc doc;
    rt_metadata queue;
    rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &queue);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    bool paused;
    code = rt_queue_is_paused(tx, queue.jobs, &paused);
    if (code != RT_OK || paused) return code;
    const rt_job_range range = {.index = RT_INDEX_FREE, .queue = queue.jobs, .to_take = true, .want = c->limit};
    popping p = {.tx = tx, .c = c};
    code = rt_view_jobs(tx->view, &range, add_free, &p);
    for (uint32_t i = 0; i < c->count && code == RT_OK; i++) {
        rt_message *m = &c->messages[i];
        code = rt_message_answer_body(tx, cmd, c->arena, m);
        if (code != RT_OK) return code;
        rt_job_end(tx, &m->job, RT_REASON_DELETED);
    }
    return code;
}

void rt_pop_init(rt_pop *c) { *c = (rt_pop){.cmd = {.decide = decide_pop}}; }
