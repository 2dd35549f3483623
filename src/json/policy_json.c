#include "json/policy_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/tree.h"

// ---- values as Python sees them -----------------------------------------------------------------

/* 0, 0.0 and false are numbers in Python, and falsy ones: an explicit 0. */
static bool is_zero(const json_t *v) {
    return !rt_json_is_truthy(v) && (json_is_number(v) || json_is_false(v));
}

static bool is_left_out(const json_t *v) { return v == NULL || json_is_null(v); }

/* The place of `v` in names[0..count-1], or -1. */
static int named(const json_t *v, const char *(*name_of)(int), int count) {
    for (int i = 0; i < count; i++) {
        const char *name = name_of(i);
        // Lengths too: a string with a NUL in it is no name.
        if (json_string_length(v) == strlen(name) && strcmp(json_string_value(v), name) == 0) return i;
    }
    return -1;
}

// ---- the integers -------------------------------------------------------------------------------

typedef struct number_field {
    const char *key;
    size_t offset;           // of a uint32_t in rt_delivery_policy
    bool in_the_document;    // Zaqar's rules of types, otherwise strict
    bool crashes_when_empty; // null, "", [] and {} make Zaqar answer 500
} number_field;

// In Zaqar's order of checks.
static const number_field NUMBERS[] = {
    {"retries_with_no_delay", offsetof(rt_delivery_policy, retries_with_no_delay), true, false},
    {"minimum_delay_retries", offsetof(rt_delivery_policy, minimum_delay_retries), true, false},
    {"minimum_delay", offsetof(rt_delivery_policy, minimum_delay_s), true, true},
    {"maximum_delay", offsetof(rt_delivery_policy, maximum_delay_s), true, true},
    {"maximum_delay_retries", offsetof(rt_delivery_policy, maximum_delay_retries), true, false},
    {"backoff_retries", offsetof(rt_delivery_policy, backoff_retries), false, false},
    {"maximum_age", offsetof(rt_delivery_policy, maximum_age_s), false, false},
    {"attempt_timeout", offsetof(rt_delivery_policy, attempt_timeout_s), false, false},
};
enum { NUMBER_COUNT = sizeof NUMBERS / sizeof NUMBERS[0] };

static bool number_has_type(const number_field *f, const json_t *v) {
    if (!f->in_the_document) return is_left_out(v) || json_is_integer(v);
    if (rt_json_is_truthy(v)) return json_is_integer(v) || json_is_true(v);
    return v == NULL || is_zero(v) || !f->crashes_when_empty;
}

static rt_code check_number_types(const json_t *policy, bool in_the_document, rt_err *err) {
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        const number_field *f = &NUMBERS[i];
        if (f->in_the_document != in_the_document) continue;
        if (!number_has_type(f, json_object_get(policy, f->key))) {
            return rt_fail(err, RT_E_INVALID, 0, "Retry policy: %s must be a integer.", f->key);
        }
    }
    return RT_OK;
}

/* Types were checked. Too large is left to rt_delivery_policy_check, which knows the limits. */
static rt_code read_number(const number_field *f, const json_t *v, rt_delivery_policy *out, rt_err *err) {
    if (v == NULL || (!rt_json_is_truthy(v) && !is_zero(v))) return RT_OK;
    json_int_t value = json_is_true(v) ? 1 : json_is_integer(v) ? json_integer_value(v) : 0;
    if (value < 0) return rt_fail(err, RT_E_INVALID, 0, "Retry policy: %s must not be negative.", f->key);
    if (value > UINT32_MAX) value = UINT32_MAX;
    const uint32_t number = (uint32_t)value;
    memcpy((char *)out + f->offset, &number, sizeof number);
    return RT_OK;
}

static rt_code read_numbers(const json_t *policy, rt_delivery_policy *out, rt_err *err) {
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        const rt_code code = read_number(&NUMBERS[i], json_object_get(policy, NUMBERS[i].key), out, err);
        if (code != RT_OK) return code;
    }
    const json_t *backoff_retries = json_object_get(policy, "backoff_retries");
    // In the struct 0 means left out; written down it is a mistake.
    if (!is_left_out(backoff_retries) && out->backoff_retries == 0) {
        return rt_fail(err, RT_E_INVALID, 0, "Retry policy: backoff_retries must be between 1 and 100.");
    }
    return RT_OK;
}

