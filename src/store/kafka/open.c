/* open.c: opening and closing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "os/clock.h"
#include "store/kafka/inside.h"

enum { ASK_MS = 1000, TRIES = 5 };

/* ---- closing ------------------------------------------------------------------------------------------- */

void rt_ks_close(rt_store *store) {
    rt_ks *s = (rt_ks *)store;
    rt_mend_stop(s);
    rt_archive_close(s->archive);
    rt_share_close(s->share);
    rt_ks_forget_batch(s);
    rt_journal_close(&s->journal);
    rt_copy_close(&s->copy);
    rt_parts_deinit(&s->parts);
    rt_dirty_deinit(&s->dirty);
    (void)pthread_mutex_destroy(&s->cut_lock);
    rt_gate_deinit(&s->gate);
    rt_arena_deinit(&s->arena);
    rt_buf_deinit(&s->line);
    if (s->base.fd >= 0) (void)close(s->base.fd);
    if (s->properties != NULL) explicit_bzero(s->properties, s->cfg.properties.len);
    free(s->properties);
    free(s->brokers);
    free(s->dir);
    free(s);
}

/* ---- what it needs ------------------------------------------------------------------------------------- */

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
    s->base = (rt_store){.ops = &rt_ks_ops, .lags = true, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    (void)pthread_mutex_init(&s->cut_lock, NULL); // cannot fail on Linux
    rt_gate_init(&s->gate);
    const rt_code code = keep_config(s, cfg, err);
    if (code != RT_OK) return code;
    s->epoch = 1;
    s->copy.cfg = &s->cfg;
    s->batch_view = (rt_ks_view){.base.ops = &rt_ks_view_ops};
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

/* ---- lines --------------------------------------------------------------------------------------------- */

/* Waits until the line that was written last has an end, and takes it in. */
static rt_code settle_line(rt_ks *s, rt_err *err) {
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

/* ---- what Kafka holds ----------------------------------------------------------------------------------- */

static rt_code ask_range(rt_ks *s, int64_t *low, int64_t *high, rt_err *err) {
    const int64_t until_ms = rt_mono_ms() + s->cfg.start_ms;
    rt_code code;
    rt_ks_came(s);
    while ((code = rt_journal_range(&s->journal, low, high, ASK_MS, err)) != RT_OK && rt_mono_ms() < until_ms) {
        if (!rt_ks_still_waits(s, s->journal_topic, err)) return RT_E_UNAVAILABLE;
    }
    return code;
}

/* An empty copy, filled up to the last cut. RT_E_ABSENT: the journal does not go on from there any more. */
static rt_code begin_anew(rt_ks *s, int64_t low, rt_err *err) {
    if (low > 0)
        rt_ks_say(s, false, "%s begins at line %lld, the copy ends at %lld: it is made again from %s", s->journal_topic,
                  (long long)low, (long long)s->copy.ledger.position, s->retry_topic);
    rt_code code = rt_copy_renew(&s->copy, err);
    if (code == RT_OK && low > 0) code = rt_ks_restore(s, err);
    if (code == RT_E_ABSENT)
        return rt_fail(err, RT_E_CORRUPT, 0, "%s begins at %lld, and there is no cut in %s", s->journal_topic,
                       (long long)low, s->retry_topic);
    if (code == RT_OK && s->copy.ledger.from < low)
        return rt_fail(err, RT_E_ABSENT, 0, "%s was cut off meanwhile", s->journal_topic);
    return code;
}

/* From where the copy is, or from the retry topic's last cut if lines that it has not taken in are gone, to the journal's
 * end. */
static rt_code try_to_fill(rt_ks *s, rt_err *err) {
    int64_t low, high;
    rt_code code = ask_range(s, &low, &high, err);
    if (code == RT_OK && s->copy.behind && s->copy.local != NULL) code = rt_ks_read_on(s, err);
    if (code != RT_OK) return code;
    if (s->copy.ledger.position > high) // what was acknowledged is not to be forgotten without a word
        return rt_fail(err, RT_E_CORRUPT, 0,
                       "%s ends at line %lld, and has been read to %lld: if it was deleted on purpose, delete %s too",
                       s->journal_topic, (long long)high, (long long)s->copy.ledger.position, s->dir);
    rt_parts_deinit(&s->parts);
    rt_dirty_deinit(&s->dirty); // noted again, from the last cut on
    s->copy.lost = false;
    if (s->copy.local == NULL || s->copy.ledger.from < low) code = begin_anew(s, low, err);
    if (code != RT_OK) return code;
    if (s->copy.ledger.cut < low) s->copy.ledger.cut = low; // nothing is deleted before the retry topic has it
    s->note_below = s->copy.ledger.position;
    code = rt_journal_read_from(&s->journal, rt_ledger_start(&s->copy.ledger), err);
    return code == RT_OK ? rt_ks_catch_up(s, high, s->cfg.start_ms, err) : code;
}

rt_code rt_ks_fill(rt_ks *s, rt_err *err) {
    const rt_code code = try_to_fill(s, err);
    if (s->copy.ledger.cut > atomic_load(&s->cut)) atomic_store(&s->cut, s->copy.ledger.cut);
    return code;
}

/* ---- opening -------------------------------------------------------------------------------------------- */

/* The store's name, on which its first two nodes may have to agree. */
static rt_code be_born(rt_ks *s, rt_err *err) {
    if (s->copy.ledger.tag != 0) return RT_OK;
    uint32_t tag = 0;
    while (tag == 0) {
        if (getrandom(&tag, sizeof tag, 0) != (ssize_t)sizeof tag) return rt_fail(err, RT_E_IO, errno, "getrandom");
    }
    rt_buf payload = {0};
    rt_pack_u32(&payload, tag);
    if (payload.failed) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    (void)rt_ks_write_line(s, RT_ENTRY_BIRTH, rt_buf_str(&payload));
    rt_buf_deinit(&payload);
    return settle_line(s, err);
}

static rt_code join(rt_ks *s, rt_err *err) {
    (void)rt_ks_write_line(s, RT_ENTRY_JOIN, RT_STR_EMPTY);
    const rt_code code = settle_line(s, err);
    if (code != RT_OK || s->joined) return code;
    return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s cannot be read", s->journal_topic);
}

/* Lines that it was about to read may go meanwhile: then it begins again. */
static rt_code come_in(rt_ks *s, rt_err *err) {
    rt_code code = RT_E_ABSENT;
    for (int i = 0; i < TRIES && code == RT_E_ABSENT; i++) {
        code = rt_ks_fill(s, err);
        if (code == RT_OK) code = be_born(s, err);
        if (code == RT_OK) code = join(s, err);
    }
    return code == RT_E_ABSENT ? RT_E_UNAVAILABLE : code;
}

rt_code rt_ks_take_part(rt_ks *s, rt_err *err) {
    rt_code code = RT_OK;
    if (!s->cfg.alone && s->share == NULL)
        code = rt_share_open(&s->kafka, s->retry_topic, s->retry_topic, s->partitions, s->base.fd, &s->share, err);
    return code == RT_OK ? rt_archive_open(s, &s->archive, err) : code;
}

rt_code rt_store_kafka_open(const rt_store_kafka_config *cfg, rt_store **out, rt_err *err) {
    RT_ASSERT(cfg->retention.age_ms >= 1 && cfg->retention.events >= 1);
    RT_ASSERT(cfg->partitions >= 1 && cfg->partitions <= RT_STORE_KAFKA_PARTITIONS_MAX);
    rt_ks *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    rt_code code = init(s, cfg, err);
    if (code == RT_OK) code = rt_journal_open(&s->journal, &s->kafka, s->journal_topic, s->base.fd, err);
    if (code == RT_OK) code = rt_ks_topics(s, err);
    if (code == RT_OK) code = rt_copy_open(&s->copy, err);
    if (code == RT_OK) code = come_in(s, err);
    s->base.tag = s->copy.ledger.tag;
    if (code == RT_OK) code = rt_ks_take_part(s, err);
    if (code != RT_OK) {
        rt_ks_close(&s->base);
        return code;
    }
    s->base.sole_owner = cfg->alone;
    atomic_store(&s->looked_ms, rt_mono_ms());
    *out = &s->base;
    return RT_OK;
}
