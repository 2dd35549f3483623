#include "source/kafka/letter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/kafka/reading.h"

enum { LETTER_TIMEOUT_MS = 20000 };

/* Headers that the executor sets itself, or that have a field of the attempt. */
static bool is_ours(const char *name) {
    static const char *const OURS[] = {"rtd-id", "rtd-attempt", "rtd-refused", "rtd-source", "content-type"};
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++) {
        if (strcmp(name, OURS[i]) == 0) return true;
    }
    return false;
}

static bool fits_line(const char *s, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '\n' || s[i] == '\r' || s[i] == '\0') return false;
    }
    return true;
}

/* The record's own headers, but for those that are no text. */
static void copy_headers(const rd_kafka_message_t *m, rt_buf *out) {
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t size;
    if (rd_kafka_message_headers(m, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
    for (size_t i = 0;
         rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        if (is_ours(name) || value == NULL || !fits_line(value, size) || strchr(name, ':') != NULL ||
            !fits_line(name, strlen(name)))
            continue;
        rt_buf_addf(out, "%s: %.*s\n", name, (int)size, (const char *)value);
    }
}

static rt_attempt *new_attempt(const rt_partition *p, uint32_t i, rt_letter *letter) {
    const rd_kafka_message_t *m = p->messages[i];
    rt_attempt like = {.number = 1, .timeout_ms = LETTER_TIMEOUT_MS};
    rt_buf headers = {0}, url = {0};
    char where[RT_TOPIC_NAME_MAX + 48];
    const int len = snprintf(where, sizeof where, "%s/%" PRId32 "/%" PRId64, p->topic, p->number, m->offset);
    RT_ASSERT(len > 0 && (size_t)len < sizeof where);
    copy_headers(m, &headers);
    rt_buf_addf(&headers, "rtd-refused: %s\nrtd-source: %s\n", p->refused[i], where);
    // Tools made for Spring's dead letters look for these.
    rt_buf_addf(&headers, "kafka_dlt-original-topic: %s\nkafka_dlt-exception-message: %s\n", p->topic,
                p->refused[i]);
    rt_buf_addf(&url, "kafka:%s", p->source->cfg.dead_topic);
    like.job = (rt_id)(uintptr_t)letter; // comes back with the outcome
    like.url = rt_buf_str(&url);
    like.headers = rt_buf_str(&headers);
    if (!rt_reading_header(m, "rtd-id", &like.message_id) || like.message_id.len == 0)
        like.message_id = rt_str_of(where);
    if (!rt_reading_header(m, "content-type", &like.content_type)) like.content_type = RT_STR_EMPTY;
    like.key = (rt_str){.ptr = m->key == NULL ? "" : m->key, .len = m->key_len};
    if (!letter->bare) like.body = (rt_str){.ptr = m->payload == NULL ? "" : m->payload, .len = m->len};
    rt_attempt *attempt = headers.failed || url.failed ? NULL : rt_attempt_new(&like);
    rt_buf_deinit(&headers);
    rt_buf_deinit(&url);
    return attempt;
}

bool rt_letter_send(rt_partition *p, uint32_t i, bool bare) {
    rt_source *s = p->source;
    if (s->letters == RT_SOURCE_LETTERS_MAX) return false;
    rt_letter *letter = calloc(1, sizeof *letter);
    if (letter == NULL) return false;
    letter->note = (rt_note){.kind = RT_NOTE_LETTER, .partition = p};
    letter->record = i;
    letter->bare = bare;
    rt_attempt *attempt = new_attempt(p, i, letter);
    if (attempt == NULL) {
        free(letter);
        return false;
    }
    s->letters++;
    p->letters++;
    letter->after = s->letters_out;
    if (letter->after != NULL) letter->after->before = letter;
    s->letters_out = letter;
    s->dead_letters.start(s->dead_letters.ctx, attempt);
    return true;
}

void rt_letter_free(rt_source *s, rt_letter *letter) {
    if (letter->before != NULL) letter->before->after = letter->after;
    else s->letters_out = letter->after;
    if (letter->after != NULL) letter->after->before = letter->before;
    free(letter);
}

/* The executor's thread. */
void rt_source_outcome(void *ctx, const rt_outcome *outcome) {
    rt_source *s = ctx;
    rt_letter *letter = (rt_letter *)(uintptr_t)outcome->job;
    letter->status = outcome->reason == RT_REASON_STATUS ? outcome->status : 0;
    (void)snprintf(letter->text, sizeof letter->text, "%.*s", (int)outcome->text_len, outcome->text);
    const bool taken = rt_ring_push(s->notes, letter, 0);
    RT_ASSERT(taken); // there is room for as many as may be on their way
}
