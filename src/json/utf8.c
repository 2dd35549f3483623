#include <string.h>

#include "json/scan.h"

/* Length of the sequence that begins at `at`, 0 if there is none. Ranges: RFC 3629, section 4. */
static size_t sequence_length(const unsigned char *at, size_t left) {
    const unsigned char lead = at[0];
    if (lead < 0x80) return 1;
    size_t len;
    unsigned char low = 0x80, high = 0xBF; // of the second byte
    if (lead >= 0xC2 && lead <= 0xDF) {
        len = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        len = 3;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        len = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    } else {
        return 0;
    }
    if (left < len || at[1] < low || at[1] > high) return 0;
    for (size_t i = 2; i < len; i++) {
        if ((at[i] & 0xC0) != 0x80) return 0;
    }
    return len;
}

bool rt_utf8_is_valid(rt_str s) {
    const unsigned char *at = (const unsigned char *)s.ptr;
    size_t left = s.len;
    while (left > 0) {
        // Most text is ASCII: eight bytes at once.
        uint64_t eight;
        if (left >= sizeof eight) {
            memcpy(&eight, at, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) {
                at += sizeof eight;
                left -= sizeof eight;
                continue;
            }
        }
        const size_t len = sequence_length(at, left);
        if (len == 0) return false;
        at += len;
        left -= len;
    }
    return true;
}
