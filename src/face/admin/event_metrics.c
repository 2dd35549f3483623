#include <inttypes.h>

#include "base/utf8.h"
#include "engine/calls/call_read.h"
#include "face/admin/pages.h"

enum { SHOWN_MAX = 256 }; /* types whose state is shown: each costs a look at its queue */

/* ---- reading --------------------------------------------------------------------------------------- */

typedef struct shown {
    rt_view *v;
    rt_arena *arena;
    rt_event_gauges *out;
    rt_code code;
} shown;

static bool add_type(void *ctx, rt_str tenant, rt_str name, const rt_call_type *t) {
    shown *s = ctx;
    rt_event_gauge *g = &s->out->list[s->out->count];
    rt_queue_line line;
    s->code = rt_read_queue_line(s->v, t->queue, &line);
    if (s->code != RT_OK) {
        const bool gone = s->code == RT_E_ABSENT;
        if (gone) s->code = RT_OK;
        return gone;
    }
    *g = (rt_event_gauge){.project = rt_arena_dup(s->arena, tenant), .type = rt_arena_dup(s->arena, name)};
    g->pending = line.counts.ready + line.counts.scheduled + line.counts.free + line.counts.leased;
    g->dead = line.counts.dead;
    g->circuit = (rt_circuit_state)line.queue.brakes.circuit;
    g->pace_ms = line.queue.brakes.pace_ms;
    if (g->project.ptr == NULL || g->type.ptr == NULL) s->code = RT_E_NOMEM;
    return s->code == RT_OK && ++s->out->count < SHOWN_MAX;
}

rt_code rt_event_gauges_read(rt_view *v, rt_arena *arena, rt_event_gauges *out) {
    *out = (rt_event_gauges){.list = rt_arena_alloc(arena, SHOWN_MAX * sizeof *out->list)};
    if (out->list == NULL) return RT_E_NOMEM;
    shown s = {.v = v, .arena = arena, .out = out};
    const rt_code code = rt_read_all_call_types(v, add_type, &s);
    return code == RT_OK ? s.code : code;
}

/* ---- writing --------------------------------------------------------------------------------------- */

