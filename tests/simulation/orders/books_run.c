/* books_run.c: what must be so when a run starts, and when everything is over. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "base/uuid.h"
#include "site.h"

enum { CANCEL_ATTEMPTS_MAX = 5 };

static order *order_of(site *s, uint32_t tag, const rt_attempt *a, uint32_t *number) {
    static const rt_str HEAD = {.ptr = "{\"order\":\"", .len = 10};
    rt_id id = 0;
    MUST(s, rt_str_starts(a->body, HEAD) && a->body.len > HEAD.len + RT_UUID_TEXT_LEN,
         "a run says whose it is");
    const rt_str uuid = {.ptr = a->body.ptr + HEAD.len, .len = RT_UUID_TEXT_LEN};
    MUST(s, rt_uuid_parse(tag, uuid, &id), "%.*s is no order", RT_STR_ARG(uuid));
    for (*number = 0; *number < s->orders_count; ++*number) {
        if (s->orders[*number].id == id) return &s->orders[*number];
    }
    books_failed(s, "8: a run of an order that is known", "%.*s", RT_STR_ARG(uuid));
}

/* The whole text, but for the deadline, which is as far away as a run may last. */
static void check_body(site *s, const order *o, uint32_t tag, uint32_t number, const rt_attempt *a) {
    rt_buf b = {0};
    rt_buf_addf(&b, "{\"order\":\"%s\",\"type\":\"%s\",\"task\":", rt_uuid_format(tag, o->id).s,
                TYPE_NAMES[o->type]);
    rt_quote(&b, rt_str_of(o->task));
    rt_buf_addf(&b, ",\"args\":%s,\"kwargs\":%s,\"meta\":{\"n\": %u},\"state\":", o->args, o->kwargs, number);
    if (o->state[0] == '\0') rt_buf_add(&b, RT_STR("null"));
    else rt_quote(&b, rt_str_of(o->state));
    rt_buf_addf(&b, ",\"attempt\":%u,\"token\":\"%016" PRIx64 "\",\"deadline\":", a->number, a->token);
    MUST(s, rt_str_starts(a->body, rt_buf_str(&b)), "5: a run is sent\n  %.*s instead of\n  %.*s",
         RT_STR_ARG(a->body), RT_STR_ARG(rt_buf_str(&b)));
    long long deadline_ms = 0;
    char rest[64];
    (void)snprintf(rest, sizeof rest, "%s", a->body.ptr + b.len);
    MUST(s, sscanf(rest, "%lld,\"verb\":\"run\"}", &deadline_ms) == 1, "%s", rest);
    MUST(s, deadline_ms <= site_wall_ms(s) + s->run_limit_ms || s->jumps > 0, "a deadline that is too late");
    rt_buf_deinit(&b);
}

static bool had_lease(const order *o, uint64_t token) {
    for (uint32_t i = 0; i < LEASES_MAX; i++) {
        if (o->leases[i] == token) return true;
    }
    return false;
}

/* 1: whoever had the task before has it no more: his run is over, or his server is. */
static void check_alone(site *s, const run *r) {
    for (uint32_t i = 0; i < s->runs_count; i++) {
        const run *before = &s->runs[i];
        if (before == r || before->order != r->order || before->cancel) continue;
        const bool forgotten = s->nodes_count == 1 && before->life != r->life;
        MUST(s, before->attempt < r->attempt || forgotten, "1: two workers have a task of order %u",
             r->order);
    }
}

void books_start(site *s, run *r, const rt_attempt *a) {
    static const char CANCEL[] = "\"verb\":\"cancel\"}";
    const uint32_t tag = rt_engine_tag(s->nodes[r->node].engine);
    order *o = order_of(s, tag, a, &r->order);
    r->cancel =
        a->body.len > sizeof CANCEL && strcmp(a->body.ptr + a->body.len - (sizeof CANCEL - 1), CANCEL) == 0;
    site_mix(s, (uint64_t)r->order << 32 ^ a->number);
    if (r->cancel) {
        MUST(s, o->gone && o->was_pending && o->type == TYPE_PLUG, "order %u is not to be cancelled",
             r->order);
        MUST(s, a->number <= CANCEL_ATTEMPTS_MAX, "a good-bye too many");
        return;
    }
    check_alone(s, r);
    if (o->gone) { // 8: only what was given out before
        const bool before = s->nodes_count == 1 ? !o->delete_acknowledged : had_lease(o, a->token);
        MUST(s, before, "8: a run of order %u, which is deleted", r->order);
        return;
    }
    MUST(s, o->there && o->status == RT_ORDER_PENDING, "7: a run of order %u, which has ended", r->order);
    MUST(s, a->number == o->attempts + 1, "10: attempt %u after %u", a->number, o->attempts);
    MUST(s, site_wall_ms(s) >= o->due_ms || s->jumps > o->due_jumps, "4: a run of order %u before its time",
         r->order);
    check_body(s, o, tag, r->order, a);
}

bool books_have_ended(const site *s) {
    for (uint32_t i = 0; i < s->orders_count; i++) {
        if (s->orders[i].there && s->orders[i].status == RT_ORDER_PENDING) return false;
    }
    return true;
}

static bool count_doc(void *ctx, const rt_doc *doc) {
    (void)doc;
    ++*(uint32_t *)ctx;
    return true;
}

void books_close(site *s, rt_view *view) {
    uint32_t made = 0, found = 0;
    for (uint32_t i = 0; i < s->orders_count; i++) {
        const order *o = &s->orders[i];
        MUST(s, !o->acknowledged || o->there || o->delete_asked, "9: order %u is lost", i);
        MUST(s, !o->there || o->status != RT_ORDER_PENDING, "13: order %u is PENDING", i);
        if (o->there) made += o->made == 1 ? 1 : o->made == 2 ? 3 : 0;
    }
    for (uint32_t i = 0; i < s->nodes_count; i++)
        MUST(s, s->lock.token == 0 || !rt_str_eq(s->lock.holder, rt_str_of(s->nodes[i].name)),
             "6: a lock for ever");
    MUST(s, rt_view_docs(view, RT_DOC_SECRET, RT_STR_EMPTY, RT_STR_EMPTY, count_doc, &found) == RT_OK,
         "secrets");
    MUST(s, found == made, "5: %u secrets instead of %u", found, made);
}
