#include "face/notifications/queue_metadata.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "face/notifications/caller.h"
#include "json/policy_json.h"
#include "json/tree.h"

/* ---- the reserved integers ----------------------------------------------------------------------------- */

typedef struct reserved {
    const char *key;
    int64_t min;
    size_t max_offset;              /* of the largest in rt_limits */
    size_t offset;                  /* of a uint32_t in rt_metadata */
    const char *before, *after_max; /* the rule in Zaqar's words; NULL: any integer; what is below 0 counts as 0 */
} reserved;

#define LIMIT(field) offsetof(rt_limits, field)
#define STORED(field) offsetof(rt_metadata, field)
static const reserved INTEGERS[] = {
    {"_default_message_ttl", RT_TTL_S_MIN, LIMIT(max_message_ttl), STORED(default_ttl_s),
     "_default_message_ttl can not exceed ", " seconds, and must be at least 60 seconds long."},
    {"_max_messages_post_size", 1, LIMIT(max_messages_post_size), STORED(max_post_bytes),
     "_max_messages_post_size can not exceed ", ",  and must be at least greater than 0."},
    {"_max_claim_count", 0, 0, STORED(max_claim_count), NULL, NULL},
    {"_dead_letter_queue_messages_ttl", RT_TTL_S_MIN, LIMIT(max_message_ttl), STORED(dead_letter_ttl_s),
     "The TTL for a message may not exceed ", " seconds, and must be at least 60 seconds long."},
    {"_default_message_delay", 0, LIMIT(max_message_delay), STORED(default_delay_s),
     "The TTL can not exceed ", " seconds, and must be at least 0 seconds long."},
};
enum { INTEGERS_COUNT = sizeof INTEGERS / sizeof *INTEGERS };
_Static_assert((int)RT_TTL_S_MIN == 60, "as the rules have it");

/* Python's int: true is 1, false and 0.0 are 0. */
static bool as_integer(const json_t *v, int64_t *out) {
    if (json_is_integer(v)) *out = json_integer_value(v);
    else if (json_is_boolean(v)) *out = json_is_true(v);
    else if (json_is_real(v) && !rt_json_is_truthy(v)) *out = 0;
    else return false;
    return true;
}

static rt_code take_integer(const reserved *r, const json_t *json, const rt_limits *limits, rt_arena *a, rt_metadata *out,
                            rt_str *why) {
    const json_t *v = json_object_get(json, r->key);
    if (v == NULL || json_is_null(v)) return RT_OK;
    int64_t value;
    uint64_t max = UINT32_MAX;
    if (!as_integer(v, &value)) return rt_json_refuse(why, rt_arena_printf(a, "%s must be integer.", r->key));
    if (r->before == NULL) {
        if (value < r->min) value = r->min;
        if ((uint64_t)value > max) value = (int64_t)max;
    } else {
        memcpy(&max, (const char *)limits + r->max_offset, sizeof max);
        if (value < r->min || (uint64_t)value > max) {
            return rt_json_refuse(why, rt_arena_printf(a, "%s%" PRIu64 "%s", r->before, max, r->after_max));
        }
    }
    const uint32_t stored = (uint32_t)value;
    memcpy((char *)out + r->offset, &stored, sizeof stored);
    return RT_OK;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

rt_code rt_retry_policy_take(const json_t *json, rt_arena *arena, bool *given, rt_delivery_policy *out, rt_str *why) {
    const json_t *policy = json_object_get(json, "_retry_policy");
    rt_err err;
    const rt_code code = rt_policy_from_json(policy, out, &err);
    if (code == RT_E_INVALID) return rt_json_refuse(why, rt_arena_dup(arena, rt_str_of(err.msg)));
    *given = policy != NULL && !json_is_null(policy);
    return code;
}

rt_code rt_metadata_from_json(const json_t *json, const rt_limits *limits, rt_arena *arena, rt_metadata *out, rt_str *why) {
    *out = (rt_metadata){0};
    for (size_t i = 0; i < INTEGERS_COUNT; i++) {
        const rt_code code = take_integer(&INTEGERS[i], json, limits, arena, out, why);
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

/* ---- as clients see it --------------------------------------------------------------------------------- */

enum { POST_SIZE, MESSAGE_TTL, MESSAGE_DELAY, DEAD_LETTERS, DEAD_LETTERS_TTL, CLAIM_COUNT, ENCRYPT, SHOWN_COUNT,
       SHOWN_OF_TOPICS = DEAD_LETTERS };
static const char *const SHOWN[SHOWN_COUNT] = {
    [POST_SIZE] = "_max_messages_post_size",
    [MESSAGE_TTL] = "_default_message_ttl",
    [MESSAGE_DELAY] = "_default_message_delay",
    [DEAD_LETTERS] = "_dead_letter_queue",
    [DEAD_LETTERS_TTL] = "_dead_letter_queue_messages_ttl",
    [CLAIM_COUNT] = "_max_claim_count",
    [ENCRYPT] = "_enable_encrypt_messages",
};

static bool is_among(const char *key, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(key, SHOWN[i]) == 0) return true;
    }
    return false;
}

bool rt_metadata_is_reserved(const char *key) { return is_among(key, SHOWN_COUNT); }
bool rt_metadata_is_reserved_of_topics(const char *key) { return is_among(key, SHOWN_OF_TOPICS); }

rt_metadata_shown rt_metadata_shown_of(const rt_exchange *x) {
    return (rt_metadata_shown){rt_limits_of(x), rt_about_topics(x)};
}

static json_t *preset_of(size_t i, const rt_limits *limits) {
    if (i == POST_SIZE) return json_integer((json_int_t)limits->max_messages_post_size);
    if (i == MESSAGE_TTL) return json_integer((json_int_t)limits->default_message_ttl);
    if (i == MESSAGE_DELAY) return json_integer((json_int_t)limits->default_message_delay);
    return i == ENCRYPT ? json_false() : json_null();
}

static bool write_tree(rt_buf *out, const json_t *stored, rt_metadata_shown shown) {
    json_t *json = json_deep_copy(stored);
    bool whole = json != NULL;
    for (size_t i = 0; i < (shown.of_topic ? SHOWN_OF_TOPICS : SHOWN_COUNT) && whole; i++) {
        if (rt_json_is_truthy(json_object_get(json, SHOWN[i]))) continue;
        whole = json_object_set_new(json, SHOWN[i], preset_of(i, shown.limits)) == 0;
    }
    if (whole) rt_json_write(out, json);
    json_decref(json);
    return whole;
}

bool rt_metadata_write(rt_buf *out, rt_str stored, rt_metadata_shown shown) {
    json_t *json;
    if (rt_json_parse(stored, &json) != RT_JSON_FINE) return false;
    const bool whole = json_is_object(json) && write_tree(out, json, shown);
    json_decref(json);
    return whole;
}
