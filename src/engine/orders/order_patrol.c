#include "engine/orders/order_patrol.h"

#include <string.h>

#include "engine/common/settings.h"
#include "engine/orders/lock.h"
#include "engine/orders/order_parts.h"

static const rt_str LOCK = {.ptr = RT_PATROL_LOCK, .len = sizeof RT_PATROL_LOCK - 1};

typedef struct page {
    rt_arena *arena;
    rt_order_patrol *patrol;
    rt_str names[RT_PATROL_SLICE]; /* of those that are PENDING */
    rt_id jobs[RT_PATROL_SLICE];
    uint32_t pending;
    bool no_memory;
} page;

static bool add_order(void *ctx, const rt_doc *doc) {
    page *p = ctx;
    rt_order_patrol *c = p->patrol;
    memcpy(c->seen, doc->name.ptr, doc->name.len);
    c->seen_len = doc->name.len;
    c->count++;
    rt_order o;
    // One that cannot be read cannot be helped either, and must not hide the others.
    if (rt_order_decode(doc->value, &o) && o.status == RT_ORDER_PENDING) {
        p->names[p->pending] = rt_arena_dup(p->arena, doc->name);
        p->no_memory = p->names[p->pending].ptr == NULL;
        p->jobs[p->pending++] = o.job;
    }
    return !p->no_memory && c->count < RT_PATROL_SLICE;
}

static bool is_live(const rt_job *job) { return job->state != RT_JOB_DONE && job->state != RT_JOB_DEAD; }

static rt_code repair(rt_tx *tx, rt_str name, rt_id lost) {
    rt_order_case c;
    rt_code code = rt_order_load(tx, name, &c);
    if (code != RT_OK) return code;
    RT_ASSERT(c.order.job == lost);
    if (!c.has_type) return rt_order_fail(tx, &c, RT_STR("500"), RT_STR_EMPTY);
    rt_order_add_task(tx, &c.type, c.was.name, &c.order);
    return rt_order_save(tx, &c);
}

static rt_code look_after(rt_tx *tx, const page *p) {
    for (uint32_t i = 0; i < p->pending; i++) {
        rt_job job;
        rt_code code = rt_view_job(tx->view, p->jobs[i], &job);
        if (code == RT_OK && is_live(&job)) continue;
        if (code == RT_OK || code == RT_E_ABSENT) code = repair(tx, p->names[i], p->jobs[i]);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

static rt_code decide_patrol(rt_tx *tx, rt_command *cmd) {
    rt_order_patrol *c = (rt_order_patrol *)cmd;
    const rt_str holder = rt_str_of(tx->settings->node);
    tx->frees = true;
    if (c->ends) return rt_lock_release(tx, LOCK, holder);
    c->held = false;
    c->barred = false;
    c->count = 0;
    c->seen_len = 0;
    page *p = rt_arena_alloc(tx->arena, sizeof *p);
    if (p == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a patrol");
    *p = (page){.arena = tx->arena, .patrol = c};
    const rt_str after = {.ptr = c->after, .len = c->after_len};
    rt_code code = rt_view_docs(tx->view, RT_DOC_ORDER, RT_STR_EMPTY, after, add_order, p);
    if (p->no_memory) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a patrol");
    if (code != RT_OK || p->pending == 0) return code;
    code = rt_lock_take(tx, LOCK, holder, tx->settings->lock_timeout_ms, &c->held);
    c->barred = !c->held;
    return code == RT_OK && c->held ? look_after(tx, p) : code;
}

void rt_order_patrol_init(rt_order_patrol *c) { c->cmd = (rt_command){.decide = decide_patrol}; }
