#include "source/kafka/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/kafka/letter.h"
#include "source/kafka/tell.h"

/* ---- collecting ---------------------------------------------------------------------------------------- */

static void keep(rt_partition *p, rd_kafka_message_t *m) {
    const uint32_t i = p->count++;
    p->messages[i] = m;
    p->records[i] = (rt_intake_record){.aside = false};
    p->refused[i] = NULL;
    p->bytes += m->len + m->key_len;
    p->next = m->offset + 1;
}

static void collect(rt_partition *p) {
    while (p->count < RT_INTAKE_RECORDS_MAX && p->bytes < RT_PARTITION_BATCH_BYTES) {
        rd_kafka_message_t *m = rd_kafka_consume_queue(p->queue, 0);
        if (m == NULL) return;
        if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR && m->offset >= p->next) {
            keep(p, m);
            continue;
        }
        if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR) { // its offset is there no more, or the topic is gone
            rt_tell(p->source, RT_SOURCE_TROUBLE, p->topic, p->number, p->next, rd_kafka_message_errstr(m));
            rt_source_reopen(p->source);
        }
        rd_kafka_message_destroy(m);
    }
}

/* The first `n` of the batch are done with. */
static void drop_records(rt_partition *p, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        p->bytes -= p->messages[i]->len + p->messages[i]->key_len;
        rd_kafka_message_destroy(p->messages[i]);
    }
    p->count -= n;
    memmove(p->messages, p->messages + n, p->count * sizeof *p->messages);
    memmove(p->records, p->records + n, p->count * sizeof *p->records);
    memmove(p->refused, p->refused + n, p->count * sizeof *p->refused);
}

/* ---- asking the engine --------------------------------------------------------------------------------- */

static void wait_a_little(rt_partition *p, int64_t now_ms, int64_t ms) {
    p->state = RT_PARTITION_WAIT;
    p->retry_at_ms = now_ms + ms;
}

/* False: out of memory. *refused: some can be no event and are not yet put aside. */
static bool read_records(rt_partition *p, bool *refused) {
    rt_source *s = p->source;
    bool nomem = false;
    *refused = false;
    rt_arena_clear(&p->arena);
    for (uint32_t i = 0; i < p->limit && !nomem; i++) {
        rt_intake_record *r = &p->records[i];
        if (r->aside) continue;
        p->refused[i] = rt_reading_item(&s->rules, p->type, p->messages[i], &p->arena, &r->item, &nomem);
        *refused = *refused || p->refused[i] != NULL;
    }
    return !nomem;
}

/* Sends those of the batch that can be no event to the dead-letter topic, as many as there is room for. */
static void write_letters(rt_partition *p, int64_t now_ms) {
    rt_source *s = p->source;
    bool told = false, room = true;
    p->state = RT_PARTITION_LETTERS;
    p->letter_failed = false;
    for (uint32_t i = 0; i < p->limit && room; i++) {
        if (p->records[i].aside || p->refused[i] == NULL) continue;
        if (!told) rt_tell(s, RT_SOURCE_REFUSED, p->topic, p->number, p->messages[i]->offset, p->refused[i]);
        told = true;
        room = rt_letter_send(p, i, false);
    }
    if (p->letters == 0) wait_a_little(p, now_ms, RT_PARTITION_RETRY_MS);
}

static void engine_done(rt_command *cmd) {
    rt_partition *p = cmd->ctx;
    const bool taken = rt_ring_push(p->source->notes, &p->note, 0);
    RT_ASSERT(taken); // there is room for one of each partition
}

static void ask(rt_partition *p, int64_t now_ms) {
    rt_source *s = p->source;
    bool refused;
    if (!read_records(p, &refused)) {
        wait_a_little(p, now_ms, RT_PARTITION_RETRY_MS);
        return;
    }
    if (refused) {
        write_letters(p, now_ms);
        return;
    }
    rt_intake_init(&p->intake);
    p->intake.cmd.done = engine_done;
    p->intake.cmd.ctx = p;
    p->intake.tenant = rt_str_of(s->cfg.project);
    p->intake.log = p->log;
    p->intake.from = p->offset;
    p->intake.to = p->messages[p->limit - 1]->offset + 1;
    p->intake.records = p->records;
    p->intake.count = p->limit;
    p->state = RT_PARTITION_ENGINE;
    if (!s->cfg.submit(s->cfg.submit_ctx, &p->intake.cmd, p->bytes))
        wait_a_little(p, now_ms, RT_PARTITION_RETRY_MS);
}

