/* client.c: who creates, deletes, wakes and lists orders, changes their types, and puts results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "site.h"

enum { PAGE = 3 };

/* One request on its way: the engine calls it done when it likes. */
typedef struct request {
    site *site;
    uint64_t life;   /* of the node that has it */
    uint32_t number; /* of its order */
    run *run;
    char meta[32];
    union {
        rt_command cmd;
        rt_order_create create;
        rt_order_delete remove;
        rt_order_wake wake;
        rt_order_result result;
        rt_order_type_put put;
        rt_order_type_delete drop;
    } as;
} request;

static request *new_request(site *s, uint32_t number) {
    request *r = calloc(1, sizeof *r);
    if (r == NULL) abort();
    r->site = s;
    r->number = number;
    return r;
}

/* False: no node takes it; it is gone. */
static bool submit(request *r, void (*done)(rt_command *cmd)) {
    site *s = r->site;
    node *n = site_node(s);
    if (n == NULL) {
        free(r);
        return false;
    }
    r->as.cmd.done = done;
    r->as.cmd.ctx = r;
    r->life = n->life;
    s->requests_open++;
    n->wake_ms = s->now_ms;
    rt_engine_submit(n->engine, &r->as.cmd);
    return true;
}

/* Does an answer reach who asked? Not that of a node that has died. */
static bool is_heard(const request *r) {
    for (uint32_t i = 0; i < r->site->nodes_count; i++) {
        if (r->site->nodes[i].life == r->life) return true;
    }
    return false;
}

static void end(request *r) {
    r->site->requests_open--;
    free(r);
}

/* ---- orders -------------------------------------------------------------------------------------------- */

static void created(rt_command *cmd) {
    request *r = cmd->ctx;
    site *s = r->site;
    if (is_heard(r)) site_look(s);
    if (is_heard(r) && cmd->code == RT_OK) {
        order *o = &s->orders[r->number];
        MUST(s, o->there || o->gone, "9: order %u was promised and is not on the disk", r->number);
        MUST(s, o->id == r->as.create.id, "9: order %u has another id", r->number);
        o->acknowledged = true;
    }
    end(r);
}

static void create(site *s) {
    if (s->orders_count == ORDERS_MAX) return;
    request *r = new_request(s, s->orders_count);
    const uint32_t type = (uint32_t)site_below(s, TYPES);
    rt_order_create *c = &r->as.create;
    rt_order_create_init(c);
    c->tenant = TENANT;
    c->type = rt_str_of(TYPE_NAMES[type]);
    (void)snprintf(r->meta, sizeof r->meta, "{\"n\": %u}", r->number);
    c->meta = rt_str_of(r->meta);
    if (!submit(r, created)) return;
    s->orders[s->orders_count++] = (order){.asked = true, .type = type};
}

static void removed(rt_command *cmd) {
    request *r = cmd->ctx;
    site *s = r->site;
    order *o = &s->orders[r->number];
    if (is_heard(r)) site_look(s);
    if (is_heard(r) && (cmd->code == RT_OK || cmd->code == RT_E_ABSENT)) {
        MUST(s, o->gone, "8: order %u was deleted and is still there", r->number);
        o->delete_acknowledged = true;
    }
    end(r);
}

/* An order that somebody knows of; NULL: none. */
static order *any_order(site *s, uint32_t *number) {
    if (s->orders_count == 0) return NULL;
    *number = (uint32_t)site_below(s, s->orders_count);
    order *o = &s->orders[*number];
    return o->id != 0 ? o : NULL;
}

static void remove_one(site *s) {
    uint32_t number;
    order *o = any_order(s, &number);
    if (o == NULL) return;
    request *r = new_request(s, number);
    rt_order_delete_init(&r->as.remove);
    r->as.remove.tenant = TENANT;
    r->as.remove.id = o->id;
    o->delete_asked = true;
    (void)submit(r, removed);
}

static void woken(rt_command *cmd) {
    request *r = cmd->ctx;
    r->site->orders[r->number].wakes_open--;
    end(r);
}

static void wake_one(site *s) {
    uint32_t number;
    order *o = any_order(s, &number);
    if (o == NULL) return;
    request *r = new_request(s, number);
    rt_order_wake_init(&r->as.wake);
    r->as.wake.tenant = TENANT;
    r->as.wake.id = o->id;
    if (!submit(r, woken)) return;
    o->wake_asked = true;
    o->wakes_open++;
}

/* ---- results ------------------------------------------------------------------------------------------- */

