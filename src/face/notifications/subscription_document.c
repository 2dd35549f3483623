#include "face/notifications/subscription_document.h"

#include <inttypes.h>

#include "face/common/timestamp.h"
#include "face/notifications/limits.h"
#include "face/notifications/options.h"
#include "face/notifications/subscriber.h"
#include "json/tree.h"

/* In the arena, its scheme in lower case: it is compared with "mailto:" and the like from here on. */
static rt_str copy_uri(rt_arena *arena, rt_str uri) {
    char *copy = rt_arena_alloc(arena, uri.len + 1);
    if (copy == NULL) return (rt_str){0};
    bool scheme = true;
    for (size_t i = 0; i < uri.len; i++) {
        char c = uri.ptr[i];
        if (c == ':') scheme = false;
        if (scheme && c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        copy[i] = c;
    }
    return (rt_str){.ptr = copy, .len = uri.len};
}

static bool take_uri(rt_exchange *x, const json_t *json, rt_subscription_document *out) {
    const rt_api *api = rt_api_of(x);
    const rt_str uri = {.ptr = json_string_value(json), .len = json_string_length(json)};
    rt_subscriber to;
    rt_err err;
    const rt_code code = rt_subscriber_parse(uri, rt_str_of(api->limits->subscriber_types), &to, &err);
    if (code != RT_OK) {
        if (code == RT_E_INVALID) rt_zaqar_bad_request(x, "%s", err.msg);
        else rt_zaqar_busy(x);
        return false;
    }
    const char *refused = to.mail || api->refuse_target == NULL
                              ? NULL : api->refuse_target(api->refuse_target_ctx, to.host);
    if (refused != NULL) {
        rt_zaqar_bad_request(x, "%s", refused);
        return false;
    }
    out->has_uri = true;
    out->said.uri = copy_uri(rt_exchange_arena(x), uri);
    if (out->said.uri.ptr != NULL) return true;
    rt_zaqar_busy(x);
    return false;
}

static bool take_ttl(rt_exchange *x, const json_t *json, rt_subscription_document *out) {
    const int64_t left_s = RT_TIMESTAMP_S_MAX - rt_api_of(x)->now_ms() / 1000;
    if (!json_is_integer(json) && !json_is_boolean(json)) {
        rt_zaqar_bad_request(x, "TTL must be an integer.");
        return false;
    }
    const int64_t ttl_s = json_is_integer(json) ? json_integer_value(json) : json_is_true(json);
    if (ttl_s < RT_TTL_S_MIN) {
        rt_zaqar_bad_request(x, "The TTL for a subscription must be at least %d seconds long.", RT_TTL_S_MIN);
    } else if (ttl_s >= left_s) {
        rt_zaqar_bad_request(x, "The TTL seconds for a subscription plus current time must be less than "
                             "9999-12-31 23:59:59.999999.");
    } else if (ttl_s > UINT32_MAX) {
        rt_zaqar_bad_request(x, "The TTL for a subscription may not exceed %" PRIu32 " seconds.", UINT32_MAX);
    } else {
        out->has_ttl = true;
        out->said.ttl_s = (uint32_t)ttl_s;
        return true;
    }
    return false;
}

static bool take_options(rt_exchange *x, const json_t *json, rt_subscription_document *out) {
    rt_str why;
    out->has_options = true;
    const rt_code code = rt_options_from_json(json, rt_exchange_arena(x), &out->said, &why);
    if (code == RT_E_INVALID) rt_zaqar_bad_request(x, "%.*s", RT_STR_ARG(why));
    else if (code != RT_OK) rt_zaqar_busy(x);
    return code == RT_OK;
}

/* Each part only where it is said, or where a new one needs it. */
static bool take_parts(rt_exchange *x, bool is_new, const json_t *document, rt_subscription_document *out) {
    const json_t *uri = json_object_get(document, "subscriber"), *ttl = json_object_get(document, "ttl"),
                 *options = json_object_get(document, "options");
    if (is_new && uri == NULL) {
        rt_zaqar_bad_request(x, "Missing parameter subscriber in body.");
        return false;
    }
    if (!is_new && json_object_size(document) == 0) {
        rt_zaqar_bad_request(x, "No subscription to create.");
        return false;
    }
    if (uri != NULL && !take_uri(x, uri, out)) return false;
    if ((options != NULL || is_new) && !take_options(x, options, out)) return false;
    out->said.ttl_s = (uint32_t)rt_limits_of(x)->default_subscription_ttl;
    return ttl == NULL || take_ttl(x, ttl, out);
}

bool rt_subscription_document_take(rt_exchange *x, bool is_new, rt_subscription_document *out) {
    *out = (rt_subscription_document){0};
    json_t *document = NULL;
    if (rt_exchange_body(x).len == 0) {
        document = json_object();
        if (document == NULL) {
            rt_zaqar_busy(x);
            return false;
        }
    } else if (rt_zaqar_refuse_json(x, rt_json_parse(rt_exchange_body(x), &document))) {
        return false;
    }
    const bool is_object = json_is_object(document);
    if (!is_object) rt_zaqar_bad_request(x, "Subscriptions must be a dict.");
    const bool fine = is_object && take_parts(x, is_new, document, out);
    json_decref(document);
    return fine;
}
