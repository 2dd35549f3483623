/* store.c: the port's operations. The engine's thread, but for views. */
#include <errno.h>
#include <unistd.h>

#include "os/clock.h"
#include "store/kafka/clock.h"
#include "store/kafka/intake.h"
#include "store/kafka/mend.h"
#include "store/kafka/open.h"
#include "store/kafka/own.h"
#include "store/kafka/words.h"
#include "store/lmdb/store_lmdb.h"

enum {
    LINE_BYTES_MAX = RT_ENTRY_BYTES_MAX / 2, /* a batch that has more takes only what frees */
    COMMIT_WAIT_MS = 2000 /* for brokers to answer, before the engine goes on without knowing */
};

static rt_ks *ks_of(rt_store *s) { return (rt_ks *)s; }

/* True: nothing here may be touched. */
static bool is_mending(rt_ks *s, rt_err *err) {
    if (rt_mend_is_over(s)) {
        if (s->stage == RT_KS_IDLE && s->open) return false; // not in the middle of a batch
        if (!s->copy.lost && !s->dirty.incomplete && !rt_ks_is_away(s)) {
            atomic_store(&s->looked_ms, rt_mono_ms());
            return false;
        }
        // A batch that is on its way: the ledger will say what became of it.
        if (s->open) rt_store_abandon(s->copy.local);
        s->open = false;
        rt_mend_begin(s);
    }
    (void)rt_fail(err, RT_E_UNAVAILABLE, 0, RT_KS_MENDING);
    return true;
}

/* ---- the batch ----------------------------------------------------------------------------------------- */

static rt_view *batch(rt_store *store, rt_err *err) {
    rt_ks *s = ks_of(store);
    if (is_mending(s, err)) return NULL;
    rt_ks_go_on(s);
    if (s->stage == RT_KS_IDLE && s->open) return &s->batch_view.base;
    if (s->stage != RT_KS_IDLE) {
        (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "the end of the last batch is not known yet: %.150s",
                      s->journal.why.msg[0] != '\0' ? s->journal.why.msg : "no broker has answered");
        return NULL;
    }
    if (rt_ks_take_in(s, RT_KS_TAKE_IN_LINES, err) != RT_OK) return NULL;
    s->batch_view.inner = rt_store_batch(s->copy.local, err);
    if (s->batch_view.inner == NULL) return NULL;
    s->batch_view.share = s->share;
    rt_ks_begin_line(s);
    if (s->line.failed) {
        (void)rt_fail(err, RT_E_NOMEM, ENOMEM, "batch");
        rt_ks_forget_batch(s);
        rt_store_abandon(s->copy.local);
        return NULL;
    }
    s->open = true;
    s->new_tag = s->copy.ledger.tag;
    return &s->batch_view.base;
}

/* Numbers that are given out from now on are larger. */
static void adopt(rt_ks *s, const rt_import *import) {
    const uint64_t least = import->ids_from > import->seqs_from ? import->ids_from : import->seqs_from;
    if (least / RT_LEDGER_SLOTS > s->counter) s->counter = least / RT_LEDGER_SLOTS;
    s->new_tag = import->tag;
}

static rt_code apply(rt_store *store, const rt_change *change, rt_err *err) {
    rt_ks *s = ks_of(store);
    if (batch(store, err) == NULL) return RT_E_UNAVAILABLE;
    if (s->broken) return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s", s->why.msg);
    const size_t len = s->line.len;
    if (len > LINE_BYTES_MAX && !change->frees) return rt_fail(err, RT_E_FULL, 0, "the batch is full");
    if (s->dirty.count > RT_DIRTY_MAX && !change->frees)
        return rt_fail(err, RT_E_FULL, 0, "%s has not been written for too long", s->retry_topic);
    // Before it is applied: afterwards, strings that the batch's view lent are gone.
    rt_entry_add_change(&s->line, change);
    if (s->line.failed || s->line.len > RT_ENTRY_BYTES_MAX) {
        s->line.failed = false;
        s->line.len = len;
        return rt_fail(err, RT_E_NOMEM, ENOMEM, "the batch is full");
    }
    const rt_code code = rt_store_apply(s->copy.local, change, err);
    if (code == RT_OK) {
        if (change->import != NULL) adopt(s, change->import);
        s->wrote = true; // an empty change, too: once its line has come back, all that stood before it has
        return RT_OK;
    }
    s->line.len = len;
    if (code == RT_E_UNAVAILABLE || code == RT_E_IO) {
        s->broken = true;
        s->why = *err;
    }
    return code;
}

static void note_dropped(void *ctx, bool is_job, uint64_t key) { rt_entry_add_dropped(ctx, is_job, key); }

