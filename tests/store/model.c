#include "store/model.h"

#include <stdlib.h>
#include <string.h>

enum { HASHES = 3, FOR_EVER = INT32_MAX };

/* ---- changing ------------------------------------------------------------------------------------------ */

static bool uses_body(const rt_job *job) { return job->id != 0 && job->state != RT_JOB_DONE && job->body != 0; }

static rt_str body_text(rt_id body) {
    static char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    return (rt_str){.ptr = text, .len = 1 + body % 30};
}

static rt_str name_of(size_t place, char out[MODEL_NAME_MAX]) {
    static const char BYTES[] = {0, 'a', (char)0xff};
    out[0] = BYTES[place % 3];
    out[1] = BYTES[place / 3 % 3];
    out[2] = (char)('A' + place);
    return (rt_str){.ptr = out, .len = 3};
}

static void fill_value(model_change *c, size_t len, uint64_t version) {
    for (size_t i = 0; i < len; i++) c->value[i] = (char)(unsigned char)(i + version);
}

static void random_fields(rt_rng *rng, rt_store *s, rt_job *job) {
    job->queue = 1 + rt_rng_below(rng, MODEL_QUEUES);
    const rt_job_state other = (job->flags & RT_JOB_PULL) != 0 ? RT_JOB_READY : RT_JOB_FREE; // not for this kind
    do {
        job->state = (uint8_t)(1 + rt_rng_below(rng, RT_JOB_STATE_COUNT - 1));
    } while (job->state == other);
    job->due_ms = (int64_t)rt_rng_below(rng, 50);
    job->expires_ms = rt_rng_below(rng, 2) == 0 ? 0 : (int64_t)(1 + rt_rng_below(rng, 50));
    job->key_hash = 1 + rt_rng_below(rng, HASHES);
    job->bucket = (uint16_t)rt_rng_below(rng, 65536);
    job->last_event = rt_store_new_seq(s);
    job->body_bytes = job->body != 0 ? (uint32_t)body_text(job->body).len : 0;
}

/* A body for a new job: one in use, a new one, or none. */
static rt_id choose_body(const model *m, rt_rng *rng, rt_store *s, model_change *c) {
    const uint64_t way = rt_rng_below(rng, 3);
    if (way == 0) return 0;
    const rt_job *other = &m->jobs[rt_rng_below(rng, MODEL_JOBS_MAX)];
    if (way == 1 && uses_body(other)) return other->body;
    const rt_id body = rt_store_new_id(s);
    c->ops[c->count++] = OP_BODY(body, body_text(body));
    return body;
}

static void step_job(model *m, rt_rng *rng, rt_store *s, model_change *c) {
    rt_job *job = &m->jobs[rt_rng_below(rng, MODEL_JOBS_MAX)];
    const size_t at = c->count;
    for (size_t i = 0; i < at; i++) { // a change writes a record at most once
        if (c->ops[i].kind == RT_OP_JOB && job->id != 0 && c->now[i].id == job->id) return;
        if (c->ops[i].kind == RT_OP_JOB && job->id != 0 && c->was[i].id == job->id) return;
    }
    rt_job now = *job;
    if (job->id == 0) {
        now = (rt_job){.id = rt_store_new_id(s), .flags = rt_rng_below(rng, 2) == 0 ? 0 : RT_JOB_PULL};
        now.body = choose_body(m, rng, s, c);
    }
    const size_t place = c->count++;
    c->was[place] = *job;
    const bool goes = job->id != 0 && (job->state == RT_JOB_DONE || rt_rng_below(rng, 3) == 0);
    if (goes) {
        now = (rt_job){0};
    } else {
        now.version++;
        random_fields(rng, s, &now);
        if (now.state == RT_JOB_DONE && job->id == 0 && now.body != 0) now.state = RT_JOB_DEAD; // a new body needs a user
        now.body_bytes = uses_body(&now) ? (uint32_t)body_text(now.body).len : 0;
    }
    c->now[place] = now;
    c->ops[place] = OP_JOB(job->id != 0 ? &c->was[place] : NULL, goes ? NULL : &c->now[place]);
    *job = now;
}

