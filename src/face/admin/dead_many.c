#include "face/admin/pages.h"

enum { SCAN_MAX = 100000, RATE_MAX = 1000000, WORD_BYTES_MAX = 1024 };

/* ---- one ------------------------------------------------------------------------------------------- */

static void redriven(rt_exchange *x, rt_command *cmd) {
    const rt_dead_redrive *c = (const rt_dead_redrive *)cmd;
    if (cmd->code == RT_OK)
        rt_reply_json(x, 200, json_pack("{s:o, s:s}", "id", rt_json_id(x, c->id), "state", "scheduled"));
    else if (cmd->code == RT_E_FENCED)
        rt_problem(x, 409, "The job is not dead, so there is nothing to redrive.");
    else rt_problem_of(x, cmd->code, &cmd->err, "dead job");
}

void rt_page_dead_redrive(rt_exchange *x) {
    rt_dead_redrive *c = RT_NEW(x, rt_dead_redrive);
    if (c == NULL) return;
    rt_dead_redrive_init(c);
    if (rt_param_id(x, 0, "dead job", &c->id))
        rt_api_submit(x, &c->cmd, sizeof *c, redriven, rt_problem_busy);
}

static void deleted(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
    else if (cmd->code == RT_E_FENCED)
        rt_problem(x, 409, "The job is not dead; DELETE /v1/jobs/ID deletes any job.");
    else rt_problem_of(x, cmd->code, &cmd->err, "dead job");
}

void rt_page_dead_delete(rt_exchange *x) {
    rt_job_delete *c = RT_NEW(x, rt_job_delete);
    if (c == NULL) return;
    rt_job_delete_init(c);
    c->only_dead = true;
    if (rt_param_id(x, 0, "dead job", &c->id)) rt_api_submit(x, &c->cmd, sizeof *c, deleted, rt_problem_busy);
}

/* ---- many ------------------------------------------------------------------------------------------ */

typedef struct many {
    rt_dead_filter filter;
    int64_t rate, count;
    bool dry_run, counted_all;
} many;

static const rt_member OF_MANY[] = {{"queue", JSON_STRING, "a string"},
                                    {"type", JSON_STRING, "a string"},
                                    {"filter", JSON_OBJECT, "an object"},
                                    {"rate", JSON_INTEGER, "a whole number"},
                                    {"dry_run", JSON_TRUE, "true or false"}};
static const rt_member OF_FILTER[] = {
    {"type", JSON_STRING, "a string"},    {"reason", JSON_STRING, "a string"},
    {"failure", JSON_STRING, "a string"}, {"after", JSON_STRING, "a string"},
    {"before", JSON_STRING, "a string"},  {"text", JSON_STRING, "a string"}};

/* A copy, since the body is released before the command is done. False: replied. */
static bool take_word(rt_exchange *x, const json_t *object, const char *name, rt_str *out) {
    return rt_field_text(x, object, name, RT_OPTIONAL, WORD_BYTES_MAX, out);
}

static bool read_words(rt_exchange *x, const json_t *body, const json_t *filter, rt_dead_words *out) {
    rt_str type;
    if (!take_word(x, body, "queue", &out->queue) || !take_word(x, body, "type", &type) ||
        !take_word(x, filter, "type", &out->type) || !take_word(x, filter, "reason", &out->reason) ||
        !take_word(x, filter, "failure", &out->failure) || !take_word(x, filter, "after", &out->after) ||
        !take_word(x, filter, "before", &out->before) || !take_word(x, filter, "text", &out->text)) {
        return false;
    }
    if (out->type.len == 0) out->type = type;
    return true;
}

static bool count_dead(void *ctx, const rt_job *job) {
    (void)job;
    ++*(int64_t *)ctx;
    return true;
}

/* How many there are now. */
static rt_code count_many(rt_view *v, many *m) {
    rt_dead_place place = {0};
    bool more;
    const rt_code code = rt_read_dead(v, &m->filter, &place, SCAN_MAX, count_dead, &m->count, &more);
    m->counted_all = !more;
    return code;
}

/* Elsewhere null is as if it were left out. Here that would turn a program's missing name into all jobs there are. */
static bool has_no_null(rt_exchange *x, json_t *object) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        if (!json_is_null(value)) continue;
        rt_problem(x, 400, "\"%s\" is null, which names nothing; left out it means all.", name);
        return false;
    }
    return true;
}

/* {"queue" | "type", "filter": {…}, "rate", "dry_run"}; counts what matches now. False: replied. */
static bool read_many(rt_exchange *x, json_t *body, many *out) {
    rt_dead_words words;
    json_t *filter = json_object_get(body, "filter");
    if (!has_no_null(x, body) || !has_no_null(x, filter)) return false;
    if (!rt_members_are_right(x, body, OF_MANY, sizeof OF_MANY / sizeof *OF_MANY)) return false;
    if (!rt_members_are_right(x, filter, OF_FILTER, sizeof OF_FILTER / sizeof *OF_FILTER)) return false;
    if (!rt_field_int(x, body, "rate", 0, RATE_MAX, 0, &out->rate))
        return false; // jobs a second; 0: no limit
    if (!read_words(x, body, filter, &words)) return false;
    out->dry_run = json_is_true(json_object_get(body, "dry_run"));
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return false;
    bool ok = rt_dead_filter_make(x, v, &words, &out->filter);
    if (ok && out->dry_run) {
        const rt_code code = count_many(v, out);
        ok = code == RT_OK;
        if (!ok) rt_problem_of(x, code, NULL, "job");
    }
    rt_view_close(v);
    return ok;
}

static void started(rt_exchange *x, rt_command *cmd) {
    const rt_dead_many *c = (const rt_dead_many *)cmd;
    if (cmd->code == RT_OK)
        rt_reply_json(x, 202, json_pack("{s:o, s:b}", "cursor", rt_json_id(x, c->cursor), "dry_run", 0));
    else rt_problem_of(x, cmd->code, &cmd->err, "job");
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
    rt_dead_many *c = RT_NEW(x, rt_dead_many);
    if (c == NULL) return;
    rt_dead_many_init(c);
    c->filter = m.filter;
    c->rate = (uint32_t)m.rate;
    c->remove = remove;
    rt_api_submit(x, &c->cmd, sizeof *c, started, rt_problem_busy);
}

void rt_page_dead_redrive_many(rt_exchange *x) { many_dead(x, false); }
void rt_page_dead_delete_many(rt_exchange *x) { many_dead(x, true); }
