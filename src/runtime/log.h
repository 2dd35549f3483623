/* log.h: one line an event on stderr, as key=value or JSON. Never secrets: callers log names and numbers, no
 * bodies and no header values. */
#ifndef RT_RUNTIME_LOG_H
#define RT_RUNTIME_LOG_H
#include "base/str.h"

typedef enum rt_log_level { RT_LOG_DEBUG, RT_LOG_INFO, RT_LOG_WARN, RT_LOG_ERROR } rt_log_level;

typedef struct rt_log {
    rt_log_level level; /* what is below is not written */
    bool json;
    int fd;             /* borrowed */
} rt_log;

typedef struct rt_log_field {
    const char *key; /* letters and underscores */
    rt_str text;     /* ptr NULL: `number` is the value */
    int64_t number;
} rt_log_field;

/* False: the word is no level. */
bool rt_log_level_parse(rt_str word, rt_log_level *out);

enum { RT_LOG_LINE_MAX = 4096 /* longer lines are cut */ };
/* Any thread; one write a line, so that lines never mix. `event` is a short name: "store_trouble". */
void rt_log_write(const rt_log *log, rt_log_level level, const char *event, const rt_log_field fields[],
                  size_t count);

/* The line itself, without an end; `wall_ms` is Unix time. Cut at RT_LOG_LINE_MAX - 1 bytes of values. */
void rt_log_format(rt_buf *out, bool json, rt_log_level level, int64_t wall_ms, const char *event,
                   const rt_log_field fields[], size_t count);

#endif
