/* client.c: clients: what they ask for next. */
#include "client.h"

#include <stdlib.h>

const rt_str CLIENT_TENANT = {.ptr = "tenant", .len = 6};

rt_str client_queue_name(uint32_t queue) {
    static const rt_str NAMES[QUEUES_MAX] = {
        {.ptr = "q0", .len = 2}, {.ptr = "q1", .len = 2}, {.ptr = "q2", .len = 2}};
    RT_ASSERT(queue < QUEUES_MAX);
    return NAMES[queue];
}

void client_init(world *w) {
    w->client = calloc(1, sizeof *w->client);
    if (w->client == NULL) abort();
}

void client_deinit(world *w) {
    RT_ASSERT(w->requests_open == 0);
    free(w->client);
}

request *client_request(world *w) {
    const node *n = node_any(w);
    if (n == NULL) return NULL;
    request *r = calloc(1, sizeof *r);
    if (r == NULL) abort();
    r->world = w;
    r->node = n->number;
    r->life = n->life;
    r->queue = (uint32_t)rt_rng_below(&w->rng, w->plan.queues);
    return r;
}

void client_drop(request *r) {
    rt_arena_deinit(&r->arena);
    free(r);
}

static void done(rt_command *cmd) {
    request *r = (request *)cmd;
    world *w = r->world;
    // A node that dies answers nobody: whatever its engine says while it is taken down is not heard.
    promise p = cmd->code == RT_OK ? PROMISE_KEPT : PROMISE_REFUSED;
    if (w->nodes[r->node].life != r->life) p = PROMISE_UNKNOWN;
    (void)ledger_tick(&w->ledger);
    trace_note(&w->trace, "answer", r->sent, (uint64_t)cmd->code * 4 + (uint64_t)p);
    if (p == PROMISE_REFUSED) trace_say(&w->trace, "%s: %s", rt_code_name(cmd->code), cmd->err.msg);
    r->answered(r, p);
    w->requests_open--;
    w->client->waiting[r->node]--;
    client_drop(r);
}

void client_send(request *r, void (*answered)(request *r, promise p)) {
    world *w = r->world;
    r->answered = answered;
    r->as.cmd.done = done;
    r->sent = ledger_tick(&w->ledger);
    w->requests_open++;
    w->client->waiting[r->node]++;
    w->nodes[r->node].input = true;
    rt_engine_submit(w->nodes[r->node].engine, &r->as.cmd);
}

void client_answered_nothing(request *r, promise p) {
    (void)r;
    (void)p;
}

uint32_t client_waits_for(const world *w, uint32_t number) { return w->client->waiting[number]; }

claim *client_claim(world *w, rt_id id) {
    for (uint32_t i = 0; i < CLAIMS_MAX && i < w->client->claims_count; i++) {
        if (w->client->claims[i].id == id) return &w->client->claims[i];
    }
    return NULL;
}

bool client_asked_release(world *w, rt_id id) {
    const claim *c = client_claim(w, id);
    return c != NULL && c->release_asked;
}

bool client_metadata(request *r, uint32_t queue, rt_metadata *out, uint64_t *version) {
    rt_view *view = rt_memory_disk_view(r->world->disk);
    if (view == NULL) abort();
    rt_doc doc;
    const rt_str name = rt_name(&r->arena, CLIENT_TENANT, client_queue_name(queue));
    bool found = rt_view_doc(view, RT_DOC_METADATA, name, &doc) == RT_OK;
    if (found) {
        // Records live as long as the disk, so the strings may outlive the view.
        found = rt_metadata_decode(doc.value, out);
        *version = doc.version;
    }
    rt_view_close(view);
    return found;
}

rt_delivery_policy client_policy(world *w) {
    rt_rng *rng = &w->rng;
    rt_delivery_policy p = rt_delivery_policy_default();
    p.retries_with_no_delay = (uint32_t)draw(rng, 0, 3);
    p.minimum_delay_retries = (uint32_t)draw(rng, 0, 3);
    p.maximum_delay_retries = (uint32_t)draw(rng, 0, 3);
    p.minimum_delay_s = (uint32_t)draw(rng, 1, w->plan.delay_max_s / 2);
    p.maximum_delay_s = (uint32_t)draw(rng, p.minimum_delay_s, w->plan.delay_max_s);
    p.backoff_retries = (uint32_t)draw(rng, 1, 6);
    p.backoff_function = (rt_backoff_function)rt_rng_below(rng, RT_BACKOFF_FUNCTION_COUNT);
    if (chance(rng, 400)) p.jitter = (rt_jitter)rt_rng_below(rng, RT_JITTER_COUNT);
    if (chance(rng, 150)) p.maximum_age_s = (uint32_t)draw(rng, 1, 60);
    if (chance(rng, 500)) p.attempt_timeout_s = (uint32_t)draw(rng, 1, 10);
    p.respect_retry_after = chance(rng, 300);
    p.follow_redirects = chance(rng, 300);
    p.ignore_subscription_override = chance(rng, 300);
    if (chance(rng, 300)) {
        p.retry_on_count = 2;
        p.retry_on[0] = (rt_status_range){.low = 404, .high = 404};
        p.retry_on[1] = (rt_status_range){.low = 429, .high = 429};
    }
    return rt_delivery_policy_check(&p) == NULL ? p : rt_delivery_policy_default();
}

void client_act(world *w) {
    static const struct {
        uint32_t weight;
        void (*act)(world *w);
    } ACTS[] = {
        {300, client_post},
        {120, client_take},
        {80, client_hold},
        {100, client_delete},
        {40, client_pop},
        {120, client_subscribe},
        {60, client_change_subscription},
        {30, client_unsubscribe},
        {50, client_change_queue},
        {12, client_wipe},
        {25, client_pause},
        {60, client_bury},
        {80, client_read},
    };
    uint32_t sum = 0;
    for (size_t i = 0; i < sizeof ACTS / sizeof ACTS[0]; i++) sum += ACTS[i].weight;
    uint64_t at = rt_rng_below(&w->rng, sum);
    for (size_t i = 0; i < sizeof ACTS / sizeof ACTS[0]; i++) {
        if (at < ACTS[i].weight) {
            ACTS[i].act(w);
            return;
        }
        at -= ACTS[i].weight;
    }
}

/* ---- the end ------------------------------------------------------------------------------------------- */

typedef struct paused {
    rt_id ids[256];
    uint32_t count;
} paused;

static bool add_paused(void *ctx, const rt_queue *queue) {
    paused *p = ctx;
    if (queue->paused_until_ms > 0 && !queue->gone) p->ids[p->count++] = queue->id;
    return p->count < 256;
}

bool client_resume_all(world *w) {
    if (w->requests_open > 0) return false;
    paused p = {0};
    rt_view *view = rt_memory_disk_view(w->disk);
    if (view == NULL) abort();
    const rt_code code = rt_view_queues(view, 0, add_paused, &p);
    rt_view_close(view);
    RT_ASSERT(code == RT_OK);
    for (uint32_t i = 0; i < p.count; i++) {
        request *r = client_request(w);
        RT_ASSERT(r != NULL);
        rt_queue_pause_init(&r->as.pause);
        r->as.pause = (rt_queue_pause){.cmd = r->as.cmd, .id = p.ids[i], .until_ms = 0};
        client_send(r, client_answered_nothing);
    }
    return p.count == 0;
}
