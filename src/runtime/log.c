#include "runtime/log.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"

static const char *const LEVELS[] = {"debug", "info", "warn", "error"};

bool rt_log_level_parse(rt_str word, rt_log_level *out) {
    for (size_t i = 0; i < sizeof LEVELS / sizeof *LEVELS; i++) {
        if (!rt_str_eq(word, rt_str_of(LEVELS[i]))) continue;
        *out = (rt_log_level)i;
        return true;
    }
    return false;
}

/* Between quotes; what would end the string or the line is escaped as JSON does. */
static void add_quoted(rt_buf *out, rt_str s) {
    rt_buf_add_char(out, '"');
    for (size_t i = 0; i < s.len && out->len < RT_LOG_LINE_MAX; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (c == '"' || c == '\\') {
            rt_buf_add_char(out, '\\');
            rt_buf_add_char(out, (char)c);
        } else if (c < ' ' || c == 0x7f) {
            rt_buf_addf(out, "\\u%04x", (unsigned)c);
        } else {
            rt_buf_add_char(out, (char)c);
        }
    }
    rt_buf_add_char(out, '"');
}

static bool is_plain(rt_str s) {
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '=') return false;
    }
    return s.len > 0;
}

static void add_time(rt_buf *out, int64_t wall_ms) {
    const time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc;
    char text[32];
    if (gmtime_r(&seconds, &utc) == NULL || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        return;
    }
    rt_buf_addf(out, "%s.%03dZ", text, (int)(wall_ms % 1000));
}

static void add_field(rt_buf *out, bool json, const rt_log_field *field) {
    if (json) rt_buf_addf(out, ",\"%s\":", field->key);
    else rt_buf_addf(out, " %s=", field->key);
    if (field->text.ptr == NULL) rt_buf_addf(out, "%" PRId64, field->number);
    else if (!json && is_plain(field->text)) rt_buf_add(out, field->text);
    else add_quoted(out, field->text);
}

void rt_log_format(rt_buf *out, bool json, rt_log_level level, int64_t wall_ms, const char *event,
                   const rt_log_field fields[], size_t count) {
    if (json) rt_buf_add(out, RT_STR("{\"time\":\""));
    add_time(out, wall_ms);
    if (json) rt_buf_addf(out, "\",\"level\":\"%s\",\"event\":\"%s\"", LEVELS[level], event);
    else rt_buf_addf(out, " %s %s", LEVELS[level], event);
    for (size_t i = 0; i < count && out->len < RT_LOG_LINE_MAX; i++) add_field(out, json, &fields[i]);
    if (json) rt_buf_add_char(out, '}');
}

void rt_log_write(const rt_log *log, rt_log_level level, const char *event, const rt_log_field fields[],
                  size_t count) {
    if (level < log->level) return;
    rt_buf line = {0};
    rt_log_format(&line, log->json, level, rt_wall_ms(), event, fields, count);
    rt_buf_add_char(&line, '\n');
    if (!line.failed) (void)!write(log->fd, line.ptr, line.len); // there is nowhere to complain to
    rt_buf_deinit(&line);
}