// ---- the rest of the document's keys ------------------------------------------------------------

static const char *function_name(int i) { return rt_backoff_function_name((rt_backoff_function)i); }
static const char *jitter_name(int i) { return rt_jitter_name((rt_jitter)i); }

static rt_code read_function(const json_t *policy, rt_delivery_policy *out, rt_err *err) {
    const json_t *v = json_object_get(policy, "retry_backoff_function");
    if (!rt_json_is_truthy(v)) return RT_OK;
    if (!json_is_string(v)) return rt_fail(err, RT_E_INVALID, 0, "retry_backoff_function must be a string.");
    const int function = named(v, function_name, RT_BACKOFF_FUNCTION_COUNT);
    if (function < 0) return rt_fail(err, RT_E_INVALID, 0, "invalid retry_backoff_function.");
    out->backoff_function = (rt_backoff_function)function;
    return RT_OK;
}

static rt_code read_override(const json_t *policy, rt_delivery_policy *out, rt_err *err) {
    const json_t *v = json_object_get(policy, "ignore_subscription_override");
    if (rt_json_is_truthy(v) && !json_is_true(v)) {
        return rt_fail(err, RT_E_INVALID, 0, "ignore_subscription_override must be a boolean.");
    }
    out->ignore_subscription_override = rt_json_is_truthy(v);
    return RT_OK;
}

// ---- options beyond the documents ---------------------------------------------------------------

static rt_code read_jitter(const json_t *policy, rt_delivery_policy *out, rt_err *err) {
    const json_t *v = json_object_get(policy, "jitter");
    if (is_left_out(v)) return RT_OK;
    const int jitter = json_is_string(v) ? named(v, jitter_name, RT_JITTER_COUNT) : -1;
    if (jitter < 0) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "Retry policy: jitter must be none, full, equal or decorrelated.");
    }
    out->jitter = (rt_jitter)jitter;
    return RT_OK;
}

static rt_code read_bool(const json_t *policy, const char *key, bool *out, rt_err *err) {
    const json_t *v = json_object_get(policy, key);
    if (is_left_out(v)) return RT_OK;
    if (!json_is_boolean(v)) return rt_fail(err, RT_E_INVALID, 0, "Retry policy: %s must be a boolean.", key);
    *out = json_is_true(v);
    return RT_OK;
}

/* 408, "408" or "4xx". False: none of these. */
static bool read_status(const json_t *v, rt_status_range *out) {
    if (json_is_integer(v)) {
        const json_int_t status = json_integer_value(v);
        if (status < 100 || status > 999) return false;
        out->low = out->high = (uint16_t)status;
        return true;
    }
    if (!json_is_string(v) || json_string_length(v) != 3) return false;
    const char *s = json_string_value(v);
    if (s[0] < '1' || s[0] > '9') return false;
    const int hundreds = (s[0] - '0') * 100;
    if ((s[1] == 'x' || s[1] == 'X') && s[2] == s[1]) {
        *out = (rt_status_range){.low = (uint16_t)hundreds, .high = (uint16_t)(hundreds + 99)};
        return true;
    }
    if (s[1] < '0' || s[1] > '9' || s[2] < '0' || s[2] > '9') return false;
    out->low = out->high = (uint16_t)(hundreds + (s[1] - '0') * 10 + (s[2] - '0'));
    return true;
}

static rt_code read_retry_on(const json_t *policy, rt_delivery_policy *out, rt_err *err) {
    const json_t *v = json_object_get(policy, "retry_on");
    if (is_left_out(v)) return RT_OK;
    if (!json_is_array(v)) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "Retry policy: retry_on must be a list such as [\"408\", \"429\", \"3xx\"].");
    }
    if (json_array_size(v) > RT_RETRY_ON_MAX) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "Retry policy: retry_on may name at most 16 statuses or ranges.");
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (!read_status(json_array_get(v, i), &out->retry_on[i])) {
            return rt_fail(err, RT_E_INVALID, 0,
                           "Retry policy: retry_on must name statuses (100 to 999) or classes (\"3xx\").");
        }
    }
    out->retry_on_count = (uint8_t)json_array_size(v);
    return RT_OK;
}

