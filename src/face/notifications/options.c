#include "face/notifications/options.h"

#include "face/common/target.h"
#include "face/notifications/queue_metadata.h"
#include "json/tree.h"

static rt_str text_of(const json_t *s) { return (rt_str){.ptr = json_string_value(s), .len = json_string_length(s)}; }

/* Either spelling. The one with an underscore is Zaqar's documentation, the other its source. */
static const json_t *either(const json_t *json, const char *name, const char *documented) {
    const json_t *v = json_object_get(json, name);
    return rt_json_is_truthy(v) ? v : json_object_get(json, documented);
}

/* ---- webhooks ------------------------------------------------------------------------------------------ */

static rt_code take_headers(const json_t *json, rt_arena *a, rt_subscription *out, rt_str *why) {
    const json_t *headers = either(json, "post_headers", "_post_headers");
    out->headers = RT_STR_EMPTY;
    if (!rt_json_is_truthy(headers)) return RT_OK;
    if (!json_is_object(headers)) return rt_json_refuse(why, RT_STR("post_headers must be a dict."));
    return rt_target_headers(headers, "post_headers", a, &out->headers, why);
}

static rt_code take_post_data(const json_t *json, rt_arena *a, rt_subscription *out, rt_str *why) {
    const json_t *data = either(json, "post_data", "_post_data");
    out->post_data = RT_STR_EMPTY;
    if (!rt_json_is_truthy(data)) return RT_OK;
    if (json_is_string(data)) {
        out->post_data = rt_arena_dup(a, text_of(data));
    } else if (json_is_object(data)) {
        rt_buf text = {0};
        rt_json_write(&text, data);
        out->post_data = text.failed ? (rt_str){0} : rt_arena_dup(a, rt_buf_str(&text));
        rt_buf_deinit(&text);
    } else {
        return rt_json_refuse(why, RT_STR("post_data must be a string."));
    }
    return out->post_data.ptr == NULL ? RT_E_NOMEM : RT_OK;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static rt_code take_mail_field(const json_t *json, const char *name, rt_arena *a, rt_str *out, rt_str *why) {
    const json_t *v = json_object_get(json, name);
    *out = RT_STR_EMPTY;
    if (!rt_json_is_truthy(v)) return RT_OK;
    if (!json_is_string(v) || json_string_length(v) > RT_MAIL_FIELD_MAX || rt_target_has_control(text_of(v))) {
        return rt_json_refuse(why,
                              rt_arena_printf(a, "%s must be a string of at most %d bytes without control characters.",
                                              name, RT_MAIL_FIELD_MAX));
    }
    *out = rt_arena_dup(a, text_of(v));
    return out->ptr == NULL ? RT_E_NOMEM : RT_OK;
}

static rt_code keep_text(const json_t *json, rt_arena *a, rt_subscription *out, rt_str *why) {
    rt_buf text = {0};
    if (rt_json_is_truthy(json)) rt_json_write(&text, json);
    else rt_buf_add(&text, RT_STR("{}"));
    const bool fits = text.len <= RT_OPTIONS_BYTES_MAX;
    out->options_json = text.failed || !fits ? (rt_str){0} : rt_arena_dup(a, rt_buf_str(&text));
    const bool failed = text.failed;
    rt_buf_deinit(&text);
    if (!failed && !fits) {
        return rt_json_refuse(why, rt_arena_printf(a, "Options may have %d bytes at most.", RT_OPTIONS_BYTES_MAX));
    }
    return out->options_json.ptr == NULL ? RT_E_NOMEM : RT_OK;
}

rt_code rt_options_from_json(const json_t *json, rt_arena *arena, rt_subscription *out, rt_str *why) {
    if (rt_json_is_truthy(json) && !json_is_object(json)) {
        return rt_json_refuse(why, RT_STR("Options must be a dict."));
    }
    rt_code code = rt_retry_policy_take(json, arena, &out->has_policy, &out->policy, why);
    if (code == RT_OK) code = take_headers(json, arena, out, why);
    if (code == RT_OK) code = take_post_data(json, arena, out, why);
    if (code == RT_OK) code = rt_target_secrets(json_object_get(json, "secret"), "secret", arena, out->secrets, why);
    if (code == RT_OK) code = take_mail_field(json, "subject", arena, &out->subject, why);
    if (code == RT_OK) code = take_mail_field(json, "from", arena, &out->from, why);
    if (code == RT_OK) code = keep_text(json, arena, out, why);
    return code;
}
