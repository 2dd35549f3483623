#include <string.h>

#include "face/common/timestamp.h"
#include "face/orders/parts.h"

static uint32_t tag_of(const rt_exchange *x) { return rt_engine_tag(rt_api_of(x)->engine); }

bool rt_param_uuid(rt_exchange *x, size_t i, const char *what, rt_id *out) {
    if (rt_uuid_parse(tag_of(x), rt_exchange_param(x, i), out)) return true;
    rt_refusal_of(x, RT_E_ABSENT, NULL, what);
    return false;
}

json_t *rt_json_uuid(const rt_exchange *x, rt_id id) { return json_string(rt_uuid_format(tag_of(x), id).s); }

json_t *rt_show_time(int64_t ms) {
    return json_sprintf("%s.%03d000", rt_timestamp_format(ms / 1000).s, (int)(ms % 1000));
}

/* ---- references ---------------------------------------------------------------------------------------- */

/* A name or address with a port, nothing that could be taken for more of a URL. */
static bool is_host(rt_str host) {
    static const char ALLOWED[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]";
    for (size_t i = 0; i < host.len; i++) {
        if (host.ptr[i] == '\0' || strchr(ALLOWED, host.ptr[i]) == NULL) return false;
    }
    return host.len > 0;
}

rt_str rt_show_place(rt_exchange *x, const char *noun) {
    const rt_str href = rt_api_of(x)->orders_href;
    rt_str host;
    rt_arena *arena = rt_exchange_arena(x);
    if (href.len > 0) return rt_arena_printf(arena, "%.*s/v1/%s", RT_STR_ARG(href), noun);
    if (rt_exchange_header(x, "Host", &host) && is_host(host)) {
        return rt_arena_printf(arena, "http://%.*s/v1/%s", RT_STR_ARG(host), noun);
    }
    return rt_arena_printf(arena, "/v1/%s", noun); // clients look at the UUID only
}

json_t *rt_show_ref(rt_exchange *x, const char *noun, rt_id id) {
    const rt_str place = rt_show_place(x, noun);
    if (place.ptr == NULL) return NULL;
    return json_sprintf("%s/%s", place.ptr, rt_uuid_format(tag_of(x), id).s);
}

/* ---- an order and its task ----------------------------------------------------------------------------- */

static bool add(json_t *json, const char *name, json_t *value) {
    return json_object_set_new(json, name, value) == 0;
}

/* Absent instead of null: Barbican's client tells them apart. */
static bool add_text(json_t *json, const char *name, rt_str text) {
    return text.len == 0 || add(json, name, rt_json_str(text));
}

static bool add_result(rt_exchange *x, json_t *json, const char *name, const char *noun, rt_id id,
                       rt_str elsewhere) {
    if (id == 0) return add_text(json, name, elsewhere);
    return add(json, name, rt_show_ref(x, noun, id));
}

json_t *rt_show_order(rt_exchange *x, const rt_order *o) {
    json_t *json = json_pack("{s:o, s:o, s:s, s:o, s:o, s:o}", "created", rt_show_time(o->created_ms),
                             "updated", rt_show_time(o->updated_ms), "status",
                             rt_order_status_name(o->status), "type", rt_json_str(o->type), "meta",
                             rt_json_value(o->meta), "order_ref", rt_show_ref(x, "orders", o->id));
    bool fine = json != NULL && add_text(json, "creator_id", o->creator) &&
                add_result(x, json, "secret_ref", "secrets", o->secret, o->secret_ref) &&
                add_result(x, json, "container_ref", "containers", o->container, o->container_ref);
    if (fine && o->has_sub_status) {
        fine = add(json, "sub_status", rt_json_str(o->sub_status)) &&
               add(json, "sub_status_message", rt_json_str(o->sub_status_message));
    }
    if (fine && o->status == RT_ORDER_ERROR) {
        fine = add(json, "error_status_code", rt_json_str(o->error_code)) &&
               add(json, "error_reason", rt_json_str(o->error_reason));
    }
    if (fine) return json;
    json_decref(json);
    return NULL;
}

json_t *rt_show_task(rt_exchange *x, const rt_order *o, const rt_job *task) {
    const int64_t at_ms = task->due_ms > 0 ? task->due_ms : task->placed_ms;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:s, s:I, s:I}", "id", rt_json_id(x, task->id),
                     "order_id", rt_json_uuid(x, o->id), "retry_task", rt_json_str(o->task), "retry_at",
                     rt_show_time(at_ms), "retry_args", rt_json_value(o->args), "retry_kwargs",
                     rt_json_value(o->kwargs), "retry_count", (json_int_t)o->retries, "state",
                     rt_job_state_name((rt_job_state)task->state), "attempts", (json_int_t)task->attempt,
                     "failures", (json_int_t)o->failures);
}
