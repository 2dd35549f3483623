#include "base/utf8.h"

#include <string.h>

/* How a character starts: its length in bytes, and the range of its second byte, which is what rules out overlong
 * spellings, surrogates and what lies past U+10FFFF. Length 0: no character. */
typedef struct lead {
    unsigned char length, second_min, second_max;
} lead;

static lead lead_of(unsigned char c) {
    if (c < 0x80) return (lead){1, 0, 0};
    if (c < 0xc2) return (lead){0, 0, 0};
    if (c < 0xe0) return (lead){2, 0x80, 0xbf};
    if (c == 0xe0) return (lead){3, 0xa0, 0xbf};
    if (c == 0xed) return (lead){3, 0x80, 0x9f};
    if (c < 0xf0) return (lead){3, 0x80, 0xbf};
    if (c == 0xf0) return (lead){4, 0x90, 0xbf};
    if (c < 0xf4) return (lead){4, 0x80, 0xbf};
    if (c == 0xf4) return (lead){4, 0x80, 0x8f};
    return (lead){0, 0, 0};
}

size_t rt_utf8_char(rt_str s, bool *begun) {
    RT_ASSERT(s.len > 0);
    const unsigned char *p = (const unsigned char *)s.ptr;
    const lead l = lead_of(p[0]);
    *begun = false;
    for (size_t i = 1; i < l.length; i++) {
        if (i == s.len) {
            *begun = true;
            return 0;
        }
        const bool fits = i == 1 ? p[1] >= l.second_min && p[1] <= l.second_max : (p[i] & 0xc0) == 0x80;
        if (!fits) return 0;
    }
    return l.length;
}

bool rt_utf8_is_valid(rt_str s) {
    while (s.len > 0) {
        // Most text is ASCII: eight bytes at once.
        uint64_t eight;
        size_t len = sizeof eight;
        if (s.len >= len) memcpy(&eight, s.ptr, len);
        if (s.len < len || (eight & 0x8080808080808080u) != 0) {
            bool begun;
            len = rt_utf8_char(s, &begun);
            if (len == 0) return false;
        }
        s = (rt_str){.ptr = s.ptr + len, .len = s.len - len};
    }
    return true;
}

rt_str rt_utf8_cut(rt_str s, size_t chars) {
    size_t len = 0;
    bool begun;
    for (; chars > 0 && len < s.len; chars--) {
        const size_t next = rt_utf8_char((rt_str){.ptr = s.ptr + len, .len = s.len - len}, &begun);
        if (next == 0) break;
        len += next;
    }
    return (rt_str){.ptr = s.ptr, .len = len};
}
