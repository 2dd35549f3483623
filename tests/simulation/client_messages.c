/* client_messages.c: requests about messages and claims, and what must be true when they are answered. */
#include "client.h"

enum { DELETES_MAX = 20 }; /* in one request */

static const trace *trace_of(const request *r) { return &r->world->trace; }

/* ---- posting ------------------------------------------------------------------------------------------- */

static void post_kept(request *r, post *p) {
    ledger *l = &r->world->ledger;
    for (uint32_t i = 0; i < p->count; i++) {
        const rt_id id = r->as.post.items[i].id;
        message *m = &l->messages[p->first + i];
        shadow *s = ledger_shadow(l, id);
        TRACE_CHECK(trace_of(r), s->job.id == id, "message %u was acknowledged and is not on the disk",
                    p->first + i);
        TRACE_CHECK(trace_of(r), m->id == 0 || m->id == id, "message %u has two ids", p->first + i);
        if (m->id == 0) l->unnamed--;
        m->id = id;
        if (s->message < 0) s->message = (int32_t)(p->first + i);
        TRACE_CHECK(trace_of(r), s->message == (int32_t)(p->first + i), "job %llx is another message",
                    (unsigned long long)id);
    }
}

static void post_answered(request *r, promise kept) {
    ledger *l = &r->world->ledger;
    post *p = &l->posts[r->number];
    p->promise = kept;
    p->answered = l->now;
    if (kept == PROMISE_KEPT) post_kept(r, p);
    if (kept != PROMISE_REFUSED) return;
    for (uint32_t i = 0; i < p->count; i++) {
        TRACE_CHECK(trace_of(r), l->messages[p->first + i].id == 0,
                    "message %u was refused and is on the disk", p->first + i);
    }
}

static uint32_t subscribers_of(const ledger *l, uint32_t queue) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->subscribers_count; i++) {
        if (l->subscribers[i].queue == queue && l->subscribers[i].promise != PROMISE_REFUSED) count++;
    }
    return count;
}

void client_post(world *w) {
    ledger *l = &w->ledger;
    request *r = client_request(w);
    if (r == NULL) return;
    uint32_t count = (uint32_t)(chance(&w->rng, 800) ? draw(&w->rng, 1, 3) : draw(&w->rng, 4, 20));
    const uint32_t subscribers = subscribers_of(l, r->queue);
    if (w->plan.many_subscribers && count > 2) count = 2;
    l->deliveries_planned += count * subscribers;
    if (l->messages_count + count > MESSAGES_MAX || l->deliveries_planned > DELIVERIES_MAX) count = 0;
    if (count == 0 || l->posts_count == POSTS_MAX) {
        client_drop(r);
        return;
    }
    rt_post_item *items = rt_arena_alloc(&r->arena, count * sizeof *items);
    for (uint32_t i = 0; i < count; i++) {
        items[i].body = rt_arena_printf(&r->arena, "{\"n\":%u}", l->messages_count + i);
        items[i].ttl_s = chance(&w->rng, 200) ? 0 : (int64_t)draw(&w->rng, 1, (uint64_t)w->plan.ttl_max_s);
        items[i].delay_s = chance(&w->rng, 700) ? -1 : (int64_t)draw(&w->rng, 0, 60);
        l->messages[l->messages_count + i] = (message){.post = l->posts_count};
    }
    r->number = l->posts_count++;
    rt_post_init(&r->as.post);
    r->as.post = (rt_post){
        .cmd = r->as.cmd,
        .tenant = CLIENT_TENANT,
        .queue = client_queue_name(r->queue),
        .client_hash = draw(&w->rng, 1, 3),
        .bytes = 100,
        .items = items,
        .count = count,
    };
    client_send(r, post_answered);
    l->posts[r->number] = (post){
        .queue = r->queue,
        .first = l->messages_count,
        .count = count,
        .sent = r->sent,
    };
    l->messages_count += count;
}

/* ---- claims -------------------------------------------------------------------------------------------- */

