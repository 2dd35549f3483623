/* What waits behind a circuit that does not close in time, dies. A cursor (RT_CURSOR_CIRCUIT) that is written when the
 * circuit leaves CLOSED looks after it, through restarts too, and goes when the circuit closes. */
#include "engine/calls/call_over.h"
#include "engine/calls/call_wait.h"
#include "engine/calls/circuit.h"

enum { LOOK_EVERY_MS = 60000, LOOKED_AT_MAX = 1024 };

typedef struct page {
    rt_tx *tx;
    int64_t opened_ms, limit_ms;
    rt_job jobs[RT_CURSOR_SLICE];
    uint32_t count, looked_at;
    rt_id after;
    int64_t after_due_ms;
    int64_t next_ms; /* when the first of those that were passed over has waited enough */
    bool more;
} page;

/* One that is due, or free, waits for the circuit from its due time on; in line, it has waited from the start. */
static int64_t over_ms(const page *p, const rt_job *job) {
    const int64_t own_ms = job->key_hash != 0 ? job->placed_ms : job->due_ms;
    return (own_ms > p->opened_ms ? own_ms : p->opened_ms) + p->limit_ms;
}

static bool look(void *ctx, const rt_job *job) {
    page *p = ctx;
    p->more = p->count == RT_CURSOR_SLICE || p->looked_at == LOOKED_AT_MAX;
    if (p->more || (job->state == RT_JOB_SCHEDULED && job->due_ms > p->tx->now_ms)) return false;
    p->looked_at++;
    p->after = job->id;
    p->after_due_ms = job->due_ms;
    if (rt_call_is_held(p->tx, job)) return true;
    if (over_ms(p, job) <= p->tx->now_ms) p->jobs[p->count++] = *job;
    else p->next_ms = rt_earlier(p->next_ms, over_ms(p, job));
    return true;
}

static rt_code end_waiting(rt_tx *tx, rt_cursor *c, const rt_call_type *type, page *p) {
    const rt_job_range range = {
        .index = type->target.len == 0 ? RT_INDEX_FREE : RT_INDEX_DUE,
        .queue = c->queue,
        .after = c->after,
        .after_due_ms = (int64_t)c->from,
        .until_ms = tx->now_ms,
    };
    rt_code code = rt_view_jobs(tx->view, &range, look, p);
    for (uint32_t i = 0; i < p->count && code == RT_OK; i++)
        code = rt_call_give_up(tx, &p->jobs[i], type, RT_REASON_CIRCUIT_OPEN);
    c->after = p->more ? p->after : 0;
    c->from = p->more ? (uint64_t)p->after_due_ms : 0;
    return code;
}

rt_code rt_circuit_slice(rt_tx *tx, rt_cursor *c, bool *finished) {
    rt_queue queue;
    rt_call_type type;
    const rt_code code = rt_call_type_of_queue(tx, c->queue, &queue, &type);
    *finished = code == RT_E_ABSENT || (code == RT_OK && queue.brakes.opened_ms != (int64_t)c->last);
    if (code != RT_OK || *finished) return *finished ? RT_OK : code;
    c->next_ms = tx->now_ms + LOOK_EVERY_MS; // the type may say something else by then
    // What an operator keeps open is nobody's fault.
    if (queue.brakes.forced || type.circuit.max_open_s == 0) return RT_OK;
    page *p = rt_arena_alloc(tx->arena, sizeof *p);
    if (p == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a circuit");
    *p = (page){.tx = tx, .opened_ms = queue.brakes.opened_ms, .next_ms = c->next_ms};
    p->limit_ms = (int64_t)type.circuit.max_open_s * 1000;
    if (p->opened_ms + p->limit_ms > tx->now_ms) {
        c->next_ms = rt_earlier(c->next_ms, p->opened_ms + p->limit_ms);
        return RT_OK;
    }
    const rt_code ended = end_waiting(tx, c, &type, p);
    c->next_ms = p->more ? tx->now_ms : p->next_ms;
    return ended;
}