void rt_partition_step(rt_partition *p, int64_t now_ms) {
    if (p->revoked) return;
    if (p->state == RT_PARTITION_WAIT && now_ms >= p->retry_at_ms) {
        ask(p, now_ms);
        return;
    }
    if (p->state != RT_PARTITION_COLLECT) return;
    collect(p);
    p->limit = p->count;
    if (p->count > 0) ask(p, now_ms);
}

/* ---- what came of it ----------------------------------------------------------------------------------- */

static const char *why_refused(rt_code code) {
    if (code == RT_E_ABSENT) return "there is no such event type";
    if (code == RT_E_FENCED) return "its id is known for another payload";
    if (code == RT_E_TOO_LARGE) return "it is larger than an event may be";
    return "it breaks a rule of its event type";
}

static void count(atomic_uint_fast64_t *counter, uint64_t n) {
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void taken(rt_partition *p) {
    rt_source *s = p->source;
    uint32_t aside = 0;
    for (uint32_t i = 0; i < p->limit; i++) aside += p->records[i].aside ? 1 : 0;
    count(&s->stats.taken, p->limit - aside - p->intake.existed);
    count(&s->stats.known, p->intake.existed);
    count(&s->stats.refused, aside);
    p->offset = p->intake.to;
    drop_records(p, p->limit);
    p->limit = p->count;
    p->state = RT_PARTITION_COLLECT;
}

static void refused(rt_partition *p, int64_t now_ms) {
    for (uint32_t i = 0; i < p->limit; i++) {
        if (p->records[i].refused != RT_OK) p->refused[i] = why_refused(p->records[i].refused);
    }
    write_letters(p, now_ms);
}

/* The change that all of them are together is too large for the store: fewer at once. */
static void too_large(rt_partition *p, int64_t now_ms) {
    if (p->limit > 1) {
        p->limit /= 2;
        wait_a_little(p, now_ms, 0);
        return;
    }
    p->refused[0] = why_refused(RT_E_TOO_LARGE);
    write_letters(p, now_ms);
}

static void fenced(rt_partition *p) {
    count(&p->source->stats.fenced, 1);
    rt_tell(p->source, RT_SOURCE_FENCED, p->topic, p->number, p->offset, "");
    rt_source_reopen(p->source);
}

void rt_partition_decided(rt_partition *p, int64_t now_ms) {
    RT_ASSERT(p->state == RT_PARTITION_ENGINE);
    const rt_code code = p->intake.cmd.code;
    wait_a_little(p, now_ms, RT_PARTITION_RETRY_MS);
    if (code == RT_OK) taken(p);
    else if (p->revoked) return;
    else if (code == RT_E_INVALID) refused(p, now_ms);
    else if (code == RT_E_TOO_LARGE) too_large(p, now_ms);
    else if (code == RT_E_FENCED) fenced(p);
}

void rt_partition_lettered(rt_partition *p, rt_letter *letter, int64_t now_ms) {
    const uint32_t i = letter->record;
    RT_ASSERT(p->letters > 0);
    p->letters--;
    if (letter->status == 200) {
        p->records[i].aside = true;
    } else if (letter->status == 413 && !letter->bare && !p->revoked && rt_letter_send(p, i, true)) {
        // The dead-letter topic takes smaller records than the source: where it came from says enough.
    } else {
        if (!p->letter_failed)
            rt_tell(p->source, RT_SOURCE_TROUBLE, p->source->cfg.dead_topic, -1, -1, letter->text);
        p->letter_failed = true;
    }
    rt_letter_free(p->source, letter);
    if (p->letters > 0 || p->revoked) return;
    wait_a_little(p, now_ms, p->letter_failed ? RT_PARTITION_LETTER_RETRY_MS : 0);
}

void rt_partition_clear(rt_partition *p) {
    RT_ASSERT(p->state != RT_PARTITION_ENGINE);
    drop_records(p, p->count);
    if (p->queue != NULL) rd_kafka_queue_destroy(p->queue);
    p->queue = NULL;
}

void rt_partition_free(rt_partition *p) {
    RT_ASSERT(p->letters == 0);
    rt_partition_clear(p);
    rt_arena_deinit(&p->arena);
    free((void *)(uintptr_t)p->log.ptr);
    free(p);
}
