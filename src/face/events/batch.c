#include "face/events/batch.h"

#include <jansson.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/calls/call_read.h"
#include "face/common/payload.h"
#include "face/common/target.h"
#include "json/scan.h"

/* ---- texts --------------------------------------------------------------------------------------------- */

rt_code rt_event_text_check(const char *what, rt_str text, size_t max, rt_err *err) {
    if (text.len <= max && rt_utf8_is_valid(text) && !rt_target_has_control(text)) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "%s has at most %zu bytes of UTF-8 without control characters.",
                   what, max);
}

rt_code rt_event_item_check(const rt_call_item *item, rt_err *err) {
    rt_code code = rt_event_text_check("\"reason\" (Retry-Reason)", item->reason, RT_CALL_REASON_MAX, err);
    if (code == RT_OK) code = rt_event_text_check("\"order_key\" (Order-Key)", item->order_key, RT_CALL_ORDER_KEY_MAX, err);
    if (code == RT_OK) code = rt_event_text_check("\"idempotency_key\" (Idempotency-Key)", item->key, RT_CALL_KEY_MAX, err);
    if (code != RT_OK) return code;
    return rt_event_text_check("\"content_type\" (Content-Type)", item->content_type, RT_CALL_CONTENT_TYPE_MAX, err);
}

/* ---- members ------------------------------------------------------------------------------------------- */

enum member { TYPE, BODY, BODY_BASE64, CONTENT_TYPE, KEY, REASON, ORDER_KEY, DELAY, MEMBERS };
static const rt_str NAMES[MEMBERS] = {
    [TYPE] = {"type", 4},
    [BODY] = {"body", 4},
    [BODY_BASE64] = {"body_base64", 11},
    [CONTENT_TYPE] = {"content_type", 12},
    [KEY] = {"idempotency_key", 15},
    [REASON] = {"reason", 6},
    [ORDER_KEY] = {"order_key", 9},
    [DELAY] = {"deliver_after", 13},
};

typedef struct reader {
    const rt_json_slice *row; /* of the event that is read */
    rt_arena *arena;
    bool mixed;
    rt_err *err;
} reader;

static bool is_left_out(const rt_json_slice *slice) {
    return slice->kind == RT_JSON_ABSENT || slice->kind == RT_JSON_NULL;
}

