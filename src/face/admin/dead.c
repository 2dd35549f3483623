#include <string.h>

#include "face/admin/pages.h"

enum { PAGE_DEFAULT = 20, PAGE_MAX = 1000, SCAN_MAX = 100000 };

/* ---- which ----------------------------------------------------------------------------------------------------------- */

static bool reason_named(rt_str name, rt_reason *out) {
    for (int r = RT_REASON_NONE + 1; r < RT_REASON_COUNT; r++) {
        if (!rt_str_eq(name, rt_str_of(rt_reason_name((rt_reason)r)))) continue;
        *out = (rt_reason)r;
        return true;
    }
    return false;
}

/* False: replied. Empty names mean "any". */
static bool make_filter(rt_exchange *x, rt_view *v, rt_str queue, rt_str reason, rt_dead_filter *out) {
    *out = (rt_dead_filter){0};
    if (reason.len > 0 && !reason_named(reason, &out->reason)) {
        rt_problem(x, 400,
                   "\"reason\" is not one that jobs die of, such as exhausted, rejected, expired or "
                   "address_refused.");
        return false;
    }
    if (queue.len == 0) return true;
    const rt_code code = rt_queue_named(x, v, queue, out);
    if (code == RT_OK) return true;
    rt_problem_of(x, code, NULL, "queue");
    return false;
}

/* ---- listing --------------------------------------------------------------------------------------------------------- */

typedef struct listing {
    rt_exchange *x;
    rt_view *v;
    json_t *array;
    int64_t left;
    rt_id last_queue, last;
    rt_id named; /* the queue whose name is `name` */
    rt_str name;
} listing;

static bool add_dead(void *ctx, const rt_job *job) {
    listing *l = ctx;
    if (l->named != job->queue) {
        l->name = rt_queue_name_of(l->x, l->v, job->queue);
        l->named = job->queue;
    }
    if (json_array_append_new(l->array, rt_json_job(l->x, job, l->name)) != 0) return false;
    l->last_queue = job->queue;
    l->last = job->id;
    return --l->left > 0;
}

/* A marker is where the page before ended: "<queue id>.<job id>". */
static bool read_marker(rt_exchange *x, rt_id *queue, rt_id *job) {
    rt_str marker;
    *queue = *job = 0;
    if (!rt_exchange_arg(x, "marker", &marker) || marker.len == 0) return true;
    const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
    rt_str head;
    rt_str rest;
    if (rt_str_cut(marker, '.', &head, &rest) && rt_id_parse(tag, head, queue) && rt_id_parse(tag, rest, job))
        return true;
    rt_problem(x, 400, "\"marker\" must be the \"next\" of the page before.");
    return false;
}

static json_t *next_marker(const listing *l, bool more) {
    if (!more || l->last == 0) return json_null();
    const uint32_t tag = rt_engine_tag(rt_api_of(l->x)->engine);
    return json_sprintf("%s.%s", rt_id_format(tag, l->last_queue).s, rt_id_format(tag, l->last).s);
}

void rt_page_dead_list(rt_exchange *x) {
    rt_str queue = RT_STR_EMPTY;
    rt_str reason = RT_STR_EMPTY;
    rt_id after_queue;
    rt_id after;
    rt_dead_filter filter;
    listing l = {.x = x};
    (void)rt_exchange_arg(x, "queue", &queue);
    (void)rt_exchange_arg(x, "reason", &reason);
    if (!rt_arg_int(x, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &l.left) || !read_marker(x, &after_queue, &after))
        return;
    l.v = rt_problem_view(x);
    if (l.v == NULL) return;
    if (!make_filter(x, l.v, queue, reason, &filter)) {
        rt_view_close(l.v);
        return;
    }
    bool more = false;
    l.array = json_array();
    const rt_code code = rt_read_dead(l.v, &filter, after_queue, after, SCAN_MAX, add_dead, &l, &more);
    rt_view_close(l.v);
    if (code != RT_OK) {
        json_decref(l.array);
        rt_problem_of(x, code, NULL, "job");
        return;
    }
    rt_reply_json(x, 200, json_pack("{s:o, s:o}", "dead", l.array, "next", next_marker(&l, more)));
}

/* ---- one ------------------------------------------------------------------------------------------------------------- */

