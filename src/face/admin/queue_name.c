#include "engine/calls/call_read.h"
#include "engine/messages/message_read.h"
#include "face/admin/pages.h"

enum { NAMES_SCAN_MAX = 10000 };

typedef struct search {
    rt_arena *arena;
    rt_str queue, project; /* project: out; ptr NULL: not found */
    bool type;
    uint32_t left;
} search;

/* The first project that has one of this name. Neither queues nor event types have a slash in their names. */
static bool find_project(void *ctx, const rt_queue *record) {
    search *s = ctx;
    rt_str project, queue;
    const bool kind = record->kind == RT_QUEUE_CALLS || (record->kind == RT_QUEUE_MESSAGES && !s->type);
    if (kind && !record->gone && rt_call_type_split(record->name, &project, &queue) &&
        rt_str_eq(queue, s->queue)) {
        s->project = rt_arena_dup(s->arena, project);
        return false;
    }
    return --s->left > 0;
}

rt_code rt_queue_named(rt_exchange *x, rt_view *v, rt_str name, bool type, rt_dead_filter *filter) {
    rt_arena *arena = rt_exchange_arena(x);
    if (rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), name, &filter->queue)) return RT_OK;
    rt_str project;
    rt_str queue = name;
    rt_code code;
    if (!rt_call_type_split(name, &project, &queue) && !rt_exchange_header(x, "X-Project-ID", &project)) {
        search s = {.arena = arena, .queue = name, .type = type, .left = NAMES_SCAN_MAX};
        code = rt_view_queues(v, 0, find_project, &s);
        if (code != RT_OK) return code;
        if (s.project.ptr == NULL) return RT_E_ABSENT;
        project = s.project;
    }
    rt_metadata metadata;
    rt_call_type found;
    uint64_t version;
    code = type ? RT_E_ABSENT : rt_read_metadata(v, arena, project, queue, &metadata, &version);
    if (code == RT_OK) filter->owner = metadata.id;
    if (code != RT_E_ABSENT) return code;
    code = rt_read_call_type(v, arena, project, queue, &found, &version);
    if (code == RT_OK) filter->queue = found.queue;
    return code;
}

/* ---- of any kind --------------------------------------------------------------------------------------- */

typedef struct any {
    rt_str name, project; /* project ptr NULL: whichever has one of this name */
    rt_id found;
    bool twice;
    uint32_t left;
} any;

/* As listings show it, or without the project in front. */
static bool is_named(const any *a, rt_str label) {
    rt_str project, rest;
    if (rt_str_eq(label, a->name)) return true;
    if (!rt_str_cut(label, '/', &project, &rest) || !rt_str_eq(rest, a->name)) return false;
    return a->project.ptr == NULL || rt_str_eq(project, a->project);
}

static bool find_any(void *ctx, const rt_queue *record) {
    any *a = ctx;
    const bool meant = !record->gone && is_named(a, record->name);
    a->twice = meant && a->found != 0;
    if (meant && !a->twice) a->found = record->id;
    return !a->twice && --a->left > 0;
}

rt_code rt_queue_of_any_kind(rt_exchange *x, rt_view *v, rt_str name, rt_id *out) {
    rt_dead_filter typed = {.queue = 0};
    rt_code code = rt_queue_named(x, v, name, true, &typed);
    *out = typed.queue;
    if (code != RT_E_ABSENT) return code;
    any a = {.name = name, .left = NAMES_SCAN_MAX};
    if (!rt_exchange_header(x, "X-Project-ID", &a.project)) a.project = (rt_str){0};
    code = rt_view_queues(v, 0, find_any, &a);
    *out = a.found;
    if (code != RT_OK) return code;
    return a.twice ? RT_E_CONFLICT : a.found == 0 ? RT_E_ABSENT : RT_OK;
}
