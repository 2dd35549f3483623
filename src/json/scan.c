#include "json/scan.h"

#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/utf8.h"

enum { ROWS_FIRST = 16, NO_FIELD = -1 };

typedef struct walk {
    rt_json_scan *scan;
    rt_str text;
    yajl_handle parser;
    size_t depth;      /* containers that are open */
    size_t row_depth;  /* how many are open between the brackets of a row */
    bool list_is_next; /* the key before was `list` */
    bool in_list;
    bool in_row;
    int field;         /* whose value comes next or is open; NO_FIELD: none that is wanted */
    size_t key_end;    /* offset behind that field's key */
    uint32_t rows_cap;
    rt_json_fault fault;
} walk;

static int stop(walk *w, rt_json_fault fault) {
    w->fault = fault;
    return 0;
}

/* Offset behind the token that yajl has just read. */
static size_t token_end(const walk *w) { return yajl_get_bytes_consumed(w->parser); }

static rt_json_slice *slot(walk *w) {
    return &w->scan->rows[(size_t)(w->scan->rows_count - 1) * w->scan->fields_count + (size_t)w->field];
}

static int begin_row(walk *w) {
    rt_json_scan *scan = w->scan;
    w->in_row = true;
    w->field = NO_FIELD;
    if (scan->rows_count == scan->rows_max) return stop(w, RT_JSON_TOO_MANY);
    const size_t row_bytes = scan->fields_count * sizeof(rt_json_slice);
    if (scan->rows_count == w->rows_cap) {
        uint32_t cap = w->rows_cap == 0 ? ROWS_FIRST : w->rows_cap * 2;
        if (cap > scan->rows_max) cap = scan->rows_max;
        rt_json_slice *rows = rt_arena_alloc(scan->arena, cap * row_bytes + 1);
        if (rows == NULL) return stop(w, RT_JSON_NOMEM);
        if (scan->rows_count > 0) memcpy(rows, scan->rows, scan->rows_count * row_bytes);
        scan->rows = rows;
        w->rows_cap = cap;
    }
    // Rows are used again when the list is there twice.
    if (row_bytes > 0) memset(scan->rows + scan->rows_count * scan->fields_count, 0, row_bytes);
    scan->rows_count++;
    return 1;
}

static void begin_list(walk *w, rt_json_kind kind) {
    w->list_is_next = false;
    w->in_list = kind == RT_JSON_ARRAY;
    w->scan->list_kind = kind;
    w->scan->odd_rows = false;
    w->scan->rows_count = 0;
}

/* A value begins (or, for a scalar, was read whole). */
static int value(walk *w, rt_json_kind kind, int64_t integer) {
    const size_t end = token_end(w);
    const bool opens = kind == RT_JSON_OBJECT || kind == RT_JSON_ARRAY;
    if (w->depth == 0) w->scan->top = kind;
    if (w->depth == 1 && w->list_is_next) begin_list(w, kind);
    if (w->in_row && w->depth == w->row_depth && w->field != NO_FIELD) {
        size_t begin = w->key_end;
        while (strchr(" \t\r\n:", w->text.ptr[begin]) != NULL) begin++;
        *slot(w) = (rt_json_slice){kind, {.ptr = w->text.ptr + begin, .len = end - begin}, integer};
        if (!opens) w->field = NO_FIELD;
    }
    if (w->depth + 1 == w->row_depth && (w->in_list || w->row_depth == 1)) {
        if (kind != RT_JSON_OBJECT) w->scan->odd_rows = true;
        else if (!begin_row(w)) return 0;
    }
    if (!opens) return 1;
    if (++w->depth > RT_JSON_DEPTH_MAX) return stop(w, RT_JSON_TOO_DEEP);
    return 1;
}

static int close_container(walk *w) {
    w->depth--;
    if (w->in_row && w->depth == w->row_depth && w->field != NO_FIELD) {
        rt_json_slice *s = slot(w);
        s->text.len = (size_t)(w->text.ptr + token_end(w) - s->text.ptr);
        w->field = NO_FIELD;
    }
    if (w->depth + 1 == w->row_depth) w->in_row = false;
    if (w->depth == 1) w->in_list = false;
    return 1;
}

