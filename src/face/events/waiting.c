#include <inttypes.h>

#include "face/common/shown.h"
#include "face/events/parts.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000, SCAN_MAX = 100000 };

typedef struct listing {
    rt_exchange *x;
    rt_view *v;
    json_t *array;
    rt_str queue; /* its name */
    int64_t left;
} listing;

static bool add_event(void *ctx, const rt_job *job) {
    listing *l = ctx;
    return json_array_append_new(l->array, rt_json_job(l->x, l->v, job, l->queue)) == 0 && --l->left > 0;
}

/* A marker is where the page before ended: "<due>.<id>". False: replied. */
static bool read_marker(rt_exchange *x, rt_call_place *out) {
    rt_str marker, due, id;
    *out = (rt_call_place){0};
    if (!rt_exchange_arg(x, "marker", &marker) || marker.len == 0) return true;
    if (rt_str_cut(marker, '.', &due, &id) && rt_str_to_i64(due, &out->due_ms) && out->due_ms >= 0 &&
        rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), id, &out->id)) {
        return true;
    }
    rt_problem(x, 400, "\"marker\" must be the \"next\" of the page before.");
    return false;
}

static json_t *next_marker(const rt_exchange *x, const rt_call_place *place, bool more) {
    if (!more) return json_null();
    return json_sprintf("%" PRId64 ".%s", place->due_ms,
                        rt_id_format(rt_engine_tag(rt_api_of(x)->engine), place->id).s);
}

void rt_page_event_list(rt_exchange *x) {
    listing l = {.x = x};
    rt_str name, reason = RT_STR_EMPTY;
    rt_call_place place;
    rt_call_type type;
    uint64_t version;
    bool more = false;
    if (!rt_param_type(x, 0, &name) || !read_marker(x, &place)) return;
    if (!rt_arg_int(x, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &l.left)) return;
    (void)rt_exchange_arg(x, "reason", &reason);
    l.v = rt_problem_view(x);
    if (l.v == NULL) return;
    l.array = json_array();
    rt_code code = rt_read_call_type(l.v, rt_exchange_arena(x), rt_tenant_of(x), name, &type, &version);
    if (code == RT_OK) {
        l.queue = rt_queue_name_of(x, l.v, type.queue);
        code = rt_read_calls(l.v, &type, reason, &place, SCAN_MAX, add_event, &l, &more);
    }
    rt_view_close(l.v);
    if (code != RT_OK) {
        json_decref(l.array);
        rt_problem_of(x, code, NULL, "event type");
        return;
    }
    rt_reply_json(x, 200, json_pack("{s:o, s:o}", "events", l.array, "next", next_marker(x, &place, more)));
}
