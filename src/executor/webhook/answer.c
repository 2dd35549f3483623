#include "executor/webhook/answer.h"

#include <curl/curl.h>
#include <string.h>

#include "base/utf8.h"

enum { SECONDS_MAX = 365 * 86400, DATE_TEXT_MAX = 64 };

static bool all_digits(rt_str s) {
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return false;
    }
    return s.len > 0;
}

int64_t rt_retry_after_ms(rt_str value, int64_t now_s) {
    const rt_str text = rt_str_trim(value);
    int64_t seconds;
    if (all_digits(text)) {
        if (!rt_str_to_i64(text, &seconds)) seconds = SECONDS_MAX;
    } else {
        char date[DATE_TEXT_MAX];
        if (text.len == 0 || text.len >= sizeof date) return -1;
        memcpy(date, text.ptr, text.len);
        date[text.len] = '\0';
        const time_t at = curl_getdate(date, NULL);
        // curl_getdate is lenient ("-5", "20300101"); every date form of the RFC holds a time of day.
        if (at < 0 || strchr(date, ':') == NULL) return -1;
        seconds = (int64_t)at > now_s ? (int64_t)at - now_s : 0;
    }
    return (seconds > SECONDS_MAX ? SECONDS_MAX : seconds) * 1000;
}

static bool is_control(const char *s, size_t bytes) {
    const unsigned char *p = (const unsigned char *)s;
    if (bytes == 1) return p[0] < 0x20 || p[0] == 0x7f;
    return bytes == 2 && p[0] == 0xc2 && p[1] < 0xa0; // U+0080..U+009F
}

size_t rt_excerpt_clean(rt_str raw, bool more, char *out, size_t cap) {
    size_t len = 0;
    for (size_t at = 0; at < raw.len;) {
        bool begun;
        size_t bytes = rt_utf8_char((rt_str){.ptr = raw.ptr + at, .len = raw.len - at}, &begun);
        if (begun && more) break;
        const char *shown = raw.ptr + at;
        size_t shown_bytes = bytes;
        if (bytes == 0) {
            shown = "\xef\xbf\xbd"; // U+FFFD
            shown_bytes = 3;
            bytes = 1;
        } else if (is_control(shown, bytes)) {
            shown = " ";
            shown_bytes = 1;
        }
        if (shown_bytes > cap - len) break;
        memcpy(out + len, shown, shown_bytes);
        len += shown_bytes;
        at += bytes;
    }
    return len;
}