static int on_null(void *ctx) { return value(ctx, RT_JSON_NULL, 0); }
static int on_bool(void *ctx, int truth) { return value(ctx, RT_JSON_BOOL, truth != 0); }
static int on_open_object(void *ctx) { return value(ctx, RT_JSON_OBJECT, 0); }
static int on_open_array(void *ctx) { return value(ctx, RT_JSON_ARRAY, 0); }
static int on_close(void *ctx) { return close_container(ctx); }

static int on_string(void *ctx, const unsigned char *text, size_t len) {
    (void)text;
    (void)len;
    return value(ctx, RT_JSON_STRING, 0);
}

static int on_number(void *ctx, const char *text, size_t len) {
    const rt_str number = {.ptr = text, .len = len};
    bool real = false;
    for (size_t i = 0; i < len; i++) real = real || text[i] == '.' || text[i] == 'e' || text[i] == 'E';
    if (real) return value(ctx, RT_JSON_REAL, 0);
    int64_t integer;
    if (rt_str_to_i64(number, &integer)) return value(ctx, RT_JSON_INT, integer);
    const walk *w = ctx;
    return w->scan->any_integer ? value(ctx, RT_JSON_REAL, 0) : stop(ctx, RT_JSON_INT_TOO_LARGE);
}

static int on_key(void *ctx, const unsigned char *text, size_t len) {
    walk *w = ctx;
    const rt_str key = {.ptr = (const char *)text, .len = len};
    if (w->depth == 1) w->list_is_next = w->row_depth > 1 && rt_str_eq(key, w->scan->list);
    if (!w->in_row || w->depth != w->row_depth) return 1;
    w->field = NO_FIELD;
    for (size_t i = 0; i < w->scan->fields_count; i++) {
        if (rt_str_eq(key, w->scan->fields[i])) w->field = (int)i;
    }
    w->key_end = token_end(w);
    if (w->field != NO_FIELD || w->scan->stray.ptr != NULL) return 1;
    w->scan->stray = rt_arena_dup(w->scan->arena, key); // yajl may have it in a buffer of its own
    return w->scan->stray.ptr == NULL ? stop(w, RT_JSON_NOMEM) : 1;
}

static const yajl_callbacks CALLBACKS = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_open_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_close,
    .yajl_start_array = on_open_array,
    .yajl_end_array = on_close,
};

/* Characters that JSON allows nowhere but that yajl takes for blanks: what is stored as it came in must be JSON to
 * others too. */
static bool has_odd_controls(rt_str text) {
    bool odd = false;
    for (size_t i = 0; i < text.len; i++) { // without a way out, so that the compiler can look at many at once
        const unsigned char c = (unsigned char)text.ptr[i];
        odd |= (c < 0x20) & (c != '\t') & (c != '\n') & (c != '\r');
    }
    return odd;
}

rt_json_fault rt_json_scan_text(rt_json_scan *scan, rt_str text) {
    RT_ASSERT(scan->fields_count <= RT_JSON_FIELDS_MAX);
    RT_ASSERT(scan->arena != NULL || scan->fields_count == 0);
    scan->top = scan->list_kind = RT_JSON_ABSENT;
    scan->odd_rows = false;
    scan->stray = (rt_str){0};
    scan->rows = NULL;
    scan->rows_count = 0;
    // yajl's own check lets surrogates and overlong forms pass.
    if (has_odd_controls(text) || !rt_utf8_is_valid(text)) return RT_JSON_MALFORMED;

    walk w = {.scan = scan, .text = text, .field = NO_FIELD};
    w.row_depth = scan->fields_count == 0 ? SIZE_MAX : (scan->list.len == 0 ? 1 : 3);
    if (w.row_depth == 1) scan->rows_max = 1;
    w.parser = yajl_alloc(&CALLBACKS, NULL, &w);
    if (w.parser == NULL) return RT_JSON_NOMEM;
    yajl_status status = yajl_config(w.parser, yajl_dont_validate_strings, 1) ? yajl_status_ok : yajl_status_error;
    if (status == yajl_status_ok) status = yajl_parse(w.parser, (const unsigned char *)text.ptr, text.len);
    if (status == yajl_status_ok) status = yajl_complete_parse(w.parser);
    yajl_free(w.parser);
    if (w.fault != RT_JSON_FINE) return w.fault;
    return status == yajl_status_ok ? RT_JSON_FINE : RT_JSON_MALFORMED;
}
