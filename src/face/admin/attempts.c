#include <stdlib.h>

#include "face/admin/pages.h"

enum { ATTEMPTS_DEFAULT = 100, ATTEMPTS_MAX = 1000 };

typedef struct stream {
    rt_exchange *x;
    rt_buf lines;
    int64_t left;
} stream;

static bool add_line(void *ctx, const rt_event *e) {
    stream *s = ctx;
    json_t *json = rt_json_event(s->x, e);
    char *line = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (line == NULL) return false;
    rt_buf_add(&s->lines, rt_str_of(line));
    rt_buf_add_char(&s->lines, '\n');
    free(line);
    return --s->left > 0 && !s->lines.failed;
}

void rt_page_attempts(rt_exchange *x) {
    int64_t after;
    stream s = {.x = x};
    if (!rt_arg_int(x, "after", 0, INT64_MAX, 0, &after)) return;
    if (!rt_arg_int(x, "limit", 1, ATTEMPTS_MAX, ATTEMPTS_DEFAULT, &s.left)) return;
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    const rt_code code = rt_read_events(v, (uint64_t)after, add_line, &s);
    rt_view_close(v);
    if (code != RT_OK) {
        rt_buf_deinit(&s.lines);
        rt_problem_of(x, code, NULL, "event");
        return;
    }
    rt_exchange_reply_buf(x, 200, "application/x-ndjson", &s.lines);
}
