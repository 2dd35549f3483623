#include "face/events/type_json.h"

#include <string.h>

#include "engine/calls/call_read.h"
#include "engine/messages/subscription.h" /* RT_URI_MAX */
#include "face/common/backoff_json.h"
#include "face/common/target.h"
#include "face/common/values.h"
#include "json/policy_json.h"
#include "json/tree.h"

/* ---- members of an object -------------------------------------------------------------------------- */

typedef enum kind { WHOLE, REAL } kind;

/* A number: where it goes, and what it may be. */
typedef struct field {
    const char *name;
    kind kind;
    size_t offset;      /* WHOLE: of a uint32_t; REAL: of a double */
    json_int_t highest; /* WHOLE */
} field;

static bool is_left_out(const json_t *v) { return v == NULL || json_is_null(v); }

static rt_code refuse_unknown(const char *within, const char *name, rt_err *err) {
    return rt_fail(err, RT_E_INVALID, 0, "%s%s\"%.64s\" is not known here.", within,
                   within[0] == '\0' ? "" : ": ", name);
}

/* Is each member of `object` one of `names` (ended by NULL)? */
static rt_code check_names(const json_t *object, const char *within, const char *const names[], rt_err *err) {
    union {
        const json_t *in;
        json_t *out;
    } walked = {.in = object}; // jansson's iterators want it without const
    const char *name;
    json_t *value;
    json_object_foreach(walked.out, name, value) {
        size_t i = 0;
        while (names[i] != NULL && strcmp(names[i], name) != 0) i++;
        if (names[i] == NULL) return refuse_unknown(within, name, err);
    }
    return RT_OK;
}

static rt_code read_field(const json_t *v, const char *within, const field *f, void *out, rt_err *err) {
    if (is_left_out(v)) return RT_OK;
    char *at = (char *)out + f->offset;
    if (f->kind == REAL) {
        if (!json_is_number(v))
            return rt_fail(err, RT_E_INVALID, 0, "%s: %s must be a number.", within, f->name);
        const double number = json_number_value(v);
        memcpy(at, &number, sizeof number);
        return RT_OK;
    }
    const json_int_t whole = json_integer_value(v);
    if (!json_is_integer(v) || whole < 0 || whole > f->highest) {
        return rt_fail(err, RT_E_INVALID, 0, "%s: %s must be a whole number from 0 to %lld.", within, f->name,
                       (long long)f->highest);
    }
    const uint32_t number = (uint32_t)whole;
    memcpy(at, &number, sizeof number);
    return RT_OK;
}

/* An object with these numbers and no other members. */
static rt_code read_fields(const json_t *object, const char *within, const field fields[], size_t count,
                           void *out, rt_err *err) {
    const char *names[16] = {NULL};
    RT_ASSERT(count < sizeof names / sizeof *names);
    if (!json_is_object(object)) return rt_fail(err, RT_E_INVALID, 0, "%s must be an object.", within);
    for (size_t i = 0; i < count; i++) names[i] = fields[i].name;
    rt_code code = check_names(object, within, names, err);
    for (size_t i = 0; i < count && code == RT_OK; i++)
        code = read_field(json_object_get(object, fields[i].name), within, &fields[i], out, err);
    return code;
}

static void write_fields(json_t *object, const field fields[], size_t count, const void *from) {
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)from + fields[i].offset;
        double real;
        uint32_t whole;
        if (fields[i].kind == REAL) {
            memcpy(&real, at, sizeof real);
            (void)json_object_set_new(object, fields[i].name, json_real(real));
        } else {
            memcpy(&whole, at, sizeof whole);
            (void)json_object_set_new(object, fields[i].name, json_integer(whole));
        }
    }
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define AT(type, member) offsetof(type, member)