/* A string's value, in the arena or, without escapes, lent; left out: empty. */
static rt_code take_text(const reader *r, enum member m, rt_str *out) {
    const rt_json_slice *slice = &r->row[m];
    *out = RT_STR_EMPTY;
    if (is_left_out(slice)) return RT_OK;
    if (slice->kind != RT_JSON_STRING)
        return rt_fail(r->err, RT_E_INVALID, 0, "\"%s\" of an event must be a string.", NAMES[m].ptr);
    const rt_str inside = {.ptr = slice->text.ptr + 1, .len = slice->text.len - 2}; // of its quotes
    if (inside.len == 0 || memchr(inside.ptr, '\\', inside.len) == NULL) {
        *out = inside;
        return RT_OK;
    }
    json_t *string = json_loadb(slice->text.ptr, slice->text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (string == NULL) // halves of surrogates are all that the scan lets through
        return rt_fail(r->err, RT_E_INVALID, 0, "\"%s\" of an event is no text.", NAMES[m].ptr);
    *out = rt_arena_dup(r->arena,
                        (rt_str){.ptr = json_string_value(string), .len = json_string_length(string)});
    json_decref(string);
    return out->ptr == NULL ? rt_fail(r->err, RT_E_NOMEM, 0, "no memory for an event") : RT_OK;
}

static rt_code take_base64(const reader *r, rt_call_item *out) {
    rt_str text;
    const rt_code code = take_text(r, BODY_BASE64, &text);
    if (code != RT_OK) return code;
    out->payload = rt_payload_from_base64(r->arena, text);
    if (out->content_type.len == 0) out->content_type = RT_STR("application/octet-stream");
    if (out->payload.ptr != NULL) return RT_OK;
    return rt_fail(r->err, RT_E_INVALID, 0, "\"body_base64\" of an event is no base64.");
}

/* Exactly one of the two. Text that a string holds is sent as it is, anything else as its JSON. */
static rt_code take_payload(const reader *r, rt_call_item *out) {
    const bool encoded = r->row[BODY_BASE64].kind != RT_JSON_ABSENT;
    if (encoded == (r->row[BODY].kind != RT_JSON_ABSENT))
        return rt_fail(r->err, RT_E_INVALID, 0, "An event has either a \"body\" or a \"body_base64\".");
    if (encoded) return take_base64(r, out);
    const bool text = r->row[BODY].kind == RT_JSON_STRING;
    if (out->content_type.len == 0)
        out->content_type = text ? RT_STR("text/plain; charset=utf-8") : RT_STR("application/json");
    if (text) return take_text(r, BODY, &out->payload);
    out->payload = r->row[BODY].text;
    return RT_OK;
}

static rt_code take_delay(const reader *r, int64_t *out_ms) {
    const rt_json_slice *delay = &r->row[DELAY];
    *out_ms = 0;
    if (is_left_out(delay)) return RT_OK;
    if (delay->kind != RT_JSON_INT || delay->integer < 0 || delay->integer > RT_EVENT_DELAY_S_MAX) {
        return rt_fail(r->err, RT_E_INVALID, 0,
                       "\"deliver_after\" must be a whole number of seconds from 0 to %d.", RT_EVENT_DELAY_S_MAX);
    }
    *out_ms = delay->integer * 1000;
    return RT_OK;
}

static rt_code take_item(const reader *r, rt_call_item *out) {
    rt_code code = take_text(r, TYPE, &out->type);
    if (code == RT_OK) code = take_text(r, CONTENT_TYPE, &out->content_type);
    if (code == RT_OK) code = take_text(r, KEY, &out->key);
    if (code == RT_OK) code = take_text(r, REASON, &out->reason);
    if (code == RT_OK) code = take_text(r, ORDER_KEY, &out->order_key);
    if (code == RT_OK) code = take_delay(r, &out->delay_ms);
    if (code == RT_OK && (r->mixed || out->type.len > 0) && !rt_call_type_name_is_valid(out->type))
        return rt_fail(r->err, RT_E_INVALID, 0, "\"type\" of an event must name an event type.");
    if (code == RT_OK) code = take_payload(r, out);
    return code == RT_OK ? rt_event_item_check(out, r->err) : code;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static rt_code scan(rt_str text, rt_arena *arena, rt_json_scan *out, rt_err *err) {
    *out = (rt_json_scan){.list = RT_STR("events"),
                          .fields = NAMES,
                          .fields_count = MEMBERS,
                          .rows_max = RT_CALLS_PER_REQUEST_MAX,
                          .any_integer = true, // of bodies, which are sent as they came
                          .arena = arena};
    const rt_json_fault fault = rt_json_scan_text(out, text);
    if (fault == RT_JSON_NOMEM) return rt_fail(err, RT_E_NOMEM, 0, "no memory for events");
    if (fault == RT_JSON_TOO_MANY)
        return rt_fail(err, RT_E_TOO_LARGE, 0, "A request has at most %d events.", RT_CALLS_PER_REQUEST_MAX);
    if (fault == RT_JSON_TOO_DEEP)
        return rt_fail(err, RT_E_INVALID, 0, "The body is more than %d levels deep.", RT_JSON_DEPTH_MAX);
    if (fault != RT_JSON_FINE) return rt_fail(err, RT_E_INVALID, 0, "The body is not JSON.");
    const bool list = out->top == RT_JSON_OBJECT && out->list_kind == RT_JSON_ARRAY;
    if (!list || out->odd_rows || out->rows_count == 0) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "The body must be an object whose \"events\" is a list of at least one object.");
    }
    if (out->stray.ptr != NULL)
        return rt_fail(err, RT_E_INVALID, 0, "\"%.64s\" is no member of an event.", out->stray.ptr);
    return RT_OK;
}

rt_code rt_event_batch_read(rt_str text, bool mixed, rt_arena *arena, rt_call_item **items, uint32_t *count,
                            rt_err *err) {
    rt_json_scan found;
    rt_code code = scan(text, arena, &found, err);
    if (code != RT_OK) return code;
    rt_call_item *read = rt_arena_alloc(arena, found.rows_count * sizeof *read);
    if (read == NULL) return rt_fail(err, RT_E_NOMEM, 0, "no memory for events");
    reader r = {.arena = arena, .mixed = mixed, .err = err};
    for (uint32_t i = 0; i < found.rows_count && code == RT_OK; i++) {
        r.row = &found.rows[(size_t)i * MEMBERS];
        code = take_item(&r, &read[i]);
    }
    *items = read;
    *count = found.rows_count;
    return code;
}
