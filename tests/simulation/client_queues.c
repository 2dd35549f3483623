/* client_queues.c: requests about subscriptions, queues and what was given up. */
#include "client.h"

/* ---- subscriptions ------------------------------------------------------------------------------------- */

static rt_str endpoint_url(request *r, uint32_t endpoint, uint32_t path) {
    return rt_arena_printf(&r->arena, "http://endpoint/%u/%u", path, endpoint);
}

static void subscribe_answered(request *r, promise p) {
    ledger *l = &r->world->ledger;
    subscriber *s = &l->subscribers[r->number];
    s->promise = p;
    s->answered = l->now;
    if (p != PROMISE_KEPT) return;
    if (r->as.subscribe.existed) {
        // The one that was there before, perhaps made by a request whose answer was lost: older than this
        // one.
        if (ledger_subscriber(l, r->as.subscribe.id) != NULL) {
            s->promise = PROMISE_REFUSED;
            return;
        }
        s->sent = NEVER_YET;
        s->lasting = false;
    }
    s->id = r->as.subscribe.id;
}

static void confirmation(rt_subscription_create *c, rt_id id, int64_t expires_ms, rt_arena *arena,
                         rt_str *body) {
    (void)c;
    (void)expires_ms;
    *body = rt_arena_printf(arena, "{\"confirm\":%llu}", (unsigned long long)id);
}

static void set_options(request *r, rt_subscription *s) {
    world *w = r->world;
    s->has_policy = chance(&w->rng, 600);
    if (s->has_policy) s->policy = client_policy(w);
    s->headers = chance(&w->rng, 200) ? RT_STR("X-Simulated: 1\n") : RT_STR_EMPTY;
    s->post_data = RT_STR_EMPTY;
    s->secrets[0] = RT_STR_EMPTY;
    s->secrets[1] = RT_STR_EMPTY;
    s->subject = RT_STR_EMPTY;
    s->from = RT_STR_EMPTY;
    s->options_json = RT_STR("{}");
}

static void subscribe_once(world *w, uint32_t queue, bool lasting) {
    ledger *l = &w->ledger;
    request *r = l->subscribers_count == SUBSCRIBERS_MAX ? NULL : client_request(w);
    if (r == NULL) return;
    r->queue = queue;
    rt_subscription_create_init(&r->as.subscribe);
    r->as.subscribe = (rt_subscription_create){
        .cmd = r->as.cmd,
        .tenant = CLIENT_TENANT,
        .queue = client_queue_name(queue),
        .confirm = chance(&w->rng, 100) ? confirmation : NULL,
    };
    rt_subscription *like = &r->as.subscribe.like;
    const uint32_t path = (uint32_t)rt_rng_below(&w->rng, w->plan.many_subscribers ? 1000 : 3);
    like->uri = endpoint_url(r, (uint32_t)rt_rng_below(&w->rng, w->plan.endpoints), path);
    like->ttl_s = lasting ? 10u * 86400 : (uint32_t)draw(&w->rng, 1, 300);
    set_options(r, like);
    r->number = l->subscribers_count++;
    client_send(r, subscribe_answered);
    l->subscribers[r->number] = (subscriber){.queue = queue, .sent = r->sent, .lasting = lasting};
}

void client_subscribe(world *w) {
    const uint32_t queue = (uint32_t)rt_rng_below(&w->rng, w->plan.queues);
    const bool many = w->plan.many_subscribers && w->ledger.subscribers_count < 10;
    const uint32_t count = many ? RT_FANOUT_INLINE_MAX + 6 : 1;
    for (uint32_t i = 0; i < count; i++) subscribe_once(w, queue, many || chance(&w->rng, 850));
}

static subscriber *random_subscriber(world *w) {
    ledger *l = &w->ledger;
    if (l->subscribers_count == 0) return NULL;
    subscriber *s = &l->subscribers[rt_rng_below(&w->rng, l->subscribers_count)];
    return s->id == 0 ? NULL : s;
}

static bool read_subscription(request *r, const rt_metadata *queue, rt_id id, rt_subscription *out,
                              uint64_t *version) {
    rt_view *view = rt_memory_disk_view(r->world->disk);
    RT_ASSERT(view != NULL);
    rt_doc doc;
    const rt_str name = rt_subscription_name(&r->arena, queue->id, id);
    bool found = rt_view_doc(view, RT_DOC_SUBSCRIPTION, name, &doc) == RT_OK;
    if (found) {
        found = rt_subscription_decode(doc.value, out); // its strings live as long as the disk
        *version = doc.version;
    }
    rt_view_close(view);
    return found;
}

