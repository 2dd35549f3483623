/* lines.h: what a child prints, cut into lines and bounded, so that a plugin cannot fill the server's log.
 * Pure. */
#ifndef RT_EXECUTOR_PLUGIN_LINES_H
#define RT_EXECUTOR_PLUGIN_LINES_H
#include "base/str.h"
#include "retryd/plugin.h"

enum {
    RT_LINES_A_SECOND = 50, /* more are counted and left out */
};

/* All zero: nothing was printed yet. */
typedef struct rt_lines {
    char line[RETRYD_LOG_LINE_MAX];
    size_t len;
    int64_t second; /* that `said` counts in */
    uint32_t said, left_out;
} rt_lines;

typedef void rt_each_line(void *ctx, rt_str line); /* without its end; control characters are '?' */

/* Takes what was printed at `now_ms`, and hands on each line that is whole. */
void rt_lines_take(rt_lines *l, rt_str bytes, int64_t now_ms, rt_each_line *each, void *ctx);
/* Nothing more will come: hands on what is left, and how many lines were left out. */
void rt_lines_end(rt_lines *l, rt_each_line *each, void *ctx);

#endif