static rt_code read_options(const json_t *policy, rt_delivery_policy *out, rt_err *err) {
    rt_code code = read_jitter(policy, out, err);
    if (code == RT_OK) code = read_bool(policy, "respect_retry_after", &out->respect_retry_after, err);
    if (code == RT_OK) code = read_bool(policy, "follow_redirects", &out->follow_redirects, err);
    if (code == RT_OK) code = read_retry_on(policy, out, err);
    return code;
}

rt_code rt_policy_from_json(const json_t *json, rt_delivery_policy *out, rt_err *err) {
    rt_delivery_policy read = rt_delivery_policy_default();
    if (rt_json_is_truthy(json)) {
        if (!json_is_object(json)) return rt_fail(err, RT_E_INVALID, 0, "retry_policy must be a dict.");
        rt_code code = check_number_types(json, true, err);
        if (code == RT_OK) code = read_function(json, &read, err);
        if (code == RT_OK) code = read_override(json, &read, err);
        if (code == RT_OK) code = check_number_types(json, false, err);
        if (code == RT_OK) code = read_options(json, &read, err);
        if (code == RT_OK) code = read_numbers(json, &read, err);
        if (code != RT_OK) return code;
    }
    const char *broken = rt_delivery_policy_check(&read);
    if (broken != NULL) return rt_fail(err, RT_E_INVALID, 0, "%s", broken);
    *out = read;
    return RT_OK;
}

// ---- work backoff -------------------------------------------------------------------------------

enum { NS_PER_MS = 1000000 };

static rt_code read_ms(const json_t *backoff, const char *key, uint64_t *out_ns, rt_err *err) {
    const json_t *v = json_object_get(backoff, key);
    *out_ns = 0;
    if (is_left_out(v)) return RT_OK;
    if (!json_is_number(v)) return rt_fail(err, RT_E_INVALID, 0, "backoff: %s must be a number.", key);
    if (json_is_integer(v)) {
        const json_int_t ms = json_integer_value(v);
        if (ms <= INT64_MAX / NS_PER_MS) {
            *out_ns = ms > 0 ? (uint64_t)ms * NS_PER_MS : 0;
            return RT_OK;
        }
    } else {
        const double ns = json_real_value(v) * NS_PER_MS;
        if (ns < 0x1p63) {
            *out_ns = ns > 0 ? (uint64_t)llround(ns) : 0;
            return RT_OK;
        }
    }
    return rt_fail(err, RT_E_INVALID, 0, "backoff: %s must be at most %lld (292 years).", key,
                   (long long)(INT64_MAX / NS_PER_MS));
}

static rt_code read_exponent(const json_t *backoff, double *out, rt_err *err) {
    const json_t *v = json_object_get(backoff, "exponent");
    *out = 0;
    if (is_left_out(v)) return RT_OK;
    if (!json_is_number(v)) return rt_fail(err, RT_E_INVALID, 0, "backoff: exponent must be a number.");
    *out = json_number_value(v);
    return RT_OK;
}

/* A misspelt key would quietly give a wait of one second. */
static bool has_other_keys(const json_t *backoff) {
    static const char *const KNOWN[] = {"initial_ms", "maximum_ms", "exponent", "jitter"};
    size_t known = 0;
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        if (json_object_get(backoff, KNOWN[i]) != NULL) known++;
    }
    return json_object_size(backoff) > known;
}

rt_code rt_work_jitter_from_json(const json_t *json, rt_jitter *out, rt_err *err) {
    const json_t *jitter = json_object_get(json, "jitter");
    *out = RT_JITTER_NONE;
    if (is_left_out(jitter)) return RT_OK;
    const rt_str word = {.ptr = json_string_value(jitter), .len = json_string_length(jitter)};
    for (int j = RT_JITTER_NONE; j <= RT_JITTER_EQUAL; j++) {
        if (!rt_str_eq(word, rt_str_of(rt_jitter_name((rt_jitter)j)))) continue;
        *out = (rt_jitter)j;
        return RT_OK;
    }
    return rt_fail(err, RT_E_INVALID, 0, "backoff: jitter must be \"none\", \"full\" or \"equal\".");
}

