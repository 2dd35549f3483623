/* store.c: the port's operations. The engine's thread, but for views and the clock. */
#include "store/postgres/apply.h"
#include "store/postgres/batch.h"
#include "store/postgres/load.h"
#include "store/postgres/open.h"
#include "store/postgres/tidy.h"
#include "store/postgres/txn.h"

static rt_pg *pg_of(rt_store *s) { return (rt_pg *)s; }

static rt_view *batch(rt_store *store, rt_err *err) { return rt_pg_batch_open(pg_of(store), err); }
static rt_code load(rt_store *store, rt_err *err) { return rt_pg_load(pg_of(store), err); }
static void abandon(rt_store *store) { rt_pg_batch_abandon(pg_of(store)); }
static void commit(rt_store *store, uint64_t batch_no) { rt_pg_batch_commit(pg_of(store), batch_no); }

static bool poll_end(rt_store *store, uint64_t *batch_no, rt_batch_end *end, rt_err *err) {
    return rt_pg_batch_poll(pg_of(store), batch_no, end, err);
}

static rt_code apply(rt_store *store, const rt_change *change, rt_err *err) {
    if (batch(store, err) == NULL) return RT_E_UNAVAILABLE;
    return rt_pg_apply(pg_of(store), change, err);
}

static bool tidy(rt_store *store, int64_t now_ms, uint32_t ops_max) {
    rt_err err;
    if (batch(store, &err) == NULL) return false;
    return rt_pg_tidy(pg_of(store), now_ms, ops_max);
}

static rt_code view(rt_store *store, rt_view **out, rt_err *err) {
    return rt_pg_view_open(&pg_of(store)->views, out, err);
}

static uint64_t new_seq(rt_store *store) {
    rt_pg *s = pg_of(store);
    rt_pg_numbers *n = &s->numbers;
    uint64_t number;
    if (rt_pg_numbers_take(n, &number)) return number;
    // More than were fetched along with a load: a round trip of its own, and more of them the next time.
    rt_pg_numbers_wants_more(n);
    rt_err unused;
    if (!s->batch.broken && rt_pg_ready(s, &unused)) {
        rt_pg_numbers_send(n, &s->pipe, &s->args);
        if (rt_pg_finish(s) == RT_OK && rt_pg_numbers_take(n, &number)) return number;
    }
    n->failed = true;
    return ++n->least;
}

static rt_id new_id(rt_store *store) { return RT_PG_HOME | new_seq(store); }
static int64_t now_ms(const rt_store *store) { return rt_pg_clock_now(&((const rt_pg *)store)->clock); }
static bool woken(rt_store *store) { return atomic_exchange(&pg_of(store)->listener.shouted, false); }
static void close_store(rt_store *store) { rt_pg_close(pg_of(store)); }

static const rt_store_ops OPS = {
    .view = view,
    .batch = batch,
    .load = load,
    .apply = apply,
    .commit = commit,
    .poll = poll_end,
    .abandon = abandon,
    .new_id = new_id,
    .new_seq = new_seq,
    .tidy = tidy,
    .close = close_store,
    .now_ms = now_ms,
    .woken = woken,
};

rt_code rt_store_postgres_open(const rt_store_postgres_config *cfg, rt_store **out, rt_err *err) {
    RT_ASSERT(cfg->url != NULL);
    RT_ASSERT(cfg->views_max >= 1 && cfg->views_max <= RT_PG_VIEWS_MAX);
    RT_ASSERT(cfg->connect_ms >= 1000 && cfg->statement_ms >= 100);
    RT_ASSERT(cfg->retention.age_ms >= 1 && cfg->retention.events >= 1);
    rt_pg *s;
    const rt_code code = rt_pg_open(cfg, &s, err);
    if (code != RT_OK) return code;
    s->base.ops = &OPS;
    *out = &s->base;
    return RT_OK;
}
