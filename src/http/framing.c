#include "http/framing.h"

#include <string.h>

static bool is_token(rt_str s) {
    static const char MARKS[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alphanumeric && (c == '\0' || strchr(MARKS, c) == NULL)) return false;
    }
    return s.len > 0;
}

static void add_host(rt_framing *f) {
    if (f->has_host) f->trouble = RT_STR("The request has more than one Host.");
    f->has_host = true;
}

static void add_length(rt_framing *f) {
    if (f->has_length) f->trouble = RT_STR("The request has more than one Content-Length.");
    f->has_length = true;
}

static void add_chunks(rt_framing *f, rt_str coding) {
    if (f->has_chunks || !rt_str_eq_nocase(rt_str_trim(coding), RT_STR("chunked"))) {
        f->trouble = RT_STR("The Transfer-Encoding of a request can only be \"chunked\".");
    }
    f->has_chunks = true;
}

void rt_framing_add(rt_framing *f, rt_str name, rt_str value) {
    if (!is_token(name)) f->trouble = RT_STR("The name of a header has a character that none may have.");
    else if (rt_str_has_control(value)) f->trouble = RT_STR("The value of a header has a control character in it.");
    else if (rt_str_eq_nocase(name, RT_STR("Host"))) add_host(f);
    else if (rt_str_eq_nocase(name, RT_STR("Content-Length"))) add_length(f);
    else if (rt_str_eq_nocase(name, RT_STR("Transfer-Encoding"))) add_chunks(f, value);
    if (f->has_length && f->has_chunks && f->trouble.len == 0) {
        f->trouble = RT_STR("The request has both a Content-Length and a Transfer-Encoding.");
    }
}
