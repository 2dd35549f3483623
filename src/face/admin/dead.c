#include <stdlib.h>

#include "base/rng.h"
#include "engine/calls/call_read.h"
#include "face/admin/pages.h"
#include "face/common/payload.h"

enum {
    PAGE_DEFAULT = 20,
    PAGE_MAX = 1000,
    SCAN_MAX = 100000, /* dead jobs that one page looks at */
    GROUPS_MAX = 1000, /* of a count by something */
    EXPORT_DEFAULT = 1000,
    EXPORT_MAX = 10000,
    EXPORT_BYTES_MAX = 8 << 20 /* a page ends behind the line that passes this */
};

/* ---- what all pages do ----------------------------------------------------------------------------- */

/* One page of those that the query means. */
typedef struct page {
    rt_exchange *x;
    rt_view *v;
    rt_dead_filter filter;
    rt_dead_place place;
    int64_t limit;
    bool more;   /* there may be more behind `place` */
    rt_id named; /* the queue whose name is `name` */
    rt_str name;
} page;

/* A marker is where the page before ended: "<queue id>.<job id>". */
static bool read_marker(rt_exchange *x, rt_dead_place *out) {
    rt_str marker, head, rest;
    *out = (rt_dead_place){0};
    if (!rt_exchange_arg(x, "marker", &marker) || marker.len == 0) return true;
    const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
    if (rt_str_cut(marker, '.', &head, &rest) && rt_id_parse(tag, head, &out->queue) &&
        rt_id_parse(tag, rest, &out->job))
        return true;
    rt_problem(x, 400, "\"marker\" must be the \"next\" of the page before.");
    return false;
}

/* False: replied. Otherwise p->v is for rt_view_close. */
static bool open_page(rt_exchange *x, int64_t preset, int64_t max, page *p) {
    *p = (page){.x = x, .name = RT_STR_EMPTY};
    const rt_dead_words words = rt_dead_words_of_query(x);
    if (!rt_arg_int(x, "limit", 1, max, preset, &p->limit) || !read_marker(x, &p->place)) return false;
    p->v = rt_problem_view(x);
    if (p->v == NULL) return false;
    if (rt_dead_filter_make(x, p->v, &words, &p->filter)) return true;
    rt_view_close(p->v);
    return false;
}

static rt_code read_page(page *p, rt_each_job *each, void *ctx) {
    return rt_read_dead(p->v, &p->filter, &p->place, SCAN_MAX, each, ctx, &p->more);
}

/* Neighbours mostly are of one queue. */
static rt_str queue_name(page *p, rt_id queue) {
    if (p->named != queue) p->name = rt_queue_name_of(p->x, p->v, queue);
    p->named = queue;
    return p->name;
}

static json_t *marker_json(const rt_exchange *x, rt_id queue, rt_id job) {
    const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
    return json_sprintf("%s.%s", rt_id_format(tag, queue).s, rt_id_format(tag, job).s);
}

/* ---- listing --------------------------------------------------------------------------------------- */

typedef struct listing {
    page p; /* first member */
    json_t *array;
} listing;

static bool add_dead(void *ctx, const rt_job *job) {
    listing *l = ctx;
    json_t *json = rt_json_job(l->p.x, l->p.v, job, queue_name(&l->p, job->queue));
    return json_array_append_new(l->array, json) == 0 && --l->p.limit > 0;
}

void rt_page_dead_list(rt_exchange *x) {
    rt_str count;
    listing l = {.array = NULL};
    if (rt_exchange_arg(x, "count", &count) && rt_str_eq(count, RT_STR("1"))) {
        rt_page_dead_count(x);
        return;
    }
    if (!open_page(x, PAGE_DEFAULT, PAGE_MAX, &l.p)) return;
    l.array = json_array();
    const rt_code code = read_page(&l.p, add_dead, &l);
    rt_view_close(l.p.v);
    if (code != RT_OK) {
        json_decref(l.array);
        rt_problem_of(x, code, NULL, "job");
        return;
    }
    rt_reply_json(x, 200,
                  json_pack("{s:o, s:o}", "dead", l.array, "next",
                            l.p.more ? marker_json(x, l.p.place.queue, l.p.place.job) : json_null()));
}

