#include "face/notifications/queue_metadata.h"

#include <stddef.h>
#include <string.h>

#include "json/policy_json.h"
#include "json/tree.h"

/* ---- the reserved integers ------------------------------------------------------------------------------------------ */

typedef struct reserved {
    const char *key;
    int64_t min, max;
    size_t offset;         /* of a uint32_t in rt_metadata */
    const char *range_text; /* NULL: any integer; what is below 0 counts as 0 */
} reserved;

static const reserved INTEGERS[] = {
    {"_default_message_ttl", RT_TTL_S_MIN, RT_TTL_S_MAX, offsetof(rt_metadata, default_ttl_s),
     "_default_message_ttl can not exceed 1209600 seconds, and must be at least 60 seconds long."},
    {"_max_messages_post_size", 1, RT_POST_BYTES_MAX, offsetof(rt_metadata, max_post_bytes),
     "_max_messages_post_size can not exceed 262144,  and must be at least greater than 0."},
    {"_max_claim_count", 0, UINT32_MAX, offsetof(rt_metadata, max_claim_count), NULL},
    {"_dead_letter_queue_messages_ttl", RT_TTL_S_MIN, RT_TTL_S_MAX, offsetof(rt_metadata, dead_letter_ttl_s),
     "The TTL for a message may not exceed 1209600 seconds, and must be at least 60 seconds long."},
    {"_default_message_delay", 0, RT_DELAY_S_MAX_ZAQAR, offsetof(rt_metadata, default_delay_s),
     "The TTL can not exceed 900 seconds, and must be at least 0 seconds long."},
};
enum { INTEGERS_COUNT = sizeof INTEGERS / sizeof *INTEGERS };

/* Python's int: true is 1, false and 0.0 are 0. */
static bool as_integer(const json_t *v, int64_t *out) {
    if (json_is_integer(v)) *out = json_integer_value(v);
    else if (json_is_boolean(v)) *out = json_is_true(v);
    else if (json_is_real(v) && !rt_json_is_truthy(v)) *out = 0;
    else return false;
    return true;
}

static rt_code take_integer(const reserved *r, const json_t *json, rt_arena *a, rt_metadata *out, rt_str *why) {
    const json_t *v = json_object_get(json, r->key);
    if (v == NULL || json_is_null(v)) return RT_OK;
    int64_t value;
    if (!as_integer(v, &value)) return rt_json_refuse(why, rt_arena_printf(a, "%s must be integer.", r->key));
    if (r->range_text == NULL) {
        if (value < r->min) value = r->min;
        if (value > r->max) value = r->max;
    }
    if (value < r->min || value > r->max) return rt_json_refuse(why, rt_str_of(r->range_text));
    const uint32_t stored = (uint32_t)value;
    memcpy((char *)out + r->offset, &stored, sizeof stored);
    return RT_OK;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

bool rt_metadata_is_reserved(const char *key) {
    static const char *const OTHERS[] = {"_dead_letter_queue", "_enable_encrypt_messages", "_retry_policy", "_flavor"};
    for (size_t i = 0; i < INTEGERS_COUNT; i++) {
        if (strcmp(key, INTEGERS[i].key) == 0) return true;
    }
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        if (strcmp(key, OTHERS[i]) == 0) return true;
    }
    return false;
}

rt_code rt_retry_policy_take(const json_t *json, rt_arena *arena, bool *given, rt_delivery_policy *out, rt_str *why) {
    const json_t *policy = json_object_get(json, "_retry_policy");
    rt_err err;
    const rt_code code = rt_policy_from_json(policy, out, &err);
    if (code == RT_E_INVALID) return rt_json_refuse(why, rt_arena_dup(arena, rt_str_of(err.msg)));
    *given = policy != NULL && !json_is_null(policy);
    return code;
}

rt_code rt_metadata_from_json(const json_t *json, rt_arena *arena, rt_metadata *out, rt_str *why) {
    *out = (rt_metadata){0};
    for (size_t i = 0; i < INTEGERS_COUNT; i++) {
        const rt_code code = take_integer(&INTEGERS[i], json, arena, out, why);
        if (code != RT_OK) return code;
    }
    const json_t *encrypt = json_object_get(json, "_enable_encrypt_messages");
    if (rt_json_is_truthy(encrypt) && !json_is_true(encrypt)) {
        return rt_json_refuse(why, RT_STR("_enable_encrypt_messages must be boolean."));
    }
    // Zaqar takes anything for its name; only what is a text can be one.
    const json_t *dead_letters = json_object_get(json, "_dead_letter_queue");
    out->dead_letter_queue = RT_STR_EMPTY;
    if (json_is_string(dead_letters)) {
        out->dead_letter_queue = rt_arena_dup(arena, rt_str_of(json_string_value(dead_letters)));
        if (out->dead_letter_queue.ptr == NULL) return RT_E_NOMEM;
    }
    const rt_code code = rt_retry_policy_take(json, arena, &out->has_policy, &out->policy, why);
    if (code != RT_OK) return code;
    rt_buf text = {0};
    rt_json_write(&text, json);
    out->json = text.failed ? (rt_str){0} : rt_arena_dup(arena, rt_buf_str(&text));
    rt_buf_deinit(&text);
    return out->json.ptr == NULL ? RT_E_NOMEM : RT_OK;
}

/* ---- as clients see it ---------------------------------------------------------------------------------------------- */

static bool set_default(json_t *json, const char *key, json_t *value) {
    if (!rt_json_is_truthy(json_object_get(json, key))) return json_object_set_new(json, key, value) == 0;
    json_decref(value);
    return true;
}

static bool write_tree(rt_buf *out, const json_t *stored) {
    json_t *json = json_deep_copy(stored);
    const bool whole = json != NULL &&
                       set_default(json, "_max_messages_post_size", json_integer(RT_POST_BYTES_MAX)) &&
                       set_default(json, "_default_message_ttl", json_integer(RT_TTL_S_DEFAULT)) &&
                       set_default(json, "_default_message_delay", json_integer(0)) &&
                       set_default(json, "_dead_letter_queue", json_null()) &&
                       set_default(json, "_dead_letter_queue_messages_ttl", json_null()) &&
                       set_default(json, "_max_claim_count", json_null()) &&
                       set_default(json, "_enable_encrypt_messages", json_false());
    if (whole) rt_json_write(out, json);
    json_decref(json);
    return whole;
}

bool rt_metadata_write(rt_buf *out, rt_str stored) {
    json_t *json;
    if (rt_json_parse(stored, &json) != RT_JSON_FINE) return false;
    const bool whole = json_is_object(json) && write_tree(out, json);
    json_decref(json);
    return whole;
}