static void step_doc(model *m, rt_rng *rng, model_change *c) {
    const size_t place = rt_rng_below(rng, MODEL_DOCS_MAX);
    model_doc *doc = &m->docs[place];
    const rt_str name = name_of(place, c->name);
    c->doc_was = (rt_doc){.kind = RT_DOC_SETTING, .name = name, .version = doc->version, .expires_ms = doc->expires_ms};
    const model_doc was = *doc;
    const bool goes = was.there && rt_rng_below(rng, 3) == 0;
    *doc = (model_doc){0};
    if (!goes) {
        *doc = (model_doc){.there = true, .version = was.version + 1, .value_len = rt_rng_below(rng, MODEL_VALUE_MAX)};
        if (rt_rng_below(rng, 2) == 0) doc->expires_ms = (int64_t)(1 + rt_rng_below(rng, 50));
        fill_value(c, doc->value_len, doc->version);
    }
    c->doc_now = (rt_doc){.kind = RT_DOC_SETTING, .name = name, .version = doc->version, .expires_ms = doc->expires_ms,
                          .value = {.ptr = c->value, .len = doc->value_len}};
    c->ops[c->count++] = OP_DOC(was.there ? &c->doc_was : NULL, goes ? NULL : &c->doc_now);
}

void model_step(model *m, rt_rng *rng, rt_store *s, model_change *out) {
    out->count = 0;
    const uint64_t jobs = 1 + rt_rng_below(rng, 5); // each is at most two ops
    for (uint64_t i = 0; i < jobs; i++) step_job(m, rng, s, out);
    if (rt_rng_below(rng, 3) == 0) step_doc(m, rng, out);
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

typedef struct row {
    int64_t first; /* what the listing is ordered by */
    uint64_t second, id;
} row;

static int by_row(const void *a, const void *b) {
    const row *x = a;
    const row *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    if (x->second != y->second) return x->second < y->second ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool belongs(const rt_job *job, const rt_job_range *range) {
    const bool pull = (job->flags & RT_JOB_PULL) != 0;
    const bool here = range->queue == 0 || job->queue == range->queue;
    switch (range->index) {
    case RT_INDEX_READY: return !pull && job->state == RT_JOB_READY;
    case RT_INDEX_DUE:
        return here && job->due_ms <= range->until_ms &&
               (job->state == RT_JOB_SCHEDULED || (!pull && job->state == RT_JOB_LEASED));
    case RT_INDEX_FREE:
        return here && pull && job->state == RT_JOB_FREE && (range->skip_hash == 0 || job->key_hash != range->skip_hash);
    case RT_INDEX_ALL:
        return here && pull &&
               (job->state == RT_JOB_SCHEDULED || job->state == RT_JOB_FREE || job->state == RT_JOB_LEASED);
    case RT_INDEX_DEAD: return here && job->state == RT_JOB_DEAD;
    case RT_INDEX_EVERY: return true;
    }
    return false;
}

static void assert_range(const model *m, rt_view *v, rt_job_range range) {
    static row rows[MODEL_JOBS_MAX];
    static kit_ids got;
    size_t n = 0;
    for (size_t i = 0; i < MODEL_JOBS_MAX; i++) {
        const rt_job *job = &m->jobs[i];
        if (job->id == 0 || !belongs(job, &range)) continue;
        rows[n++] = (row){.first = range.index == RT_INDEX_DUE ? job->due_ms : 0,
                          .second = range.index == RT_INDEX_DEAD ? job->queue : 0,
                          .id = job->id};
    }
    qsort(rows, n, sizeof rows[0], by_row);
    got.stop_at = 0;
    kit_list(v, range, &got);
    assert_int_equal(got.count, n);
    for (size_t i = 0; i < n; i++) assert_int_equal(got.ids[range.backwards ? n - 1 - i : i], rows[i].id);
}

static void assert_expiries(const model *m, rt_view *v) {
    static kit_ids got; // kit_expiries checks the order
    size_t want = 0;
    for (size_t i = 0; i < MODEL_JOBS_MAX; i++) {
        const rt_job *job = &m->jobs[i];
        want += job->id != 0 && job->expires_ms > 0 && job->state != RT_JOB_DEAD && job->state != RT_JOB_DONE;
    }
    for (size_t i = 0; i < MODEL_DOCS_MAX; i++) want += m->docs[i].there && m->docs[i].expires_ms > 0;
    got.stop_at = 0;
    kit_expiries(v, FOR_EVER, &got);
    assert_int_equal(got.count, want);
}

static void assert_docs(const model *m, rt_view *v) {
    for (size_t i = 0; i < MODEL_DOCS_MAX; i++) {
        char name[MODEL_NAME_MAX];
        rt_doc got;
        const model_doc *want = &m->docs[i];
        const rt_code code = rt_view_doc(v, RT_DOC_SETTING, name_of(i, name), &got);
        assert_int_equal(code, want->there ? RT_OK : RT_E_ABSENT);
        if (!want->there) continue;
        assert_int_equal(got.version, want->version);
        assert_int_equal(got.expires_ms, want->expires_ms);
        assert_int_equal(got.value.len, want->value_len);
        for (size_t b = 0; b < want->value_len; b++) {
            assert_int_equal((unsigned char)got.value.ptr[b], (unsigned char)(b + want->version));
        }
    }
}

void model_assert_counts(const model *m, rt_view *v) {
    for (rt_id queue = 0; queue <= MODEL_QUEUES; queue++) {
        rt_counts want = {0};
        for (size_t i = 0; i < MODEL_JOBS_MAX; i++) {
            const rt_job *job = &m->jobs[i];
            if (job->id == 0 || (queue != 0 && job->queue != queue)) continue;
            want.ready += job->state == RT_JOB_READY;
            want.scheduled += job->state == RT_JOB_SCHEDULED;
            want.free += job->state == RT_JOB_FREE;
            want.leased += job->state == RT_JOB_LEASED;
            want.dead += job->state == RT_JOB_DEAD;
            want.done += job->state == RT_JOB_DONE;
            if (job->state != RT_JOB_DONE) want.bytes += job->body_bytes;
        }
        const rt_counts got = kit_counts(v, queue);
        assert_memory_equal(&got, &want, sizeof got);
    }
}

void model_assert_same(const model *m, rt_view *v) {
    for (size_t i = 0; i < MODEL_JOBS_MAX; i++) {
        const rt_job *job = &m->jobs[i];
        if (job->id == 0) continue;
        kit_assert_job(v, job);
        if (uses_body(job)) kit_assert_body(v, job->body, body_text(job->body));
    }
    assert_range(m, v, (rt_job_range){.index = RT_INDEX_READY});
    assert_range(m, v, (rt_job_range){.index = RT_INDEX_DEAD});
    for (rt_id queue = 1; queue <= MODEL_QUEUES; queue++) {
        assert_range(m, v, (rt_job_range){.index = RT_INDEX_DUE, .queue = queue, .until_ms = FOR_EVER});
        assert_range(m, v, (rt_job_range){.index = RT_INDEX_DUE, .queue = queue, .until_ms = 25});
        assert_range(m, v, (rt_job_range){.index = RT_INDEX_FREE, .queue = queue});
        assert_range(m, v, (rt_job_range){.index = RT_INDEX_FREE, .queue = queue, .skip_hash = 2});
        assert_range(m, v, (rt_job_range){.index = RT_INDEX_ALL, .queue = queue});
        assert_range(m, v, (rt_job_range){.index = RT_INDEX_ALL, .queue = queue, .backwards = true});
        assert_range(m, v, (rt_job_range){.index = RT_INDEX_DEAD, .queue = queue});
    }
    assert_expiries(m, v);
    assert_docs(m, v);
    model_assert_counts(m, v);
}
