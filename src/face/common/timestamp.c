#include "face/common/timestamp.h"

#include <time.h>

rt_timestamp rt_timestamp_format(int64_t unix_s) {
    if (unix_s < 0) unix_s = 0;
    if (unix_s > RT_TIMESTAMP_S_MAX) unix_s = RT_TIMESTAMP_S_MAX;
    const time_t at = (time_t)unix_s;
    struct tm tm;
    rt_timestamp out;
    const struct tm *utc = gmtime_r(&at, &tm);
    RT_ASSERT(utc != NULL);
    const size_t len = strftime(out.s, sizeof out.s, "%Y-%m-%dT%H:%M:%S", utc);
    RT_ASSERT(len == RT_TIMESTAMP_LEN);
    return out;
}

/* Takes `count` digits off the front. */
static bool take_number(rt_str *rest, size_t count, int *out) {
    if (rest->len < count) return false;
    int value = 0;
    for (size_t i = 0; i < count; i++) {
        const char c = rest->ptr[i];
        if (c < '0' || c > '9') return false;
        value = value * 10 + (c - '0');
    }
    *out = value;
    *rest = (rt_str){.ptr = rest->ptr + count, .len = rest->len - count};
    return true;
}

static bool take_char(rt_str *rest, char c) {
    if (rest->len == 0 || rest->ptr[0] != c) return false;
    *rest = (rt_str){.ptr = rest->ptr + 1, .len = rest->len - 1};
    return true;
}

/* "hh:mm[:ss[.fraction]]" */
static bool take_time(rt_str *rest, struct tm *tm) {
    if (!take_number(rest, 2, &tm->tm_hour) || !take_char(rest, ':') || !take_number(rest, 2, &tm->tm_min)) return false;
    if (!take_char(rest, ':')) return true;
    if (!take_number(rest, 2, &tm->tm_sec)) return false;
    if (!take_char(rest, '.')) return true;
    int digit;
    if (!take_number(rest, 1, &digit)) return false;
    while (take_number(rest, 1, &digit)) continue;
    return true;
}

/* Seconds east of UTC. */
static bool take_zone(rt_str *rest, int *east_s) {
    *east_s = 0;
    if (rest->len == 0 || take_char(rest, 'Z') || take_char(rest, 'z')) return true;
    const bool west = take_char(rest, '-');
    if (!west && !take_char(rest, '+')) return false;
    int hours, minutes = 0;
    if (!take_number(rest, 2, &hours)) return false;
    const bool colon = take_char(rest, ':');
    if ((colon || rest->len > 0) && !take_number(rest, 2, &minutes)) return false;
    if (hours > 23 || minutes > 59) return false;
    *east_s = (hours * 60 + minutes) * 60 * (west ? -1 : 1);
    return true;
}

bool rt_timestamp_parse(rt_str text, int64_t *unix_s) {
    rt_str rest = rt_str_trim(text);
    struct tm tm = {0};
    int east_s = 0;
    if (!take_number(&rest, 4, &tm.tm_year) || !take_char(&rest, '-') || !take_number(&rest, 2, &tm.tm_mon) ||
        !take_char(&rest, '-') || !take_number(&rest, 2, &tm.tm_mday)) {
        return false;
    }
    if (take_char(&rest, 'T') || take_char(&rest, ' ')) {
        if (!take_time(&rest, &tm) || !take_zone(&rest, &east_s)) return false;
    }
    if (rest.len > 0) return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    const struct tm asked = tm;
    const time_t at = timegm(&tm);
    // timegm takes a 31st of February for a day of March.
    if (tm.tm_mon != asked.tm_mon || tm.tm_mday != asked.tm_mday || tm.tm_hour != asked.tm_hour ||
        tm.tm_min != asked.tm_min || tm.tm_sec != asked.tm_sec || (int64_t)at - east_s < 0) {
        return false;
    }
    *unix_s = (int64_t)at - east_s;
    return true;
}
