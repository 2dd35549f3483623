/* parts.h: what the files of the library share. Not installed. */
#ifndef RETRYD_CLIENT_PARTS_H
#define RETRYD_CLIENT_PARTS_H
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "retryd/client.h"
#include "spool.h"

#define RTC_PRINTF __attribute__((format(printf, 3, 4)))

/* ---- util.c: errors, log, time, chance, text ----------------------------------------------------------- */

/* Fills *error (may be NULL) and returns `code`. */
RTC_PRINTF retry_code rtc_fail(retry_error *error, retry_code code, const char *fmt, ...);
RTC_PRINTF void rtc_log(retry_client *c, retry_log_level level, const char *fmt, ...);

int64_t rtc_now_ms(void); /* CLOCK_MONOTONIC */
/* The n-th pause (n = 0, 1, …) of a series: 100 ms doubling to 10 s, the upper half of it by chance. */
int64_t rtc_pause_ms(uint32_t n);
void rtc_random(void *out, size_t bytes);
enum { RTC_KEY_DIGITS = 32 };
/* A new idempotency key, in hex. */
void rtc_new_key(char out[RTC_KEY_DIGITS + 1]);
/* "HOST-PID", cut to what fits. */
void rtc_host_name(char *out, size_t size);
void rtc_sleep_ms(int64_t ms);
/* For pthread_cond_timedwait: conditions that wait by CLOCK_MONOTONIC. */
bool rtc_cond_init(pthread_cond_t *cond);
/* Waits until signalled or `at_ms` (by rtc_now_ms). */
void rtc_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t at_ms);
/* A thread with all signals blocked. */
bool rtc_thread_start(pthread_t *out, void *(*run)(void *), void *arg);
/* Owned copy with a NUL behind it; NULL: out of memory. */
char *rtc_copy(const void *bytes, size_t len);
/* A struct that comes from outside: copied to `to`; its first member is its size, and what it does not have
 * is zero. NULL is all zeros. False: its size was not set. */
bool rtc_take_config(void *to, size_t to_size, const void *from, retry_error *error);

/* 1 to `max` bytes without control characters; `name` is for the error. NULL is refused. */
bool rtc_check_word(const char *name, const char *word, size_t max, retry_error *error);

/* Base64 (RFC 4648), owned, NUL behind it; NULL: out of memory, or (decode) not base64. */
char *rtc_base64(const void *bytes, size_t len);
char *rtc_unbase64(const char *text, size_t *len);

/* ---- client -------------------------------------------------------------------------------------------- */

enum { RTC_IDLE_HANDLES_MAX = 64, RTC_ANSWER_BYTES_MAX = 256 << 20 };

typedef struct rtc_registration rtc_registration;

/* A sign of life that is sent again and again: a heartbeat, the extension of a lease. See keeper.c. */
typedef struct rtc_beat rtc_beat;

struct retry_client {
    char *url;                       /* without a slash at the end */
    char *project, *token, *ca_file; /* NULL: none */
    int64_t timeout_ms;
    retry_log log;
    void *log_arg;

    pthread_mutex_t lock;             /* guards what follows, up to the next lock */
    void *idle[RTC_IDLE_HANDLES_MAX]; /* curl handles with their connections */
    size_t idle_count;
    rtc_registration *registrations; /* only ever grows */

    pthread_mutex_t keeper_lock;
    pthread_cond_t keeper_wake;
    rtc_beat *beats;
    pthread_t keeper;
    bool keeper_runs;
    bool keeper_stops;

    rtc_spool *spool; /* NULL: none */
    atomic_bool away; /* the server did not answer: events go to the spool until the sender gets through */
    pthread_mutex_t sender_lock;
    pthread_cond_t sender_wake;
    pthread_t sender;
    bool sender_runs, sender_news; /* guarded by sender_lock: runs; there is something to send */
    atomic_bool sender_stops;
    atomic_uint_fast64_t sent, refused;
};

/* ---- http.c -------------------------------------------------------------------------------------------- */

typedef struct rtc_ask {
    const char *method, *path;
    const void *body; /* NULL: none */
    size_t body_bytes;
    const char *content_type;   /* NULL: JSON */
    const char *const *headers; /* "Name: value", NULL behind the last; NULL: none */
    int64_t timeout_ms;
    const atomic_bool *stop; /* RETRY_E_AWAY within a second or so when it becomes true. NULL: never */
} rtc_ask;

typedef struct rtc_answer {
    long status;
    char *text; /* owned, NUL behind it; NULL if empty: free it */
    size_t bytes;
} rtc_answer;

