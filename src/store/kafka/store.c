/* store.c: opening and closing, and the life of a batch. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "os/clock.h"
#include "store/kafka/inside.h"
#include "store/lmdb/store_lmdb.h"

enum {
    COMMIT_WAIT_MS = 2000,         /* for brokers to answer, before the engine goes on without knowing */
    OPEN_WAIT_MS = 30000,
    TAKE_IN_LINES = 1000,          /* before a batch */
    FENCE_AGAIN_MS = 500,
    CATCH_UP_TRIES = 5,
    BOOKS_BYTES = 8 + 8,           /* of a batch's line, before its items */
    LINE_BYTES_MAX = RT_ENTRY_BYTES_MAX / 2, /* a batch that has more takes only what frees … */
    CLOCK_AHEAD_MS = 5000          /* a node's clock that is further ahead than that is not followed */
};

static rt_ks *ks_of(rt_store *s) { return (rt_ks *)s; }

void rt_ks_wake(const rt_ks *s) {
    const uint64_t one = 1;
    (void)!write(s->base.fd, &one, sizeof one); // can fail only when it is readable already
}

static int64_t now_ms(const rt_store *store) {
    const int64_t own = rt_wall_ms();
    const int64_t others = atomic_load(&((const rt_ks *)store)->at_ms);
    return others <= own ? own : others < own + CLOCK_AHEAD_MS ? others : own + CLOCK_AHEAD_MS;
}

/* ---- lines of ours ------------------------------------------------------------------------------------- */

static uint64_t write_line(rt_ks *s, rt_entry_kind kind, rt_str payload) {
    const rt_entry_head head = {
        .kind = (uint8_t)kind,
        .node = s->node,
        .epoch = s->epoch,
        .no = ++s->line_no,
        .at_ms = now_ms(&s->base),
    };
    rt_journal_write(&s->journal, head, payload);
    return head.no;
}

/* Waits until the line that was written last has an end, and takes it in. */
static rt_code settle_line(rt_ks *s, int64_t wait_ms, rt_err *err) {
    const int64_t until_ms = rt_mono_ms() + wait_ms;
    rt_sent sent;
    while ((sent = rt_journal_sent(&s->journal)) == RT_SENT_WAITS && rt_mono_ms() < until_ms)
        rt_ks_wait(s, until_ms - rt_mono_ms());
    if (sent == RT_SENT_WRITTEN) return rt_ks_catch_up(s, s->journal.sent.last + 1, wait_ms, err);
    return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s",
                   s->journal.why.msg[0] != '\0' ? s->journal.why.msg : "Kafka: no broker answers");
}

/* ---- the end of a batch -------------------------------------------------------------------------------- */

static void forget_batch(rt_ks *s) {
    if (s->open) rt_store_abandon(s->copy.local);
    s->open = s->wrote = s->broken = false;
    rt_buf_clear(&s->line);
}

static void end_batch(rt_ks *s, rt_batch_end end) {
    forget_batch(s);
    s->stage = RT_KS_IDLE;
    s->ended = true;
    s->end = end;
}

/* Nothing lies between what it was decided on and where it stands: the batch as it is, is what the line says. */
static void end_at_once(rt_ks *s) {
    rt_ledger next = s->ledger;
    next.position = s->journal.sent.last + 1;
    next.from = rt_parts_from(&s->parts, next.position);
    next.at_ms = atomic_load(&s->at_ms);
    next.counter = s->counter;
    next.cut = atomic_load(&s->cut);
    s->own.tried = next.position;
    s->open = false;
    rt_err err;
    const rt_str line = rt_buf_str(&s->line);
    const rt_str items = {.ptr = line.ptr + BOOKS_BYTES, .len = line.len - BOOKS_BYTES};
    // If this disk fails, the line counts all the same: the copy takes it in like any other.
    if (rt_ks_commit(s, &next, items, s->journal.sent.last, &err) != RT_OK) return;
    if (next.cut > s->cut_noted) {
        s->cut_noted = next.cut;
        rt_ks_note_cut(s, next.cut);
    }
    end_batch(s, RT_BATCH_DURABLE);
}

static void begin_fence(rt_ks *s) {
    forget_batch(s);
    s->stage = RT_KS_FENCING;
    s->why = s->journal.why;
    s->epoch++;
    s->fence_at_ms = rt_mono_ms() + FENCE_AGAIN_MS;
    (void)write_line(s, RT_ENTRY_FENCE, RT_STR_EMPTY);
}

