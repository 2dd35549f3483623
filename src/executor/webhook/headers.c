#include "executor/webhook/headers.h"

#include <stdlib.h>
#include <string.h>

#include "port/executor.h"

void rt_headers_clear(rt_headers *h) {
    rt_buf_clear(&h->text);
    h->count = 0;
}

void rt_headers_add(rt_headers *h, rt_str name, rt_str value) {
    rt_buf_add(&h->text, name);
    // To libcurl "Name:" means "do not send it", "Name;" means "send it empty".
    rt_buf_add(&h->text, value.len > 0 ? RT_STR(": ") : RT_STR(";"));
    rt_buf_add(&h->text, value);
    rt_buf_add_char(&h->text, '\0');
    h->count++;
}

/* Splits "Name: value". False: not a line that may be sent. */
static bool split(rt_str line, rt_str *name, rt_str *value) {
    if (!rt_str_cut(line, ':', name, value)) return false;
    *value = rt_str_trim(*value);
    return rt_attempt_header_name(*name) == RT_HEADER_FREE && !rt_str_has_control(*value);
}

void rt_headers_add_users(rt_headers *h, rt_str lines, rt_str content_type) {
    rt_str names[RT_HEADERS_USER_MAX], values[RT_HEADERS_USER_MAX];
    size_t count = 0;
    bool has_type = false;
    while (lines.len > 0) {
        rt_str line, name, value;
        (void)rt_str_cut(lines, '\n', &line, &lines);
        if (!split(line, &name, &value)) continue;
        if (rt_str_eq_nocase(name, RT_STR("content-type"))) has_type = true;
        size_t place = 0;
        while (place < count && !rt_str_eq_nocase(names[place], name)) place++;
        if (place == RT_HEADERS_USER_MAX) continue;
        names[place] = name;
        values[place] = value;
        if (place == count) count++;
    }
    const bool usable = content_type.len > 0 && !rt_str_has_control(content_type);
    if (!has_type) rt_headers_add(h, RT_STR("Content-Type"), usable ? content_type : RT_STR("application/json"));
    for (size_t i = 0; i < count; i++) rt_headers_add(h, names[i], values[i]);
}

struct curl_slist *rt_headers_list(rt_headers *h) {
    // Without this line libcurl asks for leave (100-continue) before larger bodies, which costs a second
    // where nobody answers.
    static char no_expect[] = "Expect:";
    const size_t wanted = h->count + 1;
    if (h->text.failed) return NULL;
    if (wanted > h->cap) {
        struct curl_slist *more = realloc(h->nodes, (wanted + 8) * sizeof *more);
        if (more == NULL) return NULL;
        h->nodes = more;
        h->cap = wanted + 8;
    }
    char *line = h->text.ptr;
    for (size_t i = 0; i < h->count; i++) {
        h->nodes[i] = (struct curl_slist){.data = line, .next = &h->nodes[i + 1]};
        line += strlen(line) + 1;
    }
    h->nodes[h->count] = (struct curl_slist){.data = no_expect, .next = NULL};
    return h->nodes;
}

void rt_headers_deinit(rt_headers *h) {
    rt_buf_deinit(&h->text);
    free(h->nodes);
    *h = (rt_headers){0};
}
