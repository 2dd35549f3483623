#include "engine/queue.h"
#include "face/admin/pages.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000, NAMES_SCAN_MAX = 10000 };

/* ---- names ----------------------------------------------------------------------------------------------------------- */

rt_str rt_queue_name_of(rt_exchange *x, rt_view *v, rt_id queue) {
    rt_queue record;
    if (rt_view_queue(v, queue, &record) != RT_OK) return RT_STR_EMPTY;
    const rt_str name = rt_arena_dup(rt_exchange_arena(x), record.name);
    return name.ptr == NULL ? RT_STR_EMPTY : name;
}

/* Queue names have no slash, projects may. */
static bool split_last(rt_str name, rt_str *project, rt_str *queue) {
    size_t at = name.len;
    while (at > 0 && name.ptr[at - 1] != '/') at--;
    if (at == 0) return false;
    *project = (rt_str){.ptr = name.ptr, .len = at - 1};
    *queue = (rt_str){.ptr = name.ptr + at, .len = name.len - at};
    return true;
}

typedef struct search {
    rt_arena *arena;
    rt_str queue, project; /* project: out; ptr NULL: not found */
    uint32_t left;
} search;

static bool find_project(void *ctx, const rt_queue *record) {
    search *s = ctx;
    rt_str project;
    rt_str queue;
    if (record->kind == RT_QUEUE_MESSAGES && !record->gone && split_last(record->name, &project, &queue) &&
        rt_str_eq(queue, s->queue)) {
        s->project = rt_arena_dup(s->arena, project);
        return false;
    }
    return --s->left > 0;
}

rt_code rt_queue_named(rt_exchange *x, rt_view *v, rt_str name, rt_dead_filter *filter) {
    rt_arena *arena = rt_exchange_arena(x);
    if (rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), name, &filter->queue)) return RT_OK;
    rt_str project;
    rt_str queue = name;
    rt_metadata metadata;
    uint64_t version;
    rt_code code;
    if (!rt_exchange_header(x, "X-Project-ID", &project) && !split_last(name, &project, &queue)) {
        search s = {.arena = arena, .queue = name, .left = NAMES_SCAN_MAX};
        code = rt_view_queues(v, 0, find_project, &s);
        if (code != RT_OK) return code;
        if (s.project.ptr == NULL) return RT_E_ABSENT;
        project = s.project;
    }
    code = rt_read_metadata(v, arena, project, queue, &metadata, &version);
    if (code == RT_OK) filter->owner = metadata.id;
    return code;
}

/* ---- showing --------------------------------------------------------------------------------------------------------- */

static const char *kind_name(const rt_queue *q) {
    return q->kind == RT_QUEUE_WORK ? "work" : q->kind == RT_QUEUE_MESSAGES ? "messages" : "delivery";
}

static json_t *line_json(const rt_exchange *x, const rt_queue_line *line) {
    const rt_queue *q = &line->queue;
    const rt_counts *c = &line->counts;
    return json_pack("{s:o, s:s%, s:s, s:b, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "id",
                     rt_json_id(x, q->id), "name", q->name.len > 0 ? q->name.ptr : "", q->name.len, "kind",
                     kind_name(q), "paused",
                     q->paused_until_ms != 0, "paused_until", rt_json_time(q->paused_until_ms), "ready",
                     (json_int_t)c->ready, "scheduled", (json_int_t)c->scheduled, "free", (json_int_t)c->free,
                     "leased", (json_int_t)c->leased, "dead", (json_int_t)c->dead, "done",
                     (json_int_t)c->done, "bytes", (json_int_t)c->bytes, "oldest",
                     rt_json_time(line->oldest_ms), "next_due", rt_json_time(line->next_due_ms));
}

typedef struct listing {
    rt_exchange *x;
    json_t *array;
    int64_t left;
    rt_id last;
} listing;

static bool add_line(void *ctx, const rt_queue_line *line) {
    listing *l = ctx;
    l->last = line->queue.id;
    if (json_array_append_new(l->array, line_json(l->x, line)) != 0) return false;
    return --l->left > 0;
}

void rt_page_queue_list(rt_exchange *x) {
    listing l = {.x = x};
    rt_str marker;
    rt_id after = 0;
    if (!rt_arg_int(x, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &l.left)) return;
    const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
    if (rt_exchange_arg(x, "marker", &marker) && marker.len > 0 && !rt_id_parse(tag, marker, &after)) {
        rt_problem(x, 400, "\"marker\" must be the \"next\" of the page before.");
        return;
    }
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    l.array = json_array();
    const rt_code code = rt_read_queue_lines(v, after, add_line, &l);
    rt_view_close(v);
    if (code != RT_OK) {
        json_decref(l.array);
        rt_problem_of(x, code, NULL, "queue");
        return;
    }
    rt_reply_json(
        x, 200,
        json_pack("{s:o, s:o}", "queues", l.array, "next", l.left > 0 ? json_null() : rt_json_id(x, l.last)));
}

void rt_page_queue_get(rt_exchange *x) {
    rt_id id;
    rt_view *v = rt_param_id(x, 0, "queue", &id) ? rt_problem_view(x) : NULL;
    if (v == NULL) return;
    rt_queue_line line;
    const rt_code code = rt_read_queue_line(v, id, &line);
    json_t *json = code == RT_OK ? line_json(x, &line) : NULL; // its name is the view's
    rt_view_close(v);
    if (code == RT_OK) rt_reply_json(x, 200, json);
    else rt_problem_of(x, code, NULL, "queue");
}

/* ---- pausing --------------------------------------------------------------------------------------------------------- */

static void paused(rt_exchange *x, rt_command *cmd) {
    const rt_queue_pause *c = (const rt_queue_pause *)cmd;
    if (cmd->code != RT_OK) {
        rt_problem_of(x, cmd->code, &cmd->err, "queue");
        return;
    }
    rt_reply_json(x, 200,
                  json_pack("{s:o, s:b, s:o}", "id", rt_json_id(x, c->id), "paused", c->until_ms != 0,
                            "paused_until", rt_json_time(c->until_ms)));
}

static void set_pause(rt_exchange *x, int64_t until_ms) {
    rt_id id;
    if (!rt_param_id(x, 0, "queue", &id)) return;
    rt_queue_pause *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_problem_of(x, RT_E_NOMEM, NULL, "queue");
        return;
    }
    rt_queue_pause_init(c);
    c->id = id;
    c->until_ms = until_ms;
    rt_api_submit(x, &c->cmd, sizeof *c, paused, rt_problem_busy);
}

void rt_page_queue_pause(rt_exchange *x) {
    json_t *body = rt_body_json(x);
    if (body == NULL) return;
    static const char WANTED[] = "a whole number from 1 to 31536000, or left out: until resumed";
    static const rt_member MEMBERS[] = {{"seconds", JSON_INTEGER, WANTED}};
    const bool right = rt_members_are_right(x, body, MEMBERS, 1);
    const json_t *seconds = json_object_get(body, "seconds");
    const bool given = seconds != NULL;
    const json_int_t value = json_integer_value(seconds);
    json_decref(body);
    if (!right) return;
    if (given && (value < 1 || value > 31536000)) rt_problem(x, 400, "\"seconds\" must be %s.", WANTED);
    else set_pause(x, given ? rt_api_of(x)->now_ms() + value * 1000 : INT64_MAX);
}

void rt_page_queue_resume(rt_exchange *x) { set_pause(x, 0); }
