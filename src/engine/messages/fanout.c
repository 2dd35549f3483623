#include "engine/messages/fanout.h"

#include "engine/common/cursor.h"
#include "engine/common/job.h"
#include "engine/messages/subscription.h"

_Static_assert((int)RT_CURSOR_SLICE <= (int)RT_FANOUT_INLINE_MAX, "a slice's targets fit into rt_targets");

enum { LOOKED_AT_MAX = 1024 }; /* subscriptions passed over in one reading */

/* ---- whom to tell ------------------------------------------------------------------------------------ */

typedef struct reading {
    rt_targets *out;
    int64_t now_ms;
    rt_id last;
    uint32_t max, looked_at;
    bool confirmed_only;
} reading;

static bool is_target(const reading *r, const rt_doc *doc) {
    if (doc->expires_ms > 0 && doc->expires_ms <= r->now_ms) return false;
    if (!r->confirmed_only) return true;
    rt_subscription s;
    // One that cannot be read gets its delivery, which will say so, rather than be passed over in silence.
    return !rt_subscription_decode(doc->value, &s) || s.confirmed;
}

static bool add_target(void *ctx, const rt_doc *doc) {
    reading *r = ctx;
    rt_targets *out = r->out;
    if (doc->name.len != RT_SUBSCRIPTION_NAME_LEN) return true;
    const rt_id id = rt_get_be64((const unsigned char *)doc->name.ptr + 8);
    if (id > r->last) return false;
    const bool target = is_target(r, doc);
    out->more = (target && out->count == r->max) || r->looked_at == LOOKED_AT_MAX;
    if (out->more) return false;
    r->looked_at++;
    out->seen = id;
    if (target) out->ids[out->count++] = id;
    return true;
}

rt_code rt_targets_read(rt_tx *tx, rt_id queue, rt_id after, rt_id last, bool confirmed_only, uint32_t max,
                        rt_targets *out) {
    RT_ASSERT(max <= RT_FANOUT_INLINE_MAX);
    out->count = 0;
    out->more = false;
    out->seen = after;
    unsigned char name[RT_SUBSCRIPTION_NAME_LEN];
    rt_put_be64(name, queue);
    rt_put_be64(name + 8, after);
    const rt_str prefix = {.ptr = (const char *)name, .len = 8};
    const rt_str behind = {.ptr = (const char *)name, .len = sizeof name};
    reading r = {
        .out = out, .now_ms = tx->now_ms, .last = last, .max = max, .confirmed_only = confirmed_only};
    return rt_view_docs(tx->view, RT_DOC_SUBSCRIPTION, prefix, behind, add_target, &r);
}

/* ---- deliveries -------------------------------------------------------------------------------------- */

void rt_fanout_deliver(rt_tx *tx, rt_id queue, const rt_job *message, const rt_id ids[], uint32_t count) {
    rt_job job = {
        .owner = queue,
        .body = message->body,
        .placed_ms = message->placed_ms,
        .ttl_s = message->ttl_s,
        .delay_s = message->delay_s,
        .body_bytes = message->body_bytes,
    };
    for (uint32_t i = 0; i < count; i++) {
        job.id = rt_tx_new_id(tx);
        job.queue = ids[i];
        rt_job_place(tx, &job);
        rt_tx_insert_job(tx, &job);
    }
}

/* ---- more than fit into one change ------------------------------------------------------------------- */

rt_code rt_fanout_start(rt_tx *tx, rt_id queue, rt_id from, bool confirmed_only, const rt_job messages[],
                        uint32_t count) {
    rt_cursor cursor = {
        .id = rt_tx_new_id(tx),
        .kind = RT_CURSOR_FANOUT,
        .queue = queue,
        .from = from,
        .after = from,
        .confirmed_only = confirmed_only,
    };
    // Ids rise: whoever subscribes from now on lies beyond it.
    cursor.last = cursor.id;
    for (uint32_t i = 0; i < count; i++) {
        const rt_job holder = {
            .id = rt_tx_new_id(tx),
            .queue = cursor.id,
            .owner = queue,
            .body = messages[i].body,
            .placed_ms = messages[i].placed_ms,
            .ttl_s = messages[i].ttl_s,
            .delay_s = messages[i].delay_s,
            .body_bytes = messages[i].body_bytes,
            .state = RT_JOB_LEASED,
            .flags = RT_JOB_PULL | RT_JOB_HOLDER,
        };
        rt_tx_insert_job(tx, &holder);
    }
    return rt_cursor_start(tx, &cursor);
}

rt_code rt_fanout_slice(rt_tx *tx, rt_cursor *c, bool *finished) {
    rt_cursor_jobs p;
    const rt_job_range range = {.index = RT_INDEX_ALL, .queue = c->id};
    rt_code code = rt_cursor_read_jobs(tx, &range, &p);
    if (code != RT_OK) return code;
    tx->frees = true; // the body is there already; holding a fan-out up would hold it up for good

    rt_targets targets = {.count = 0};
    bool whole = false; // `targets` are all that a message starts with
    uint32_t done = 0;
    uint32_t left = RT_CURSOR_SLICE;
    while (done < p.count && left > 0) {
        if (!whole || targets.count > left) {
            code = rt_targets_read(tx, c->queue, c->after, c->last, c->confirmed_only, left, &targets);
            if (code != RT_OK) return code;
            whole = c->after == c->from && !targets.more;
        }
        rt_fanout_deliver(tx, c->queue, &p.jobs[done], targets.ids, targets.count);
        left -= targets.count;
        if (targets.more) {
            c->after = targets.seen;
            return RT_OK;
        }
        rt_tx_remove_job(tx, &p.jobs[done++]);
        left -= left > 0 ? 1 : 0; // a message without subscribers is a record as well
        c->after = c->from;
    }
    *finished = done == p.count && p.count < RT_CURSOR_SLICE;
    return RT_OK;
}