static void confirm_one(request *r, const subscriber *s) {
    const bool yes = chance(&r->world->rng, 500);
    rt_subscription_confirm_init(&r->as.confirm);
    r->as.confirm = (rt_subscription_confirm){
        .cmd = r->as.cmd,
        .tenant = CLIENT_TENANT,
        .queue = client_queue_name(s->queue),
        .id = s->id,
        .confirmed = yes,
        .goodbye = yes ? RT_STR_EMPTY : RT_STR("{\"goodbye\":1}"),
    };
    client_send(r, client_answered_nothing);
}

void client_change_subscription(world *w) {
    const subscriber *s = random_subscriber(w);
    request *r = s == NULL ? NULL : client_request(w);
    if (r == NULL) return;
    if (chance(&w->rng, 200)) {
        confirm_one(r, s);
        return;
    }
    rt_metadata queue;
    uint64_t version;
    rt_subscription was;
    if (!client_metadata(r, s->queue, &queue, &version) ||
        !read_subscription(r, &queue, s->id, &was, &version)) {
        client_drop(r);
        return;
    }
    rt_subscription_patch_init(&r->as.patch);
    r->as.patch = (rt_subscription_patch){
        .cmd = r->as.cmd,
        .tenant = CLIENT_TENANT,
        .queue = client_queue_name(s->queue),
        .id = s->id,
        .version = version,
        .set_uri = chance(&w->rng, 300),
        .with = was,
    };
    r->as.patch.set_options = chance(&w->rng, 800);
    rt_subscription *with = &r->as.patch.with;
    const uint32_t endpoint = (uint32_t)rt_rng_below(&w->rng, w->plan.endpoints);
    with->uri = endpoint_url(r, endpoint, (uint32_t)rt_rng_below(&w->rng, 3));
    set_options(r, with);
    client_send(r, client_answered_nothing);
}

void client_unsubscribe(world *w) {
    subscriber *s = random_subscriber(w);
    request *r = s == NULL ? NULL : client_request(w);
    if (r == NULL) return;
    rt_subscription_delete_init(&r->as.unsubscribe);
    r->as.unsubscribe = (rt_subscription_delete){
        .cmd = r->as.cmd, .tenant = CLIENT_TENANT, .queue = client_queue_name(s->queue), .id = s->id};
    client_send(r, client_answered_nothing);
    if (s->removal_sent == NEVER_YET) s->removal_sent = r->sent;
}

/* ---- queues -------------------------------------------------------------------------------------------- */

static void set_metadata(request *r, rt_metadata *m) {
    world *w = r->world;
    m->json = RT_STR("{}");
    m->dead_letter_queue = RT_STR_EMPTY;
    m->default_ttl_s = chance(&w->rng, 300) ? (uint32_t)draw(&w->rng, 1, (uint64_t)w->plan.ttl_max_s) : 0;
    m->default_delay_s = chance(&w->rng, 300) ? (uint32_t)draw(&w->rng, 1, 60) : 0;
    m->has_policy = chance(&w->rng, 500);
    if (m->has_policy) m->policy = client_policy(w);
    if (!w->plan.dead_letters || w->plan.queues < 2) return;
    m->max_claim_count = (uint32_t)draw(&w->rng, 1, 3);
    m->dead_letter_queue = client_queue_name(w->plan.queues - 1);
    m->dead_letter_ttl_s = chance(&w->rng, 500) ? (uint32_t)draw(&w->rng, 60, 600) : 0;
}

void client_change_queue(world *w) {
    request *r = client_request(w);
    if (r == NULL) return;
    const rt_str name = client_queue_name(r->queue);
    rt_metadata was;
    uint64_t version;
    if (client_metadata(r, r->queue, &was, &version)) {
        rt_queue_replace_init(&r->as.replace);
        r->as.replace = (rt_queue_replace){
            .cmd = r->as.cmd, .tenant = CLIENT_TENANT, .queue = name, .version = version, .like = was};
        set_metadata(r, &r->as.replace.like);
    } else {
        rt_queue_create_init(&r->as.create);
        r->as.create = (rt_queue_create){.cmd = r->as.cmd, .tenant = CLIENT_TENANT, .queue = name};
        set_metadata(r, &r->as.create.like);
    }
    client_send(r, client_answered_nothing);
}

