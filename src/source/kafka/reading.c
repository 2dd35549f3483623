#include "source/kafka/reading.h"

#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "json/tree.h"

bool rt_reading_header(const rd_kafka_message_t *message, const char *name, rt_str *out) {
    rd_kafka_headers_t *headers;
    const void *value;
    size_t size;
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
    if (rd_kafka_header_get_last(headers, name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
    *out = (rt_str){.ptr = value == NULL ? "" : value, .len = value == NULL ? 0 : size};
    return true;
}

/* ---- JSON pointers ------------------------------------------------------------------------------------- */

rt_code rt_pointer_check(const char *setting, rt_str pointer, rt_err *err) {
    size_t steps = 0;
    if (pointer.len == 0) return RT_OK;
    if (pointer.ptr[0] != '/')
        return rt_fail(err, RT_E_INVALID, 0, "%s: a JSON pointer begins with '/'", setting);
    for (size_t i = 0; i < pointer.len; i++) {
        if (pointer.ptr[i] == '/') steps++;
        const bool escape = pointer.ptr[i] == '~';
        const char next = i + 1 < pointer.len ? pointer.ptr[i + 1] : '\0';
        if (escape && next != '0' && next != '1')
            return rt_fail(err, RT_E_INVALID, 0, "%s: in a JSON pointer '~' is followed by 0 or 1", setting);
    }
    if (steps <= RT_POINTER_STEPS_MAX) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "%s: more than %d steps", setting, RT_POINTER_STEPS_MAX);
}

/* A step without its escapes, in the arena. ptr NULL: out of memory. */
static rt_str plain_step(rt_arena *arena, rt_str step) {
    char *to = rt_arena_alloc(arena, step.len + 1);
    size_t len = 0;
    if (to == NULL) return (rt_str){0};
    for (size_t i = 0; i < step.len; i++) {
        const bool escape = step.ptr[i] == '~' && i + 1 < step.len;
        if (escape) i++;
        to[len++] = !escape ? step.ptr[i] : step.ptr[i] == '1' ? '/' : '~';
    }
    return (rt_str){.ptr = to, .len = len};
}

static const json_t *step_into(const json_t *at, rt_str step) {
    if (json_is_object(at)) return json_object_get(at, step.ptr); // NUL-terminated by plain_step
    int64_t index;
    if (!json_is_array(at) || !rt_str_to_i64(step, &index) || index < 0) return NULL;
    return json_array_get(at, (size_t)index);
}

/* The text that `pointer` leads to: a string, or a number as it is written; otherwise nothing. */
static rt_str follow(const json_t *at, rt_str pointer, rt_arena *arena, bool *nomem) {
    rt_str step, rest;
    if (at == NULL || pointer.len == 0) return RT_STR_EMPTY;
    (void)rt_str_cut(pointer, '/', &step, &rest);
    bool more = true;
    while (more && at != NULL) {
        more = rt_str_cut(rest, '/', &step, &rest);
        step = plain_step(arena, step);
        *nomem = *nomem || step.ptr == NULL;
        at = step.ptr == NULL ? NULL : step_into(at, step);
    }
    rt_str text = RT_STR_EMPTY;
    if (json_is_string(at))
        text = rt_arena_dup(arena, (rt_str){.ptr = json_string_value(at), .len = json_string_length(at)});
    else if (json_is_integer(at))
        text = rt_arena_printf(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(at));
    *nomem = *nomem || text.ptr == NULL;
    return text;
}

/* ---- the record ---------------------------------------------------------------------------------------- */

typedef struct wanted {
    const char *header;
    rt_str pointer;
    rt_str *to;
} wanted;

static bool look_into_value(const wanted fields[], size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (fields[i].to->ptr == NULL && fields[i].pointer.len > 0) return true;
    }
    return false;
}

/* Fills what headers say, then what the value says of the rest; what nobody says is empty. */
static void gather(const wanted fields[], size_t count, const rd_kafka_message_t *m, rt_arena *arena,
                   bool *nomem) {
    json_t *value = NULL;
    for (size_t i = 0; i < count; i++) {
        *fields[i].to = (rt_str){0};
        (void)rt_reading_header(m, fields[i].header, fields[i].to);
    }
    if (look_into_value(fields, count)) { // not JSON: then it says nothing
        const rt_json_fault fault = rt_json_parse((rt_str){.ptr = m->payload, .len = m->len}, &value);
        *nomem = fault == RT_JSON_NOMEM;
        if (fault != RT_JSON_FINE) value = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (fields[i].to->ptr == NULL) *fields[i].to = follow(value, fields[i].pointer, arena, nomem);
    }
    json_decref(value);
}

static bool is_text(rt_str s) {
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f) return false;
    }
    return rt_utf8_is_valid(s);
}

static const char *check(const rt_call_item *item) {
    if (item->type.len == 0) return "it names no event type";
    if (item->type.len > RT_CALL_TYPE_NAME_MAX || !is_text(item->type))
        return "its type can be no event type's name";
    if (item->key.len > RT_CALL_KEY_MAX || !is_text(item->key)) return "its id is too long, or no text";
    if (item->order_key.len > RT_CALL_ORDER_KEY_MAX || !is_text(item->order_key))
        return "its order key is too long, or no text";
    if (item->content_type.len > RT_CALL_CONTENT_TYPE_MAX || !is_text(item->content_type))
        return "its content type is too long, or no text";
    if (item->payload.len > RT_BODY_BYTES_MAX) return "it is larger than an event may be";
    return NULL;
}

/* A reason is for people: better cut than refused. */
static rt_str fit_reason(rt_str reason) {
    if (reason.len > RT_CALL_REASON_MAX) reason.len = RT_CALL_REASON_MAX;
    while (reason.len > 0 && !rt_utf8_is_valid(reason)) reason.len--;
    return is_text(reason) ? reason : RT_STR_EMPTY;
}

/* Many producers have numbers for keys: those are told apart by their digits. */
static rt_str text_of_key(rt_str key, rt_arena *arena, bool *nomem) {
    if (is_text(key) || key.len > RT_CALL_ORDER_KEY_MAX / 2) return key;
    char *digits = rt_arena_alloc(arena, 2 * key.len);
    *nomem = *nomem || digits == NULL;
    if (digits == NULL) return RT_STR_EMPTY;
    rt_hex_write(digits, (const unsigned char *)key.ptr, key.len);
    return (rt_str){.ptr = digits, .len = 2 * key.len};
}

const char *rt_reading_item(const rt_reading_rules *rules, rt_str type, const rd_kafka_message_t *message,
                            rt_arena *arena, rt_call_item *out, bool *nomem) {
    *out = (rt_call_item){
        .payload = {.ptr = message->payload == NULL ? "" : message->payload, .len = message->len}};
    *nomem = false;
    const wanted fields[] = {
        {"rtd-type", rules->type, &out->type},
        {"rtd-reason", rules->reason, &out->reason},
        {"rtd-key", rules->key, &out->order_key},
        {"rtd-id", rules->id, &out->key},
        {"content-type", RT_STR_EMPTY, &out->content_type},
    };
    gather(fields, sizeof fields / sizeof *fields, message, arena, nomem);
    if (out->type.len == 0) out->type = type;
    if (rules->order_by_key && out->order_key.len == 0 && message->key_len > 0)
        out->order_key = text_of_key((rt_str){.ptr = message->key, .len = message->key_len}, arena, nomem);
    out->reason = fit_reason(out->reason);
    return check(out);
}