static void check_returned(request *r, const rt_message *m) {
    ledger *l = &r->world->ledger;
    const shadow *s = ledger_shadow(l, m->job.id);
    TRACE_CHECK(trace_of(r), s->job.id == m->job.id, "a message was returned that is not on the disk");
    const int32_t number = ledger_message_in(l, m->body);
    TRACE_CHECK(trace_of(r), number >= 0 && (s->message < 0 || s->message == number),
                "job %llx came with another body", (unsigned long long)m->job.id);
}

static void claim_answered(request *r, promise p) {
    struct client *c = r->world->client;
    const rt_claim_create *made = &r->as.claim;
    if (p != PROMISE_KEPT || made->count == 0) return;
    TRACE_CHECK(trace_of(r), made->count <= made->limit, "a claim returned more than it was asked for");
    claim *kept = &c->claims[c->claims_count++ % CLAIMS_MAX];
    *kept = (claim){.id = made->lease.id, .queue = r->queue, .count = made->count};
    for (uint32_t i = 0; i < made->count; i++) {
        check_returned(r, &made->messages[i]);
        const rt_id id = made->messages[i].job.id;
        kept->messages[i] = id;
        TRACE_CHECK(trace_of(r), i == 0 || kept->messages[i - 1] < id, "a claim is not first in, first out");
        const shadow *s = ledger_shadow(&r->world->ledger, id);
        const bool ended = s->gone || s->job.state == RT_JOB_DONE; // in the same batch, perhaps
        const bool over = made->lease.until_ms <= r->world->wall_max_ms; // its node stood still for longer than it lasted
        TRACE_CHECK(trace_of(r), ended || over || s->last_lease == kept->id,
                    "message %d was claimed without a lease on the disk", s->message);
    }
}

void client_take(world *w) {
    request *r = client_request(w);
    if (r == NULL) return;
    rt_claim_create *c = &r->as.claim;
    rt_claim_create_init(c);
    c->tenant = CLIENT_TENANT;
    c->queue = client_queue_name(r->queue);
    c->arena = &r->arena;
    c->ttl_s = (uint32_t)draw(&w->rng, 1, 90);
    c->grace_s = (uint32_t)draw(&w->rng, 0, 60);
    c->limit = (uint32_t)draw(&w->rng, 1, RT_LEASE_JOBS_MAX);
    client_send(r, claim_answered);
}

static claim *random_claim(world *w) {
    struct client *c = w->client;
    if (c->claims_count == 0) return NULL;
    const uint32_t count = c->claims_count < CLAIMS_MAX ? c->claims_count : CLAIMS_MAX;
    return &c->claims[rt_rng_below(&w->rng, count)];
}

void client_hold(world *w) {
    claim *c = random_claim(w);
    request *r = c == NULL ? NULL : client_request(w);
    if (r == NULL) return;
    const rt_str queue = client_queue_name(c->queue);
    const uint32_t ttl_s = (uint32_t)draw(&w->rng, 1, 120);
    if (chance(&w->rng, 500)) {
        rt_claim_renew_init(&r->as.renew);
        r->as.renew = (rt_claim_renew){
            .cmd = r->as.cmd, .tenant = CLIENT_TENANT, .queue = queue, .id = c->id, .ttl_s = ttl_s};
        r->as.renew.grace_s = (uint32_t)draw(&w->rng, 0, 60);
    } else {
        c->release_asked = true;
        rt_claim_release_init(&r->as.release);
        r->as.release =
            (rt_claim_release){.cmd = r->as.cmd, .tenant = CLIENT_TENANT, .queue = queue, .id = c->id};
    }
    client_send(r, client_answered_nothing);
}

/* ---- deleting ------------------------------------------------------------------------------------------ */

/* Answered with success, so the message is gone for good. */
static void check_deleted(request *r, rt_id id) {
    ledger *l = &r->world->ledger;
    const shadow *s = ledger_shadow(l, id);
    if (s->job.id == 0 || s->gone || s->job.state == RT_JOB_DONE || s->moved) return;
    // Expired, and not yet swept away: nobody sees it any more.
    if (s->job.expires_ms > 0 && s->job.expires_ms <= r->world->wall_max_ms) return;
    const uint32_t queue = l->posts[l->messages[s->message].post].queue;
    TRACE_CHECK(trace_of(r), ledger_wiped(l, queue, true, s->made),
                "message %d was deleted and is still there", s->message);
}

