#include "engine/messages/message_read.h"

#include <string.h>

enum { CHUNK_JOBS = 32, ENDS_LOOKED_AT_MAX = 256 };

static bool has_ended(int64_t expires_ms, int64_t now_ms) { return expires_ms > 0 && expires_ms <= now_ms; }

/* ---- queues ------------------------------------------------------------------------------------------ */

rt_code rt_read_metadata(rt_view *v, rt_arena *a, rt_str tenant, rt_str queue, rt_metadata *out,
                         uint64_t *version) {
    // What is too long for a name names nothing; operators' pages ask with whatever they are given.
    if (tenant.len > RT_TENANT_MAX || queue.len > RT_QUEUE_TITLE_MAX) return RT_E_ABSENT;
    const rt_str name = rt_name(a, tenant, queue);
    if (name.ptr == NULL) return RT_E_NOMEM;
    rt_doc doc;
    const rt_code code = rt_view_doc(v, RT_DOC_METADATA, name, &doc);
    if (code != RT_OK) return code;
    const rt_str value = rt_arena_dup(a, doc.value);
    if (value.ptr == NULL) return RT_E_NOMEM;
    if (!rt_metadata_decode(value, out)) return RT_E_CORRUPT;
    *version = doc.version;
    return RT_OK;
}

typedef struct queues {
    rt_each_metadata *each;
    void *ctx;
    bool corrupt;
} queues;

static bool show_queue(void *ctx, const rt_doc *doc) {
    queues *q = ctx;
    rt_metadata metadata;
    q->corrupt = !rt_metadata_decode(doc->value, &metadata);
    return !q->corrupt && q->each(q->ctx, rt_name_rest(doc->name), &metadata);
}

rt_code rt_read_queues(rt_view *v, rt_str tenant, rt_str after, rt_each_metadata *each, void *ctx) {
    char name[RT_DOC_NAME_MAX];
    // No queue's name is longer, and what is not a tenant's name has no queues.
    if (after.len > RT_QUEUE_TITLE_MAX) after.len = RT_QUEUE_TITLE_MAX;
    if (tenant.len > RT_TENANT_MAX) return RT_OK;
    if (tenant.len > 0) memcpy(name, tenant.ptr, tenant.len);
    name[tenant.len] = '\0';
    const rt_str prefix = {.ptr = name, .len = tenant.len + 1};
    if (after.len > 0) memcpy(name + prefix.len, after.ptr, after.len);
    const rt_str behind = {.ptr = name, .len = prefix.len + after.len};
    queues q = {.each = each, .ctx = ctx};
    const rt_code code = rt_view_docs(v, RT_DOC_METADATA, prefix, behind, show_queue, &q);
    return code == RT_OK && q.corrupt ? RT_E_CORRUPT : code;
}

/* ---- messages ---------------------------------------------------------------------------------------- */

rt_id rt_read_claim_of(rt_view *v, const rt_job *job, int64_t now_ms) {
    if (job->state != RT_JOB_LEASED || !(job->flags & RT_JOB_PULL)) return 0;
    rt_lease lease;
    const bool live = rt_view_lease(v, job->lease, &lease) == RT_OK && lease.until_ms > now_ms;
    return live ? job->lease : 0;
}

static rt_code copy_message(rt_view *v, rt_arena *a, const rt_job *job, rt_message *out) {
    out->job = *job;
    return rt_message_copy_body(v, a, out);
}

/* Jobs are copied out of the listing before anything else is read: a view answers one question at a time. */
typedef struct chunk {
    const rt_message_range *range;
    rt_job jobs[CHUNK_JOBS];
    uint32_t count;
    rt_id seen;
} chunk;

static bool is_wanted(const rt_message_range *r, const rt_job *job) {
    if (has_ended(job->expires_ms, r->now_ms)) return false;
    if (r->skip_hash != 0 && job->key_hash == r->skip_hash) return false;
    if (job->state == RT_JOB_SCHEDULED) return r->include_delayed || job->due_ms <= r->now_ms;
    // A claim that was to end later may have been shortened: then the message is shown a moment later.
    if (job->state == RT_JOB_LEASED) return r->include_claimed || job->due_ms <= r->now_ms;
    return job->state == RT_JOB_FREE;
}

static bool add_message(void *ctx, const rt_job *job) {
    chunk *c = ctx;
    c->seen = job->id;
    if (is_wanted(c->range, job)) c->jobs[c->count++] = *job;
    return c->count < CHUNK_JOBS;
}

/* The list without claimed and delayed messages needs but the index of the free ones. */
static rt_code choose_index(rt_view *v, const rt_message_range *range, rt_job_index *out) {
    *out = range->include_claimed ? RT_INDEX_ALL : RT_INDEX_FREE;
    if (range->include_claimed || !range->include_delayed) return RT_OK;
    rt_counts counts;
    const rt_code code = rt_view_counts(v, range->jobs, &counts);
    if (code == RT_OK && counts.scheduled > 0) *out = RT_INDEX_ALL;
    return code;
}

rt_code rt_read_messages(rt_view *v, rt_arena *a, const rt_message_range *range, rt_message out[],
                         uint32_t *count) {
    *count = 0;
    rt_job_index index;
    rt_code code = choose_index(v, range, &index);
    if (code != RT_OK) return code;
    chunk c = {.range = range, .seen = range->after, .count = CHUNK_JOBS};
    while (c.count == CHUNK_JOBS && *count < range->limit) {
        c.count = 0;
        const rt_job_range jobs = {
            .index = index,
            .queue = range->jobs,
            .after = c.seen,
            .skip_hash = index == RT_INDEX_FREE ? range->skip_hash : 0,
        };
        code = rt_view_jobs(v, &jobs, add_message, &c);
        if (code != RT_OK) return code;
        for (uint32_t i = 0; i < c.count && *count < range->limit; i++) {
            const rt_job *job = &c.jobs[i];
            const bool leased = job->state == RT_JOB_LEASED && !range->include_claimed;
            if (leased && rt_read_claim_of(v, job, range->now_ms) != 0) continue;
            code = copy_message(v, a, job, &out[*count]);
            if (code != RT_OK) return code;
            ++*count;
        }
    }
    return RT_OK;
}

