#include "base/quote.h"

#include <stdio.h>

#include "base/utf8.h"

/* What a character is written as, NULL: as itself. `unicode` has room for \uXXXX. */
static const char *escape_of(char c, char unicode[8]) {
    switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\b': return "\\b";
    case '\f': return "\\f";
    default: break;
    }
    if ((unsigned char)c >= 0x20) return NULL;
    (void)snprintf(unicode, 8, "\\u%04x", (unsigned)(unsigned char)c);
    return unicode;
}

static void write_escaped(rt_buf *out, rt_str s) {
    size_t plain = 0; // where the bytes begin that need no escape
    for (size_t i = 0; i < s.len; i++) {
        char unicode[8];
        const char *escape = escape_of(s.ptr[i], unicode);
        if (escape == NULL) continue;
        rt_buf_add(out, (rt_str){.ptr = s.ptr + plain, .len = i - plain});
        rt_buf_add(out, rt_str_of(escape));
        plain = i + 1;
    }
    rt_buf_add(out, (rt_str){.ptr = s.ptr + plain, .len = s.len - plain});
}

/* Byte by byte: only for what a client sent in a header or path in another encoding. */
static void write_repaired(rt_buf *out, rt_str s) {
    while (s.len > 0) {
        size_t len = 1;
        while (len < 4 && len < s.len && !rt_utf8_is_valid((rt_str){.ptr = s.ptr, .len = len})) len++;
        const rt_str one = {.ptr = s.ptr, .len = len};
        if (rt_utf8_is_valid(one)) {
            write_escaped(out, one);
        } else {
            rt_buf_add(out, RT_STR("\xEF\xBF\xBD"));
            len = 1;
        }
        s = (rt_str){.ptr = s.ptr + len, .len = s.len - len};
    }
}

void rt_quote(rt_buf *out, rt_str s) {
    rt_buf_add_char(out, '"');
    if (rt_utf8_is_valid(s)) write_escaped(out, s);
    else write_repaired(out, s);
    rt_buf_add_char(out, '"');
}
