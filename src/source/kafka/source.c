#include "source/kafka/source.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/clock.h"
#include "source/kafka/assign.h"
#include "source/kafka/client.h"
#include "source/kafka/letter.h"
#include "source/kafka/notes.h"
#include "source/kafka/partition.h"

_Static_assert(offsetof(rt_source, cfg) == 0,
               "librdkafka's callbacks get cfg.kafka and take it for the source");
_Static_assert(offsetof(rt_source_config, kafka) == 0, "the same");

/* ---- the loop ------------------------------------------------------------------------------------------ */

static int64_t next_ms(const rt_source *s) {
    int64_t at = s->rk == NULL ? s->open_at_ms : s->tell_at_ms;
    for (const rt_partition *p = s->partitions; p != NULL; p = p->after) {
        if (p->state == RT_PARTITION_WAIT && !p->revoked && p->retry_at_ms < at) at = p->retry_at_ms;
    }
    return at;
}

static void *run(void *ctx) {
    rt_source *s = ctx;
    while (!s->stopping) {
        rt_notes_sleep(s, true, next_ms(s) - rt_mono_ms());
        rt_notes_take(s);
        rt_client_tend(s, rt_mono_ms());
        rt_client_poll(s);
        const int64_t now_ms = rt_mono_ms();
        for (rt_partition *p = s->partitions; p != NULL; p = p->after) rt_partition_step(p, now_ms);
        rt_assign_sweep(s);
    }
    rt_client_close(s);
    return NULL;
}

/* ---- settings ------------------------------------------------------------------------------------------ */

/* "TOPIC" or "TOPIC:TYPE", cut up in place. */
static rt_code take_topic(rt_source *s, char *item, rt_err *err) {
    while (*item == ' ') item++;
    char *colon = strchr(item, ':');
    if (colon != NULL) *colon = '\0';
    const rt_str name = rt_str_of(item);
    if (!rt_topic_name_is_valid(name))
        return rt_fail(err, RT_E_INVALID, 0,
                       "kafka.source_topics: \"%.80s\" can be no topic's name: " RT_TOPIC_NAME_RULE, item);
    if (s->topics_count == RT_SOURCE_TOPICS_MAX)
        return rt_fail(err, RT_E_INVALID, 0, "kafka.source_topics: more than %d topics",
                       RT_SOURCE_TOPICS_MAX);
    s->topics[s->topics_count++] = (rt_source_topic){
        .name = item, .type = colon == NULL ? RT_STR_EMPTY : rt_str_of(colon + 1)};
    return RT_OK;
}

static rt_code take_topics(rt_source *s, rt_err *err) {
    s->topics_text = rt_str_dup(rt_str_of(s->cfg.topics));
    if (s->topics_text == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "kafka.source_topics");
    char *item = s->topics_text;
    rt_code code = RT_OK;
    while (item != NULL && code == RT_OK) {
        char *comma = strchr(item, ',');
        if (comma != NULL) *comma = '\0';
        code = take_topic(s, item, err);
        item = comma == NULL ? NULL : comma + 1;
    }
    return code;
}

static rt_code take_rules(rt_source *s, rt_err *err) {
    const rt_source_config *c = &s->cfg;
    s->rules = (rt_reading_rules){
        .type = rt_str_of(c->type_pointer),
        .reason = rt_str_of(c->reason_pointer),
        .key = rt_str_of(c->key_pointer),
        .id = rt_str_of(c->id_pointer),
        .order_by_key = c->order_by_key,
    };
    rt_code code = rt_pointer_check("kafka.type_pointer", s->rules.type, err);
    if (code == RT_OK) code = rt_pointer_check("kafka.reason_pointer", s->rules.reason, err);
    if (code == RT_OK) code = rt_pointer_check("kafka.key_pointer", s->rules.key, err);
    if (code == RT_OK) code = rt_pointer_check("kafka.id_pointer", s->rules.id, err);
    if (code == RT_OK && !rt_topic_name_is_valid(rt_str_of(c->dead_topic)))
        code = rt_fail(err, RT_E_INVALID, 0, "\"%.80s\" can be no topic's name: " RT_TOPIC_NAME_RULE,
                       c->dead_topic);
    return code;
}

static rt_code take_settings(rt_source *s, const rt_source_config *cfg, rt_err *err) {
    s->cfg = *cfg;
    const rt_code code = take_topics(s, err);
    return code == RT_OK ? take_rules(s, err) : code;
}

rt_code rt_source_check(const rt_source_config *cfg, rt_err *err) {
    rt_source *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "Kafka source");
    const rt_code code = take_settings(s, cfg, err);
    free(s->topics_text);
    free(s);
    return code;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

rt_code rt_source_open(const rt_source_config *cfg, rt_source **out, rt_err *err) {
    rt_source *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "Kafka source");
    s->stop_note.kind = RT_NOTE_STOP;
    (void)snprintf(s->tag, sizeof s->tag, "%08x", (unsigned)rt_engine_tag(cfg->engine));
    s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rt_code code = s->fd < 0 ? rt_fail(err, RT_E_IO, errno, "eventfd") : take_settings(s, cfg, err);
    // One note of each partition, of each letter, and the one to stop. Those of revoked ones may yet come.
    const size_t notes = 2 * (size_t)RT_SOURCE_PARTITIONS_MAX + RT_SOURCE_LETTERS_MAX + 1;
    if (code == RT_OK) code = rt_ring_open(notes, SIZE_MAX, &s->notes, err);
    if (code != RT_OK) {
        rt_source_close(s);
        return code;
    }
    *out = s;
    return RT_OK;
}

rt_code rt_source_start(rt_source *s, const rt_executor *dead_letters, rt_err *err) {
    s->dead_letters = *dead_letters;
    const int bad = pthread_create(&s->thread, NULL, run, s);
    s->running = bad == 0;
    return bad == 0 ? RT_OK : rt_fail(err, RT_E_IO, bad, "Kafka source's thread: %s", strerror(bad));
}

const rt_source_stats *rt_source_stats_of(const rt_source *s) { return &s->stats; }

void rt_source_stop(rt_source *s) {
    if (s == NULL || !s->running) return;
    const bool taken = rt_ring_push(s->notes, &s->stop_note, 0);
    RT_ASSERT(taken);
    pthread_join(s->thread, NULL);
    s->running = false;
}

void rt_source_close(rt_source *s) {
    if (s == NULL) return;
    RT_ASSERT(!s->running);
    if (s->notes != NULL) rt_notes_take(s);
    // The engine and the executor are closed: what has not been told of by now never will be.
    while (s->letters_out != NULL) rt_letter_free(s, s->letters_out);
    for (rt_partition *p = s->partitions; p != NULL; p = p->after) p->letters = 0;
    rt_assign_sweep(s);
    rt_ring_close(s->notes);
    if (s->fd >= 0) (void)close(s->fd);
    free(s->topics_text);
    free(s);
}
