/* store.c: the life of a batch. */
#include <errno.h>
#include <unistd.h>

#include "os/clock.h"
#include "store/kafka/inside.h"
#include "store/lmdb/store_lmdb.h"

enum {
    COMMIT_WAIT_MS = 2000,         /* for brokers to answer, before the engine goes on without knowing */
    TAKE_IN_LINES = 1000,          /* before a batch */
    FENCE_AGAIN_MS = 500,
    BOOKS_BYTES = 8 + 8,           /* of a batch's line, before its items */
    LINE_BYTES_MAX = RT_ENTRY_BYTES_MAX / 2, /* a batch that has more takes only what frees … */
    CLOCK_AHEAD_MS = 5000          /* a node's clock that is further ahead than that is not followed */
};

static rt_ks *ks_of(rt_store *s) { return (rt_ks *)s; }

void rt_ks_wake(const rt_ks *s) {
    const uint64_t one = 1;
    (void)!write(s->base.fd, &one, sizeof one); // can fail only when it is readable already
}

int64_t rt_ks_now_ms(const rt_store *store) {
    const int64_t own = rt_wall_ms();
    const int64_t others = atomic_load(&((const rt_ks *)store)->at_ms);
    return others <= own ? own : others < own + CLOCK_AHEAD_MS ? others : own + CLOCK_AHEAD_MS;
}

/* ---- lines of ours ------------------------------------------------------------------------------------- */

uint64_t rt_ks_write_line(rt_ks *s, rt_entry_kind kind, rt_str payload) {
    const rt_entry_head head = {
        .kind = (uint8_t)kind,
        .node = s->node,
        .epoch = s->epoch,
        .no = ++s->line_no,
        .at_ms = rt_ks_now_ms(&s->base),
    };
    rt_journal_write(&s->journal, head, payload);
    return head.no;
}

/* ---- the end of a batch -------------------------------------------------------------------------------- */

void rt_ks_forget_batch(rt_ks *s) {
    if (s->open) rt_store_abandon(s->copy.local);
    s->open = s->wrote = s->broken = false;
    rt_buf_clear(&s->line);
}

static void end_batch(rt_ks *s, rt_batch_end end) {
    rt_ks_forget_batch(s);
    s->stage = RT_KS_IDLE;
    s->ended = true;
    s->end = end;
}

/* Nothing lies between what it was decided on and where it stands: the batch as it is, is what the line says. */
static void end_at_once(rt_ks *s) {
    rt_ledger next = s->copy.ledger;
    next.position = s->journal.sent.last + 1;
    next.from = rt_parts_from(&s->parts, next.position);
    next.at_ms = atomic_load(&s->at_ms);
    next.counter = s->counter;
    next.tag = s->new_tag;
    next.cut = atomic_load(&s->cut);
    rt_ledger_count_line(&next, s->node, s->own.no);
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
    rt_ks_forget_batch(s);
    s->stage = RT_KS_FENCING;
    s->why = s->journal.why;
    s->epoch++;
    s->fence_at_ms = rt_mono_ms() + FENCE_AGAIN_MS;
    (void)rt_ks_write_line(s, RT_ENTRY_FENCE, RT_STR_EMPTY);
}

/* What became of our line, if it stands before the place where the copy is; `not_counted`: if it did not count. */
static void ask_ledger(rt_ks *s, rt_batch_end not_counted) {
    switch (rt_ledger_has_counted(&s->copy.ledger, s->node, s->own.no)) {
    case RT_COUNTED: s->own.end = RT_BATCH_DURABLE; break;
    case RT_COUNTED_NOT: s->own.end = not_counted; break;
    case RT_COUNTED_FORGOTTEN:
        (void)rt_fail(&s->journal.why, RT_E_UNAVAILABLE, 0, "too much has been written since: restart this node");
        return;
    }
    s->own.seen = true;
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
    if (s->open && s->journal.sent.first == s->copy.ledger.position) end_at_once(s);
    if (s->stage == RT_KS_IDLE) return;
    if (s->open) rt_store_abandon(s->copy.local);
    s->open = false;
    (void)rt_ks_take_in(s, TAKE_IN_LINES, &err);
    // A copy that was made again may begin behind it.
    if (!s->own.seen && s->journal.sent.last < s->copy.ledger.position) ask_ledger(s, RT_BATCH_CONFLICT);
    if (s->own.seen) end_batch(s, s->own.end);
}

/* Once the fence has come back it is known what stands before it, and nothing counts that comes behind it. */
static void go_on_fencing(rt_ks *s) {
    rt_err err;
    (void)rt_ks_take_in(s, TAKE_IN_LINES, &err);
    const rt_sent sent = rt_journal_sent(&s->journal);
    if (sent == RT_SENT_WAITS) return;
    const bool passed = sent == RT_SENT_WRITTEN && s->journal.sent.last < s->copy.ledger.position;
    if (s->own.fence_seen || passed) {
        if (!s->own.seen) ask_ledger(s, RT_BATCH_FAILED);
        if (s->own.seen) end_batch(s, s->own.end);
    } else if (sent != RT_SENT_WRITTEN && rt_mono_ms() >= s->fence_at_ms) {
        s->fence_at_ms = rt_mono_ms() + FENCE_AGAIN_MS;
        (void)rt_ks_write_line(s, RT_ENTRY_FENCE, RT_STR_EMPTY);
    }
}

/* True: nothing here may be touched. */
static bool is_mending(rt_ks *s, rt_err *err) {
    if (rt_mend_is_over(s)) {
        if (s->stage == RT_KS_IDLE && s->open) return false; // not in the middle of a batch
        if (!s->copy.lost && !s->dirty.incomplete && !rt_ks_is_away(s)) {
            atomic_store(&s->looked_ms, rt_mono_ms());
            return false;
        }
        if (s->open) rt_store_abandon(s->copy.local); // it is on its way: the ledger will say what became of it
        s->open = false;
        rt_mend_begin(s);
    }
    (void)rt_fail(err, RT_E_UNAVAILABLE, 0, RT_KS_MENDING);
    return true;
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
    rt_ks_note_time(s, rt_ks_now_ms(store));
    s->own = (rt_ks_own){.no = rt_ks_write_line(s, RT_ENTRY_BATCH, rt_buf_str(&s->line))};
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
    if (!is_mending(s, err)) {
        go_on(s);
        if (s->stage == RT_KS_IDLE && !s->open && !s->ended) (void)rt_ks_take_in(s, TAKE_IN_LINES, &unused);
    }
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
    if (is_mending(s, err)) return NULL;
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
    s->batch_view.share = s->share;
    rt_buf_clear(&s->line);
    rt_pack_u64(&s->line, 0); // the books: see write_books
    rt_pack_u64(&s->line, 0);
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

static void abandon(rt_store *store) {
    rt_ks *s = ks_of(store);
    if (s->stage == RT_KS_IDLE) rt_ks_forget_batch(s);
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

const rt_store_ops rt_ks_ops = {
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
    .close = rt_ks_close,
    .now_ms = rt_ks_now_ms,
    .woken = woken,
};
