#include "store/memory/view.h"

#include <stdlib.h>

static const rt_image_view *image_view(const rt_view *v) { return (const rt_image_view *)v; }

static rt_code fault_at(rt_view *v, rt_image_part part, uint64_t key) {
    const rt_image_view *view = image_view(v);
    return view->fault == NULL ? RT_OK : view->fault(view->fault_ctx, part, key);
}

/* ---- single records ------------------------------------------------------------------------------------ */

static rt_code find(rt_view *v, rt_image_part part, uint64_t key, const void **out) {
    const rt_code code = fault_at(v, part, key);
    if (code != RT_OK) return code;
    const void *record = rt_image_find(image_view(v)->image, part, key);
    if (record == NULL) return RT_E_ABSENT;
    *out = record;
    return RT_OK;
}

static rt_code get_job(rt_view *v, rt_id id, rt_job *out) {
    const void *record = NULL;
    const rt_code code = find(v, RT_PART_JOBS, id, &record);
    if (code == RT_OK) *out = *(const rt_job *)record;
    return code;
}

static rt_code get_body(rt_view *v, rt_id id, rt_str *out) {
    const void *record = NULL;
    const rt_code code = find(v, RT_PART_BODIES, id, &record);
    if (code == RT_OK) *out = ((const rt_image_body *)record)->bytes;
    return code;
}

static rt_code get_queue(rt_view *v, rt_id id, rt_queue *out) {
    const void *record = NULL;
    const rt_code code = find(v, RT_PART_QUEUES, id, &record);
    if (code == RT_OK) *out = *(const rt_queue *)record;
    return code;
}

static rt_code get_lease(rt_view *v, rt_id id, rt_lease *out) {
    const void *record = NULL;
    const rt_code code = find(v, RT_PART_LEASES, id, &record);
    if (code == RT_OK) *out = *(const rt_lease *)record;
    return code;
}

static rt_code get_event(rt_view *v, uint64_t seq, rt_event *out) {
    const void *record = NULL;
    const rt_code code = find(v, RT_PART_EVENTS, seq, &record);
    if (code == RT_OK) *out = *(const rt_event *)record;
    return code;
}

static rt_code get_doc(rt_view *v, rt_doc_kind kind, rt_str name, rt_doc *out) {
    const rt_code code = fault_at(v, RT_PART_DOCS, rt_hash_str(name) + (uint64_t)kind);
    if (code != RT_OK) return code;
    const rt_doc *doc = rt_image_find_doc(image_view(v)->image, kind, name);
    if (doc == NULL) return RT_E_ABSENT;
    *out = *doc;
    return RT_OK;
}

/* ---- jobs ---------------------------------------------------------------------------------------------- */

static bool in_index(const rt_job *job, rt_job_index index) {
    const bool pull = (job->flags & RT_JOB_PULL) != 0;
    switch (index) {
    case RT_INDEX_READY: return !pull && job->state == RT_JOB_READY;
    case RT_INDEX_DUE: return job->state == RT_JOB_SCHEDULED || (!pull && job->state == RT_JOB_LEASED);
    case RT_INDEX_FREE: return pull && job->state == RT_JOB_FREE;
    case RT_INDEX_ALL: return pull && job->state != RT_JOB_DEAD && job->state != RT_JOB_DONE;
    case RT_INDEX_DEAD: return job->state == RT_JOB_DEAD;
    case RT_INDEX_EVERY: return true;
    }
    return false;
}

static bool job_expires(const rt_job *job) {
    return job->expires_ms > 0 && job->state != RT_JOB_DEAD && job->state != RT_JOB_DONE;
}

static bool matches(const rt_job *job, const rt_job_range *range) {
    const bool all_dead = range->index == RT_INDEX_DEAD && range->queue == 0;
    const bool all_queues = range->index == RT_INDEX_READY || range->index == RT_INDEX_EVERY || all_dead;
    if (!all_queues && job->queue != range->queue) return false;
    if (!in_index(job, range->index)) return false;
    return range->index != RT_INDEX_FREE || range->skip_hash == 0 || job->key_hash != range->skip_hash;
}

