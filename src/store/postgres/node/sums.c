#include "store/postgres/node/sums.h"

static int64_t *sum_of(rt_pg_sums *sums, uint8_t state) {
    switch ((rt_job_state)state) {
    case RT_JOB_READY: return &sums->ready;
    case RT_JOB_SCHEDULED: return &sums->scheduled;
    case RT_JOB_FREE: return &sums->free;
    case RT_JOB_LEASED: return &sums->leased;
    case RT_JOB_DEAD: return &sums->dead;
    case RT_JOB_DONE: return &sums->done;
    case RT_JOB_NONE:
    case RT_JOB_STATE_COUNT: break;
    }
    return NULL;
}

static void add_to_sums(rt_pg_sums *sums, const rt_job *job, int64_t more) {
    int64_t *sum = sum_of(sums, job->state);
    if (sum != NULL) *sum += more;
    if (job->state != RT_JOB_DONE) sums->bytes += more * (int64_t)job->body_bytes;
}

static bool count_in(rt_pg_batch *b, rt_id queue, const rt_job *job, int64_t more) {
    rt_pg_record *r = rt_pg_know(b, RT_PG_COUNTERS, queue);
    if (r == NULL || !rt_pg_touch(b, r)) return false;
    add_to_sums(&r->more_sums, job, more);
    if (r->known) add_to_sums(&r->sums, job, more);
    return true;
}

static bool count_job(rt_pg_batch *b, const rt_job *job, int64_t more) {
    return job == NULL || (count_in(b, job->queue, job, more) && count_in(b, 0, job, more));
}

bool rt_pg_count(rt_pg_batch *b, const rt_job *was, const rt_job *now) {
    return count_job(b, was, -1) && count_job(b, now, 1);
}

bool rt_pg_count_events(rt_pg_batch *b, int64_t more) {
    rt_pg_record *r = rt_pg_know(b, RT_PG_COUNTERS, 0);
    if (r == NULL || !rt_pg_touch(b, r)) return false;
    r->more_sums.events += more;
    if (r->known) r->sums.events += more;
    return true;
}