static void put_done(rt_command *cmd) {
    request *q = cmd->ctx;
    site *s = q->site;
    run *r = q->run;
    const bool refused = cmd->code == RT_E_FENCED || cmd->code == RT_E_ABSENT;
    r->putting = false;
    if (is_heard(q)) site_look(s);
    if (cmd->code == RT_OK && is_heard(q)) {
        MUST(s, r->consumed, "1: a result was accepted and has changed nothing");
        if (site_chance(s, 200)) r->put_ms = s->now_ms + 100; // it had not heard that
    } else if (!refused || !is_heard(q)) {
        r->put_ms = s->now_ms + 300;
    }
    end(q);
}

bool client_put(site *s, run *r) {
    request *q = new_request(s, r->order);
    q->run = r;
    rt_order_result *c = &q->as.result;
    rt_order_result_init(c);
    c->tenant = TENANT;
    c->id = s->orders[r->order].id;
    c->token = r->token;
    c->answer = worker_answer(&r->words);
    return submit(q, put_done);
}

/* ---- types --------------------------------------------------------------------------------------------- */

static request *type_request(site *s, uint32_t type) {
    request *r = new_request(s, 0);
    rt_order_type_put *c = &r->as.put;
    rt_order_type_put_init(c);
    c->tenant = TENANT;
    c->name = rt_str_of(TYPE_NAMES[type]);
    c->like = (rt_order_type){.run_limit_ms = (uint32_t)s->run_limit_ms, .answer_limit_s = ANSWER_LIMIT_S};
    c->like.target = type == TYPE_PLUG ? RT_STR("plugin:x") : RT_STR("http://127.0.0.1:9/");
    c->like.cancel = type == TYPE_PLUG;
    c->like.concurrency = site_chance(s, 500) ? 1 + (uint32_t)site_below(s, 4) : 0;
    if (type == TYPE_PLUG) return r;
    c->like.max_attempts = HTTP_ATTEMPTS_MAX;
    c->like.backoff = (rt_backoff){
        .given = true,
        .descriptor = {.initial_ns = 1000000000, .maximum_ns = UINT64_C(8000000000), .exponent = 2}};
    return r;
}

static void type_done(rt_command *cmd) { end(cmd->ctx); }

static void dropped(rt_command *cmd) {
    request *r = cmd->ctx;
    site *s = r->site;
    if (cmd->code == RT_OK) client_set_up(s); // or nobody could order any more
    end(r);
}

static void drop_type(site *s) {
    request *r = new_request(s, 0);
    rt_order_type_delete_init(&r->as.drop);
    r->as.drop.tenant = TENANT;
    r->as.drop.name = rt_str_of(TYPE_NAMES[site_below(s, TYPES)]);
    (void)submit(r, dropped);
}

void client_set_up(site *s) {
    for (uint32_t t = 0; t < TYPES; t++) (void)submit(type_request(s, t), type_done);
}

/* ---- listing ------------------------------------------------------------------------------------------- */

typedef struct page {
    site *site;
    uint32_t count;
} page;

static bool add_listed(void *ctx, const rt_order *found) {
    page *p = ctx;
    site *s = p->site;
    walk *w = &s->walk;
    MUST(s, found->id > w->after, "12: a listing goes back");
    w->after = found->id;
    for (uint32_t i = 0; i < s->orders_count; i++) {
        if (s->orders[i].id == found->id) w->seen[i]++;
    }
    return ++p->count < PAGE;
}

static void begin_walk(site *s) {
    s->walk = (walk){.on = true};
    for (uint32_t i = 0; i < s->orders_count; i++) s->walk.must[i] = s->orders[i].there;
}

static void end_walk(site *s) {
    for (uint32_t i = 0; i < s->orders_count; i++) {
        MUST(s, s->walk.seen[i] <= 1, "12: order %u was listed twice", i);
        const bool stayed = s->walk.must[i] && s->orders[i].there;
        MUST(s, !stayed || s->walk.seen[i] == 1, "12: order %u was not listed", i);
    }
    s->walk.on = false;
}

static void list(site *s) {
    rt_view *view = NULL;
    rt_err err;
    node *n = site_node(s);
    if (n == NULL || rt_store_view(n->store, &view, &err) != RT_OK) return;
    if (!s->walk.on) begin_walk(s);
    page p = {.site = s};
    MUST(s, rt_read_orders(view, TENANT, s->walk.after, add_listed, &p) == RT_OK, "a page of orders");
    rt_view_close(view);
    if (p.count < PAGE) end_walk(s);
}

/* ---- acting -------------------------------------------------------------------------------------------- */

void client_act(site *s) {
    s->act_ms = s->now_ms + site_draw(s, 20, 1500);
    const uint64_t dice = site_below(s, 100);
    if (dice < 45) create(s);
    else if (dice < 55) remove_one(s);
    else if (dice < 65) wake_one(s);
    else if (dice < 95) list(s);
    else if (dice < 98) client_set_up(s);
    else drop_type(s);
}
