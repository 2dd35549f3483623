/* store.c: opening and closing, and the life of a batch. */
#include <errno.h>
#include <stdlib.h>

#include "store/lmdb/inside.h"

/* Numbers are promised in blocks, so that even those that no durable record holds are never given out
 * twice. */
enum { NUMBERS_AHEAD = 4096 };

static rt_lmdb *lmdb_of(rt_store *s) { return (rt_lmdb *)s; }

/* ---- the batch ----------------------------------------------------------------------------------------- */

/* Opens LMDB's files afresh. Until it works there are no batches and no new views. */
static rt_code refresh(rt_lmdb *s, uint32_t wait_ms, rt_err *err) {
    if (!rt_lmdb_views_release(s, wait_ms)) {
        return rt_fail(err, RT_E_UNAVAILABLE, 0, "the store is opened afresh once open views are closed");
    }
    const rt_code code = rt_lmdb_env_refresh(&s->env, err);
    if (code == RT_OK) rt_lmdb_views_allow(s);
    return code;
}

static int begin(rt_lmdb *s) {
    if (s->batch.txn != NULL) return 0;
    if (s->env.mdb == NULL) return MDB_PANIC;
    s->batch.bound = 0;
    return mdb_txn_begin(s->env.mdb, NULL, 0, &s->batch.txn);
}

static rt_view *batch(rt_store *store, rt_err *err) {
    rt_lmdb *s = lmdb_of(store);
    if (s->unsure) {
        (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "the end of the last batch is not known yet");
        return NULL;
    }
    int rc = begin(s);
    if (rc == MDB_PANIC) {
        if (refresh(s, 0, err) != RT_OK) return NULL;
        rc = begin(s);
    }
    if (rc == 0) return &s->batch.base;
    (void)rt_lmdb_fail(err, rc, "the store cannot begin a batch");
    return NULL;
}

/* After the transaction ended, whichever way. */
static void settle(rt_lmdb *s, bool durable) {
    rt_counters_settle(&s->counters, durable);
    s->batch.txn = NULL;
    s->dirty = s->broken = s->adopts = false;
}

static void abandon(rt_store *store) {
    rt_lmdb *s = lmdb_of(store);
    if (s->batch.txn == NULL) return;
    mdb_txn_abort(s->batch.txn);
    settle(s, false);
}

/* What goes with every batch that has written something. */
static int write_books(rt_lmdb *s, rt_stored_meta *meta) {
    const int rc = rt_counters_write(&s->counters, &s->env, s->batch.txn);
    const bool adopts = s->adopts && s->tag != meta->tag;
    if (rc != 0 || (!adopts && s->next_id <= meta->id_limit && s->next_seq <= meta->seq_limit)) return rc;
    if (adopts) meta->tag = s->tag;
    meta->id_limit = s->next_id + NUMBERS_AHEAD;
    meta->seq_limit = s->next_seq + NUMBERS_AHEAD;
    return rt_lmdb_write_meta(&s->env, s->batch.txn, meta);
}

/* LMDB refuses everything once it could not write the page that makes a commit count. */
static bool needs_refresh(rt_lmdb *s) {
    MDB_txn *probe;
    const int rc = mdb_txn_begin(s->env.mdb, NULL, 0, &probe);
    if (rc == 0) mdb_txn_abort(probe);
    return rc == MDB_PANIC;
}

static void end_batch(rt_lmdb *s, bool durable) {
    if (durable) s->meta = s->meta_of_batch;
    settle(s, durable);
    s->ended = true;
    s->end = durable ? RT_BATCH_DURABLE : RT_BATCH_FAILED;
}

/* Is the transaction whose commit broke the environment there? True: known, and told. */
static bool make_sure(rt_lmdb *s, uint32_t wait_ms) {
    rt_err err;
    MDB_envinfo info;
    if (refresh(s, wait_ms, &err) != RT_OK || mdb_env_info(s->env.mdb, &info) != 0) return false;
    s->unsure = false;
    end_batch(s, info.me_last_txnid >= s->unsure_txn);
    return true;
}