static void redriven(rt_exchange *x, rt_command *cmd) {
    const rt_dead_redrive *c = (const rt_dead_redrive *)cmd;
    if (cmd->code == RT_OK)
        rt_reply_json(x, 200, json_pack("{s:o, s:s}", "id", rt_json_id(x, c->id), "state", "scheduled"));
    else if (cmd->code == RT_E_FENCED)
        rt_problem(x, 409, "The job is not dead, so there is nothing to redrive.");
    else rt_problem_of(x, cmd->code, &cmd->err, "dead job");
}

void rt_page_dead_redrive(rt_exchange *x) {
    rt_id id;
    if (!rt_param_id(x, 0, "dead job", &id)) return;
    rt_dead_redrive *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_problem_of(x, RT_E_NOMEM, NULL, "job");
        return;
    }
    rt_dead_redrive_init(c);
    c->id = id;
    rt_api_submit(x, &c->cmd, sizeof *c, redriven, rt_problem_busy);
}

/* ---- many ------------------------------------------------------------------------------------------------------------ */

static bool count_dead(void *ctx, const rt_job *job) {
    (void)job;
    ++*(int64_t *)ctx;
    return true;
}

static void started(rt_exchange *x, rt_command *cmd) {
    const rt_dead_many *c = (const rt_dead_many *)cmd;
    if (cmd->code == RT_OK)
        rt_reply_json(x, 202, json_pack("{s:o, s:b}", "cursor", rt_json_id(x, c->cursor), "dry_run", 0));
    else rt_problem_of(x, cmd->code, &cmd->err, "job");
}

typedef struct many {
    rt_dead_filter filter;
    int64_t rate, count;
    bool dry_run, counted_all;
} many;

static rt_str string_in(const json_t *object, const char *key) {
    return rt_str_of(json_string_value(json_object_get(object, key)));
}

static const rt_member OF_MANY[] = {{"queue", JSON_STRING, "a string"},
                                 {"filter", JSON_OBJECT, "an object"},
                                 {"rate", JSON_INTEGER, "a whole number"},
                                 {"dry_run", JSON_TRUE, "true or false"}};
static const rt_member OF_FILTER[] = {{"reason", JSON_STRING, "a string"}};

/* {"queue", "filter": {"reason"}, "rate", "dry_run"}; counts what matches now. False: replied. */
static bool read_many(rt_exchange *x, json_t *body, many *out) {
    if (!rt_members_are_right(x, body, OF_MANY, sizeof OF_MANY / sizeof *OF_MANY)) return false;
    const json_t *rate = json_object_get(body, "rate");
    json_t *inner = json_object_get(body, "filter");
    if (!rt_members_are_right(x, inner, OF_FILTER, sizeof OF_FILTER / sizeof *OF_FILTER)) return false;
    if (json_integer_value(rate) < 0 || json_integer_value(rate) > 1000000) {
        rt_problem(x, 400, "\"rate\" must be a whole number of jobs a second from 0 (no limit) to 1000000.");
        return false;
    }
    out->rate = json_integer_value(rate);
    out->dry_run = json_is_true(json_object_get(body, "dry_run"));
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return false;
    bool ok = make_filter(x, v, string_in(body, "queue"), string_in(inner, "reason"), &out->filter);
    if (ok && out->dry_run) {
        bool more;
        const rt_code code = rt_read_dead(v, &out->filter, 0, 0, SCAN_MAX, count_dead, &out->count, &more);
        out->counted_all = !more;
        ok = code == RT_OK;
        if (!ok) rt_problem_of(x, code, NULL, "job");
    }
    rt_view_close(v);
    return ok;
}

static void many_dead(rt_exchange *x, bool remove) {
    json_t *body = rt_body_json(x);
    if (body == NULL) return;
    many m = {0};
    const bool ok = read_many(x, body, &m);
    json_decref(body);
    if (!ok) return;
    if (m.dry_run) {
        rt_reply_json(x, 200,
                      json_pack("{s:I, s:b, s:b}", "count", (json_int_t)m.count, "counted_all", m.counted_all,
                                "dry_run", 1));
        return;
    }
    rt_dead_many *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_problem_of(x, RT_E_NOMEM, NULL, "job");
        return;
    }
    rt_dead_many_init(c);
    c->filter = m.filter;
    c->rate = (uint32_t)m.rate;
    c->remove = remove;
    rt_api_submit(x, &c->cmd, sizeof *c, started, rt_problem_busy);
}

void rt_page_dead_redrive_many(rt_exchange *x) { many_dead(x, false); }
void rt_page_dead_delete_many(rt_exchange *x) { many_dead(x, true); }
