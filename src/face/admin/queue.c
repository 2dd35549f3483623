#include "engine/calls/circuit.h"
#include "engine/queues/queue.h"
#include "face/admin/pages.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000 };

/* ---- showing ------------------------------------------------------------------------------------------- */

static const char *kind_name(const rt_queue *q) {
    switch ((rt_queue_kind)q->kind) {
        case RT_QUEUE_MESSAGES: return "messages";
        case RT_QUEUE_DELIVERY: return "delivery";
        case RT_QUEUE_WORK: return "work";
        case RT_QUEUE_ORDERS: return "orders";
        case RT_QUEUE_CALLS: return "events";
    }
    return "unknown";
}

static json_t *line_json(const rt_exchange *x, rt_view *v, const rt_queue_line *line) {
    const rt_queue *q = &line->queue;
    const rt_counts *c = &line->counts;
    return json_pack("{s:o, s:o, s:s, s:b, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "id",
                     rt_json_id(x, q->id), "name", rt_json_str(q->name), "kind",
                     kind_name(q), "paused", q->paused_until_ms != 0, "paused_until",
                     rt_json_time(q->paused_until_ms), "ready", (json_int_t)c->ready, "scheduled",
                     (json_int_t)c->scheduled, "free", (json_int_t)c->free, "leased", (json_int_t)c->leased, "dead",
                     (json_int_t)c->dead, "done", (json_int_t)c->done, "bytes", (json_int_t)c->bytes, "oldest",
                     rt_json_time(line->oldest_ms), "next_due", rt_json_time(line->next_due_ms), "circuit",
                     rt_json_circuit(x, v, q), "pace", rt_json_pace(&q->brakes));
}

typedef struct listing {
    rt_exchange *x;
    rt_view *view;
    json_t *array;
    int64_t left;
    rt_id last;
} listing;

static bool add_line(void *ctx, const rt_queue_line *line) {
    listing *l = ctx;
    l->last = line->queue.id;
    if (json_array_append_new(l->array, line_json(l->x, l->view, line)) != 0) return false;
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
    l.view = v;
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

/* The queue of the path: an id, or a name. False: replied. */
static bool take_queue(rt_exchange *x, rt_id *out) {
    if (rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, 0), out)) return true;
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return false;
    const rt_code code = rt_queue_of_any_kind(x, v, rt_exchange_param(x, 0), out);
    rt_view_close(v);
    if (code == RT_E_ABSENT)
        rt_problem(x, 404, "There is no such queue: say its id, or its name as GET /v1/queues shows it.");
    else if (code == RT_E_CONFLICT)
        rt_problem(x, 409, "Several queues have this name: say by its id which one is meant.");
    else if (code != RT_OK) rt_problem_of(x, code, NULL, "queue");
    return code == RT_OK;
}

void rt_page_queue_get(rt_exchange *x) {
    rt_id id;
    rt_view *v = take_queue(x, &id) ? rt_problem_view(x) : NULL;
    if (v == NULL) return;
    rt_queue_line line;
    const rt_code code = rt_read_queue_line(v, id, &line);
    json_t *json = code == RT_OK ? line_json(x, v, &line) : NULL; // its name is the view's
    rt_view_close(v);
    if (code == RT_OK) rt_reply_json(x, 200, json);
    else rt_problem_of(x, code, NULL, "queue");
}

/* ---- pausing ------------------------------------------------------------------------------------------- */

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
    if (!take_queue(x, &id)) return;
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

/* ---- the circuit --------------------------------------------------------------------------------------- */

static void forced(rt_exchange *x, rt_command *cmd) {
    const rt_queue_circuit *c = (const rt_queue_circuit *)cmd;
    if (cmd->code != RT_OK) {
        rt_problem_of(x, cmd->code, &cmd->err, "queue");
        return;
    }
    rt_queue_line line;
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    const rt_code code = rt_read_queue_line(v, c->id, &line);
    json_t *json = code != RT_OK ? NULL : json_pack("{s:o, s:o}", "id", rt_json_id(x, c->id), "circuit",
                                                    rt_json_circuit(x, v, &line.queue));
    rt_view_close(v);
    if (code == RT_OK) rt_reply_json(x, 200, json);
    else rt_problem_of(x, code, NULL, "queue");
}

static bool take_order(rt_exchange *x, rt_circuit_order *out) {
    static const char WANTED[] = "\"open\", \"closed\" or \"auto\"";
    static const rt_member MEMBERS[] = {{"state", JSON_STRING, WANTED}};
    static const char *const WORDS[] = {
        [RT_CIRCUIT_FORCE_OPEN] = "open", [RT_CIRCUIT_FORCE_CLOSED] = "closed", [RT_CIRCUIT_AUTO] = "auto"};
    json_t *body = rt_body_json(x);
    if (body == NULL) return false;
    const bool right = rt_members_are_right(x, body, MEMBERS, 1);
    const rt_str state = rt_field_str(json_object_get(body, "state"));
    size_t i = 0;
    while (i < sizeof WORDS / sizeof WORDS[0] && !rt_str_eq(state, rt_str_of(WORDS[i]))) i++;
    json_decref(body);
    *out = (rt_circuit_order)i;
    if (right && i == sizeof WORDS / sizeof WORDS[0]) rt_problem(x, 400, "\"state\" must be %s.", WANTED);
    return right && i < sizeof WORDS / sizeof WORDS[0];
}

void rt_page_queue_circuit(rt_exchange *x) {
    rt_queue_circuit *c = RT_NEW(x, rt_queue_circuit);
    if (c == NULL) return;
    rt_queue_circuit_init(c);
    if (take_order(x, &c->order) && take_queue(x, &c->id))
        rt_api_submit(x, &c->cmd, sizeof *c, forced, rt_problem_busy);
}