/* What rt_circuit_settings_check and its like have to say about, they say. */
static const field CIRCUIT[] = {
    {"window_s", WHOLE, AT(rt_circuit_settings, window_s), UINT32_MAX},
    {"minimum_attempts", WHOLE, AT(rt_circuit_settings, minimum_attempts), UINT32_MAX},
    {"failure_rate", REAL, AT(rt_circuit_settings, failure_rate), 0},
    {"slow_call_s", REAL, AT(rt_circuit_settings, slow_call_s), 0},
    {"slow_call_rate", REAL, AT(rt_circuit_settings, slow_call_rate), 0},
    {"sleep_s", WHOLE, AT(rt_circuit_settings, sleep_s), UINT32_MAX},
    {"maximum_sleep_s", WHOLE, AT(rt_circuit_settings, maximum_sleep_s), UINT32_MAX},
    {"probes", WHOLE, AT(rt_circuit_settings, probes), UINT32_MAX},
    {"release_per_s", WHOLE, AT(rt_circuit_settings, release_per_s), 1000000},
    {"max_open_s", WHOLE, AT(rt_circuit_settings, max_open_s), 315360000},
};
static const field PACE[] = {
    {"initial_ms", WHOLE, AT(rt_pace_settings, initial_ms), UINT32_MAX},
    {"maximum_ms", WHOLE, AT(rt_pace_settings, maximum_ms), UINT32_MAX},
};
static const field LIMITS[] = {
    {"concurrency", WHOLE, AT(rt_call_type, concurrency), 65536},
    {"rate_per_s", WHOLE, AT(rt_call_type, rate_per_s), 1000000},
};
static const field BUCKETS[] = {{"buckets", WHOLE, AT(rt_call_type, buckets), 1024}};
static const field KEEP[] = {{"keep_s", WHOLE, AT(rt_call_type, dead_keep_s), 315360000}};
static const field DELIVERY[] = {
    {"retries_with_no_delay", WHOLE, AT(rt_delivery_policy, retries_with_no_delay), 0},
    {"minimum_delay_retries", WHOLE, AT(rt_delivery_policy, minimum_delay_retries), 0},
    {"minimum_delay", WHOLE, AT(rt_delivery_policy, minimum_delay_s), 0},
    {"maximum_delay", WHOLE, AT(rt_delivery_policy, maximum_delay_s), 0},
    {"maximum_delay_retries", WHOLE, AT(rt_delivery_policy, maximum_delay_retries), 0},
}; /* only written: rt_policy_from_json reads them */

/* ---- policy ---------------------------------------------------------------------------------------- */

/* What a policy of either kind may have beside its schedule. */
#define OPTIONS "maximum_age", "attempt_timeout", "retry_on", "follow_redirects", "respect_retry_after"

static rt_code read_backoff(const json_t *policy, rt_call_type *out, rt_err *err) {
    static const char *const NAMES[] = {"backoff", "max_attempts", OPTIONS, NULL};
    static const field ATTEMPTS = {"max_attempts", WHOLE, AT(rt_call_type, max_attempts), UINT32_MAX};
    rt_code code = check_names(policy, "policy", NAMES, err);
    if (code == RT_OK)
        code = read_field(json_object_get(policy, ATTEMPTS.name), "policy", &ATTEMPTS, out, err);
    if (code != RT_OK) return code;
    out->policy = RT_CALL_BACKOFF;
    const json_t *backoff = json_object_get(policy, "backoff");
    if (!json_is_object(backoff)) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "policy: backoff must be an object with initial_ms, maximum_ms and exponent.");
    }
    return rt_backoff_from_json(backoff, &out->backoff, err);
}

static rt_code read_policy(const json_t *policy, rt_call_type *out, rt_err *err) {
    static const char *const NAMES[] = {"retries_with_no_delay",
                                        "minimum_delay_retries",
                                        "minimum_delay",
                                        "maximum_delay",
                                        "maximum_delay_retries",
                                        "retry_backoff_function",
                                        "backoff_retries",
                                        "jitter",
                                        "ignore_subscription_override",
                                        OPTIONS,
                                        NULL};
    if (is_left_out(policy)) return RT_OK;
    if (!json_is_object(policy)) return rt_fail(err, RT_E_INVALID, 0, "policy must be an object.");
    rt_code code;
    if (json_object_get(policy, "backoff") != NULL) {
        code = read_backoff(policy, out, err);
    } else if (json_object_get(policy, "max_attempts") != NULL) {
        return rt_fail(
            err, RT_E_INVALID, 0,
            "policy: max_attempts belongs to a \"backoff\"; the phases of a delivery policy say how often.");
    } else {
        code = check_names(policy, "policy", NAMES, err);
    }
    // Of a backoff's policy it sees the options only.
    return code == RT_OK ? rt_policy_from_json(policy, &out->delivery, err) : code;
}

