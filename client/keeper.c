#include <stdlib.h>
#include <string.h>

#include "parts.h"

/* One thread sends the signs of life of all leases and sessions, one after the other: each is small, and
 * where the server hangs there is none that would get through beside another. */

enum { BEAT_TIMEOUT_MS_MAX = 3000 };

struct rtc_beat {
    rtc_beat *next;
    retry_client *client;
    char *path, *body;
    int64_t life_ms;
    int64_t next_ms; /* guarded by keeper_lock, as `next` is */
    atomic_int_fast64_t good_until_ms;
    atomic_bool lost, stopped;
    atomic_uint refs;
};

void rtc_beat_unref(rtc_beat *b) {
    if (b == NULL || atomic_fetch_sub(&b->refs, 1) != 1) return;
    free(b->path);
    free(b->body);
    free(b);
}

rtc_beat *rtc_beat_ref(rtc_beat *b) {
    (void)atomic_fetch_add(&b->refs, 1);
    return b;
}

bool rtc_beat_lost(const rtc_beat *b) {
    return atomic_load(&b->lost) || rtc_now_ms() >= atomic_load(&b->good_until_ms);
}

void rtc_beat_is_lost(rtc_beat *b) { atomic_store(&b->lost, true); }

const atomic_int_fast64_t *rtc_beat_good_until(const rtc_beat *b) { return &b->good_until_ms; }

void rtc_beat_stop(rtc_beat *b) {
    if (b != NULL) atomic_store(&b->stopped, true); // the keeper drops it the next time that it looks
}

static void beat(rtc_beat *b) {
    const int64_t asked_ms = rtc_now_ms();
    const int64_t third = b->life_ms / 3;
    const rtc_ask ask = {.method = "POST",
                         .path = b->path,
                         .body = b->body,
                         .body_bytes = strlen(b->body),
                         .timeout_ms = third < BEAT_TIMEOUT_MS_MAX ? third : BEAT_TIMEOUT_MS_MAX};
    rtc_answer answer;
    retry_error error;
    const retry_code code = rtc_http(b->client, &ask, &answer, &error);
    free(answer.text);
    if (code == RETRY_OK) {
        atomic_store(&b->good_until_ms, asked_ms + b->life_ms);
    } else if (answer.status == 404 || answer.status == 409 || answer.status == 410) {
        if (!atomic_load(&b->stopped))
            rtc_log(b->client, RETRY_LOG_WARNING, "%s: lost: %s", b->path, error.message);
        rtc_beat_is_lost(b);
    } else {
        rtc_log(b->client, RETRY_LOG_WARNING, "%s: %s", b->path, error.message);
    }
    // One that failed is tried again soon: what is left may be short.
    b->next_ms = code == RETRY_OK ? asked_ms + third : rtc_now_ms() + third / 4 + 1;
}

/* Unlinks what is over, and returns the one whose turn is next. NULL: none. */
static rtc_beat *next_beat(retry_client *c) {
    rtc_beat *first = NULL;
    for (rtc_beat **at = &c->beats; *at != NULL;) {
        rtc_beat *b = *at;
        if (atomic_load(&b->stopped) || rtc_beat_lost(b)) {
            *at = b->next;
            if (!atomic_load(&b->stopped)) rtc_beat_is_lost(b); // nothing will renew it any more
            rtc_beat_unref(b);
            continue;
        }
        if (first == NULL || b->next_ms < first->next_ms) first = b;
        at = &b->next;
    }
    return first;
}

static void *keep(void *arg) {
    retry_client *c = arg;
    (void)pthread_mutex_lock(&c->keeper_lock);
    while (!c->keeper_stops) {
        rtc_beat *b = next_beat(c);
        if (b == NULL) {
            (void)pthread_cond_wait(&c->keeper_wake, &c->keeper_lock);
        } else if (b->next_ms > rtc_now_ms()) {
            rtc_cond_wait_until(&c->keeper_wake, &c->keeper_lock, b->next_ms);
        } else {
            (void)pthread_mutex_unlock(&c->keeper_lock); // only this thread unlinks, so b stays
            beat(b);
            (void)pthread_mutex_lock(&c->keeper_lock);
        }
    }
    (void)pthread_mutex_unlock(&c->keeper_lock);
    return NULL;
}

static bool add(retry_client *c, rtc_beat *b) {
    (void)pthread_mutex_lock(&c->keeper_lock);
    if (!c->keeper_runs) c->keeper_runs = rtc_thread_start(&c->keeper, keep, c);
    const bool runs = c->keeper_runs;
    if (runs) {
        b->next = c->beats;
        c->beats = rtc_beat_ref(b);
        (void)pthread_cond_signal(&c->keeper_wake);
    }
    (void)pthread_mutex_unlock(&c->keeper_lock);
    return runs;
}

rtc_beat *rtc_beat_start(retry_client *c, const char *path, const char *body, int64_t asked_ms,
                         int64_t life_ms) {
    rtc_beat *b = calloc(1, sizeof *b);
    if (b == NULL) return NULL;
    b->client = c;
    b->path = rtc_copy(path, strlen(path));
    b->body = rtc_copy(body, strlen(body));
    b->life_ms = life_ms;
    b->next_ms = asked_ms + life_ms / 3;
    atomic_init(&b->good_until_ms, rtc_now_ms() + life_ms);
    atomic_init(&b->refs, 1);
    if (b->path != NULL && b->body != NULL && add(c, b)) return b;
    rtc_beat_unref(b);
    return NULL;
}

void rtc_keeper_stop(retry_client *c) {
    (void)pthread_mutex_lock(&c->keeper_lock);
    c->keeper_stops = true;
    (void)pthread_cond_signal(&c->keeper_wake);
    (void)pthread_mutex_unlock(&c->keeper_lock);
    if (c->keeper_runs) (void)pthread_join(c->keeper, NULL);
    for (rtc_beat *b = c->beats, *next; b != NULL; b = next) {
        next = b->next;
        rtc_beat_unref(b);
    }
    c->beats = NULL;
}