static bool tidy(rt_store *store, int64_t at_ms, uint32_t ops_max) {
    rt_ks *s = ks_of(store);
    rt_err err;
    rt_buf dropped = {0};
    if (batch(store, &err) == NULL || s->broken) return false;
    const bool more =
        rt_store_lmdb_tidy(s->copy.local, &s->cfg.retention, at_ms, ops_max, note_dropped, &dropped);
    if (dropped.len > 0) {
        rt_entry_add_tidy(&s->line, &s->cfg.retention, at_ms, ops_max, rt_buf_str(&dropped));
        s->wrote = true;
    }
    if (s->line.failed || dropped.failed) {
        s->line.failed = false;
        s->broken = true;
        (void)rt_fail(&s->why, RT_E_NOMEM, ENOMEM, "batch");
    }
    rt_buf_deinit(&dropped);
    return more;
}

/* ---- its end ------------------------------------------------------------------------------------------- */

static void abandon(rt_store *store) {
    rt_ks *s = ks_of(store);
    if (s->stage == RT_KS_IDLE) rt_ks_forget_batch(s);
}

static void commit(rt_store *store, uint64_t batch_no) {
    rt_ks *s = ks_of(store);
    RT_ASSERT(s->stage == RT_KS_IDLE);
    RT_ASSERT(!s->ended);
    s->commit_no = batch_no;
    if (s->open && s->cut_off && !s->wrote) rt_entry_add_change(&s->line, &(rt_change){0});
    if (!s->open || s->broken || !(s->wrote || s->cut_off)) {
        rt_ks_end_batch(s, s->broken ? RT_BATCH_FAILED : RT_BATCH_DURABLE);
        return;
    }
    rt_ks_send_batch(s);
    const int64_t until_ms = rt_mono_ms() + COMMIT_WAIT_MS;
    for (rt_ks_go_on(s); s->stage != RT_KS_IDLE && rt_mono_ms() < until_ms; rt_ks_go_on(s))
        rt_ks_wait(s, until_ms - rt_mono_ms());
    rt_ks_wake(s); // what came meanwhile
}

static bool poll_end(rt_store *store, uint64_t *batch_no, rt_batch_end *end, rt_err *err) {
    rt_ks *s = ks_of(store);
    uint64_t news;
    rt_err unused;
    (void)!read(s->base.fd, &news, sizeof news);
    if (!is_mending(s, err)) {
        rt_ks_go_on(s);
        if (s->stage == RT_KS_IDLE && !s->open && !s->ended)
            (void)rt_ks_take_in(s, RT_KS_TAKE_IN_LINES, &unused);
    }
    if (!s->ended) return false;
    s->ended = false;
    *batch_no = s->commit_no;
    *end = s->end;
    if (s->end != RT_BATCH_DURABLE && err != NULL) *err = s->why;
    return true;
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

static rt_code load(rt_store *store, rt_err *err) {
    (void)store;
    (void)err;
    return RT_OK; // the copy has everything
}

static rt_code view(rt_store *store, rt_view **out, rt_err *err) {
    rt_ks *s = ks_of(store);
    if (rt_ks_is_away(s) || !rt_gate_go_in(&s->gate)) return rt_fail(err, RT_E_UNAVAILABLE, 0, RT_KS_MENDING);
    return rt_ks_view_open(s->copy.local, s->share, &s->gate, out, err);
}

static uint64_t new_number(rt_store *store) {
    rt_ks *s = ks_of(store);
    if (s->copy.ledger.counter > s->counter) s->counter = s->copy.ledger.counter;
    return rt_ledger_number(++s->counter, s->slot);
}

static bool woken(rt_store *store) {
    rt_ks *s = ks_of(store);
    if (s->mend.begun) return false;
    const bool woken = s->woken || (s->share != NULL && rt_share_changed(s->share));
    s->woken = false;
    return woken;
}

static void close_store(rt_store *store) { rt_ks_close(ks_of(store)); }

static const rt_store_ops OPS = {
    .view = view,
    .batch = batch,
    .load = load,
    .apply = apply,
    .commit = commit,
    .poll = poll_end,
    .abandon = abandon,
    .new_id = new_number,
    .new_seq = new_number,
    .tidy = tidy,
    .close = close_store,
    .now_ms = rt_ks_now_ms,
    .woken = woken,
};

rt_code rt_store_kafka_open(const rt_store_kafka_config *cfg, rt_store **out, rt_err *err) {
    rt_ks *s;
    const rt_code code = rt_ks_open(cfg, &s, err);
    if (code != RT_OK) return code;
    s->base.ops = &OPS;
    *out = &s->base;
    return RT_OK;
}