static void delete_answered(request *r, promise p) {
    if (p == PROMISE_KEPT) check_deleted(r, r->as.message_delete.id);
    if (p == PROMISE_REFUSED) r->world->ledger.messages[r->number].deletes--;
}

static void deletes_answered(request *r, promise p) {
    ledger *l = &r->world->ledger;
    for (uint32_t i = 0; i < r->as.messages_delete.count; i++) {
        const rt_id id = r->as.messages_delete.ids[i];
        if (p == PROMISE_KEPT) check_deleted(r, id);
        if (p == PROMISE_REFUSED) l->messages[ledger_shadow(l, id)->message].deletes--;
    }
}

/* Any message that is known by its id; its index, or -1. */
static int32_t random_message(world *w) {
    const ledger *l = &w->ledger;
    if (l->messages_count == 0) return -1;
    const uint32_t at = (uint32_t)rt_rng_below(&w->rng, l->messages_count);
    return l->messages[at].id == 0 ? -1 : (int32_t)at;
}

static void delete_several(world *w, uint32_t queue) {
    ledger *l = &w->ledger;
    request *r = client_request(w);
    if (r == NULL) return;
    rt_messages_delete_init(&r->as.messages_delete);
    r->as.messages_delete =
        (rt_messages_delete){.cmd = r->as.cmd, .tenant = CLIENT_TENANT, .queue = client_queue_name(queue)};
    const uint32_t count = (uint32_t)draw(&w->rng, 1, DELETES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const int32_t at = random_message(w);
        if (at < 0 || l->posts[l->messages[at].post].queue != queue) continue;
        l->messages[at].deletes++;
        r->as.messages_delete.ids[r->as.messages_delete.count++] = l->messages[at].id;
    }
    if (r->as.messages_delete.count == 0) {
        client_drop(r);
        return;
    }
    client_send(r, deletes_answered);
}

void client_delete(world *w) {
    ledger *l = &w->ledger;
    const int32_t at = random_message(w);
    if (at < 0) return;
    const uint32_t queue = l->posts[l->messages[at].post].queue;
    if (chance(&w->rng, 300)) {
        delete_several(w, queue);
        return;
    }
    request *r = client_request(w);
    if (r == NULL) return;
    const rt_id id = l->messages[at].id;
    l->messages[at].deletes++;
    r->number = (uint32_t)at;
    const rt_id lease = ledger_shadow(l, id)->last_lease;
    const bool has_claim = lease != 0 ? chance(&w->rng, 800) : chance(&w->rng, 100);
    rt_message_delete_init(&r->as.message_delete);
    r->as.message_delete = (rt_message_delete){.cmd = r->as.cmd,
                                               .tenant = CLIENT_TENANT,
                                               .queue = client_queue_name(queue),
                                               .id = id,
                                               .has_claim = has_claim,
                                               .claim = lease};
    client_send(r, delete_answered);
}

static void pop_answered(request *r, promise p) {
    ledger *l = &r->world->ledger;
    l->pops_open--;
    if (p == PROMISE_UNKNOWN) l->pops_unknown++;
    for (uint32_t i = 0; p == PROMISE_KEPT && i < r->as.pop.count; i++) {
        const rt_message *m = &r->as.pop.messages[i];
        check_returned(r, m);
        const shadow *s = ledger_shadow(l, m->job.id);
        message *known = &l->messages[ledger_message_in(l, m->body)];
        TRACE_CHECK(trace_of(r), !known->popped, "message %d was popped twice", s->message);
        TRACE_CHECK(trace_of(r), s->gone || s->job.state == RT_JOB_DONE,
                    "message %d was popped and is still there", s->message);
        known->popped = true;
    }
}

void client_pop(world *w) {
    request *r = client_request(w);
    if (r == NULL) return;
    rt_pop_init(&r->as.pop);
    r->as.pop = (rt_pop){.cmd = r->as.cmd,
                         .tenant = CLIENT_TENANT,
                         .queue = client_queue_name(r->queue),
                         .arena = &r->arena,
                         .limit = (uint32_t)draw(&w->rng, 1, 5)};
    w->ledger.pops_open++;
    client_send(r, pop_answered);
}
