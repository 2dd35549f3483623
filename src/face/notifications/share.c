#include "face/notifications/share.h"

#include <inttypes.h>
#include <string.h>

#include "face/notifications/caller.h"
#include "face/notifications/render.h"
#include "face/notifications/signature.h"
#include "json/tree.h"

enum { DEFAULT_LIFE_S = 86400 };

/* Adds `item` in Python's way of showing a set; `any` says that it is not the first. */
static void add_to_set(rt_buf *set, bool *any, rt_str item) {
    rt_buf_add(set, *any ? RT_STR(", ") : RT_STR("{"));
    *any = true;
    rt_render_python_str(set, item);
}

/* Refuses with the set, if there is something in it. Frees it. */
static bool refuse_set(rt_exchange *x, const char *what, rt_buf *set, bool any) {
    if (any) rt_zaqar_bad_request(x, "%s: %.*s}", what, RT_STR_ARG(rt_buf_str(set)));
    rt_buf_deinit(set);
    return any;
}

static bool keys_are_known(rt_exchange *x, json_t *document) {
    rt_buf set = {0};
    bool any = false;
    const char *key;
    json_t *value;
    json_object_foreach(document, key, value) {
        if (strcmp(key, "paths") == 0 || strcmp(key, "methods") == 0 || strcmp(key, "expires") == 0) continue;
        add_to_set(&set, &any, rt_str_of(key));
    }
    return !refuse_set(x, "Unknown keys", &set, any);
}

/* Copies the strings of a list; what is falsy is the list of `fallback` alone. */
static bool take_strings(rt_exchange *x, const json_t *list, const char *name, const char *fallback,
                         rt_str out[RT_SIGNED_LIST_MAX], size_t *count) {
    *count = 1;
    out[0] = rt_str_of(fallback);
    if (!rt_json_is_truthy(list)) return true;
    bool fine = json_is_array(list) && json_array_size(list) <= RT_SIGNED_LIST_MAX;
    *count = fine ? json_array_size(list) : 0;
    for (size_t i = 0; i < *count; i++) {
        const json_t *item = json_array_get(list, i);
        fine = fine && json_is_string(item) && strchr(json_string_value(item), ',') == NULL;
        out[i] = rt_str_of(json_string_value(item));
    }
    if (!fine) rt_zaqar_bad_request(x, "`%s` should be a list", name);
    return fine;
}

static bool take_paths(rt_exchange *x, const json_t *list, rt_signed_url *url) {
    if (!take_strings(x, list, "paths", "messages", url->paths, &url->paths_count)) return false;
    rt_buf set = {0};
    bool any = false;
    for (size_t i = 0; i < url->paths_count; i++) {
        const rt_str path = url->paths[i];
        if (rt_str_eq(path, RT_STR("messages")) || rt_str_eq(path, RT_STR("subscriptions")) ||
            rt_str_eq(path, RT_STR("claims"))) {
            url->paths[i] = rt_arena_printf(rt_exchange_arena(x), "%.*s/%.*s", RT_STR_ARG(rt_about_path(x)),
                                            RT_STR_ARG(path));
        } else {
            add_to_set(&set, &any, path);
        }
    }
    return !refuse_set(x, "Invalid paths", &set, any);
}

static bool take_expires(rt_exchange *x, const json_t *json, rt_signed_url *url) {
    const int64_t now_s = rt_api_of(x)->now_ms() / 1000;
    int64_t at_s = now_s + DEFAULT_LIFE_S;
    int64_t number = json_integer_value(json);
    if (json_is_integer(json) || (json_is_string(json) && rt_str_to_i64(rt_str_of(json_string_value(json)), &number))) {
        rt_zaqar_bad_request(x, "`expires` should be date format, for example 2016-01-01T00:00:00, not integer value: %"
                             PRId64, number);
        return false;
    }
    if (json != NULL && !json_is_null(json)) {
        const rt_str text = rt_str_of(json_string_value(json));
        if (!rt_timestamp_parse(text, &at_s)) {
            rt_buf shown = {0};
            rt_render_python_str(&shown, text);
            rt_zaqar_bad_request(x, "Unable to parse date string %.*s", RT_STR_ARG(rt_buf_str(&shown)));
            rt_buf_deinit(&shown);
            return false;
        }
    }
    if (at_s <= now_s) {
        rt_zaqar_bad_request(x, "`expires` is lower than the current time");
        return false;
    }
    url->expires = rt_timestamp_format(at_s);
    return true;
}

static void write_list(rt_buf *out, const char *name, const rt_str *list, size_t count) {
    rt_buf_addf(out, "\"%s\": [", name);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) rt_buf_add(out, RT_STR(", "));
        rt_json_write_str(out, list[i]);
    }
    rt_buf_add(out, RT_STR("], "));
}

static void reply(rt_exchange *x, rt_signed_url *url) {
    rt_signature signature;
    const rt_code code = rt_signature_make(rt_api_of(x)->signing_key, url, &signature);
    if (code != RT_OK) {
        rt_zaqar_fail(x, code, "URL could not be signed.");
        return;
    }
    rt_buf body = {0};
    rt_buf_add_char(&body, '{');
    write_list(&body, "paths", url->paths, url->paths_count);
    write_list(&body, "methods", url->methods, url->methods_count);
    rt_buf_add(&body, RT_STR("\"project\": "));
    rt_json_write_str(&body, url->project);
    rt_buf_addf(&body, ", \"expires\": \"%s\", \"signature\": \"%s\"}", url->expires.s, signature.s);
    rt_exchange_reply_buf(x, 200, "application/json", &body);
}

void rt_share_post(rt_exchange *x) {
    rt_caller caller;
    json_t *document;
    if (!rt_caller_admit(x, true, &caller) || !rt_take_document(x, JSON_OBJECT, &document)) return;
    rt_signed_url url = {.project = caller.project};
    if (keys_are_known(x, document) && take_paths(x, json_object_get(document, "paths"), &url) &&
        take_strings(x, json_object_get(document, "methods"), "methods", "GET", url.methods, &url.methods_count) &&
        take_expires(x, json_object_get(document, "expires"), &url)) {
        reply(x, &url);
    }
    json_decref(document);
}