/* ---- counting -------------------------------------------------------------------------------------- */

typedef enum group { BY_NOTHING, BY_REASON, BY_RETRY_REASON, BY_FAILURE, BY_QUEUE, BY_COUNT } group;
static const char *const GROUPS[BY_COUNT] = {"", "reason", "retry_reason", "failure", "queue"};

typedef struct count {
    page p; /* first member */
    group by;
    json_t *groups; /* name → how many */
    int64_t all;
} count;

/* Lent by the view or the arena. */
static rt_str group_of(count *c, const rt_job *job) {
    rt_call call;
    rt_event end;
    switch (c->by) {
    case BY_REASON: return rt_str_of(rt_reason_name(job->reason));
    case BY_RETRY_REASON:
        return (job->flags & RT_JOB_CALL) && rt_read_call(c->p.v, job, &call) == RT_OK ? call.reason
                                                                                       : RT_STR_EMPTY;
    case BY_FAILURE:
        if (job->last_event == 0 || rt_view_event(c->p.v, job->last_event, &end) != RT_OK)
            return RT_STR_EMPTY;
        return end.reason != RT_REASON_STATUS && end.status == 0
                   ? rt_str_of(rt_reason_name(end.reason))
                   : rt_arena_printf(rt_exchange_arena(c->p.x), "%u", (unsigned)end.status);
    case BY_QUEUE: return queue_name(&c->p, job->queue);
    case BY_NOTHING:
    case BY_COUNT: break;
    }
    return RT_STR_EMPTY;
}

static bool count_dead(void *ctx, const rt_job *job) {
    count *c = ctx;
    c->all++;
    if (c->by == BY_NOTHING) return true;
    const rt_str name = group_of(c, job);
    if (name.ptr == NULL) return false;
    json_t *known = json_object_getn(c->groups, name.ptr, name.len);
    if (known != NULL) return json_integer_set(known, json_integer_value(known) + 1) == 0;
    if (json_object_size(c->groups) == GROUPS_MAX) return true;
    (void)json_object_setn_new(c->groups, name.ptr, name.len,
                               json_integer(1)); // what is no UTF-8 is in no group
    return true;
}

void rt_page_dead_count(rt_exchange *x) {
    count c = {.by = BY_NOTHING};
    rt_str by = RT_STR_EMPTY;
    (void)rt_exchange_arg(x, "by", &by);
    while (c.by < BY_COUNT && !rt_str_eq(by, rt_str_of(GROUPS[c.by]))) c.by++;
    if (c.by == BY_COUNT) {
        rt_problem(x, 400, "\"by\" must be reason, retry_reason, failure or queue.");
        return;
    }
    if (!open_page(x, PAGE_DEFAULT, PAGE_MAX, &c.p)) return;
    c.groups = json_object();
    const rt_code code = read_page(&c.p, count_dead, &c);
    rt_view_close(c.p.v);
    json_t *json =
        code == RT_OK ? json_pack("{s:I, s:b}", "count", (json_int_t)c.all, "counted_all", !c.p.more) : NULL;
    if (json != NULL && c.by != BY_NOTHING) (void)json_object_set(json, "by", c.groups);
    json_decref(c.groups);
    if (code == RT_OK) rt_reply_json(x, 200, json);
    else rt_problem_of(x, code, NULL, "job");
}

/* ---- a sample: each of those that match is as likely as any other ---------------------------------- */

typedef struct sample {
    page p;       /* first member */
    rt_job *jobs; /* p.limit of them */
    int64_t seen;
    rt_rng rng;
} sample;

