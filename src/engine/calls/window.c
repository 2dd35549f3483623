#include "engine/calls/window.h"

#include "engine/common/name.h"
#include "engine/common/stored.h"

enum { FORMAT = 1, UNUSED_MS = 600000 };

/* ---- stored form --------------------------------------------------------------------------------------- */

typedef struct record {
    uint32_t window_s;
    int64_t since_ms, heard_ms;
    rt_circuit_window window;
} record;

static rt_str encode(rt_arena *arena, const record *r) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u32(&b, r->window_s);
    rt_pack_i64(&b, r->since_ms);
    rt_pack_i64(&b, r->heard_ms);
    rt_pack_i64(&b, r->window.slice);
    for (size_t i = 0; i < RT_CIRCUIT_SLICES; i++) {
        rt_pack_u32(&b, r->window.slices[i].attempts);
        rt_pack_u32(&b, r->window.slices[i].failures);
        rt_pack_u32(&b, r->window.slices[i].slow);
    }
    return rt_pack_finish(&b, arena);
}

static bool decode(rt_str value, record *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (record){.window_s = rt_unpack_u32(&u)};
    out->since_ms = rt_unpack_i64(&u);
    out->heard_ms = rt_unpack_i64(&u);
    out->window.slice = rt_unpack_i64(&u);
    for (size_t i = 0; i < RT_CIRCUIT_SLICES; i++) {
        out->window.slices[i].attempts = rt_unpack_u32(&u);
        out->window.slices[i].failures = rt_unpack_u32(&u);
        out->window.slices[i].slow = rt_unpack_u32(&u);
    }
    const bool sound = out->window_s > 0 && out->since_ms >= 0 && out->heard_ms >= 0 && out->window.slice >= 0;
    return !u.failed && u.rest.len == 0 && sound;
}

/* The counts of the queue as it is now; none if those that are stored are of another time. */
static rt_code load(rt_tx *tx, rt_id queue, const rt_circuit_settings *s, int64_t since_ms, rt_doc *doc, record *out) {
    const rt_code code = rt_doc_load(tx, RT_DOC_CALL_WINDOW, rt_name_queue(tx->arena, queue), doc);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    if (code == RT_OK && !decode(doc->value, out))
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "the window of a circuit cannot be read");
    if (code == RT_E_ABSENT || out->window_s != s->window_s || out->since_ms != since_ms)
        *out = (record){.window_s = s->window_s, .since_ms = since_ms};
    return RT_OK;
}

/* ---- telling ------------------------------------------------------------------------------------------- */

static bool is_bad(const rt_circuit_window *w, const rt_circuit_settings *s, int64_t now_ms) {
    const rt_circuit_counts c = rt_circuit_window_counts(w, s, now_ms);
    return c.failures + c.slow > 0;
}

/* A clock that was set back has waited enough. */
static bool has_passed(int64_t from_ms, int64_t length_ms, int64_t now_ms) {
    return now_ms - from_ms >= length_ms || now_ms < from_ms;
}

rt_code rt_window_tell(rt_tx *tx, const rt_queue *queue, const rt_circuit_settings *s, rt_window_news *news,
                       bool *trips) {
    rt_doc doc;
    record r;
    const rt_code code = load(tx, queue->id, s, queue->brakes.circuit_since_ms, &doc, &r);
    if (code != RT_OK) return code;
    const bool was_bad = is_bad(&r.window, s, tx->now_ms);
    rt_circuit_window_merge(&r.window, &news->told, s, tx->now_ms);
    const bool bad = is_bad(&r.window, s, tx->now_ms);
    if (!bad) r.heard_ms = 0;
    else if (!was_bad) r.heard_ms = tx->now_ms;
    news->window = r.window;
    news->since_ms = r.since_ms;
    news->heard_ms = r.heard_ms;
    *trips = bad && rt_circuit_trips(&r.window, s, tx->now_ms) &&
             has_passed(r.heard_ms, RT_WINDOW_HEAR_MS, tx->now_ms);
    if (rt_circuit_window_counts(&news->told, s, tx->now_ms).attempts == 0) return RT_OK;
    rt_doc now = doc;
    const int64_t needed_ms = tx->now_ms + (int64_t)s->window_s * 1000;
    if (now.expires_ms < needed_ms) now.expires_ms = needed_ms + UNUSED_MS; // seldom
    now.value = encode(tx->arena, &r);
    if (now.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a circuit's window");
    rt_tx_put_doc(tx, doc.version == 0 ? NULL : &doc, &now);
    return RT_OK;
}

rt_code rt_window_know(rt_tx *tx, rt_id queue, rt_lane_brakes *b) {
    const bool counts = b->circuit.enabled && b->stored.circuit == RT_CIRCUIT_CLOSED && !b->stored.forced;
    if (!counts || b->telling) return RT_OK;
    rt_doc doc;
    record r;
    const rt_code code = load(tx, queue, &b->circuit, b->stored.circuit_since_ms, &doc, &r);
    if (code != RT_OK) return code;
    b->heard_ms = is_bad(&r.window, &b->circuit, tx->now_ms) ? r.heard_ms : 0;
    b->window = r.window;
    rt_circuit_window_merge(&b->window, &b->untold, &b->circuit, tx->now_ms);
    return RT_OK;
}

/* ---- when ---------------------------------------------------------------------------------------------- */

bool rt_window_has_news(const rt_lane_brakes *b, bool trips, int64_t now_ms) {
    if (trips && b->heard_ms > 0 && has_passed(b->heard_ms, RT_WINDOW_HEAR_MS, now_ms)) return true;
    return has_passed(b->told_ms, RT_WINDOW_TELL_MS, now_ms) && is_bad(&b->window, &b->circuit, now_ms) &&
           rt_circuit_window_counts(&b->untold, &b->circuit, now_ms).attempts > 0;
}

void rt_window_end(rt_lane_brakes *b, const rt_window_news *news, int64_t now_ms) {
    b->told_ms = now_ms;
    // The circuit has been somewhere else meanwhile, or nobody knows: what is known begins anew.
    const bool current = news != NULL && news->since_ms == b->stored.circuit_since_ms && b->circuit.enabled;
    b->window = current ? news->window : (rt_circuit_window){0};
    b->heard_ms = current ? news->heard_ms : 0;
    if (current) rt_circuit_window_merge(&b->window, &b->untold, &b->circuit, now_ms);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

rt_code rt_read_window(rt_view *v, const rt_queue *queue, int64_t now_ms, rt_circuit_counts *out) {
    unsigned char name[8];
    rt_put_be64(name, queue->id);
    rt_doc doc;
    record r;
    const rt_code code =
        rt_view_doc(v, RT_DOC_CALL_WINDOW, (rt_str){.ptr = (const char *)name, .len = sizeof name}, &doc);
    if (code != RT_OK) return code;
    if (!decode(doc.value, &r)) return RT_E_CORRUPT;
    const bool current = queue->brakes.circuit == RT_CIRCUIT_CLOSED && r.since_ms == queue->brakes.circuit_since_ms;
    if (!current) return RT_E_ABSENT;
    *out = rt_circuit_window_counts(&r.window, &(rt_circuit_settings){.window_s = r.window_s}, now_ms);
    return out->failures + out->slow > 0 ? RT_OK : RT_E_ABSENT;
}
