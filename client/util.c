#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "parts.h"

enum { PAUSE_FIRST_MS = 100, PAUSE_LAST_MS = 10000, RTC_CONFIG_BYTES_MAX = 4096 };

retry_code rtc_fail(retry_error *error, retry_code code, const char *fmt, ...) {
    if (error == NULL) return code;
    error->code = code;
    error->status = 0;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(error->message, sizeof error->message, fmt, args);
    va_end(args);
    return code;
}

void rtc_log(retry_client *c, retry_log_level level, const char *fmt, ...) {
    if (c->log == NULL) return;
    char message[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    c->log(c->log_arg, level, message);
}

int64_t rtc_now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void rtc_random(void *out, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        const ssize_t got = getrandom((char *)out + done, bytes - done, 0);
        if (got > 0) done += (size_t)got;
        else if (errno != EINTR)
            abort(); // the kernel has no randomness: keys that may be alike would lose events
    }
}

int64_t rtc_pause_ms(uint32_t n) {
    int64_t pause = PAUSE_FIRST_MS;
    for (uint32_t i = 0; i < n && pause < PAUSE_LAST_MS; i++) pause *= 2;
    if (pause > PAUSE_LAST_MS) pause = PAUSE_LAST_MS;
    uint32_t chance;
    rtc_random(&chance, sizeof chance);
    return pause / 2 + chance % (pause / 2 + 1);
}

void rtc_new_key(char out[RTC_KEY_DIGITS + 1]) {
    static const char DIGITS[] = "0123456789abcdef";
    unsigned char bytes[RTC_KEY_DIGITS / 2];
    rtc_random(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        out[2 * i] = DIGITS[bytes[i] >> 4];
        out[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    out[2 * sizeof bytes] = '\0';
}

void rtc_host_name(char *out, size_t size) {
    char host[65] = "";
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    (void)snprintf(out, size, "%s-%ld", host, (long)getpid());
}

void rtc_sleep_ms(int64_t ms) {
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

bool rtc_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) return false;
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    const bool made = pthread_cond_init(cond, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return made;
}

void rtc_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t at_ms) {
    if (at_ms < 0) at_ms = 0;
    const struct timespec at = {.tv_sec = (time_t)(at_ms / 1000), .tv_nsec = (long)(at_ms % 1000) * 1000000};
    (void)pthread_cond_timedwait(cond, lock, &at);
}

bool rtc_thread_start(pthread_t *out, void *(*run)(void *), void *arg) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(out, NULL, run, arg) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

char *rtc_copy(const void *bytes, size_t len) {
    char *copy = malloc(len + 1);
    if (copy == NULL) return NULL;
    if (len > 0) memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

bool rtc_take_config(void *to, size_t to_size, const void *from, retry_error *error) {
    size_t from_size = sizeof from_size;
    memset(to, 0, to_size);
    if (from == NULL) return true;
    memcpy(&from_size, from, sizeof from_size);
    // Smaller than any of them has been, or larger than they will grow: it was not begun with its macro.
    if (from_size < 2 * sizeof(size_t) || from_size > RTC_CONFIG_BYTES_MAX) {
        (void)rtc_fail(error, RETRY_E_INVALID, "size is not set; the macros of client.h set it");
        return false;
    }
    memcpy(to, from, from_size < to_size ? from_size : to_size);
    return true;
}

bool rtc_check_word(const char *name, const char *word, size_t max, retry_error *error) {
    const size_t len = word == NULL ? 0 : strlen(word);
    bool printable = true;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)word[i] < 0x20 || word[i] == 0x7f) printable = false;
    if (len >= 1 && len <= max && printable) return true;
    (void)rtc_fail(error, RETRY_E_INVALID, "%s has 1 to %zu bytes and no control characters", name, max);
    return false;
}

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *rtc_base64(const void *bytes, size_t len) {
    const unsigned char *in = bytes;
    char *out = malloc((len + 2) / 3 * 4 + 1);
    if (out == NULL) return NULL;
    char *to = out;
    for (size_t i = 0; i < len; i += 3) {
        const size_t left = len - i;
        const uint32_t group =
            (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);
        *to++ = ALPHABET[group >> 18];
        *to++ = ALPHABET[group >> 12 & 63];
        *to++ = left > 1 ? ALPHABET[group >> 6 & 63] : '=';
        *to++ = left > 2 ? ALPHABET[group & 63] : '=';
    }
    *to = '\0';
    return out;
}

char *rtc_unbase64(const char *text, size_t *len) {
    size_t digits = strlen(text);
    while (digits > 0 && text[digits - 1] == '=') digits--;
    char *out = malloc(digits / 4 * 3 + 3);
    if (out == NULL) return NULL;
    uint32_t group = 0;
    size_t used = 0;
    for (size_t i = 0; i < digits; i++) {
        const char *digit = strchr(ALPHABET, text[i]);
        if (digit == NULL) {
            free(out);
            return NULL;
        }
        group = group << 6 | (uint32_t)(digit - ALPHABET);
        if (i % 4 != 0) out[used++] = (char)(group >> (6 - 2 * (i % 4)) & 255);
    }
    out[used] = '\0';
    *len = used;
    return out;
}