/* Source: Vitter, "Random sampling with a reservoir", 1985, algorithm R. */
static bool draw(void *ctx, const rt_job *job) {
    sample *s = ctx;
    const uint64_t at =
        s->seen < s->p.limit ? (uint64_t)s->seen : rt_rng_below(&s->rng, (uint64_t)s->seen + 1);
    if (at < (uint64_t)s->p.limit) s->jobs[at] = *job;
    s->seen++;
    return true;
}

void rt_page_dead_sample(rt_exchange *x) {
    sample s = {.jobs = NULL};
    if (!open_page(x, 10, 100, &s.p)) return;
    s.rng = rt_rng_seeded(rt_hash_str(rt_str_of(rt_exchange_id(x))));
    s.jobs = rt_arena_alloc(rt_exchange_arena(x), (size_t)s.p.limit * sizeof *s.jobs);
    const rt_code code = s.jobs == NULL ? RT_E_NOMEM : read_page(&s.p, draw, &s);
    json_t *array = json_array();
    for (int64_t i = 0; code == RT_OK && i < s.p.limit && i < s.seen; i++) {
        (void)json_array_append_new(array,
                                    rt_json_job(x, s.p.v, &s.jobs[i], queue_name(&s.p, s.jobs[i].queue)));
    }
    rt_view_close(s.p.v);
    if (code != RT_OK) {
        json_decref(array);
        rt_problem_of(x, code, NULL, "job");
        return;
    }
    rt_reply_json(
        x, 200,
        json_pack("{s:o, s:I, s:b}", "dead", array, "count", (json_int_t)s.seen, "counted_all", !s.p.more));
}

/* ---- export ---------------------------------------------------------------------------------------- */

typedef struct export {
    page p; /* first member */
    rt_buf lines;
}
export;

static json_t *line_json(export *e, const rt_job *job) {
    json_t *json = rt_json_job(e->p.x, e->p.v, job, queue_name(&e->p, job->queue));
    rt_call call = {.content_type = RT_STR_EMPTY};
    rt_str body = RT_STR_EMPTY;
    rt_code code = RT_OK;
    if (json == NULL) return NULL;
    if (job->flags & RT_JOB_CALL) {
        code = rt_read_call(e->p.v, job, &call);
        body = call.payload;
    } else {
        code = rt_view_body(e->p.v, job->body, &body);
    }
    if (code == RT_OK) (void)rt_payload_show(json, call.content_type, body);
    (void)json_object_set_new(json, "marker", marker_json(e->p.x, job->queue, job->id));
    return json;
}

static bool add_line(void *ctx, const rt_job *job) {
    export *e = ctx;
    json_t *json = line_json(e, job);
    char *line = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (line == NULL) {
        e->lines.failed = true;
        return false;
    }
    rt_buf_add(&e->lines, rt_str_of(line));
    rt_buf_add_char(&e->lines, '\n');
    free(line);
    return !e->lines.failed && --e->p.limit > 0 && e->lines.len < EXPORT_BYTES_MAX;
}

/* A page at a time, so that no view is held for longer than that: `Retryd-Next` has the marker of the next
 * one, if there is more. Each line has a marker too: whoever broke off goes on behind the last line that
 * was kept. */
void rt_page_dead_export(rt_exchange *x) {
    export e = {.lines = {0}};
    if (!open_page(x, EXPORT_DEFAULT, EXPORT_MAX, &e.p)) return;
    rt_code code = read_page(&e.p, add_line, &e);
    rt_view_close(e.p.v);
    if (code == RT_OK && e.lines.failed) code = RT_E_NOMEM;
    if (code != RT_OK) {
        rt_buf_deinit(&e.lines);
        rt_problem_of(x, code, NULL, "job");
        return;
    }
    if (e.p.more) {
        json_t *next = marker_json(x, e.p.place.queue, e.p.place.job);
        if (next != NULL) rt_exchange_set_header(x, "Retryd-Next", rt_str_of(json_string_value(next)));
        json_decref(next);
    }
    rt_exchange_reply_buf(x, 200, "application/x-ndjson", &e.lines);
}
