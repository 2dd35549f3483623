#include "store/kafka/intake.h"

#include <errno.h>

#include "os/clock.h"
#include "store/kafka/clock.h"
#include "store/kafka/lines/replay.h"
#include "store/kafka/words.h"

enum { NAP_MS = 100 };

rt_code rt_ks_commit(rt_ks *s, const rt_ledger *next, rt_str items, int64_t offset, rt_err *err) {
    (void)pthread_mutex_lock(&s->cut_lock);
    const rt_code code = rt_copy_commit(&s->copy, next, err);
    if (code == RT_OK) rt_dirty_add(&s->dirty, items, offset);
    (void)pthread_mutex_unlock(&s->cut_lock);
    return code;
}

void rt_ks_note_cut(rt_ks *s, int64_t cut) {
    if (cut <= s->cut_noted) return;
    s->cut_noted = cut;
    if (cut > atomic_load(&s->cut)) atomic_store(&s->cut, cut);
    rt_dirty rest = {0};
    (void)pthread_mutex_lock(&s->cut_lock);
    rt_dirty_add_since(&rest, &s->dirty, cut);
    rt_dirty_deinit(&s->dirty);
    s->dirty = rest;
    (void)pthread_mutex_unlock(&s->cut_lock);
}

/* ---- one line ------------------------------------------------------------------------------------------ */

typedef struct line {
    rt_entry_head head;
    int64_t offset; /* of its last record */
    rt_str payload;
    bool ours;      /* written by this process */
} line;

/* RT_OK: it is in the open batch of the copy. RT_E_CONFLICT: it does not count. */
static rt_code judge(rt_ks *s, const line *l, rt_str items, uint32_t *tag, rt_err *err) {
    if (rt_ledger_is_fenced(&s->copy.ledger, l->head.node, l->head.epoch))
        return rt_fail(err, RT_E_CONFLICT, 0, "its node was fenced");
    return rt_replay(s->copy.local, items, &s->arena, tag, err);
}

static rt_code take_batch(rt_ks *s, const line *l, rt_str items, rt_ledger *next, rt_err *err) {
    rt_err why = {0};
    uint32_t tag = next->tag;
    rt_code code = judge(s, l, items, &tag, &why);
    const bool own = l->ours && l->head.no == s->own.no;
    if (code == RT_OK) {
        rt_ledger_count_line(next, l->head.node, l->head.no);
        next->tag = tag;
        if (own) s->own.tried = next->position;
        code = rt_ks_commit(s, next, items, l->offset, &why);
    } else {
        rt_store_abandon(s->copy.local); // the ledger is stored with the next one that counts
    }
    if (code != RT_OK && code != RT_E_CONFLICT) {
        s->copy.behind = true;
        return rt_fail(err, code, why.sys_errno, "%s", why.msg);
    }
    if (own) {
        s->own.seen = true;
        s->own.end = code == RT_OK ? RT_BATCH_DURABLE : RT_BATCH_CONFLICT;
        if (code != RT_OK) s->why = why;
    } else if (code == RT_OK) {
        s->woken = true;
    }
    return RT_OK;
}

/* What a line says beside what it decided counts even if that does not. */
static rt_str take_books(rt_ledger *next, rt_str payload) {
    rt_unpack u = {.rest = payload};
    const uint64_t counter = rt_unpack_u64(&u);
    const int64_t cut = rt_unpack_i64(&u);
    if (counter > next->counter) next->counter = counter;
    if (cut > next->cut && cut < next->position) next->cut = cut;
    return u.rest;
}

static rt_code take_line(rt_ks *s, const line *l, rt_err *err) {
    rt_unpack u = {.rest = l->payload};
    rt_ledger next = s->copy.ledger;
    next.position = l->offset + 1;
    next.from = rt_parts_from(&s->parts, next.position);
    if (l->head.at_ms > next.at_ms) next.at_ms = l->head.at_ms;
    rt_code code = RT_OK;
    uint32_t slot;
    switch ((rt_entry_kind)l->head.kind) {
    case RT_ENTRY_BIRTH:
        if (next.tag == 0) next.tag = rt_unpack_u32(&u);
        break;
    case RT_ENTRY_JOIN:
        slot = rt_ledger_join(&next);
        if (!l->ours) break;
        s->slot = slot;
        s->joined = true;
        break;
    case RT_ENTRY_BATCH: {
        const rt_str items = take_books(&next, l->payload);
        code = take_batch(s, l, items, &next, err);
        break;
    }
    case RT_ENTRY_FENCE:
        rt_ledger_fence(&next, l->head.node, l->head.epoch);
        s->own.fence_seen = s->own.fence_seen || (l->ours && l->head.epoch == s->epoch);
        break;
    case RT_ENTRY_KIND_END: break;
    }
    if (code != RT_OK) return code;
    rt_ks_note_cut(s, next.cut);
    s->copy.ledger = next;
    rt_ks_note_time(s, next.at_ms);
    return RT_OK;
}

