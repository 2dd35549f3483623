#include "store/kafka/fill.h"

#include "os/clock.h"
#include "store/kafka/intake.h"
#include "store/kafka/restore.h"
#include "store/kafka/words.h"

enum { ASK_MS = 1000 };

static rt_code ask_range(rt_ks *s, int64_t *low, int64_t *high, rt_err *err) {
    const int64_t until_ms = rt_mono_ms() + s->cfg.start_ms;
    rt_code code;
    rt_ks_came(s);
    while ((code = rt_journal_range(&s->journal, low, high, ASK_MS, err)) != RT_OK &&
           rt_mono_ms() < until_ms) {
        if (!rt_ks_still_waits(s, s->journal_topic, err)) return RT_E_UNAVAILABLE;
    }
    return code;
}

/* An empty copy, filled up to the last cut. RT_E_ABSENT: the journal does not go on from there any more. */
static rt_code begin_anew(rt_ks *s, int64_t low, rt_err *err) {
    if (low > 0)
        rt_ks_say(s, false, "%s begins at line %lld, the copy ends at %lld: it is made again from %s",
                  s->journal_topic, (long long)low, (long long)s->copy.ledger.position, s->retry_topic);
    rt_code code = rt_copy_renew(&s->copy, err);
    if (code == RT_OK && low > 0) code = rt_ks_restore(s, err);
    if (code == RT_E_ABSENT)
        return rt_fail(err, RT_E_CORRUPT, 0, "%s begins at %lld, and there is no cut in %s", s->journal_topic,
                       (long long)low, s->retry_topic);
    if (code == RT_OK && s->copy.ledger.from < low)
        return rt_fail(err, RT_E_ABSENT, 0, "%s was cut off meanwhile", s->journal_topic);
    return code;
}

/* From where the copy is, or from the retry topic's last cut if lines that it has not taken in are gone, to
 * the journal's end. */
static rt_code try_to_fill(rt_ks *s, rt_err *err) {
    int64_t low, high;
    rt_code code = ask_range(s, &low, &high, err);
    if (code == RT_OK && s->copy.behind && s->copy.local != NULL) code = rt_ks_read_on(s, err);
    if (code != RT_OK) return code;
    if (s->copy.ledger.position > high) // what was acknowledged is not to be forgotten without a word
        return rt_fail(err, RT_E_CORRUPT, 0,
                       "%s ends at line %lld, and has been read to %lld: "
                       "if it was deleted on purpose, delete %s too",
                       s->journal_topic, (long long)high, (long long)s->copy.ledger.position, s->dir);
    rt_parts_deinit(&s->parts);
    rt_dirty_deinit(&s->dirty); // noted again, from the last cut on
    s->copy.lost = false;
    if (s->copy.local == NULL || s->copy.ledger.from < low) code = begin_anew(s, low, err);
    if (code != RT_OK) return code;
    // Nothing is deleted before the retry topic has it.
    if (s->copy.ledger.cut < low) s->copy.ledger.cut = low;
    s->note_below = s->copy.ledger.position;
    code = rt_journal_read_from(&s->journal, rt_ledger_start(&s->copy.ledger), err);
    return code == RT_OK ? rt_ks_catch_up(s, high, s->cfg.start_ms, err) : code;
}

rt_code rt_ks_fill(rt_ks *s, rt_err *err) {
    const rt_code code = try_to_fill(s, err);
    if (s->copy.ledger.cut > atomic_load(&s->cut)) atomic_store(&s->cut, s->copy.ledger.cut);
    return code;
}