static json_t *retry_on_json(const rt_delivery_policy *p) {
    json_t *list = json_array();
    for (uint8_t i = 0; i < p->retry_on_count; i++) {
        const rt_status_range *r = &p->retry_on[i];
        (void)json_array_append_new(list, r->low == r->high ? json_sprintf("%u", (unsigned)r->low)
                                                            : json_sprintf("%uxx", (unsigned)r->low / 100));
    }
    return list;
}

static json_t *policy_json(const rt_call_type *t) {
    const rt_delivery_policy *p = &t->delivery;
    json_t *json = json_object();
    if (t->policy == RT_CALL_BACKOFF) {
        (void)json_object_set_new(json, "backoff", rt_json_backoff(&t->backoff));
        (void)json_object_set_new(json, "max_attempts", json_integer(t->max_attempts));
    } else {
        write_fields(json, DELIVERY, COUNT(DELIVERY), p);
        (void)json_object_set_new(json, "backoff_retries",
                                  json_integer(rt_delivery_policy_backoff_retries(p)));
        (void)json_object_set_new(json, "retry_backoff_function",
                                  json_string(rt_backoff_function_name(p->backoff_function)));
        (void)json_object_set_new(json, "jitter", json_string(rt_jitter_name(p->jitter)));
    }
    (void)json_object_set_new(json, "maximum_age", json_integer(p->maximum_age_s));
    (void)json_object_set_new(json, "attempt_timeout", json_integer(p->attempt_timeout_s));
    (void)json_object_set_new(json, "retry_on", retry_on_json(p));
    (void)json_object_set_new(json, "follow_redirects", json_boolean(p->follow_redirects));
    (void)json_object_set_new(json, "respect_retry_after", json_boolean(p->respect_retry_after));
    return json;
}

/* ---- target ---------------------------------------------------------------------------------------- */

static rt_str text_of(const json_t *s) {
    return (rt_str){.ptr = json_string_value(s), .len = json_string_length(s)};
}

static rt_code keep(rt_arena *arena, rt_str text, rt_str *out, rt_err *err) {
    *out = rt_arena_dup(arena, text);
    return out->ptr == NULL ? rt_fail(err, RT_E_NOMEM, 0, "no memory for an event type") : RT_OK;
}

static rt_code refuse_with(rt_code code, rt_str why, rt_err *err) {
    return code == RT_OK ? RT_OK : rt_fail(err, code, 0, "target: %.*s", RT_STR_ARG(why));
}

static rt_code read_url(const json_t *target, rt_arena *arena, rt_call_type *out, rt_err *err) {
    static const char *const NAMES[] = {"url", "headers", "secret", NULL};
    rt_code code = check_names(target, "target", NAMES, err);
    if (code != RT_OK) return code;
    const rt_str url = text_of(json_object_get(target, "url"));
    rt_str host, why = RT_STR_EMPTY;
    if (url.ptr == NULL || url.len > RT_URI_MAX || rt_target_has_odd_characters(url) ||
        !rt_target_host(url, &host)) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "target: url must be an absolute http or https URL of at most %d characters, with "
                       "what is special "
                       "in URLs percent-encoded.",
                       RT_URI_MAX);
    }
    code = rt_target_headers(json_object_get(target, "headers"), "headers", arena, &out->headers, &why);
    if (code == RT_OK)
        code = rt_target_secrets(json_object_get(target, "secret"), "secret", arena, out->secrets, &why);
    return code == RT_OK ? keep(arena, url, &out->target, err) : refuse_with(code, why, err);
}

/* A target that is a name. `rule`: what makes one valid, in words. */
typedef struct named {
    const char *member, *prefix, *rule;
    bool (*is_valid)(rt_str name);
} named;
static const named NAMED[] = {
    {"plugin", "plugin:", "1 to 64 of a-z, 0-9, '_' and '-'", rt_plugin_name_is_valid},
    {"kafka_topic", "kafka:", RT_TOPIC_NAME_RULE, rt_topic_name_is_valid},
};
_Static_assert(RT_PLUGIN_NAME_MAX == 64, "said in words");