static void go_on_sent(rt_ks *s) {
    rt_err err;
    switch (rt_journal_sent(&s->journal)) {
    case RT_SENT_WAITS: return;
    case RT_SENT_LOST:
        s->why = s->journal.why;
        s->cut_off = true;
        end_batch(s, RT_BATCH_FAILED);
        return;
    case RT_SENT_UNSURE: begin_fence(s); return;
    case RT_SENT_WRITTEN: s->cut_off = false; break;
    }
    if (s->open && s->journal.sent.first == s->ledger.position) end_at_once(s);
    if (s->stage == RT_KS_IDLE) return;
    if (s->open) rt_store_abandon(s->copy.local);
    s->open = false;
    (void)rt_ks_take_in(s, TAKE_IN_LINES, &err);
    if (s->own.seen) end_batch(s, s->own.end);
}

/* Once the fence has come back it is known what stands before it, and nothing counts that comes behind it. */
static void go_on_fencing(rt_ks *s) {
    rt_err err;
    (void)rt_ks_take_in(s, TAKE_IN_LINES, &err);
    const rt_sent sent = rt_journal_sent(&s->journal);
    if (sent == RT_SENT_WAITS) return;
    if (s->own.fence_seen) {
        end_batch(s, s->own.seen ? s->own.end : RT_BATCH_FAILED);
    } else if (sent != RT_SENT_WRITTEN && rt_mono_ms() >= s->fence_at_ms) {
        s->fence_at_ms = rt_mono_ms() + FENCE_AGAIN_MS;
        (void)write_line(s, RT_ENTRY_FENCE, RT_STR_EMPTY);
    }
}

static void go_on(rt_ks *s) {
    if (s->stage == RT_KS_SENT) go_on_sent(s);
    if (s->stage == RT_KS_FENCING) go_on_fencing(s);
}

/* What only now is known goes where room was left for it. */
static void write_books(rt_ks *s) {
    const uint64_t books[] = {s->counter, (uint64_t)atomic_load(&s->cut)};
    for (size_t i = 0; i < BOOKS_BYTES; i++) s->line.ptr[i] = (char)(unsigned char)(books[i / 8] >> (8 * (i % 8)));
}

static void commit(rt_store *store, uint64_t batch_no) {
    rt_ks *s = ks_of(store);
    RT_ASSERT(s->stage == RT_KS_IDLE);
    RT_ASSERT(!s->ended);
    s->commit_no = batch_no;
    if (s->open && s->cut_off && !s->wrote) rt_entry_add_change(&s->line, &(rt_change){0});
    if (!s->open || s->broken || !(s->wrote || s->cut_off)) {
        end_batch(s, s->broken ? RT_BATCH_FAILED : RT_BATCH_DURABLE);
        return;
    }
    write_books(s);
    rt_ks_note_time(s, now_ms(store));
    s->own = (rt_ks_own){.no = write_line(s, RT_ENTRY_BATCH, rt_buf_str(&s->line))};
    s->stage = RT_KS_SENT;
    const int64_t until_ms = rt_mono_ms() + COMMIT_WAIT_MS;
    for (go_on(s); s->stage != RT_KS_IDLE && rt_mono_ms() < until_ms; go_on(s)) rt_ks_wait(s, until_ms - rt_mono_ms());
    rt_ks_wake(s); // what came meanwhile
}

static bool poll_end(rt_store *store, uint64_t *batch_no, rt_batch_end *end, rt_err *err) {
    rt_ks *s = ks_of(store);
    uint64_t news;
    rt_err unused;
    (void)!read(s->base.fd, &news, sizeof news);
    go_on(s);
    if (s->stage == RT_KS_IDLE && !s->open && !s->ended) (void)rt_ks_take_in(s, TAKE_IN_LINES, &unused);
    if (!s->ended) return false;
    s->ended = false;
    *batch_no = s->commit_no;
    *end = s->end;
    if (s->end != RT_BATCH_DURABLE && err != NULL) *err = s->why;
    return true;
}

/* ---- the batch ----------------------------------------------------------------------------------------- */

static rt_view *batch(rt_store *store, rt_err *err) {
    rt_ks *s = ks_of(store);
    go_on(s);
    if (s->stage == RT_KS_IDLE && s->open) return &s->batch_view.base;
    if (s->stage != RT_KS_IDLE) {
        (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "the end of the last batch is not known yet: %.150s",
                      s->journal.why.msg[0] != '\0' ? s->journal.why.msg : "no broker has answered");
        return NULL;
    }
    if (rt_ks_take_in(s, TAKE_IN_LINES, err) != RT_OK) return NULL;
    s->batch_view.inner = rt_store_batch(s->copy.local, err);
    if (s->batch_view.inner == NULL) return NULL;
    rt_buf_clear(&s->line);
    rt_pack_u64(&s->line, 0); // the books: see write_books
    rt_pack_u64(&s->line, 0);
    if (s->line.failed) {
        (void)rt_fail(err, RT_E_NOMEM, ENOMEM, "batch");
        forget_batch(s);
        rt_store_abandon(s->copy.local);
        return NULL;
    }
    s->open = true;
    return &s->batch_view.base;
}