static void commit(rt_store *store, uint64_t batch_no) {
    rt_lmdb *s = lmdb_of(store);
    RT_ASSERT(!s->ended);
    RT_ASSERT(!s->unsure);
    s->ended_no = batch_no;
    s->meta_of_batch = s->meta;
    if (s->batch.txn != NULL && s->dirty && !s->broken) {
        const int rc = write_books(s, &s->meta_of_batch);
        if (rc != 0) rt_lmdb_break(s, rc, "the store cannot write");
    }
    if (s->batch.txn == NULL || s->broken || !s->dirty) {
        const bool failed = s->broken;
        if (s->batch.txn != NULL) mdb_txn_abort(s->batch.txn);
        end_batch(s, !failed);
        return;
    }
    s->unsure_txn = mdb_txn_id(s->batch.txn);
    const int rc = mdb_txn_commit(s->batch.txn); // frees it in any case
    s->batch.txn = NULL;
    if (rc != 0) {
        s->env.looked_ms = 0;
        (void)rt_lmdb_fail(&s->why, rc, "the store cannot commit");
        s->unsure = needs_refresh(s);
        if (s->unsure) {
            (void)make_sure(s, RT_LMDB_RELEASE_WAIT_MS);
            return;
        }
    }
    end_batch(s, rc == 0);
}

static bool poll_end(rt_store *store, uint64_t *batch_no, rt_batch_end *end, rt_err *err) {
    rt_lmdb *s = lmdb_of(store);
    if (s->unsure) (void)make_sure(s, 0);
    if (!s->ended) return false;
    s->ended = false;
    *batch_no = s->ended_no;
    *end = s->end;
    if (s->end == RT_BATCH_FAILED && err != NULL) *err = s->why;
    return true;
}

static rt_code apply(rt_store *store, const rt_change *change, rt_err *err) {
    if (batch(store, err) == NULL) return RT_E_UNAVAILABLE;
    return rt_lmdb_apply(lmdb_of(store), change, err);
}

static bool tidy(rt_store *store, int64_t now_ms, uint32_t ops_max) {
    rt_err err;
    if (batch(store, &err) == NULL) return false;
    return rt_lmdb_tidy(lmdb_of(store), now_ms, ops_max);
}

static rt_code load(rt_store *store, rt_err *err) {
    (void)store;
    (void)err;
    return RT_OK; // nothing is ever wanted: see AGAIN in retryd/store.h
}

static rt_code view(rt_store *store, rt_view **out, rt_err *err) {
    return rt_lmdb_view_open(lmdb_of(store), out, err);
}

static rt_id new_id(rt_store *store) { return lmdb_of(store)->next_id++; }
static uint64_t new_seq(rt_store *store) { return lmdb_of(store)->next_seq++; }

/* ---- opening and closing ------------------------------------------------------------------------------- */

static void close_store(rt_store *store) {
    rt_lmdb *s = lmdb_of(store);
    abandon(store);
    rt_lmdb_views_deinit(s);
    rt_lmdb_env_close(&s->env);
    rt_counters_deinit(&s->counters);
    rt_arena_deinit(&s->scratch);
    rt_map_deinit(&s->use_of_body);
    free(s->uses);
    free(s);
}

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
};

static rt_code load_counters(rt_lmdb *s, rt_err *err) {
    MDB_txn *txn;
    int rc = mdb_txn_begin(s->env.mdb, NULL, MDB_RDONLY, &txn);
    if (rc == 0) {
        rc = rt_counters_load(&s->counters, &s->env, txn);
        mdb_txn_abort(txn);
    }
    return rc == 0 ? RT_OK : rt_lmdb_fail(err, rc, "counters");
}

rt_code rt_store_lmdb_open(const rt_store_lmdb_config *cfg, rt_store **out, rt_err *err) {
    RT_ASSERT(cfg->dir != NULL);
    RT_ASSERT(cfg->retention.age_ms >= 1);
    RT_ASSERT(cfg->retention.events >= 1);
    rt_lmdb *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    rt_code code = rt_lmdb_views_init(s, err);
    if (code != RT_OK) {
        free(s);
        return code;
    }
    s->base = (rt_store){.ops = &OPS, .sole_owner = true, .fd = -1};
    s->batch = (rt_lmdb_view){.base.ops = &rt_lmdb_view_ops, .store = s, .is_batch = true};
    s->retention = cfg->retention;
    s->env = (rt_lmdb_env){.dir_fd = -1, .lock_fd = -1};
    s->uses = calloc(RT_BODY_USES_MAX, sizeof *s->uses);
    if (s->uses == NULL) code = rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    if (code == RT_OK) code = rt_lmdb_env_open(&s->env, cfg, &s->meta, err);
    if (code == RT_OK) code = load_counters(s, err);
    if (code != RT_OK) {
        close_store(&s->base);
        return code;
    }
    s->base.tag = s->meta.tag;
    s->next_id = s->meta.id_limit;
    s->next_seq = s->meta.seq_limit;
    *out = &s->base;
    return RT_OK;
}