/* ---- records ------------------------------------------------------------------------------------------- */

static void note_again(rt_ks *s, const line *l) {
    rt_ledger unused = s->copy.ledger;
    const rt_str items = take_books(&unused, l->payload);
    (void)pthread_mutex_lock(&s->cut_lock);
    rt_dirty_add(&s->dirty, items, l->offset);
    (void)pthread_mutex_unlock(&s->cut_lock);
}

static rt_code take_record(rt_ks *s, int64_t offset, rt_str record, rt_err *err) {
    if (offset > s->copy.ledger.position) {
        s->copy.behind = s->copy.lost = true;
        return rt_fail(err, RT_E_ABSENT, 0, "lines of the journal are missing: something else deletes them");
    }
    line l = {.offset = offset};
    const bool readable = rt_entry_read_head(&record, &l.head);
    rt_parts_end end = RT_PARTS_MORE; // what is none of ours says nothing
    if (readable) end = rt_parts_add(&s->parts, &l.head, offset, record, &l.payload);
    if (end == RT_PARTS_NOMEM) {
        s->copy.behind = true;
        return rt_fail(err, RT_E_NOMEM, ENOMEM, "a line of the journal");
    }
    if (offset < s->copy.ledger.position) { // the copy has it already, but the retry topic may not
        const bool unknown = offset < s->note_below && offset >= s->copy.ledger.cut;
        if (unknown && end == RT_PARTS_WHOLE && l.head.kind == RT_ENTRY_BATCH) note_again(s, &l);
        return RT_OK;
    }
    l.ours = l.head.node == s->node;
    if (end == RT_PARTS_WHOLE) return take_line(s, &l, err);
    s->copy.ledger.position = offset + 1;
    s->copy.ledger.from = rt_parts_from(&s->parts, s->copy.ledger.position);
    return RT_OK;
}

rt_code rt_ks_read_on(rt_ks *s, rt_err *err) {
    rt_code code = rt_copy_read_ledger(&s->copy, err);
    if (code != RT_OK) return code;
    rt_parts_deinit(&s->parts);
    // A batch of ours whose end on this disk was not known: is it there?
    if (s->own.tried > 0 && s->copy.ledger.position >= s->own.tried) {
        s->own.seen = true;
        s->own.end = RT_BATCH_DURABLE;
        s->dirty.incomplete = true; // what it changed was not noted
    }
    code = rt_journal_read_from(&s->journal, s->copy.ledger.from, err);
    s->copy.behind = code != RT_OK;
    return code;
}

rt_code rt_ks_take_in(rt_ks *s, uint32_t max, rt_err *err) {
    rt_code code = RT_OK;
    if (s->copy.lost) return rt_fail(err, RT_E_ABSENT, 0, RT_KS_MENDING);
    if (s->copy.behind) code = rt_ks_read_on(s, err);
    for (; code == RT_OK && max > 0; max--) {
        rd_kafka_message_t *m;
        code = rt_journal_next(&s->journal, &m, err);
        if (code == RT_E_AGAIN) return RT_OK;
        if (code != RT_OK) {
            s->copy.behind = true;
            s->copy.lost = code == RT_E_ABSENT;
            return code;
        }
        code = take_record(s, m->offset, (rt_str){.ptr = m->payload, .len = m->len}, err);
        rd_kafka_message_destroy(m);
    }
    return code;
}

rt_code rt_ks_catch_up(rt_ks *s, int64_t high, int64_t stall_ms, rt_err *err) {
    rt_ks_came(s);
    int64_t at = s->copy.ledger.position;
    int64_t until_ms = rt_mono_ms() + stall_ms;
    while (s->copy.ledger.position < high) {
        const rt_code code = rt_ks_take_in(s, RT_KS_TAKE_IN_LINES, err);
        if (code != RT_OK && code != RT_E_UNAVAILABLE) return code;
        if (s->copy.ledger.position > at) {
            at = s->copy.ledger.position;
            until_ms = rt_mono_ms() + stall_ms;
            rt_ks_came(s);
        } else if (rt_mono_ms() > until_ms) {
            return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s cannot be read", s->journal_topic);
        } else if (!rt_ks_still_waits(s, s->journal_topic, err)) {
            return RT_E_UNAVAILABLE;
        } else {
            rt_ks_wait(s, NAP_MS);
        }
    }
    return RT_OK;
}
