#include "face/orders/order_body.h"

#include "engine/common/name.h"
#include "face/common/timestamp.h"
#include "json/scan.h"

static rt_str text_of(const json_t *s) {
    return (rt_str){.ptr = json_string_value(s), .len = json_string_length(s)};
}

/* ---- blanks -------------------------------------------------------------------------------------------- */

typedef struct frame {
    json_t *container;
    void *member;   /* objects: jansson's iterator, the next one to look at */
    size_t element; /* arrays: likewise */
} frame;

static frame frame_of(json_t *container) {
    return (frame){.container = container,
                   .member = json_is_object(container) ? json_object_iter(container) : NULL};
}

/* NULL: there is no more. */
static json_t *next_of(frame *f) {
    if (json_is_array(f->container)) return json_array_get(f->container, f->element++);
    if (f->member == NULL) return NULL;
    json_t *value = json_object_iter_value(f->member);
    f->member = json_object_iter_next(f->container, f->member);
    return value;
}

/* Python's str.strip() for ASCII. */
static bool strip(json_t *string) {
    rt_str s = text_of(string);
    const size_t len = s.len;
    while (s.len > 0 && (s.ptr[0] == ' ' || (s.ptr[0] >= '\t' && s.ptr[0] <= '\r'))) s.ptr++, s.len--;
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || (s.ptr[s.len - 1] >= '\t' && s.ptr[s.len - 1] <= '\r')))
        s.len--;
    return s.len == len || json_string_setn_nocheck(string, s.ptr, s.len) == 0;
}

bool rt_order_body_strip(json_t *body) {
    frame stack[RT_JSON_DEPTH_MAX];
    size_t depth = 0;
    stack[depth++] = frame_of(body);
    while (depth > 0) {
        json_t *value = next_of(&stack[depth - 1]);
        if (value == NULL) depth--;
        else if (json_is_string(value) && !strip(value)) return false;
        else if (json_is_object(value) || json_is_array(value)) {
            RT_ASSERT(depth < RT_JSON_DEPTH_MAX); // rt_json_parse refuses deeper ones
            stack[depth++] = frame_of(value);
        }
    }
    return true;
}

/* ---- rules --------------------------------------------------------------------------------------------- */

static rt_code refuse(rt_err *err, const char *property, const char *reason) {
    return rt_fail(err, RT_E_INVALID, 0,
                   "Provided object does not match schema 'Order': %s. Invalid property: '%s'.", reason,
                   property);
}

static bool is_left_out(const json_t *value) { return value == NULL || json_is_null(value); }

static size_t characters(rt_str s) {
    size_t count = 0;
    for (size_t i = 0; i < s.len; i++) count += ((unsigned char)s.ptr[i] & 0xC0) != 0x80;
    return count;
}

static rt_code check_texts(const json_t *meta, rt_err *err) {
    static const char *const TEXTS[] = {
        "name", "algorithm", "mode", "expiration", "payload_content_type", "pass_phrase"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        const json_t *value = json_object_get(meta, TEXTS[i]);
        if (is_left_out(value)) continue;
        if (!json_is_string(value)) return refuse(err, TEXTS[i], "it must be a string");
        if (characters(text_of(value)) > RT_ORDER_TEXT_MAX)
            return refuse(err, TEXTS[i], "it may have 255 characters at most");
    }
    return RT_OK;
}

static rt_code check_expiration(const json_t *meta, int64_t now_ms, rt_err *err) {
    const rt_str text = text_of(json_object_get(meta, "expiration"));
    int64_t at_s;
    if (text.len == 0) return RT_OK;
    if (!rt_timestamp_parse(text, &at_s)) return refuse(err, "expiration", "it is not an ISO 8601 date");
    if (at_s <= now_ms / 1000) return refuse(err, "expiration", "it is before the current time");
    return RT_OK;
}

/* What key and asymmetric orders have in common. */
static rt_code check_key(const json_t *meta, int64_t now_ms, rt_err *err) {
    if (!is_left_out(json_object_get(meta, "payload")))
        return refuse(err, "payload", "'payload' is not allowed in an order of this type");
    rt_code code = check_texts(meta, err);
    if (code == RT_OK) code = check_expiration(meta, now_ms, err);
    if (code != RT_OK) return code;
    if (json_string_length(json_object_get(meta, "algorithm")) == 0)
        return refuse(err, "algorithm", "'algorithm' is a required field for an order of this type");
    const json_t *bits = json_object_get(meta, "bit_length");
    if (is_left_out(bits))
        return refuse(err, "bit_length", "'bit_length' is a required field for an order of this type");
    const json_int_t count = json_integer_value(bits);
    if (!json_is_integer(bits) || count <= 0 || count > RT_ORDER_BITS_MAX || count % 8 != 0)
        return refuse(err, "bit_length",
                      "it must be a positive integer that is a multiple of 8, at most 32767");
    return RT_OK;
}

rt_code rt_order_body_check(const json_t *body, int64_t now_ms, rt_err *err) {
    const json_t *type = json_object_get(body, "type");
    const json_t *meta = json_object_get(body, "meta");
    if (!json_is_string(type)) return refuse(err, "type", "'type' is a required string");
    if (!json_is_object(meta)) return refuse(err, "meta", "'meta' is a required object");
    const rt_str name = text_of(type);
    if (!rt_name_is_word(name)) return refuse(err, "type", "there is no order type of this name");
    const bool key = rt_str_eq(name, RT_STR("key")) || rt_str_eq(name, RT_STR("asymmetric"));
    return key ? check_key(meta, now_ms, err) : RT_OK;
}
