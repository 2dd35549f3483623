#include "base/hex.h"

int rt_hex_value(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
}

void rt_hex_write(char *out, const unsigned char *bytes, size_t count) {
    static const char DIGITS[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = DIGITS[bytes[i] >> 4];
        out[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
}

size_t rt_hex_unescape(rt_str s, bool plus_is_space, char *to, size_t cap) {
    size_t len = 0;
    for (size_t i = 0; i < s.len && len < cap; i++) {
        char c = s.ptr[i];
        const bool room = c == '%' && i + 2 < s.len;
        const int high = room ? rt_hex_value(s.ptr[i + 1]) : -1;
        const int low = room ? rt_hex_value(s.ptr[i + 2]) : -1;
        if (high >= 0 && low >= 0) {
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        to[len++] = c;
    }
    return len;
}

bool rt_hex_read_u64(rt_str text, uint64_t *out) {
    if (text.len != 16) return false;
    uint64_t read = 0;
    for (size_t i = 0; i < text.len; i++) {
        const int value = rt_hex_value(text.ptr[i]);
        if (value < 0 || (text.ptr[i] >= 'A' && text.ptr[i] <= 'F')) return false;
        read = read << 4 | (uint64_t)value;
    }
    *out = read;
    return true;
}