static rt_code read_named(const json_t *target, const named *n, rt_arena *arena, rt_call_type *out,
                          rt_err *err) {
    const char *const names[] = {n->member, NULL};
    const rt_code code = check_names(target, "target", names, err);
    if (code != RT_OK) return code;
    const rt_str name = text_of(json_object_get(target, n->member));
    if (name.ptr == NULL || !n->is_valid(name))
        return rt_fail(err, RT_E_INVALID, 0, "target: %s must be %s.", n->member, n->rule);
    out->target = rt_arena_printf(arena, "%s%.*s", n->prefix, RT_STR_ARG(name));
    return out->target.ptr == NULL ? rt_fail(err, RT_E_NOMEM, 0, "no memory for an event type") : RT_OK;
}

static rt_code read_target(const json_t *target, rt_arena *arena, rt_call_type *out, rt_err *err) {
    static const char *const PULL[] = {"pull", NULL};
    out->target = RT_STR_EMPTY;
    if (json_object_get(target, "url") != NULL) return read_url(target, arena, out, err);
    for (size_t i = 0; i < COUNT(NAMED); i++) {
        if (json_object_get(target, NAMED[i].member) != NULL)
            return read_named(target, &NAMED[i], arena, out, err);
    }
    if (json_is_true(json_object_get(target, "pull"))) return check_names(target, "target", PULL, err);
    return rt_fail(err, RT_E_INVALID, 0,
                   "target must be one of {\"url\": URL}, {\"pull\": true}, {\"plugin\": NAME} or "
                   "{\"kafka_topic\": TOPIC}.");
}

/* "Name: value\n"… as an object. */
static json_t *headers_json(rt_str lines) {
    json_t *object = json_object();
    while (lines.len > 0) {
        rt_str line, name, value;
        if (!rt_str_cut(lines, '\n', &line, &lines)) lines = RT_STR_EMPTY;
        if (!rt_str_cut(line, ':', &name, &value)) continue;
        (void)json_object_setn_new(object, name.ptr, name.len, rt_json_str(rt_str_trim(value)));
    }
    return object;
}

/* As it may be written: null, one, or a list of two. */
static json_t *secrets_json(const rt_str secrets[RT_SECRETS_MAX]) {
    if (secrets[0].len == 0) return json_null();
    if (secrets[1].len == 0) return rt_json_str(secrets[0]);
    return json_pack("[o, o]", rt_json_str(secrets[0]), rt_json_str(secrets[1]));
}
_Static_assert(RT_SECRETS_MAX == 2, "a list of two");

static json_t *target_json(const rt_call_type *t) {
    rt_str scheme, name;
    const bool known = rt_str_cut(t->target, ':', &scheme, &name);
    if (t->target.len == 0) return json_pack("{s:b}", "pull", 1);
    if (known && rt_str_eq(scheme, RT_STR("plugin"))) return json_pack("{s:o}", "plugin", rt_json_str(name));
    if (known && rt_str_eq(scheme, RT_STR("kafka")))
        return json_pack("{s:o}", "kafka_topic", rt_json_str(name));
    return json_pack("{s:o, s:o, s:o}", "url", rt_json_str(t->target), "headers", headers_json(t->headers),
                     "secret", secrets_json(t->secrets));
}

/* ---- brakes, dead letters -------------------------------------------------------------------------- */

/* true stands for an object without members, false for null. */
static rt_code read_circuit(const json_t *json, rt_call_type *out, rt_err *err) {
    out->circuit = rt_circuit_settings_default();
    if (json == NULL || json_is_true(json)) return RT_OK;
    out->circuit.enabled = !json_is_null(json) && !json_is_false(json);
    if (!out->circuit.enabled) return RT_OK;
    const rt_code code = read_fields(json, "circuit", CIRCUIT, COUNT(CIRCUIT), &out->circuit, err);
    const char *broken = code == RT_OK ? rt_circuit_settings_check(&out->circuit) : NULL;
    return broken == NULL ? code : rt_fail(err, RT_E_INVALID, 0, "circuit: %s", broken);
}

static rt_code read_pace(const json_t *json, rt_call_type *out, rt_err *err) {
    out->pace = rt_pace_settings_default();
    if (is_left_out(json) || json_is_false(json)) return RT_OK;
    out->pace.enabled = true;
    if (json_is_true(json)) return RT_OK;
    const rt_code code = read_fields(json, "pace", PACE, COUNT(PACE), &out->pace, err);
    const char *broken = code == RT_OK ? rt_pace_settings_check(&out->pace) : NULL;
    return broken == NULL ? code : rt_fail(err, RT_E_INVALID, 0, "pace: %s", broken);
}

