#include "engine/common/life.h"

#include "engine/common/flight.h"
#include "engine/common/job.h"
#include "engine/common/renew.h"
#include "engine/common/settings.h"

rt_code rt_start_attempt(rt_tx *tx, const rt_job *job, rt_attempt like, rt_start *start) {
    like.job = job->id;
    like.queue = job->queue;
    like.token = start->token;
    like.number = job->attempt + 1;
    start->attempt = rt_attempt_new(&like);
    if (start->attempt == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an attempt");
    start->bytes = sizeof like + like.body.len + like.headers.len + like.url.len + like.answer_max;
    start->due = RT_DUE_START;
    start->deadline_ms = tx->now_ms + like.timeout_ms + tx->settings->lease_margin_ms;
    start->lease_until_ms = rt_lease_until_ms(tx->now_ms, start->deadline_ms);
    if (start->write_lease) rt_job_lease(tx, job, start->token, start->lease_until_ms);
    return RT_OK;
}

bool rt_life_is_under_way(const rt_tx *tx, const rt_job *job, uint64_t token) {
    if (!tx->store->sole_owner || tx->flights == NULL) return false;
    const rt_flight *flight = rt_flights_find(tx->flights, job->id, token);
    return flight != NULL && flight->attempt == NULL && !flight->settling;
}

rt_event rt_settle_event(const rt_job *job, const rt_outcome *o) {
    return (rt_event){
        .attempt = job->attempt + 1,
        .took_ms = o->took_ms,
        .status = o->status,
        .reason = (uint8_t)o->reason,
        .text = {.ptr = o->text, .len = o->text_len},
    };
}
