#include "store/copy/census.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <string.h>

typedef struct counting {
    rt_census *census;
    EVP_MD_CTX *hash;
    bool failed;
} counting;

const char *rt_walk_part_name(rt_walk_part part) {
    static const char *const NAMES[] = {
        [RT_WALK_BODIES] = "bodies", [RT_WALK_QUEUES] = "queues", [RT_WALK_LEASES] = "leases",
        [RT_WALK_JOBS] = "jobs",     [RT_WALK_EVENTS] = "events", [RT_WALK_DOCS] = "documents",
    };
    RT_ASSERT(part < RT_WALK_END);
    return NAMES[part];
}

/* ---- fields -------------------------------------------------------------------------------------------- */

static void add_bytes(counting *c, const void *bytes, size_t len) {
    if (len > 0 && EVP_DigestUpdate(c->hash, bytes, len) != 1) c->failed = true;
}

static void add(counting *c, uint64_t number) { add_bytes(c, &number, sizeof number); }

static void add_str(counting *c, rt_str s) {
    add(c, s.len);
    add_bytes(c, s.ptr, s.len);
}

static void add_queue(counting *c, const rt_queue *q) {
    add(c, q->id);
    add(c, q->owner);
    add(c, q->version);
    add(c, (uint64_t)q->paused_until_ms);
    add(c, q->in_flight_max);
    add(c, q->kind);
    add(c, q->gone);
    add_bytes(c, &q->brakes, sizeof q->brakes);
    add_str(c, q->name);
}

static void add_lease(counting *c, const rt_lease *l) {
    add(c, l->id);
    add(c, l->queue);
    add(c, l->version);
    add(c, (uint64_t)l->from_ms);
    add(c, (uint64_t)l->until_ms);
    add(c, l->ttl_s);
    add(c, l->grace_s);
    add(c, l->jobs_count);
    add_bytes(c, l->jobs, l->jobs_count * sizeof l->jobs[0]);
}

static void add_doc(counting *c, const rt_doc *d) {
    add(c, d->kind);
    add(c, d->version);
    add(c, (uint64_t)d->expires_ms);
    add_str(c, d->name);
    add_str(c, d->value);
}

static void add_event(counting *c, const rt_event *e) {
    add(c, e->seq);
    add(c, e->prev);
    add(c, e->job);
    add(c, e->queue);
    add(c, (uint64_t)e->at_ms);
    add(c, e->attempt);
    add(c, e->took_ms);
    add(c, e->delay_ms);
    add(c, e->status);
    add(c, e->type);
    add(c, e->reason);
    add_str(c, e->text);
}

/* ---- counting ------------------------------------------------------------------------------------------ */

static bool count(void *ctx, const rt_op *record) {
    counting *c = ctx;
    rt_census *census = c->census;
    rt_walk_part part = RT_WALK_BODIES;
    add(c, record->kind);
    switch (record->kind) {
    case RT_OP_BODY:
        add(c, record->body.id);
        add(c, record->body.users);
        add_str(c, record->body.bytes);
        break;
    case RT_OP_QUEUE:
        part = RT_WALK_QUEUES;
        add_queue(c, record->queue.now);
        break;
    case RT_OP_LEASE:
        part = RT_WALK_LEASES;
        add_lease(c, record->lease.now);
        break;
    case RT_OP_JOB:
        part = RT_WALK_JOBS;
        census->jobs[record->job.now->state]++;
        add_bytes(c, record->job.now, sizeof *record->job.now); // has no padding, see record.h
        break;
    case RT_OP_EVENT:
        part = RT_WALK_EVENTS;
        add_event(c, record->event);
        break;
    case RT_OP_DOC:
        part = RT_WALK_DOCS;
        census->docs[record->doc.now->kind]++;
        add_doc(c, record->doc.now);
        break;
    }
    census->parts[part]++;
    census->records++;
    return !c->failed;
}

rt_code rt_census_take(rt_store *store, rt_census *out, rt_census_tell *tell, void *ctx, rt_err *err) {
    *out = (rt_census){0};
    counting c = {.census = out, .hash = EVP_MD_CTX_new()};
    c.failed = c.hash == NULL || EVP_DigestInit_ex(c.hash, EVP_sha256(), NULL) != 1;
    rt_walk at = {0};
    rt_code code = RT_OK;
    while (code == RT_OK && !c.failed && at.part != RT_WALK_END) {
        code = rt_walk_step(&at, store, count, &c, err);
        tell(ctx, out->records);
    }
    if (code == RT_OK && !c.failed && EVP_DigestFinal_ex(c.hash, out->digest, NULL) != 1) c.failed = true;
    EVP_MD_CTX_free(c.hash);
    if (code == RT_OK && c.failed) code = rt_fail(err, RT_E_NOMEM, 0, "the hash over all records");
    return code;
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

static rt_code differ(rt_err *err, const char *what, uint64_t from, uint64_t to) {
    return rt_fail(err, RT_E_CORRUPT, 0, "%s: %" PRIu64 " in the source, %" PRIu64 " in the target", what, from, to);
}

rt_code rt_census_compare(const rt_census *from, const rt_census *to, rt_err *err) {
    for (int i = 0; i < RT_JOB_STATE_COUNT; i++) {
        if (from->jobs[i] != to->jobs[i]) return differ(err, rt_job_state_name((rt_job_state)i), from->jobs[i], to->jobs[i]);
    }
    for (int i = 0; i < RT_DOC_KIND_COUNT; i++) {
        if (from->docs[i] != to->docs[i]) return differ(err, "documents of one kind", from->docs[i], to->docs[i]);
    }
    for (int i = 0; i < RT_WALK_END; i++) {
        if (from->parts[i] != to->parts[i])
            return differ(err, rt_walk_part_name((rt_walk_part)i), from->parts[i], to->parts[i]);
    }
    if (memcmp(from->digest, to->digest, sizeof from->digest) != 0)
        return rt_fail(err, RT_E_CORRUPT, 0, "as many records on both sides, but not the same");
    return RT_OK;
}
