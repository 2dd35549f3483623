#include <inttypes.h>

#include "engine/work/work_read.h"
#include "face/admin/pages.h"
#include "openapi.h"

/* ---- metrics: Prometheus text format 0.0.4 ------------------------------------------------------------- */

static uint64_t load(const atomic_uint_fast64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void head(rt_buf *b, const char *name, const char *type, const char *help) {
    rt_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void counter(rt_buf *b, const char *name, const char *help, uint64_t value) {
    head(b, name, "counter", help);
    rt_buf_addf(b, "%s %" PRIu64 "\n", name, value);
}

static void gauge(rt_buf *b, const char *name, const char *help, int64_t value) {
    head(b, name, "gauge", help);
    rt_buf_addf(b, "%s %" PRId64 "\n", name, value);
}

/* One series for each reason that this counter can have; zero before the first, so that rates work from the start. */
static void by_reason(rt_buf *b, const char *name, const char *help,
                      const atomic_uint_fast64_t values[RT_REASON_COUNT], const rt_reason reasons[],
                      size_t count) {
    head(b, name, "counter", help);
    for (size_t i = 0; i < count; i++) {
        rt_buf_addf(b, "%s{reason=\"%s\"} %" PRIu64 "\n", name, rt_reason_name(reasons[i]),
                    load(&values[reasons[i]]));
    }
}

static void histogram(rt_buf *b, const char *name, const char *help, const rt_histogram *h) {
    head(b, name, "histogram", help);
    uint64_t total = 0;
    for (int i = 0; i < RT_HISTOGRAM_BUCKETS - 1; i++) {
        total += load(&h->buckets[i]);
        rt_buf_addf(b, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, h->bounds[i], total);
    }
    total += load(&h->buckets[RT_HISTOGRAM_BUCKETS - 1]);
    rt_buf_addf(b, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, total);
    rt_buf_addf(b, "%s_sum %.6f\n%s_count %" PRIu64 "\n", name, (double)load(&h->sum_micro) / 1e6, name,
                total);
}

static void write_counters(rt_buf *b, const rt_metrics *m) {
    static const rt_reason FAILED[] = {
        RT_REASON_STATUS, RT_REASON_TIMEOUT, RT_REASON_CONNECT,         RT_REASON_RESOLVE,      RT_REASON_TLS,
        RT_REASON_BROKEN, RT_REASON_LOST,    RT_REASON_ADDRESS_REFUSED, RT_REASON_NO_MAIL_RELAY,
        RT_REASON_UNAVAILABLE, RT_REASON_CRASHED, RT_REASON_NONSENSE, RT_REASON_NO_PLUGIN, RT_REASON_FAILED};
    static const rt_reason DEAD[] = {RT_REASON_EXHAUSTED, RT_REASON_REJECTED, RT_REASON_EXPIRED,
                                     RT_REASON_ADDRESS_REFUSED, RT_REASON_NO_MAIL_RELAY, RT_REASON_FAILED,
                                     RT_REASON_CIRCUIT_OPEN};
    counter(b, "retryd_messages_posted_total", "Messages acknowledged to clients.",
            load(&m->messages_posted));
    counter(b, "retryd_messages_claimed_total", "Messages handed out in claims.", load(&m->messages_claimed));
    counter(b, "retryd_messages_deleted_total", "Messages deleted by clients.", load(&m->messages_deleted));
    counter(b, "retryd_messages_expired_total", "Messages whose time to live ended.",
            load(&m->messages_expired));
    counter(b, "retryd_deliveries_created_total", "Deliveries that posts have made.",
            load(&m->deliveries_created));
    counter(b, "retryd_deliveries_succeeded_total", "Deliveries recorded as successful.",
            load(&m->deliveries_done));
    counter(b, "retryd_attempts_started_total", "Attempts started.", load(&m->attempts_started));
    by_reason(b, "retryd_attempts_failed_total", "Attempts that failed, by reason.", m->attempts_failed,
              FAILED, sizeof FAILED / sizeof FAILED[0]);
    by_reason(b, "retryd_jobs_dead_total", "Jobs given up, by reason.", m->jobs_dead, DEAD,
              sizeof DEAD / sizeof DEAD[0]);
    counter(b, "retryd_jobs_redriven_total", "Dead jobs tried afresh.", load(&m->jobs_redriven));
    counter(b, "retryd_commits_total", "Commits that were made durable.", load(&m->commits));
    counter(b, "retryd_commits_failed_total", "Commits that failed; nothing of them was acknowledged.",
            load(&m->commits_failed));
    counter(b, "retryd_commands_total", "Commands decided.", load(&m->commands));
    counter(b, "retryd_conflicts_total", "Decisions made again because a record had changed.",
            load(&m->conflicts));
}

static void write_refusals(rt_buf *b, const rt_metrics *m) {
    static const char NAME[] = "retryd_commands_refused_total";
    head(b, NAME, "counter", "Commands that changed nothing, by why.");
    for (int code = RT_OK + 1; code < RT_CODE_COUNT; code++) {
        const uint64_t count = load(&m->commands_refused[code]);
        rt_buf_addf(b, "%s{code=\"%s\"} %" PRIu64 "\n", NAME, rt_code_name((rt_code)code), count);
    }
}

static void write_histograms(rt_buf *b, const rt_metrics *m) {
    histogram(b, "retryd_attempt_lateness_seconds", "Start of an attempt after its due time.",
              &m->lateness_s);
    histogram(b, "retryd_attempt_duration_seconds", "Duration of attempts that were answered.",
              &m->attempt_s);
    histogram(b, "retryd_commit_duration_seconds", "From the first decision of a commit until it is durable.",
              &m->commit_s);
    histogram(b, "retryd_commit_changes", "Changes in one commit.", &m->commit_size);
}

static void write_counts(rt_buf *b, const rt_counts *c) {
    gauge(b, "retryd_jobs_pending", "Jobs not ended: ready, scheduled, free or leased.",
          c->ready + c->scheduled + c->free + c->leased);
    head(b, "retryd_jobs", "gauge", "Jobs by state.");
    rt_buf_addf(b, "retryd_jobs{state=\"ready\"} %" PRId64 "\nretryd_jobs{state=\"scheduled\"} %" PRId64 "\n",
                c->ready, c->scheduled);
    rt_buf_addf(b, "retryd_jobs{state=\"free\"} %" PRId64 "\nretryd_jobs{state=\"leased\"} %" PRId64 "\n",
                c->free, c->leased);
    rt_buf_addf(b, "retryd_jobs{state=\"dead\"} %" PRId64 "\n", c->dead);
    gauge(b, "retryd_jobs_dead", "Dead jobs that wait for an operator.", c->dead);
    gauge(b, "retryd_body_bytes", "Bytes of the bodies of jobs that have not ended.", c->bytes);
}

static void write_gauges(rt_buf *b, const rt_api *api, const rt_metrics *m) {
    rt_err why;
    const bool ready = api->trouble == NULL || api->trouble(api->trouble_ctx, &why) == RT_OK;
    gauge(b, "retryd_ready", "Whether the store takes writes, as /readyz says.", ready ? 1 : 0);
    gauge(b, "retryd_attempts_in_flight", "Attempts under way.", (int64_t)load(&m->attempts_in_flight));
    gauge(b, "retryd_attempts_in_flight_bytes", "Memory held by attempts under way.",
          (int64_t)load(&m->bytes_in_flight));
    const int64_t due_ms = atomic_load_explicit(&m->oldest_due_ms, memory_order_relaxed);
    const int64_t late_ms = due_ms == 0 ? 0 : api->now_ms() - due_ms;
    head(b, "retryd_oldest_due_seconds", "gauge", "How long the first due job has waited for its turn.");
    rt_buf_addf(b, "retryd_oldest_due_seconds %.3f\n", late_ms > 0 ? (double)late_ms / 1000.0 : 0.0);
}

/* Series of all registered processes are there from the start, with zeros. */
static uint64_t work_count(const rt_work_metrics *m, rt_str process, rt_work_count what) {
    const uint32_t known = atomic_load_explicit(&m->processes, memory_order_acquire);
    for (uint32_t i = 0; i < known; i++) {
        if (rt_str_eq(rt_str_of(m->names[i]), process)) return load(&m->counts[i][what]);
    }
    return 0;
}

static void write_work_counters(rt_buf *b, const rt_work_metrics *m, const rt_work_gauge g[], uint32_t count) {
    static const char *const RESULTS[RT_WORK_COUNT_COUNT] = {NULL, "finished", "failed", "canceled", "expired"};
    head(b, "retryd_work_started_total", "counter", "Work started, by process.");
    for (uint32_t i = 0; i < count; i++) {
        rt_buf_addf(b, "retryd_work_started_total{process=\"%.*s\"} %" PRIu64 "\n", RT_STR_ARG(g[i].process),
                    work_count(m, g[i].process, RT_WORK_STARTED));
    }
    rt_buf_addf(b, "retryd_work_started_total{process=\"\"} %" PRIu64 "\n",
                load(&m->counts[RT_WORK_COUNTED][RT_WORK_STARTED]));
    head(b, "retryd_work_ended_total", "counter", "Work ended, by process and result.");
    for (int what = RT_WORK_FINISHED; what < RT_WORK_COUNT_COUNT; what++) {
        for (uint32_t i = 0; i < count; i++) {
            rt_buf_addf(b, "retryd_work_ended_total{process=\"%.*s\",result=\"%s\"} %" PRIu64 "\n",
                        RT_STR_ARG(g[i].process), RESULTS[what], work_count(m, g[i].process, (rt_work_count)what));
        }
        rt_buf_addf(b, "retryd_work_ended_total{process=\"\",result=\"%s\"} %" PRIu64 "\n", RESULTS[what],
                    load(&m->counts[RT_WORK_COUNTED][what]));
    }
    counter(b, "retryd_sessions_started_total", "Sessions of workers started.", load(&m->sessions_started));
    counter(b, "retryd_sessions_ended_total", "Sessions of workers ended: expired or closed.",
            load(&m->sessions_ended));
}

static void write_work(rt_buf *b, const rt_work_metrics *m, const rt_work_gauge g[], uint32_t count) {
    write_work_counters(b, m, g, count);
    head(b, "retryd_work_active", "gauge", "(entity, process) pairs that are worked on.");
    for (uint32_t i = 0; i < count; i++) {
        rt_buf_addf(b, "retryd_work_active{process=\"%.*s\"} %" PRId64 "\n", RT_STR_ARG(g[i].process), g[i].working);
    }
    head(b, "retryd_work_ready", "gauge", "(entity, process) pairs that wait for a worker.");
    for (uint32_t i = 0; i < count; i++) {
        rt_buf_addf(b, "retryd_work_ready{process=\"%.*s\"} %" PRId64 "\n", RT_STR_ARG(g[i].process), g[i].ready);
    }
    head(b, "retryd_backoffs_active", "gauge", "(entity, process) pairs in backoff.");
    for (uint32_t i = 0; i < count; i++) {
        rt_buf_addf(b, "retryd_backoffs_active{process=\"%.*s\"} %" PRId64 "\n", RT_STR_ARG(g[i].process),
                    g[i].resting);
    }
}

static void write_orders(rt_buf *b, const rt_order_metrics *m) {
    counter(b, "retryd_orders_created_total", "Orders acknowledged to clients.", load(&m->counts[RT_ORDER_CREATED]));
    counter(b, "retryd_orders_deleted_total", "Orders deleted by clients.", load(&m->counts[RT_ORDER_DELETED]));
    head(b, "retryd_orders_ended_total", "counter", "Orders ended, by status.");
    rt_buf_addf(b, "retryd_orders_ended_total{status=\"ACTIVE\"} %" PRIu64 "\n", load(&m->counts[RT_ORDER_SUCCEEDED]));
    rt_buf_addf(b, "retryd_orders_ended_total{status=\"ERROR\"} %" PRIu64 "\n", load(&m->counts[RT_ORDER_FAILED]));
    counter(b, "retryd_order_runs_total", "Runs of tasks of orders started.", load(&m->runs));
    counter(b, "retryd_order_retries_total", "Tasks of orders scheduled after their first run.",
            load(&m->counts[RT_ORDER_RETRIED]));
    counter(b, "retryd_orders_repaired_total", "Orders found PENDING without a task: must stay 0.",
            load(&m->counts[RT_ORDER_REPAIRED]));
}

static void write_server(rt_buf *b, const rt_api *api) {
    if (api->server_stats == NULL) return;
    uint64_t s[4];
    api->server_stats(api->server, s);
    counter(b, "retryd_http_requests_total", "HTTP requests answered.", s[0]);
    gauge(b, "retryd_http_connections", "Open HTTP connections.", (int64_t)s[1]);
    gauge(b, "retryd_http_waiting", "Requests that wait for a commit.", (int64_t)s[2]);
    counter(b, "retryd_http_refused_total", "Requests refused because of a limit.", s[3]);
    head(b, "retryd_build_info", "gauge", "The version that runs.");
    rt_buf_addf(b, "retryd_build_info{version=\"%s\"} 1\n", RETRYD_VERSION);
}

/* What only the store knows. */
typedef struct stored {
    rt_counts counts;
    rt_work_gauge work[RT_WORK_COUNTED];
    uint32_t work_count;
    rt_event_gauges events;
} stored;

static bool read_stored(rt_exchange *x, stored *out) {
    rt_view *v;
    rt_err why;
    if (rt_engine_view(rt_api_of(x)->engine, &v, &why) != RT_OK) return false;
    rt_code code = rt_read_totals(v, &out->counts);
    if (code == RT_OK) {
        code = rt_read_work_gauges(v, rt_exchange_arena(x), out->work, RT_WORK_COUNTED, &out->work_count);
    }
    if (code == RT_OK) code = rt_event_gauges_read(v, rt_exchange_arena(x), &out->events);
    rt_view_close(v);
    return code == RT_OK;
}

static void write_stored(rt_buf *b, const rt_metrics *m, const stored *s) {
    write_counts(b, &s->counts);
    write_work(b, &m->work, s->work, s->work_count);
    rt_event_metrics_write(b, &m->calls, &s->events);
}

/* `s` NULL: without what only the store knows. */
static void reply_metrics(rt_exchange *x, const stored *s) {
    const rt_api *api = rt_api_of(x);
    const rt_metrics *m = rt_engine_metrics(api->engine);
    rt_buf b = {0};
    write_counters(&b, m);
    write_refusals(&b, m);
    write_gauges(&b, api, m);
    write_histograms(&b, m);
    write_orders(&b, &m->orders);
    if (s != NULL) write_stored(&b, m, s);
    write_server(&b, api);
    if (api->more_metrics != NULL) api->more_metrics(api->more_metrics_ctx, &b);
    if (b.failed) {
        rt_buf_deinit(&b);
        rt_problem_of(x, RT_E_NOMEM, NULL, "store");
        return;
    }
    rt_exchange_reply_buf(x, 200, "text/plain; version=0.0.4; charset=utf-8", &b);
}

/* Metrics are needed most when the store does not answer. */
void rt_page_metrics(rt_exchange *x) {
    const bool late = rt_exchange_is_late(x);
    if (!late && rt_exchange_moves(x)) return;
    stored s = {.work_count = 0};
    reply_metrics(x, !late && read_stored(x, &s) ? &s : NULL);
}

/* ---- health -------------------------------------------------------------------------------------------- */

/* Alive: this process answers. */
void rt_page_health(rt_exchange *x) { rt_exchange_reply(x, 200, "text/plain", RT_STR("ok\n")); }

/* Ready: the store takes writes. */
void rt_page_ready(rt_exchange *x) {
    const rt_api *api = rt_api_of(x);
    rt_err why = {0};
    if (api->trouble == NULL || api->trouble(api->trouble_ctx, &why) == RT_OK) {
        rt_exchange_reply(x, 200, "text/plain", RT_STR("ready\n"));
        return;
    }
    rt_problem(x, 503, "The store takes no writes: %s", why.msg);
}

void rt_page_openapi(rt_exchange *x) {
    rt_exchange_reply(x, 200, "application/json", rt_str_of(RT_OPENAPI_JSON));
}
