/* limits.c: what holds for all nodes together: rate, concurrency, probes, and that a circuit opens. */
#include <inttypes.h>

#include "farm.h"

enum {
    PROBES = 2,          /* as in type_like */
    MINIMUM_ATTEMPTS = 5,
    SURELY_MS = 8000,    /* of a window of 10 s so much is counted at any time, … */
    HARDLY_MS = 11000,   /* … and what is older is not */
    HEARD_MS = 500,      /* by then all nodes know what has changed; until then they may learn less */
    OPENED_MS = 3000     /* by then, though commits fail meanwhile */
};

/* A bucket of RATE_PER_S: of any that follow each other all but so many are earned by the time that has passed. */
void limits_fetched(farm *f, int64_t at_ms) {
    limits *l = &f->account.limits;
    // Alone, a node that comes up begins anew; together the store remembers.
    const int64_t anew_ms = f->nodes_count == 1 && f->started_ms > f->jumped_ms ? f->started_ms : f->jumped_ms;
    if (l->anew_ms != anew_ms) l->fetched = 0;
    l->anew_ms = anew_ms;
    l->fetched_ms[l->fetched++ % FETCHED_MAX] = at_ms;
    int64_t low_ms = at_ms, high_ms = at_ms;
    for (uint32_t n = 1; n <= FETCHED_MAX && n <= l->fetched; n++) {
        const int64_t ms = l->fetched_ms[(l->fetched - n) % FETCHED_MAX];
        if (ms < low_ms) low_ms = ms;
        if (ms > high_ms) high_ms = ms;
        MUST(f, ((int64_t)n - RATE_PER_S) * 1000 <= (high_ms - low_ms) * RATE_PER_S, "%u calls are fetched in %lld ms", n,
             (long long)(high_ms - low_ms));
    }
}

/* ---- circuits ------------------------------------------------------------------------------------------ */

static uint32_t type_of(const farm *f, rt_id queue) {
    uint32_t type = 0;
    while (type < TYPES && f->queues[type] != queue) type++;
    return type;
}

void limits_learned(farm *f, const known_call *c, const rt_event *e) {
    const uint32_t type = type_of(f, c->job.queue);
    if (type == TYPES) return;
    const bool pulled = type_is_pulled(type);
    if (e->reason == RT_REASON_LOST && !pulled) return; // says nothing of the target
    const bool refused = e->type == RT_EVENT_DEAD && !pulled && e->status == 404;
    struct learned *l = &f->account.limits.learned[type];
    l->at_ms[l->count % LEARNED_MAX] = f->now_ms;
    l->what[l->count % LEARNED_MAX] = f->now_ms < l->from_ms                          ? LESSON_UNSURE
                                      : e->type == RT_EVENT_DELIVERED || refused ? LESSON_WELL
                                                                                      : LESSON_FAILED;
    l->count++;
}

/* What has been learned is surely enough to open the circuit. */
static bool is_enough(const farm *f, const struct learned *l) {
    uint32_t attempts = 0, surely = 0, failures = 0;
    for (uint32_t n = 1; n <= LEARNED_MAX && n <= l->count; n++) {
        const uint32_t at = (l->count - n) % LEARNED_MAX;
        if (l->at_ms[at] <= f->now_ms - HARDLY_MS) break;
        if (n == LEARNED_MAX) return false; // there are more than anybody counts here
        attempts++;
        if (l->at_ms[at] <= f->now_ms - SURELY_MS || l->what[at] == LESSON_UNSURE) continue;
        surely++;
        failures += l->what[at] == LESSON_FAILED;
    }
    return surely >= MINIMUM_ATTEMPTS && 2 * failures >= attempts;
}

/* The version of the type's document; 0: it has no circuit. */
static uint64_t watched_version(const farm *f, rt_view *v, uint32_t type) {
    rt_arena arena = {0};
    rt_doc doc;
    rt_call_type t;
    const rt_str name = rt_call_type_name(&arena, TENANT, rt_str_of(TYPE_NAMES[type]));
    MUST(f, name.ptr != NULL && rt_view_doc(v, RT_DOC_CALL_TYPE, name, &doc) == RT_OK, "a type");
    MUST(f, rt_call_type_decode(doc.value, &t), "a type that can be read");
    rt_arena_deinit(&arena);
    return t.circuit.enabled ? doc.version : 0;
}

static void doubt(const farm *f, struct learned *l) {
    for (uint32_t i = 0; i < LEARNED_MAX; i++) l->what[i] = LESSON_UNSURE;
    l->from_ms = f->now_ms + HEARD_MS;
}

static void check_circuit(farm *f, rt_view *v, const rt_queue *q, uint32_t type) {
    struct learned *l = &f->account.limits.learned[type];
    const uint64_t version = watched_version(f, v, type);
    const int64_t shaken_ms = f->crashed_ms > f->jumped_ms ? f->crashed_ms : f->jumped_ms;
    const bool same = version == l->type_version && q->brakes.circuit_since_ms == l->circuit_since_ms &&
                      shaken_ms == l->shaken_ms;
    const bool counts = version != 0 && q->brakes.circuit == RT_CIRCUIT_CLOSED && !q->brakes.forced;
    l->type_version = version;
    l->circuit_since_ms = q->brakes.circuit_since_ms;
    l->shaken_ms = shaken_ms;
    if (!same || !counts) doubt(f, l);
    // What several have counted before their clock is set back by a little stays for so much longer.
    const bool turned = f->now_ms < f->jumped_ms + 2 * HARDLY_MS;
    if (turned || !counts || !is_enough(f, l)) l->enough_ms = 0;
    else if (l->enough_ms == 0) l->enough_ms = f->now_ms;
    MUST(f, l->enough_ms == 0 || f->now_ms < l->enough_ms + OPENED_MS, "the circuit of %s stays closed", TYPE_NAMES[type]);
}

/* ---- what is under way --------------------------------------------------------------------------------- */

static int64_t leased(const farm *f, rt_view *v, rt_id queue) {
    rt_counts counts;
    MUST(f, rt_view_counts(v, queue, &counts) == RT_OK, "counts");
    return counts.leased;
}

void limits_landed(farm *f, rt_view *before, rt_view *after, uint32_t type, bool taken) {
    rt_queue was, now;
    const rt_id id = f->queues[type];
    MUST(f, rt_view_queue(before, id, &was) == RT_OK && rt_view_queue(after, id, &now) == RT_OK, "a queue");
    check_circuit(f, after, &now, type);
    if (!taken) return;
    const int64_t held = leased(f, after, id);
    const uint32_t most = was.in_flight_max > now.in_flight_max ? was.in_flight_max : now.in_flight_max;
    const bool limited = was.in_flight_max > 0 && now.in_flight_max > 0;
    MUST(f, !limited || held <= most || held <= leased(f, before, id), "%lld of %s are under way", (long long)held,
         TYPE_NAMES[type]);
    const bool probing = was.brakes.opened_ms != 0 && was.brakes.opened_ms == now.brakes.opened_ms &&
                         now.brakes.circuit == RT_CIRCUIT_HALF_OPEN;
    MUST(f, !probing || held + now.brakes.probes <= PROBES, "%lld of %s are under way while it is probed",
         (long long)held, TYPE_NAMES[type]);
}