rt_code rt_work_backoff_from_json(const json_t *json, bool *given, rt_work_backoff *out, rt_err *err) {
    RT_ASSERT(json != NULL);
    if (json_is_null(json)) {
        *given = false;
        return RT_OK;
    }
    if (!json_is_object(json)) return rt_fail(err, RT_E_INVALID, 0, "backoff must be an object or null.");
    if (has_other_keys(json)) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "backoff: its keys are initial_ms, maximum_ms, exponent and jitter, no others.");
    }
    rt_work_backoff read;
    rt_code code = read_ms(json, "initial_ms", &read.initial_ns, err);
    if (code == RT_OK) code = read_ms(json, "maximum_ms", &read.maximum_ns, err);
    if (code == RT_OK) code = read_exponent(json, &read.exponent, err);
    if (code != RT_OK) return code;
    const char *broken = rt_work_backoff_check(&read);
    if (broken != NULL) return rt_fail(err, RT_E_INVALID, 0, "%s", broken);
    *out = read;
    *given = true;
    return RT_OK;
}

// ---- from text ----------------------------------------------------------------------------------

/* *out is owned: json_decref. */
static rt_code parse(rt_str text, json_t **out, rt_err *err) {
    if (text.len > RT_POLICY_JSON_BYTES_MAX) {
        return rt_fail(err, RT_E_TOO_LARGE, 0, "JSON is longer than %d bytes.", RT_POLICY_JSON_BYTES_MAX);
    }
    // Before jansson, which goes into nested values by recursion.
    rt_json_scan scan = {0};
    const rt_json_fault fault = rt_json_scan_text(&scan, text);
    if (fault == RT_JSON_NOMEM) return rt_fail(err, RT_E_NOMEM, 0, "JSON");
    if (fault == RT_JSON_TOO_DEEP) {
        return rt_fail(err, RT_E_INVALID, 0, "JSON is nested deeper than %d levels.", RT_JSON_DEPTH_MAX);
    }
    if (fault == RT_JSON_INT_TOO_LARGE) {
        return rt_fail(err, RT_E_INVALID, 0, "JSON contains integer that is too large.");
    }
    // What else is wrong jansson can say with its place.
    json_error_t why;
    *out = json_loadb(text.len > 0 ? text.ptr : "", text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (*out != NULL) return RT_OK;
    if (json_error_code(&why) == json_error_out_of_memory) return rt_fail(err, RT_E_NOMEM, 0, "JSON");
    return rt_fail(err, RT_E_INVALID, 0, "This is no JSON: %s (line %d, column %d).", why.text, why.line,
                   why.column);
}

rt_code rt_policy_from_text(rt_str text, rt_delivery_policy *out, rt_err *err) {
    json_t *json = NULL;
    rt_code code = parse(text, &json, err);
    if (code != RT_OK) return code;
    const json_t *inner = json_object_get(json, "_retry_policy");
    code = rt_policy_from_json(inner != NULL ? inner : json, out, err);
    json_decref(json);
    return code;
}

void rt_policy_unknown_key(rt_str text, char out[RT_POLICY_KEY_BYTES]) {
    static const char *const KNOWN[] = {
        "retries_with_no_delay", "minimum_delay_retries", "maximum_delay_retries", "minimum_delay",
        "maximum_delay", "retry_backoff_function", "ignore_subscription_override", "backoff_retries",
        "maximum_age", "attempt_timeout", "jitter", "retry_on",
        "respect_retry_after", "follow_redirects",
    };
    json_t *json = NULL;
    rt_err err;
    out[0] = '\0';
    if (parse(text, &json, &err) != RT_OK) return;
    json_t *inner = json_object_get(json, "_retry_policy");
    const char *key;
    json_t *value;
    json_object_foreach(inner != NULL ? inner : json, key, value) {
        size_t i = 0;
        while (i < sizeof KNOWN / sizeof KNOWN[0] && strcmp(key, KNOWN[i]) != 0) i++;
        if (i == sizeof KNOWN / sizeof KNOWN[0] && out[0] == '\0') (void)snprintf(out, RT_POLICY_KEY_BYTES, "%s", key);
    }
    json_decref(json);
}

rt_code rt_work_backoff_from_text(rt_str text, bool *given, rt_work_backoff *out, rt_jitter *jitter, rt_err *err) {
    json_t *json = NULL;
    rt_code code = parse(text, &json, err);
    if (code != RT_OK) return code;
    code = rt_work_jitter_from_json(json, jitter, err);
    if (code == RT_OK) code = rt_work_backoff_from_json(json, given, out, err);
    json_decref(json);
    return code;
}