/* READY, FREE, ALL, EVERY and DEAD of one queue: by id, which is the order of the table. */
static rt_code jobs_by_id(const rt_image *image, const rt_job_range *range, rt_each_job *each, void *ctx) {
    const uint32_t len = rt_image_len(image, RT_PART_JOBS);
    for (uint32_t i = rt_image_lower(image, RT_PART_JOBS, range->after); i < len; i++) {
        const rt_job *job = rt_image_row(image, RT_PART_JOBS, i);
        if (job->id > range->after && matches(job, range) && !each(ctx, job)) break;
    }
    return RT_OK;
}

static rt_code jobs_back(const rt_image *image, const rt_job_range *range, rt_each_job *each, void *ctx) {
    const uint32_t len = rt_image_len(image, RT_PART_JOBS);
    uint32_t i = range->after == 0 ? len : rt_image_lower(image, RT_PART_JOBS, range->after);
    while (i > 0) {
        const rt_job *job = rt_image_row(image, RT_PART_JOBS, --i);
        if (matches(job, range) && !each(ctx, job)) break;
    }
    return RT_OK;
}

typedef struct found {
    uint64_t first, second; /* the order asked for */
    const void *record;
} found;

static int compare_found(const void *a, const void *b) {
    const found *x = a;
    const found *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    if (x->second != y->second) return x->second < y->second ? -1 : 1;
    return 0;
}

/* DUE by (due, id), DEAD of all queues by (queue, id): gathered, then sorted. */
static rt_code jobs_sorted(const rt_image *image, const rt_job_range *range, rt_each_job *each, void *ctx) {
    const bool due = range->index == RT_INDEX_DUE;
    const uint64_t after_first = due ? (uint64_t)range->after_due_ms : range->after_queue;
    const found after = {.first = after_first, .second = range->after};
    const uint32_t len = rt_image_len(image, RT_PART_JOBS);
    if (len == 0) return RT_OK;
    found *all = malloc(len * sizeof *all);
    if (all == NULL) return RT_E_NOMEM;
    uint32_t count = 0;
    for (uint32_t i = 0; i < len; i++) {
        const rt_job *job = rt_image_row(image, RT_PART_JOBS, i);
        if (!matches(job, range) || (due && job->due_ms > range->until_ms)) continue;
        const uint64_t first = due ? (uint64_t)job->due_ms : job->queue;
        const found one = {.first = first, .second = job->id, .record = job};
        if (compare_found(&one, &after) > 0) all[count++] = one;
    }
    if (count > 1) qsort(all, count, sizeof *all, compare_found);
    for (uint32_t i = 0; i < count; i++) {
        if (!each(ctx, all[i].record)) break;
    }
    free(all);
    return RT_OK;
}

static rt_code list_jobs(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx) {
    const rt_image *image = image_view(v)->image;
    const rt_code code = fault_at(v, RT_PART_COUNT, range->queue * 8 + (uint64_t)range->index);
    if (code != RT_OK) return code;
    if (range->index == RT_INDEX_DUE || (range->index == RT_INDEX_DEAD && range->queue == 0)) {
        return jobs_sorted(image, range, each, ctx);
    }
    return range->backwards ? jobs_back(image, range, each, ctx) : jobs_by_id(image, range, each, ctx);
}

/* ---- the other listings -------------------------------------------------------------------------------- */

static rt_code list_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each,
                         void *ctx) {
    const rt_code code = fault_at(v, RT_PART_COUNT, rt_hash_str(prefix) + (uint64_t)kind);
    if (code != RT_OK) return code;
    const rt_image *image = image_view(v)->image;
    const uint32_t len = rt_image_len(image, RT_PART_DOCS);
    const rt_str from = rt_str_cmp(after, prefix) > 0 ? after : prefix;
    for (uint32_t i = rt_image_lower_doc(image, kind, from); i < len; i++) {
        const rt_doc *doc = rt_image_row(image, RT_PART_DOCS, i);
        if (doc->kind != kind || !rt_str_starts(doc->name, prefix)) break;
        if (after.len > 0 && rt_str_cmp(doc->name, after) <= 0) continue;
        if (!each(ctx, doc)) break;
    }
    return RT_OK;
}