rt_code rt_read_message(rt_view *v, rt_arena *a, rt_id jobs, rt_id id, int64_t now_ms, rt_message *out) {
    rt_job job;
    const rt_code code = rt_view_job(v, id, &job);
    if (code != RT_OK) return code;
    return rt_message_is_there(&job, jobs, now_ms) ? copy_message(v, a, &job, out) : RT_E_ABSENT;
}

rt_code rt_read_claim(rt_view *v, rt_arena *a, rt_id jobs, rt_id claim, int64_t now_ms, rt_lease *lease,
                      rt_message out[RT_LEASE_JOBS_MAX], uint32_t *count) {
    rt_lease found;
    rt_code code = rt_view_lease(v, claim, &found);
    if (code != RT_OK) return code;
    if (found.queue != jobs || found.until_ms <= now_ms) return RT_E_ABSENT;
    *lease = found;
    *count = 0;
    for (uint32_t i = 0; i < found.jobs_count; i++) {
        rt_job job;
        code = rt_view_job(v, found.jobs[i], &job);
        if (code == RT_E_ABSENT) continue;
        if (code != RT_OK) return code;
        const bool held =
            job.state == RT_JOB_LEASED && job.lease == claim && rt_message_is_there(&job, jobs, now_ms);
        if (!held) continue;
        code = copy_message(v, a, &job, &out[*count]);
        if (code != RT_OK) return code;
        ++*count;
    }
    return RT_OK;
}

/* ---- statistics -------------------------------------------------------------------------------------- */

typedef struct end_of_list {
    int64_t now_ms;
    rt_job *out;
    uint32_t looked_at;
    bool found;
} end_of_list;

static bool add_end(void *ctx, const rt_job *job) {
    end_of_list *e = ctx;
    e->found = !has_ended(job->expires_ms, e->now_ms);
    if (e->found) *e->out = *job;
    return !e->found && ++e->looked_at < ENDS_LOOKED_AT_MAX;
}

static rt_code find_end(rt_view *v, rt_id jobs, bool newest, int64_t now_ms, rt_job *out, bool *found) {
    end_of_list e = {.now_ms = now_ms, .out = out};
    const rt_job_range range = {.index = RT_INDEX_ALL, .queue = jobs, .backwards = newest};
    const rt_code code = rt_view_jobs(v, &range, add_end, &e);
    *found = e.found;
    return code;
}

rt_code rt_read_stats(rt_view *v, rt_id jobs, int64_t now_ms, rt_queue_stats *out) {
    rt_counts counts;
    rt_code code = rt_view_counts(v, jobs, &counts);
    if (code != RT_OK) return code;
    rt_queue_stats stats = {.free = counts.free + counts.scheduled, .claimed = counts.leased};
    stats.total = stats.free + stats.claimed;
    bool oldest, newest;
    code = find_end(v, jobs, false, now_ms, &stats.oldest, &oldest);
    if (code == RT_OK) code = find_end(v, jobs, true, now_ms, &stats.newest, &newest);
    if (code != RT_OK) return code;
    stats.has_ends = oldest && newest;
    *out = stats;
    return RT_OK;
}

/* ---- subscriptions ----------------------------------------------------------------------------------- */

rt_code rt_read_subscription(rt_view *v, rt_arena *a, rt_id queue, rt_id id, int64_t now_ms,
                             rt_subscription *out, uint64_t *version) {
    const rt_str name = rt_subscription_name(a, queue, id);
    if (name.ptr == NULL) return RT_E_NOMEM;
    rt_doc doc;
    const rt_code code = rt_view_doc(v, RT_DOC_SUBSCRIPTION, name, &doc);
    if (code != RT_OK) return code;
    if (has_ended(doc.expires_ms, now_ms)) return RT_E_ABSENT;
    const rt_str value = rt_arena_dup(a, doc.value);
    if (value.ptr == NULL) return RT_E_NOMEM;
    if (!rt_subscription_decode(value, out)) return RT_E_CORRUPT;
    *version = doc.version;
    return RT_OK;
}

typedef struct subscriptions {
    rt_each_subscription *each;
    void *ctx;
    int64_t now_ms;
    bool corrupt;
} subscriptions;

static bool show_subscription(void *ctx, const rt_doc *doc) {
    subscriptions *list = ctx;
    if (has_ended(doc->expires_ms, list->now_ms)) return true;
    rt_subscription s;
    list->corrupt = !rt_subscription_decode(doc->value, &s);
    return !list->corrupt && list->each(list->ctx, &s);
}

rt_code rt_read_subscriptions(rt_view *v, rt_id queue, rt_id after, int64_t now_ms,
                              rt_each_subscription *each, void *ctx) {
    unsigned char name[RT_SUBSCRIPTION_NAME_LEN];
    rt_put_be64(name, queue);
    rt_put_be64(name + 8, after);
    const rt_str prefix = {.ptr = (const char *)name, .len = 8};
    const rt_str behind = {.ptr = (const char *)name, .len = sizeof name};
    subscriptions list = {.each = each, .ctx = ctx, .now_ms = now_ms};
    const rt_code code = rt_view_docs(v, RT_DOC_SUBSCRIPTION, prefix, behind, show_subscription, &list);
    return code == RT_OK && list.corrupt ? RT_E_CORRUPT : code;
}
