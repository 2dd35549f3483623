#include "store/kafka/own.h"

#include "os/clock.h"
#include "store/kafka/clock.h"
#include "store/kafka/intake.h"
#include "store/kafka/words.h"

enum {
    FENCE_AGAIN_MS = 500,
    BOOKS_BYTES = 8 + 8 /* of a batch's line, before its items */
};

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

rt_code rt_ks_settle_line(rt_ks *s, rt_err *err) {
    const int64_t until_ms = rt_mono_ms() + s->cfg.start_ms;
    rt_sent sent;
    rt_ks_came(s);
    while ((sent = rt_journal_sent(&s->journal)) == RT_SENT_WAITS && rt_mono_ms() < until_ms) {
        if (!rt_ks_still_waits(s, s->journal_topic, err)) return RT_E_UNAVAILABLE;
        rt_ks_wait(s, until_ms - rt_mono_ms());
    }
    if (sent == RT_SENT_WRITTEN) return rt_ks_catch_up(s, s->journal.sent.last + 1, s->cfg.start_ms, err);
    return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s",
                   s->journal.why.msg[0] != '\0' ? s->journal.why.msg : "Kafka: no broker answers");
}

/* ---- a batch's line ------------------------------------------------------------------------------------ */

void rt_ks_begin_line(rt_ks *s) {
    rt_buf_clear(&s->line);
    rt_pack_u64(&s->line, 0); // the books: see write_books
    rt_pack_u64(&s->line, 0);
}

/* What only now is known goes where room was left for it. */
static void write_books(rt_ks *s) {
    const uint64_t books[] = {s->counter, (uint64_t)atomic_load(&s->cut)};
    for (size_t i = 0; i < BOOKS_BYTES; i++)
        s->line.ptr[i] = (char)(unsigned char)(books[i / 8] >> (8 * (i % 8)));
}

void rt_ks_send_batch(rt_ks *s) {
    write_books(s);
    rt_ks_note_time(s, rt_ks_now_ms(&s->base));
    s->own = (rt_ks_own){.no = rt_ks_write_line(s, RT_ENTRY_BATCH, rt_buf_str(&s->line))};
    s->stage = RT_KS_SENT;
}

void rt_ks_forget_batch(rt_ks *s) {
    if (s->open) rt_store_abandon(s->copy.local);
    s->open = s->wrote = s->broken = false;
    rt_buf_clear(&s->line);
}

void rt_ks_end_batch(rt_ks *s, rt_batch_end end) {
    rt_ks_forget_batch(s);
    s->stage = RT_KS_IDLE;
    s->ended = true;
    s->end = end;
}

/* ---- its end ------------------------------------------------------------------------------------------- */

/* Nothing lies between what it was decided on and where it stands: the batch as it is, is what the line
 * says. */
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
    rt_ks_note_cut(s, next.cut);
    rt_ks_end_batch(s, RT_BATCH_DURABLE);
}

static void begin_fence(rt_ks *s) {
    rt_ks_forget_batch(s);
    s->stage = RT_KS_FENCING;
    s->why = s->journal.why;
    s->epoch++;
    s->fence_at_ms = rt_mono_ms() + FENCE_AGAIN_MS;
    (void)rt_ks_write_line(s, RT_ENTRY_FENCE, RT_STR_EMPTY);
}

/* What became of our line, if it stands before the place where the copy is; `not_counted`: if it did not
 * count. */
static void ask_ledger(rt_ks *s, rt_batch_end not_counted) {
    switch (rt_ledger_has_counted(&s->copy.ledger, s->node, s->own.no)) {
    case RT_COUNTED: s->own.end = RT_BATCH_DURABLE; break;
    case RT_COUNTED_NOT: s->own.end = not_counted; break;
    case RT_COUNTED_FORGOTTEN:
        (void)rt_fail(&s->journal.why, RT_E_UNAVAILABLE, 0,
                      "too much has been written since: restart this node");
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
        rt_ks_end_batch(s, RT_BATCH_FAILED);
        return;
    case RT_SENT_UNSURE: begin_fence(s); return;
    case RT_SENT_WRITTEN: s->cut_off = false; break;
    }
    if (s->open && s->journal.sent.first == s->copy.ledger.position) end_at_once(s);
    if (s->stage == RT_KS_IDLE) return;
    if (s->open) rt_store_abandon(s->copy.local);
    s->open = false;
    (void)rt_ks_take_in(s, RT_KS_TAKE_IN_LINES, &err);
    // A copy that was made again may begin behind it.
    if (!s->own.seen && s->journal.sent.last < s->copy.ledger.position) ask_ledger(s, RT_BATCH_CONFLICT);
    if (s->own.seen) rt_ks_end_batch(s, s->own.end);
}

/* Once the fence has come back it is known what stands before it, and nothing counts that comes behind it. */
static void go_on_fencing(rt_ks *s) {
    rt_err err;
    (void)rt_ks_take_in(s, RT_KS_TAKE_IN_LINES, &err);
    const rt_sent sent = rt_journal_sent(&s->journal);
    if (sent == RT_SENT_WAITS) return;
    const bool passed = sent == RT_SENT_WRITTEN && s->journal.sent.last < s->copy.ledger.position;
    if (s->own.fence_seen || passed) {
        if (!s->own.seen) ask_ledger(s, RT_BATCH_FAILED);
        if (s->own.seen) rt_ks_end_batch(s, s->own.end);
    } else if (sent != RT_SENT_WRITTEN && rt_mono_ms() >= s->fence_at_ms) {
        s->fence_at_ms = rt_mono_ms() + FENCE_AGAIN_MS;
        (void)rt_ks_write_line(s, RT_ENTRY_FENCE, RT_STR_EMPTY);
    }
}

void rt_ks_go_on(rt_ks *s) {
    if (s->stage == RT_KS_SENT) go_on_sent(s);
    if (s->stage == RT_KS_FENCING) go_on_fencing(s);
}