static rt_code list_queues(rt_view *v, rt_id after, rt_each_queue *each, void *ctx) {
    const rt_image *image = image_view(v)->image;
    const uint32_t len = rt_image_len(image, RT_PART_QUEUES);
    for (uint32_t i = 0; i < len; i++) {
        const rt_queue *queue = rt_image_row(image, RT_PART_QUEUES, i);
        if (queue->id > after && !each(ctx, queue)) break;
    }
    return RT_OK;
}

static rt_code list_leases(rt_view *v, rt_id after, rt_each_lease *each, void *ctx) {
    const rt_image *image = image_view(v)->image;
    const uint32_t len = rt_image_len(image, RT_PART_LEASES);
    for (uint32_t i = rt_image_lower(image, RT_PART_LEASES, after); i < len; i++) {
        const rt_lease *lease = rt_image_row(image, RT_PART_LEASES, i);
        if (lease->id > after && !each(ctx, lease)) break;
    }
    return RT_OK;
}

static rt_code list_bodies(rt_view *v, rt_id after, rt_each_body *each, void *ctx) {
    const rt_image *image = image_view(v)->image;
    const uint32_t len = rt_image_len(image, RT_PART_BODIES);
    for (uint32_t i = rt_image_lower(image, RT_PART_BODIES, after); i < len; i++) {
        const rt_image_body *body = rt_image_row(image, RT_PART_BODIES, i);
        if (body->id > after && !each(ctx, body->id, body->bytes, rt_image_users(image, body->id))) break;
    }
    return RT_OK;
}

static rt_code list_events(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx) {
    const rt_image *image = image_view(v)->image;
    const uint32_t len = rt_image_len(image, RT_PART_EVENTS);
    for (uint32_t i = rt_image_lower(image, RT_PART_EVENTS, after_seq); i < len; i++) {
        const rt_event *event = rt_image_row(image, RT_PART_EVENTS, i);
        if (event->seq > after_seq && !each(ctx, event)) break;
    }
    return RT_OK;
}

/* The row's end, if it has one that still counts. */
static bool expiry_of(rt_image_part part, const void *record, rt_expiry *out) {
    if (part == RT_PART_JOBS) {
        const rt_job *job = record;
        if (!job_expires(job)) return false;
        *out = (rt_expiry){.at_ms = job->expires_ms, .kind = RT_EXPIRY_JOB, .id = job->id};
        return true;
    }
    if (part == RT_PART_LEASES) {
        const rt_lease *lease = record;
        *out = (rt_expiry){.at_ms = lease->until_ms, .kind = RT_EXPIRY_LEASE, .id = lease->id};
        return lease->until_ms > 0;
    }
    const rt_doc *doc = record;
    if (doc->expires_ms == 0) return false;
    *out = (rt_expiry){
        .at_ms = doc->expires_ms, .kind = RT_EXPIRY_DOC, .doc_kind = doc->kind, .doc_name = doc->name};
    return true;
}

static int compare_expiry(const void *a, const void *b) {
    const rt_expiry *x = a;
    const rt_expiry *y = b;
    if (x->at_ms != y->at_ms) return x->at_ms < y->at_ms ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    if (x->doc_kind != y->doc_kind) return x->doc_kind < y->doc_kind ? -1 : 1;
    return rt_str_cmp(x->doc_name, y->doc_name);
}

static rt_code list_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx) {
    static const rt_image_part PARTS[] = {RT_PART_JOBS, RT_PART_LEASES, RT_PART_DOCS};
    const rt_image *image = image_view(v)->image;
    size_t room = 0;
    for (size_t p = 0; p < sizeof PARTS / sizeof PARTS[0]; p++) room += rt_image_len(image, PARTS[p]);
    if (room == 0) return RT_OK;
    rt_expiry *all = malloc(room * sizeof *all);
    if (all == NULL) return RT_E_NOMEM;
    size_t count = 0;
    for (size_t p = 0; p < sizeof PARTS / sizeof PARTS[0]; p++) {
        const uint32_t len = rt_image_len(image, PARTS[p]);
        for (uint32_t i = 0; i < len; i++) {
            const bool ends = expiry_of(PARTS[p], rt_image_row(image, PARTS[p], i), &all[count]);
            if (ends && all[count].at_ms <= until_ms) count++;
        }
    }
    if (count > 1) qsort(all, count, sizeof *all, compare_expiry);
    for (size_t i = 0; i < count; i++) {
        if (!each(ctx, &all[i])) break;
    }
    free(all);
    return RT_OK;
}

