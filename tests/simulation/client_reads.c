/* client_reads.c: what clients and operators are shown agrees with what is on the disk. */
#include "client.h"
#include "engine/messages/message_read.h"
#include "engine/queues/read.h"

enum { PAGE_MAX = 20 };

typedef struct reading {
    world *world;
    rt_view *view;
    rt_arena arena;
    int64_t now_ms;
} reading;

static bool is_shown(const reading *r, const rt_job *job) {
    return job->expires_ms == 0 || job->expires_ms > r->now_ms;
}

/* Messages come in their order, each with its own body, and none that has ended. */
static void read_messages(reading *r, const rt_metadata *queue) {
    world *w = r->world;
    rt_message_range range = {.jobs = queue->jobs, .now_ms = r->now_ms};
    range.limit = (uint32_t)draw(&w->rng, 1, PAGE_MAX);
    range.include_claimed = chance(&w->rng, 500);
    range.include_delayed = chance(&w->rng, 500);
    rt_message page[PAGE_MAX];
    uint32_t count = 0;
    const rt_code code = rt_read_messages(r->view, &r->arena, &range, page, &count);
    TRACE_CHECK(&w->trace, code == RT_OK && count <= range.limit, "a page of messages cannot be read");
    rt_id before = 0;
    for (uint32_t i = 0; i < count; i++) {
        const rt_job *job = &page[i].job;
        const shadow *s = ledger_shadow(&w->ledger, job->id);
        const unsigned long long id = job->id;
        TRACE_CHECK(&w->trace, job->id > before, "message %llx is shown out of its order", id);
        TRACE_CHECK(&w->trace, s->job.version == job->version && job->queue == queue->jobs,
                    "message %llx is shown as it is not", id);
        TRACE_CHECK(&w->trace, is_shown(r, job) && job->state != RT_JOB_DONE,
                    "message %llx is shown after its end", id);
        TRACE_CHECK(&w->trace, ledger_message_in(&w->ledger, page[i].body) == s->message,
                    "message %llx is shown with another body", id);
        before = job->id;
    }
}

/* Free, claimed and delayed messages add up to what the disk holds; those whose time is over may be counted
 * still. */
static void read_stats(reading *r, const rt_metadata *queue) {
    const ledger *l = &r->world->ledger;
    int64_t least = 0;
    int64_t most = 0;
    for (uint32_t i = 0; i < l->messages_count; i++) {
        if (l->messages[i].id == 0) continue;
        const shadow *s = ledger_shadow(&r->world->ledger, l->messages[i].id);
        if (s->gone || s->job.state == RT_JOB_DONE || s->job.queue != queue->jobs) continue;
        most++;
        if (is_shown(r, &s->job)) least++;
    }
    rt_queue_stats stats;
    const rt_code code = rt_read_stats(r->view, queue->jobs, r->now_ms, &stats);
    TRACE_CHECK(&r->world->trace, code == RT_OK, "stats cannot be read");
    TRACE_CHECK(&r->world->trace, stats.total >= least && stats.total <= most,
                "%lld messages are counted, %lld to %lld are there", (long long)stats.total, (long long)least,
                (long long)most);
    TRACE_CHECK(&r->world->trace, stats.free + stats.claimed == stats.total, "the counts do not add up");
}

typedef struct history {
    world *world;
    rt_id job;
    uint64_t next; /* number of the event that comes; 0: none */
    uint32_t count;
} history;

static bool add_event(void *ctx, const rt_event *event) {
    history *h = ctx;
    TRACE_CHECK(&h->world->trace, event->seq == h->next && event->job == h->job,
                "job %llx has a gap in its history", (unsigned long long)h->job);
    h->next = event->prev;
    h->count++;
    return true;
}

/* A job is found in every state, with its history back to the first event that is kept. */
static void read_job(reading *r) {
    world *w = r->world;
    const ledger *l = &w->ledger;
    const shadow *s = &l->shadows[rt_rng_below(&w->rng, l->shadows_count)];
    if (s->job.id == 0 || s->gone) return;
    rt_job job;
    TRACE_CHECK(&w->trace, rt_read_job(r->view, s->job.id, &job) == RT_OK && job.version == s->job.version,
                "job %llx is not shown as it is", (unsigned long long)s->job.id);
    history h = {.world = w, .job = job.id, .next = job.last_event};
    TRACE_CHECK(&w->trace, rt_read_attempts(r->view, &job, UINT32_MAX, add_event, &h) == RT_OK,
                "no history can be read");
    TRACE_CHECK(&w->trace, h.next == 0 || w->plan.disk.retention.events > 0,
                "job %llx has lost some of its history", (unsigned long long)job.id);
}

void client_read(world *w) {
    const node *n = node_any(w);
    if (n == NULL || w->ledger.shadows_count == 0) return;
    reading r = {.world = w, .now_ms = world_wall_ms(w)};
    rt_err err;
    if (rt_engine_view(n->engine, &r.view, &err) != RT_OK) return; // the store does not answer
    rt_metadata queue;
    uint64_t version;
    const rt_str name = client_queue_name((uint32_t)rt_rng_below(&w->rng, w->plan.queues));
    if (rt_read_metadata(r.view, &r.arena, CLIENT_TENANT, name, &queue, &version) == RT_OK) {
        read_messages(&r, &queue);
        read_stats(&r, &queue);
    }
    read_job(&r);
    rt_view_close(r.view);
    rt_arena_deinit(&r.arena);
}