static uint64_t load(const atomic_uint_fast64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void head(rt_buf *b, const char *name, const char *type, const char *help) {
    rt_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value: projects and reasons may hold anything, but Prometheus throws away all of a page that is
 * not UTF-8. */
static void escaped(rt_buf *b, rt_str value) {
    while (value.len > 0) {
        bool begun;
        const size_t len = rt_utf8_char(value, &begun);
        const rt_str character = {.ptr = value.ptr, .len = len};
        if (value.ptr[0] == '\\' || value.ptr[0] == '"') rt_buf_add_char(b, '\\');
        if (len == 0) rt_buf_add(b, RT_STR("\xEF\xBF\xBD")); // U+FFFD
        else if (value.ptr[0] == '\n') rt_buf_add(b, RT_STR("\\n"));
        else rt_buf_add(b, character);
        value.ptr += len == 0 ? 1 : len;
        value.len -= len == 0 ? 1 : len;
    }
}

/* `name`{project="…",type="…" and leaves the braces open. */
static void begin(rt_buf *b, const char *name, rt_str project, rt_str type) {
    rt_buf_addf(b, "%s{project=\"", name);
    escaped(b, project);
    rt_buf_add(b, RT_STR("\",type=\""));
    escaped(b, type);
    rt_buf_add_char(b, '"');
}

static void begin_counted(rt_buf *b, const char *name, const rt_call_metrics *m, uint32_t type) {
    rt_str project = RT_STR_EMPTY, title = RT_STR_EMPTY;
    if (type < RT_CALL_TYPES_COUNTED) (void)rt_call_type_split(rt_str_of(m->names[type]), &project, &title);
    begin(b, name, project, title);
}

/* The last place is for all that found none of its own: it follows those that are known. */
static uint32_t place(uint32_t i, uint32_t known, uint32_t last) { return i < known ? i : last; }

static void write_counters(rt_buf *b, const rt_call_metrics *m) {
    static const char SCHEDULED[] = "retryd_events_scheduled_total",
                      ATTEMPTS[] = "retryd_event_attempts_total", DEAD[] = "retryd_events_given_up_total";
    const uint32_t types = atomic_load_explicit(&m->types, memory_order_acquire);
    const uint32_t reasons = atomic_load_explicit(&m->reasons, memory_order_acquire);
    head(b, SCHEDULED, "counter", "Events scheduled, by type and reason.");
    for (uint32_t i = 0; i <= reasons; i++) {
        const uint32_t at = place(i, reasons, RT_CALL_REASONS_COUNTED);
        begin_counted(b, SCHEDULED, m, m->type_of[at]);
        rt_buf_add(b, RT_STR(",reason=\""));
        escaped(b, rt_str_of(m->reason[at]));
        rt_buf_addf(b, "\"} %" PRIu64 "\n", load(&m->scheduled[at]));
    }
    head(b, ATTEMPTS, "counter", "Attempts of events that ended, by type and result.");
    for (uint32_t i = 0; i <= types; i++) {
        const uint32_t at = place(i, types, RT_CALL_TYPES_COUNTED);
        begin_counted(b, ATTEMPTS, m, at);
        rt_buf_addf(b, ",result=\"succeeded\"} %" PRIu64 "\n", load(&m->counts[at][RT_CALL_SUCCEEDED]));
        begin_counted(b, ATTEMPTS, m, at);
        rt_buf_addf(b, ",result=\"failed\"} %" PRIu64 "\n", load(&m->counts[at][RT_CALL_FAILED]));
    }
    head(b, DEAD, "counter", "Events that became dead letters, by type.");
    for (uint32_t i = 0; i <= types; i++) {
        const uint32_t at = place(i, types, RT_CALL_TYPES_COUNTED);
        begin_counted(b, DEAD, m, at);
        rt_buf_addf(b, "} %" PRIu64 "\n", load(&m->counts[at][RT_CALL_DIED]));
    }
}

static void write_gauges(rt_buf *b, const rt_event_gauges *g) {
    static const rt_circuit_state STATES[] = {RT_CIRCUIT_CLOSED, RT_CIRCUIT_OPEN, RT_CIRCUIT_HALF_OPEN};
    head(b, "retryd_events_pending", "gauge", "Events that have not ended, by type.");
    for (uint32_t i = 0; i < g->count; i++) {
        begin(b, "retryd_events_pending", g->list[i].project, g->list[i].type);
        rt_buf_addf(b, "} %" PRId64 "\n", g->list[i].pending);
    }
    head(b, "retryd_events_dead", "gauge", "Dead letters, by type.");
    for (uint32_t i = 0; i < g->count; i++) {
        begin(b, "retryd_events_dead", g->list[i].project, g->list[i].type);
        rt_buf_addf(b, "} %" PRId64 "\n", g->list[i].dead);
    }
    head(b, "retryd_circuit_state", "gauge", "1 for the state that the circuit of a type is in.");
    for (uint32_t i = 0; i < g->count; i++) {
        for (size_t s = 0; s < sizeof STATES / sizeof STATES[0]; s++) {
            begin(b, "retryd_circuit_state", g->list[i].project, g->list[i].type);
            rt_buf_addf(b, ",state=\"%s\"} %d\n", rt_circuit_state_name(STATES[s]),
                        g->list[i].circuit == STATES[s]);
        }
    }
    head(b, "retryd_pace_delay_seconds", "gauge", "A type's own delay between two starts, after failures.");
    for (uint32_t i = 0; i < g->count; i++) {
        begin(b, "retryd_pace_delay_seconds", g->list[i].project, g->list[i].type);
        rt_buf_addf(b, "} %.3f\n", (double)g->list[i].pace_ms / 1000);
    }
}

void rt_event_metrics_write(rt_buf *b, const rt_call_metrics *m, const rt_event_gauges *g) {
    write_counters(b, m);
    write_gauges(b, g);
}