static rt_code list_wakes(rt_view *v, rt_id after_queue, rt_each_wake *each, void *ctx) {
    const rt_image *image = image_view(v)->image;
    const uint32_t len = rt_image_len(image, RT_PART_JOBS);
    if (len == 0) return RT_OK;
    found *all = malloc(len * sizeof *all);
    if (all == NULL) return RT_E_NOMEM;
    uint32_t count = 0;
    for (uint32_t i = 0; i < len; i++) {
        const rt_job *job = rt_image_row(image, RT_PART_JOBS, i);
        if (job->queue <= after_queue || !in_index(job, RT_INDEX_DUE)) continue;
        all[count++] = (found){.first = job->queue, .second = (uint64_t)job->due_ms, .record = job};
    }
    if (count > 1) qsort(all, count, sizeof *all, compare_found);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && all[i].first == all[i - 1].first) continue; // only the first of each queue
        const rt_wake wake = {.queue = all[i].first, .due_ms = ((const rt_job *)all[i].record)->due_ms};
        if (!each(ctx, &wake)) break;
    }
    free(all);
    return RT_OK;
}

static rt_code get_counts(rt_view *v, rt_id queue, rt_counts *out) {
    const rt_image *image = image_view(v)->image;
    const uint32_t len = rt_image_len(image, RT_PART_JOBS);
    int64_t states[RT_JOB_STATE_COUNT] = {0};
    int64_t bytes = 0;
    for (uint32_t i = 0; i < len; i++) {
        const rt_job *job = rt_image_row(image, RT_PART_JOBS, i);
        if (queue != 0 && job->queue != queue) continue;
        states[job->state]++;
        if (job->state != RT_JOB_DONE) bytes += job->body_bytes;
    }
    *out = (rt_counts){
        .ready = states[RT_JOB_READY],
        .scheduled = states[RT_JOB_SCHEDULED],
        .free = states[RT_JOB_FREE],
        .leased = states[RT_JOB_LEASED],
        .dead = states[RT_JOB_DEAD],
        .done = states[RT_JOB_DONE],
        .bytes = bytes,
    };
    return RT_OK;
}

/* Records are never changed in place, so another record is another row. */
void rt_image_each_changed_job(const rt_image *before, const rt_image *after, rt_each_changed_job *each,
                               void *ctx) {
    const uint32_t before_len = before == NULL ? 0 : rt_image_len(before, RT_PART_JOBS);
    const uint32_t after_len = rt_image_len(after, RT_PART_JOBS);
    uint32_t b = 0;
    uint32_t a = 0;
    while (b < before_len || a < after_len) {
        const rt_job *was = b < before_len ? rt_image_row(before, RT_PART_JOBS, b) : NULL;
        const rt_job *now = a < after_len ? rt_image_row(after, RT_PART_JOBS, a) : NULL;
        if (was == now) {
            b++;
            a++;
            continue;
        }
        if (was != NULL && now != NULL && was->id != now->id) {
            if (was->id < now->id) now = NULL;
            else was = NULL;
        }
        if (was != NULL) b++;
        if (now != NULL) a++;
        each(ctx, was, now);
    }
}

static void close_view(rt_view *v) {
    rt_image_view *view = (rt_image_view *)v;
    if (!view->owned) return;
    rt_image_drop(view->image);
    free(view);
}

const rt_view_ops RT_IMAGE_VIEW_OPS = {
    .job = get_job,
    .body = get_body,
    .queue = get_queue,
    .lease = get_lease,
    .doc = get_doc,
    .event = get_event,
    .jobs = list_jobs,
    .docs = list_docs,
    .queues = list_queues,
    .events = list_events,
    .expiries = list_expiries,
    .wakes = list_wakes,
    .counts = get_counts,
    .leases = list_leases,
    .bodies = list_bodies,
    .close = close_view,
};