static void abandon(rt_store *store) {
    rt_ks *s = ks_of(store);
    if (s->stage == RT_KS_IDLE) forget_batch(s);
}

static rt_code apply(rt_store *store, const rt_change *change, rt_err *err) {
    rt_ks *s = ks_of(store);
    if (batch(store, err) == NULL) return RT_E_UNAVAILABLE;
    if (s->broken) return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s", s->why.msg);
    if (change->import != NULL) return rt_fail(err, RT_E_INVALID, 0, "nothing can be copied into this store");
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

static rt_code load(rt_store *store, rt_err *err) {
    (void)store;
    (void)err;
    return RT_OK; // the copy has everything
}

static rt_code view(rt_store *store, rt_view **out, rt_err *err) { return rt_ks_view_open(ks_of(store), out, err); }

static uint64_t new_number(rt_store *store) {
    rt_ks *s = ks_of(store);
    if (s->ledger.counter > s->counter) s->counter = s->ledger.counter;
    return rt_ledger_number(++s->counter, s->slot);
}

static bool woken(rt_store *store) {
    rt_ks *s = ks_of(store);
    const bool woken = s->woken || (s->share != NULL && rt_share_changed(s->share));
    s->woken = false;
    return woken;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static void close_store(rt_store *store) {
    rt_ks *s = ks_of(store);
    rt_archive_close(s->archive);
    rt_share_close(s->share);
    forget_batch(s);
    rt_journal_close(&s->journal);
    rt_copy_close(s);
    rt_parts_deinit(&s->parts);
    rt_dirty_deinit(&s->dirty);
    (void)pthread_mutex_destroy(&s->cut_lock);
    rt_arena_deinit(&s->arena);
    rt_buf_deinit(&s->line);
    if (s->base.fd >= 0) (void)close(s->base.fd);
    if (s->properties != NULL) explicit_bzero(s->properties, s->cfg.properties.len);
    free(s->properties);
    free(s->brokers);
    free(s->dir);
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
    .new_id = new_number,
    .new_seq = new_number,
    .tidy = tidy,
    .close = close_store,
    .now_ms = now_ms,
    .woken = woken,
};

static rt_code keep_config(rt_ks *s, const rt_store_kafka_config *cfg, rt_err *err) {
    s->cfg = *cfg;
    s->brokers = rt_str_dup(rt_str_of(cfg->brokers));
    s->dir = rt_str_dup(rt_str_of(cfg->dir));
    s->properties = rt_str_dup(cfg->properties);
    if (s->brokers == NULL || s->dir == NULL || s->properties == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    s->cfg.brokers = s->brokers;
    s->cfg.dir = s->dir;
    s->cfg.prefix = NULL; // the topics have it
    s->cfg.properties.ptr = s->properties;
    s->kafka = (rt_kafka){.brokers = s->brokers, .properties = s->cfg.properties};
    return RT_OK;
}

static rt_code init(rt_ks *s, const rt_store_kafka_config *cfg, rt_err *err) {
    s->base = (rt_store){.ops = &OPS, .lags = true, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    (void)pthread_mutex_init(&s->cut_lock, NULL); // cannot fail on Linux
    const rt_code code = keep_config(s, cfg, err);
    if (code != RT_OK) return code;
    s->epoch = 1;
    s->batch_view = (rt_ks_view){.base.ops = &rt_ks_view_ops, .store = s};
    if (s->base.fd < 0) return rt_fail(err, RT_E_IO, errno, "eventfd");
    if (getrandom(&s->node, sizeof s->node, 0) != (ssize_t)sizeof s->node)
        return rt_fail(err, RT_E_IO, errno, "getrandom");
    if (!rt_topic_name_is_valid(rt_str_of(cfg->prefix)) || strlen(cfg->prefix) > RT_STORE_KAFKA_PREFIX_MAX)
        return rt_fail(err, RT_E_INVALID, 0,
                       "\"%.80s\" cannot begin a topic's name: at most %d letters, digits, '.', '_' and '-'", cfg->prefix,
                       RT_STORE_KAFKA_PREFIX_MAX);
    (void)snprintf(s->journal_topic, sizeof s->journal_topic, "%s.journal", cfg->prefix);
    (void)snprintf(s->retry_topic, sizeof s->retry_topic, "%s.retry", cfg->prefix);
    (void)snprintf(s->dead_topic, sizeof s->dead_topic, "%s.dlq", cfg->prefix);
    (void)snprintf(s->audit_topic, sizeof s->audit_topic, "%s.audit", cfg->prefix);
    (void)snprintf(s->open_topic, sizeof s->open_topic, "%s.circuit.open", cfg->prefix);
    return RT_OK;
}

/* The store's name, on which its first two nodes may have to agree. */
static rt_code be_born(rt_ks *s, rt_err *err) {
    if (s->ledger.tag != 0) return RT_OK;
    uint32_t tag = 0;
    while (tag == 0) {
        if (getrandom(&tag, sizeof tag, 0) != (ssize_t)sizeof tag) return rt_fail(err, RT_E_IO, errno, "getrandom");
    }
    rt_buf payload = {0};
    rt_pack_u32(&payload, tag);
    if (payload.failed) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    (void)write_line(s, RT_ENTRY_BIRTH, rt_buf_str(&payload));
    rt_buf_deinit(&payload);
    return settle_line(s, OPEN_WAIT_MS, err);
}

static rt_code join(rt_ks *s, rt_err *err) {
    (void)write_line(s, RT_ENTRY_JOIN, RT_STR_EMPTY);
    const rt_code code = settle_line(s, OPEN_WAIT_MS, err);
    if (code != RT_OK || s->joined) return code;
    return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s cannot be read", s->journal_topic);
}

/* From where the copy is, or from the retry topic's last cut, to the journal's end. RT_E_ABSENT: lines that it needs went
 * while it was at it. */
static rt_code try_to_catch_up(rt_ks *s, bool renew, rt_err *err) {
    int64_t low, high;
    rt_code code = rt_journal_range(&s->journal, &low, &high, OPEN_WAIT_MS, err);
    if (code != RT_OK) return code;
    if (renew || s->ledger.position > high || s->ledger.from < low) {
        rt_parts_deinit(&s->parts);
        rt_dirty_deinit(&s->dirty);
        code = rt_copy_renew(s, err);
        if (code == RT_OK && low > 0) code = rt_ks_restore(s, err);
        if (code == RT_E_ABSENT)
            return rt_fail(err, RT_E_CORRUPT, 0, "%s begins at %lld, and there is no cut in %s", s->journal_topic,
                           (long long)low, s->retry_topic);
        if (code != RT_OK) return code;
        if (s->ledger.from < low) return rt_fail(err, RT_E_ABSENT, 0, "%s was cut off meanwhile", s->journal_topic);
    }
    if (s->ledger.cut < low) s->ledger.cut = low; // nothing is deleted before the retry topic has it
    s->note_below = s->ledger.position;
    code = rt_journal_read_from(&s->journal, rt_ledger_start(&s->ledger), err);
    return code == RT_OK ? rt_ks_catch_up(s, high, OPEN_WAIT_MS, err) : code;
}

static rt_code catch_up(rt_ks *s, rt_err *err) {
    rt_code code = try_to_catch_up(s, false, err);
    for (int i = 1; i < CATCH_UP_TRIES && code == RT_E_ABSENT; i++) code = try_to_catch_up(s, true, err);
    return code == RT_E_ABSENT ? RT_E_UNAVAILABLE : code;
}

rt_code rt_store_kafka_open(const rt_store_kafka_config *cfg, rt_store **out, rt_err *err) {
    RT_ASSERT(cfg->retention.age_ms >= 1 && cfg->retention.events >= 1);
    RT_ASSERT(cfg->partitions >= 1 && cfg->partitions <= RT_STORE_KAFKA_PARTITIONS_MAX);
    rt_ks *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    rt_code code = init(s, cfg, err);
    if (code == RT_OK) code = rt_journal_open(&s->journal, &s->kafka, s->journal_topic, s->base.fd, err);
    if (code == RT_OK) code = rt_ks_topics(s, err);
    if (code == RT_OK) code = rt_copy_open(s, err);
    if (code == RT_OK) code = catch_up(s, err);
    if (code == RT_OK) code = be_born(s, err);
    if (code == RT_OK) code = join(s, err);
    if (code == RT_OK && !cfg->alone)
        code = rt_share_open(&s->kafka, s->retry_topic, s->retry_topic, s->partitions, s->base.fd, &s->share, err);
    if (s->ledger.cut > atomic_load(&s->cut)) atomic_store(&s->cut, s->ledger.cut);
    s->base.tag = s->ledger.tag;
    if (code == RT_OK) code = rt_archive_open(s, &s->archive, err);
    if (code != RT_OK) {
        close_store(&s->base);
        return code;
    }
    s->base.sole_owner = cfg->alone;
    *out = &s->base;
    return RT_OK;
}
