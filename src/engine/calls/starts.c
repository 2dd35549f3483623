#include "engine/calls/starts.h"

#include "engine/common/name.h"
#include "engine/common/stored.h"

enum {
    FORMAT = 1,
    AHEAD_MS = 10000, /* so far clocks of nodes differ at most; what is further ahead is of before a clock was set back */
    UNUSED_MS = 600000
};
static const double GRAIN = 1e6; /* parts of a start that are stored */

/* ---- stored form --------------------------------------------------------------------------------------- */

static void pack_rate(rt_buf *b, const rt_rate *r) {
    rt_pack_i64(b, r->at_ms);
    rt_pack_u64(b, (uint64_t)(r->used * GRAIN + 0.5));
}

static rt_rate unpack_rate(rt_unpack *u, int64_t now_ms) {
    rt_rate r = {.at_ms = rt_unpack_i64(u)};
    r.used = (double)rt_unpack_u64(u) / GRAIN;
    if (r.at_ms > now_ms + AHEAD_MS) r.at_ms = now_ms;
    return r;
}

static rt_str encode(rt_arena *arena, const rt_lane_brakes *l) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    pack_rate(&b, &l->rate);
    pack_rate(&b, &l->release);
    rt_pack_i64(&b, l->started_ms);
    rt_pack_u64(&b, l->asker);
    rt_pack_i64(&b, l->asked_ms);
    return rt_pack_finish(&b, arena);
}

static bool decode(rt_str value, rt_lane_brakes *l, int64_t now_ms) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    l->rate = unpack_rate(&u, now_ms);
    l->release = unpack_rate(&u, now_ms);
    l->started_ms = rt_unpack_i64(&u);
    l->asker = rt_unpack_u64(&u);
    l->asked_ms = rt_unpack_i64(&u);
    if (l->rate.at_ms < 0 || l->release.at_ms < 0 || l->started_ms < 0 || l->asked_ms < 0) return false;
    if (l->started_ms > now_ms) l->started_ms = l->started_ms > now_ms + AHEAD_MS ? 0 : now_ms;
    return !u.failed && u.rest.len == 0;
}

/* ---- reading and writing ------------------------------------------------------------------------------- */

static rt_code read_doc(rt_tx *tx, rt_id queue, rt_lane_brakes *b, rt_doc *doc) {
    const rt_code code = rt_doc_load(tx, RT_DOC_CALL_STARTS, rt_name_queue(tx->arena, queue), doc);
    if (code == RT_E_ABSENT) {
        b->rate = b->release = (rt_rate){0};
        b->started_ms = b->asked_ms = 0;
        b->asker = 0;
        return RT_OK;
    }
    if (code != RT_OK || decode(doc->value, b, tx->now_ms)) return code;
    return rt_fail(tx->err, RT_E_CORRUPT, 0, "the starts of a queue cannot be read");
}

static bool is_asked(const rt_lane_brakes *b, int64_t now_ms) {
    return b->asker != 0 && now_ms - b->asked_ms < RT_ASK_MS && now_ms >= b->asked_ms;
}

static uint64_t self(const rt_tx *tx) { return tx->schedule == NULL ? 0 : tx->schedule->self; }

rt_code rt_starts_read(rt_tx *tx, rt_id queue, rt_lane_brakes *b, rt_doc *doc) {
    *doc = (rt_doc){0};
    b->others = b->kept = 0;
    const bool shared = b->shared && rt_lane_brakes_limit(b, tx->now_ms);
    // The document first: whoever takes a lease between the two has changed it, and this decision is refused.
    const rt_code code = shared ? read_doc(tx, queue, b, doc) : RT_OK;
    if (code != RT_OK && code != RT_E_AGAIN) return code;
    const bool counts_held = b->concurrency > 0 || b->stored.circuit != RT_CIRCUIT_CLOSED;
    if (!counts_held || !(shared || b->pull)) return code;
    rt_counts counts;
    const rt_code counted = rt_view_counts(tx->view, queue, &counts);
    if (counted != RT_OK) return counted;
    b->others = counts.leased > 0 ? (uint32_t)counts.leased : 0;
    b->kept = shared && b->asker != self(tx) && is_asked(b, tx->now_ms);
    return code;
}

rt_code rt_starts_write(rt_tx *tx, const rt_doc *doc, rt_lane_brakes *b, uint32_t count) {
    if (doc->kind == RT_DOC_NONE) return RT_OK;
    for (uint32_t i = 0; i < count; i++) rt_lane_brakes_started(b, tx->now_ms);
    if (b->asker == self(tx)) b->asker = 0;
    rt_doc now = *doc;
    // Moved seldom, or each start would move it in the store's order of what ends.
    const int64_t needed_ms = tx->now_ms + RT_RELEASE_MS + (int64_t)b->stored.pace_ms;
    if (now.expires_ms < needed_ms) now.expires_ms = needed_ms + UNUSED_MS;
    now.value = encode(tx->arena, b);
    if (now.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's starts");
    rt_tx_put_doc(tx, doc->version == 0 ? NULL : doc, &now);
    return RT_OK;
}

/* ---- asking for a place -------------------------------------------------------------------------------- */

static rt_code decide_ask(rt_tx *tx, rt_command *cmd) {
    const rt_starts_ask *c = (rt_starts_ask *)cmd;
    rt_lane_brakes b = {.shared = true};
    rt_doc doc;
    const rt_code code = read_doc(tx, c->queue, &b, &doc);
    // Another was first; or nobody has started anything.
    if (code != RT_OK || doc.version == 0 || is_asked(&b, tx->now_ms)) return code;
    b.asker = self(tx);
    b.asked_ms = tx->now_ms;
    rt_doc now = doc;
    now.value = encode(tx->arena, &b);
    if (now.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's starts");
    rt_tx_put_doc(tx, &doc, &now);
    return RT_OK;
}

void rt_starts_ask_init(rt_starts_ask *c) { *c = (rt_starts_ask){.cmd = {.decide = decide_ask}}; }