static void wipe_answered(request *r, promise p) {
    wipe *done = &r->world->ledger.wipes[r->number];
    done->promise = p;
    done->answered = r->world->ledger.now;
}

void client_wipe(world *w) {
    ledger *l = &w->ledger;
    request *r = l->wipes_count == WIPES_MAX ? NULL : client_request(w);
    if (r == NULL) return;
    const rt_str name = client_queue_name(r->queue);
    wipe planned = {.queue = r->queue, .messages = true, .subscriptions = true};
    if (chance(&w->rng, 400)) {
        rt_queue_delete_init(&r->as.remove);
        r->as.remove = (rt_queue_delete){.cmd = r->as.cmd, .tenant = CLIENT_TENANT, .queue = name};
    } else {
        planned.messages = chance(&w->rng, 700);
        planned.subscriptions = !planned.messages || chance(&w->rng, 500);
        rt_queue_purge_init(&r->as.purge);
        r->as.purge = (rt_queue_purge){.cmd = r->as.cmd,
                                       .tenant = CLIENT_TENANT,
                                       .queue = name,
                                       .messages = planned.messages,
                                       .subscriptions = planned.subscriptions};
    }
    r->number = l->wipes_count++;
    client_send(r, wipe_answered);
    planned.sent = r->sent;
    l->wipes[r->number] = planned;
}

void client_pause(world *w) {
    const subscriber *s = random_subscriber(w);
    request *r = s == NULL ? NULL : client_request(w);
    if (r == NULL) return;
    int64_t until_ms = 0;
    if (chance(&w->rng, 600)) until_ms = world_wall_ms(w) + (int64_t)draw(&w->rng, 1, 60000);
    if (chance(&w->rng, 200)) until_ms = INT64_MAX;
    rt_queue_pause_init(&r->as.pause);
    r->as.pause = (rt_queue_pause){.cmd = r->as.cmd, .id = s->id, .until_ms = until_ms};
    client_send(r, client_answered_nothing);
}

/* ---- what was given up --------------------------------------------------------------------------------- */

/* A delivery that was given up; or any that has not ended, to be deleted. */
static shadow *random_delivery(world *w, bool dead) {
    ledger *l = &w->ledger;
    if (l->shadows_count == 0) return NULL;
    const uint32_t from = (uint32_t)rt_rng_below(&w->rng, l->shadows_count);
    for (uint32_t i = 0; i < l->shadows_count; i++) {
        shadow *s = &l->shadows[(from + i) % l->shadows_count];
        if (s->job.id == 0 || s->gone || (s->job.flags & RT_JOB_PULL) || s->job.state == RT_JOB_DONE)
            continue;
        if (!dead || s->job.state == RT_JOB_DEAD) return s;
    }
    return NULL;
}

static void bury_many(world *w) {
    request *r = client_request(w);
    if (r == NULL) return;
    const shadow *s = random_delivery(w, true);
    rt_dead_many_init(&r->as.many);
    if (s != NULL && chance(&w->rng, 500)) r->as.many.filter.queue = s->job.queue;
    if (chance(&w->rng, 500)) r->as.many.rate = (uint32_t)draw(&w->rng, 1, 20);
    r->as.many.remove = chance(&w->rng, 300);
    if (r->as.many.remove) w->ledger.dead_many_deletes++;
    else w->ledger.dead_many_redrives++;
    client_send(r, client_answered_nothing);
}

void client_bury(world *w) {
    if (chance(&w->rng, 200)) {
        bury_many(w);
        return;
    }
    const bool dead = chance(&w->rng, 850);
    shadow *s = random_delivery(w, dead);
    request *r = s == NULL ? NULL : client_request(w);
    if (r == NULL) return;
    if (dead && chance(&w->rng, 600)) {
        s->redrives++;
        rt_dead_redrive_init(&r->as.redrive);
        r->as.redrive = (rt_dead_redrive){.cmd = r->as.cmd, .id = s->job.id};
    } else {
        s->deletes++;
        rt_job_delete_init(&r->as.job_delete);
        r->as.job_delete =
            (rt_job_delete){.cmd = r->as.cmd, .id = s->job.id, .only_dead = dead && chance(&w->rng, 500)};
    }
    client_send(r, client_answered_nothing);
}
