#include "base/base64.h"

/* -1: none. */
static int digit_of(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

size_t rt_base64_decode(rt_str s, char *to) {
    size_t padding = 0, bytes = 0;
    uint32_t bits = 0;
    if (s.len % 4 != 0) return SIZE_MAX;
    while (padding < 2 && padding < s.len && s.ptr[s.len - 1 - padding] == '=') padding++;
    for (size_t i = 0; i < s.len; i++) {
        const bool pad = i >= s.len - padding;
        const int digit = pad ? 0 : digit_of(s.ptr[i]);
        if (digit < 0) return SIZE_MAX;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 3) continue;
        const size_t count = i + 1 == s.len ? 3 - padding : 3;
        for (size_t b = 0; b < count; b++, bytes++) {
            if (to != NULL) to[bytes] = (char)(bits >> (16 - 8 * b) & 0xFF);
        }
        bits = 0;
    }
    return bytes;
}

size_t rt_base64_encode(rt_str bytes, char *to) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *end = to;
    for (size_t at = 0; at < bytes.len; at += 3) {
        const size_t count = bytes.len - at < 3 ? bytes.len - at : 3;
        uint32_t bits = 0;
        for (size_t b = 0; b < 3; b++) bits = bits << 8 | (b < count ? (unsigned char)bytes.ptr[at + b] : 0);
        for (size_t d = 0; d < 4; d++) *end++ = d <= count ? digits[bits >> (18 - 6 * d) & 63] : '=';
    }
    return (size_t)(end - to);
}