static rt_code read_dead_letter(const json_t *json, rt_arena *arena, rt_call_type *out, rt_err *err) {
    static const char *const NAMES[] = {"event_type", "keep_s", NULL};
    out->dead_type = RT_STR_EMPTY;
    if (is_left_out(json)) return RT_OK;
    if (!json_is_object(json)) return rt_fail(err, RT_E_INVALID, 0, "dead_letter must be an object.");
    rt_code code = check_names(json, "dead_letter", NAMES, err);
    if (code == RT_OK) code = read_field(json_object_get(json, "keep_s"), "dead_letter", KEEP, out, err);
    const json_t *type = json_object_get(json, "event_type");
    if (code != RT_OK || is_left_out(type)) return code;
    if (json_is_string(type) && rt_call_type_name_is_valid(text_of(type)))
        return keep(arena, text_of(type), &out->dead_type, err);
    return rt_fail(err, RT_E_INVALID, 0, "dead_letter: event_type must be the name of an event type.");
}

/* ---- all of it ------------------------------------------------------------------------------------- */

rt_code rt_type_from_json(const json_t *json, rt_arena *arena, rt_call_type *out, rt_err *err) {
    static const char *const NAMES[] = {"policy",      "target",  "circuit", "pace", "order_key",
                                        "dead_letter", "limits",  "buckets", "type", "version",
                                        "queue",       "changed", NULL};
    rt_call_type t = {.queue = out->queue, .changed_ms = out->changed_ms, .json = out->json, .buckets = 1};
    t.headers = RT_STR_EMPTY;
    for (size_t i = 0; i < RT_SECRETS_MAX; i++) t.secrets[i] = RT_STR_EMPTY;
    t.delivery = rt_delivery_policy_default();
    rt_code code = check_names(json, "", NAMES, err);
    if (code == RT_OK) code = read_policy(json_object_get(json, "policy"), &t, err);
    if (code == RT_OK) code = read_target(json_object_get(json, "target"), arena, &t, err);
    if (code == RT_OK) code = read_circuit(json_object_get(json, "circuit"), &t, err);
    if (code == RT_OK) code = read_pace(json_object_get(json, "pace"), &t, err);
    if (code == RT_OK) code = read_dead_letter(json_object_get(json, "dead_letter"), arena, &t, err);
    if (code == RT_OK) code = read_field(json_object_get(json, "buckets"), "buckets", BUCKETS, &t, err);
    const json_t *limits = json_object_get(json, "limits");
    if (code == RT_OK && !is_left_out(limits))
        code = read_fields(limits, "limits", LIMITS, COUNT(LIMITS), &t, err);
    if (code != RT_OK) return code;
    const json_t *ordered = json_object_get(json, "order_key");
    if (!is_left_out(ordered) && !json_is_boolean(ordered))
        return rt_fail(err, RT_E_INVALID, 0, "order_key must be true or false.");
    t.ordered = json_is_true(ordered);
    if (t.buckets == 0)
        return rt_fail(err, RT_E_INVALID, 0, "buckets must be a whole number from 1 to 1024.");
    *out = t;
    return RT_OK;
}

static json_t *circuit_json(const rt_circuit_settings *c) {
    if (!c->enabled) return json_null();
    json_t *json = json_object();
    write_fields(json, CIRCUIT, COUNT(CIRCUIT), c);
    return json;
}

static json_t *pace_json(const rt_pace_settings *p) {
    if (!p->enabled) return json_null();
    json_t *json = json_object();
    write_fields(json, PACE, COUNT(PACE), p);
    return json;
}

json_t *rt_type_to_json(const rt_call_type *t) {
    json_t *limits = json_object();
    write_fields(limits, LIMITS, COUNT(LIMITS), t);
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:{s:o, s:I}, s:o, s:I}", "policy", policy_json(t), "target",
                     target_json(t), "circuit", circuit_json(&t->circuit), "pace", pace_json(&t->pace),
                     "order_key", t->ordered, "dead_letter", "event_type",
                     t->dead_type.len > 0 ? rt_json_str(t->dead_type) : json_null(), "keep_s",
                     (json_int_t)t->dead_keep_s, "limits", limits, "buckets", (json_int_t)t->buckets);
}
