#include "json/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"

rt_json_fault rt_json_parse(rt_str text, json_t **out) {
    // Before jansson, whose parser recurses and which knows one kind of error only.
    rt_json_scan scan = {0};
    const rt_json_fault fault = rt_json_scan_text(&scan, text);
    if (fault != RT_JSON_FINE) return fault;
    if (scan.top != RT_JSON_OBJECT && scan.top != RT_JSON_ARRAY) return RT_JSON_MALFORMED;
    json_error_t error;
    json_t *json = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, &error);
    if (json == NULL) return json_error_code(&error) == json_error_out_of_memory ? RT_JSON_NOMEM : RT_JSON_MALFORMED;
    *out = json;
    return RT_JSON_FINE;
}

rt_code rt_json_refuse(rt_str *why, rt_str text) {
    *why = text;
    return text.ptr == NULL ? RT_E_NOMEM : RT_E_INVALID;
}

bool rt_json_is_truthy(const json_t *v) {
    if (v == NULL) return false;
    switch (json_typeof(v)) {
        case JSON_OBJECT: return json_object_size(v) > 0;
        case JSON_ARRAY: return json_array_size(v) > 0;
        case JSON_STRING: return json_string_length(v) > 0;
        case JSON_INTEGER: return json_integer_value(v) != 0;
        case JSON_REAL: return json_real_value(v) != 0.0;
        case JSON_TRUE: return true;
        case JSON_FALSE:
        case JSON_NULL: return false;
    }
    return false;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

void rt_json_write_str(rt_buf *out, rt_str s) { rt_quote(out, s); }

static void write_real(rt_buf *out, double real) {
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, real);
        if (!(strtod(text, NULL) < real || strtod(text, NULL) > real)) break;
    }
    rt_buf_add(out, rt_str_of(text));
    if (strpbrk(text, ".e") == NULL) rt_buf_add(out, RT_STR(".0"));
}

static void write_scalar(rt_buf *out, const json_t *json) {
    switch (json_typeof(json)) {
        case JSON_STRING:
            rt_json_write_str(out, (rt_str){.ptr = json_string_value(json), .len = json_string_length(json)});
            break;
        case JSON_INTEGER: rt_buf_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(json)); break;
        case JSON_REAL: write_real(out, json_real_value(json)); break;
        case JSON_TRUE: rt_buf_add(out, RT_STR("true")); break;
        case JSON_FALSE: rt_buf_add(out, RT_STR("false")); break;
        case JSON_NULL: rt_buf_add(out, RT_STR("null")); break;
        case JSON_OBJECT:
        case JSON_ARRAY: break; // by rt_json_write
    }
}

/* A container that is being written. */
typedef struct frame {
    json_t *container;
    void *member;   /* objects: jansson's iterator */
    size_t element; /* arrays */
    bool begun;
} frame;

/* The next value of the frame, its key written; NULL: there is none. */
static const json_t *next_value(rt_buf *out, frame *f) {
    const bool object = json_is_object(f->container);
    if (object) f->member = f->begun ? json_object_iter_next(f->container, f->member) : json_object_iter(f->container);
    else if (f->begun) f->element++;
    const json_t *value = object ? (f->member == NULL ? NULL : json_object_iter_value(f->member))
                                 : json_array_get(f->container, f->element);
    if (value == NULL) return NULL;
    if (f->begun) rt_buf_add(out, RT_STR(", "));
    f->begun = true;
    if (object) {
        rt_json_write_str(out, rt_str_of(json_object_iter_key(f->member)));
        rt_buf_add(out, RT_STR(": "));
    }
    return value;
}

void rt_json_write(rt_buf *out, const json_t *json) {
    frame stack[RT_JSON_DEPTH_MAX];
    size_t depth = 0;
    const json_t *value = json;
    for (;;) {
        if (value == NULL) {
            rt_buf_add_char(out, json_is_object(stack[depth - 1].container) ? '}' : ']');
            depth--;
        } else if (json_is_object(value) || json_is_array(value)) {
            if (depth == RT_JSON_DEPTH_MAX) {
                out->failed = true;
                return;
            }
            rt_buf_add_char(out, json_is_object(value) ? '{' : '[');
            // jansson's iterators want a tree that may be changed; this one is only read.
            union { const json_t *in; json_t *out; } container = {.in = value};
            stack[depth++] = (frame){.container = container.out};
        } else {
            write_scalar(out, value);
        }
        if (depth == 0) return;
        value = next_value(out, &stack[depth - 1]);
    }
}
