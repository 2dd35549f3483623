#include "store/postgres/node/row.h"

int rt_pg_row_cmp(const rt_pg_row *x, const rt_pg_row *y) {
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    if (x->b != y->b) return x->b < y->b ? -1 : 1;
    if (x->c != y->c) return x->c < y->c ? -1 : 1;
    return rt_str_cmp(x->name, y->name);
}

rt_pg_row rt_pg_row_of_job(const rt_job_range *range, rt_pg_record *r) {
    const bool due = range->index == RT_INDEX_DUE;
    const bool dead = range->index == RT_INDEX_DEAD && range->queue == 0;
    return (rt_pg_row){.a = due ? (uint64_t)r->job.due_ms : dead ? r->job.queue : 0,
                       .c = r->job.id,
                       .name = RT_STR_EMPTY,
                       .record = r};
}

rt_pg_row rt_pg_row_of_doc(rt_pg_record *r) { return (rt_pg_row){.name = r->doc.name, .record = r}; }

rt_pg_row rt_pg_row_of_expiry(const rt_expiry *e) {
    return (rt_pg_row){.a = (uint64_t)e->at_ms,
                       .b = (uint64_t)e->kind << 8 | (uint64_t)e->doc_kind,
                       .c = e->id,
                       .name = e->doc_name};
}

rt_expiry rt_pg_row_expiry(const rt_pg_row *row) {
    return (rt_expiry){.at_ms = (int64_t)row->a,
                       .kind = (rt_expiry_kind)(row->b >> 8),
                       .id = row->c,
                       .doc_kind = (rt_doc_kind)(row->b & 0xff),
                       .doc_name = row->name};
}

bool rt_pg_row_is_in(const rt_job *job, const rt_job_range *range) {
    const bool pull = (job->flags & RT_JOB_PULL) != 0;
    switch (range->index) {
    case RT_INDEX_READY: return job->state == RT_JOB_READY && job->id > range->after;
    case RT_INDEX_DUE:
        if (job->queue != range->queue || job->due_ms > range->until_ms) return false;
        if (job->state != RT_JOB_SCHEDULED && (pull || job->state != RT_JOB_LEASED)) return false;
        return job->due_ms > range->after_due_ms ||
               (job->due_ms == range->after_due_ms && job->id > range->after);
    case RT_INDEX_FREE:
        return job->queue == range->queue && job->state == RT_JOB_FREE && job->id > range->after &&
               (range->skip_hash == 0 || job->key_hash != range->skip_hash);
    case RT_INDEX_ALL:
        if (!pull || job->queue != range->queue || job->state == RT_JOB_DEAD || job->state == RT_JOB_DONE)
            return false;
        return range->backwards ? range->after == 0 || job->id < range->after : job->id > range->after;
    case RT_INDEX_EVERY: return job->id > range->after;
    case RT_INDEX_DEAD:
        if (job->state != RT_JOB_DEAD) return false;
        if (range->queue != 0) return job->queue == range->queue && job->id > range->after;
        return job->queue > range->after_queue ||
               (job->queue == range->after_queue && job->id > range->after);
    }
    return false;
}
