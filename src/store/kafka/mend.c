#include "store/kafka/mend.h"

#include <poll.h>
#include <string.h>

#include "os/clock.h"
#include "store/kafka/archive.h"
#include "store/kafka/clock.h"
#include "store/kafka/fill.h"
#include "store/kafka/words.h"

enum {
    AGAIN_MS = 2000,
    SLICE_MS = 100,
    AWAY_MS_LEAST = 5000 /* longer than the engine ever is in one step */
};

bool rt_ks_is_away(const rt_ks *s) {
    if (s->cfg.alone) return false; // nobody writes behind its back
    const int64_t most_ms = s->cfg.kept_ms > AWAY_MS_LEAST ? s->cfg.kept_ms : AWAY_MS_LEAST;
    return rt_mono_ms() - atomic_load(&s->looked_ms) > most_ms;
}

rt_code rt_ks_take_part(rt_ks *s, rt_err *err) {
    rt_code code = RT_OK;
    if (!s->cfg.alone && s->share == NULL)
        code = rt_share_open(&s->kafka, s->retry_topic, s->retry_topic, s->partitions, s->base.fd, &s->share,
                             err);
    return code == RT_OK ? rt_archive_open(s, &s->archive, err) : code;
}

/* ---- the thread ---------------------------------------------------------------------------------------- */

static bool is_stopped(const rt_ks *s) { return atomic_load(&s->mend.stop); }

static void pause_a_while(const rt_ks *s) {
    for (int ms = 0; ms < AGAIN_MS && !is_stopped(s); ms += SLICE_MS) (void)poll(NULL, 0, SLICE_MS);
}

/* Nobody else has anything to do with the copy from here on. */
static void stand_back(rt_ks *s) {
    rt_gate_shut(&s->gate);
    rt_archive_close(s->archive);
    s->archive = NULL;
    rt_share_close(s->share); // others take its partitions at once
    s->share = NULL;
}

static rt_code come_back(rt_ks *s, rt_err *err) {
    rt_code code = rt_ks_fill(s, err);
    if (code == RT_OK) code = rt_ks_take_part(s, err);
    return code;
}

static void *run(void *ctx) {
    rt_ks *s = ctx;
    rt_err err;
    stand_back(s);
    while (!is_stopped(s)) {
        if (come_back(s, &err) == RT_OK) {
            rt_ks_say(s, false, "the copy is up to date again, as of line %lld",
                      (long long)s->copy.ledger.position);
            atomic_store(&s->looked_ms, rt_mono_ms());
            rt_gate_open(&s->gate);
            break;
        }
        if (!is_stopped(s)) rt_ks_say(s, true, "the copy cannot be brought up to date yet: %.300s", err.msg);
        pause_a_while(s);
    }
    atomic_store(&s->mend.over, true);
    rt_ks_wake(s);
    return NULL;
}

void rt_mend_begin(rt_ks *s) {
    RT_ASSERT(!s->mend.begun);
    RT_ASSERT(!s->open);
    const char *why = s->dirty.incomplete ? "something went wrong on this node's disk or in its memory"
                                          : "this node was away for longer than kafka.journal_kept_seconds";
    rt_ks_say(s, true, "%s. It has seen %s up to line %lld, and brings its copy up to date before it goes on",
              why, s->journal_topic, (long long)s->copy.ledger.position);
    atomic_store(&s->mend.over, false);
    const int bad = pthread_create(&s->mend.thread, NULL, run, s);
    s->mend.begun = bad == 0;
    if (bad != 0) rt_ks_say(s, true, "a thread for that: %s", strerror(bad)); // it is tried again
}

bool rt_mend_is_over(rt_ks *s) {
    if (!s->mend.begun) return true;
    if (!atomic_load(&s->mend.over)) return false;
    (void)pthread_join(s->mend.thread, NULL);
    s->mend.begun = false;
    s->woken = true;
    return true;
}

void rt_mend_stop(rt_ks *s) {
    atomic_store(&s->mend.stop, true);
    if (s->mend.begun) (void)pthread_join(s->mend.thread, NULL);
    s->mend.begun = false;
}