/* One request. RETRY_OK: 2xx. RETRY_E_AWAY: no answer, 408, 429 or 5xx; RETRY_E_REFUSED: any other, with
 * answer->status and the server's words in *error. `answer` must be freed in any case. */
retry_code rtc_http(retry_client *c, const rtc_ask *ask, rtc_answer *answer, retry_error *error);
/* The same, repeated with growing pauses while it is RETRY_E_AWAY and *until_ms (by rtc_now_ms) is not
 * over; asks at least once. `until_ms` is read anew each time: it may move. */
retry_code rtc_http_until(retry_client *c, const rtc_ask *ask, const atomic_int_fast64_t *until_ms,
                          rtc_answer *answer, retry_error *error);
/* The answer as a JSON object, owned; NULL (with *error filled): it is none. */
json_t *rtc_answer_json(const rtc_answer *answer, retry_error *error);
/* PREFIX + percent-encoded segment + SUFFIX, owned. NULL: out of memory. */
char *rtc_path(const char *prefix, const char *segment, const char *suffix);
void rtc_http_cleanup(retry_client *c);

/* ---- keeper.c ------------------------------------------------------------------------------------------ */

/* Posts `body` to `path` three times in `life_ms`. The life began between `asked_ms` (by rtc_now_ms) and now,
 * which after a long poll is far apart: it is hoped for the later and renewed as for the earlier. Lost once the
 * server answers that it is over (404, 409, 410), or has not been heard of for `life_ms`. Copies its strings.
 * NULL: out of memory, or no thread. The caller has one reference. */
rtc_beat *rtc_beat_start(retry_client *c, const char *path, const char *body, int64_t asked_ms,
                         int64_t life_ms);
bool rtc_beat_lost(const rtc_beat *beat);
/* When it will be lost if nothing more is heard, by rtc_now_ms. Moves. */
const atomic_int_fast64_t *rtc_beat_good_until(const rtc_beat *beat);
rtc_beat *rtc_beat_ref(rtc_beat *beat);
/* The server said it itself. */
void rtc_beat_is_lost(rtc_beat *beat);
void rtc_beat_stop(rtc_beat *beat); /* sends no more; the reference stays. NULL is a no-op, here and below */
void rtc_beat_unref(rtc_beat *beat);
void rtc_keeper_stop(retry_client *c);

/* ---- event.c ------------------------------------------------------------------------------------------- */

/* An event on its way: the request with all that was left out filled in. Borrows everything. */
typedef struct rtc_event {
    const char *type, *content_type, *key;
    const char *reason, *order_key; /* NULL: none */
    const void *body;
    size_t body_bytes;
    uint32_t deliver_after_s;
} rtc_event;
bool rtc_event_check(const rtc_event *e, retry_error *error); /* within its limits */
/* Posts it by itself, again as rtc_http_until does. RETRY_SCHEDULED, with receipt->id; or an error. */
retry_code rtc_event_post(retry_client *c, const rtc_event *e, const atomic_int_fast64_t *until_ms,
                          const atomic_bool *stop, retry_receipt *receipt, retry_error *error);
/* As a line of the spool: an event of the batch request, its type, and when it was spooled, since deliver_after counts from
 * then. Owned text; NULL (with *error filled): its strings are no UTF-8, or out of memory. */
char *rtc_event_line(const rtc_event *e, retry_error *error);
/* Such a line as the server wants it now, owned. NULL: it is none. */
json_t *rtc_event_of_line(const rtc_spool_line *line);

/* ---- sender.c, run.c ----------------------------------------------------------------------------------- */

/* The thread that sends what is in the spool. */
retry_code rtc_sender_start(retry_client *c, retry_error *error);
void rtc_sender_wake(retry_client *c);
void rtc_sender_stop(retry_client *c);

struct rtc_registration {
    rtc_registration *next;
    retry_callback callback;
    void *arg;
    char type[]; /* NUL-terminated */
};

const rtc_registration *rtc_registered(retry_client *c, const char *type, retry_error *error);

/* What a callback sees. Strings borrowed. */
struct retry_call {
    const char *type, *content_type, *reason, *order_key, *id;
    const void *body;
    size_t body_bytes;
    uint32_t attempt;
    const rtc_beat *beat; /* NULL: no lease */
    bool gave_up;
    uint32_t not_before_s;
    char failed_reason[RETRY_REASON_BYTES_MAX + 1];
    char failed_details[1024];
};

#endif
