#include "base/id.h"

#include <inttypes.h>
#include <stdio.h>

rt_id_text rt_id_format(uint32_t store_tag, rt_id id) {
    static const char DIGITS[] = "0123456789abcdef";
    rt_id_text text;
    for (int i = 0; i < 8; i++) text.s[i] = DIGITS[(store_tag >> (28 - 4 * i)) & 15];
    for (int i = 0; i < 16; i++) text.s[8 + i] = DIGITS[(id >> (60 - 4 * i)) & 15];
    text.s[RT_ID_TEXT_LEN] = '\0';
    return text;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

bool rt_id_parse(uint32_t store_tag, rt_str text, rt_id *out) {
    if (text.len != RT_ID_TEXT_LEN) return false;
    uint64_t tag = 0;
    uint64_t id = 0;
    for (size_t i = 0; i < RT_ID_TEXT_LEN; i++) {
        const int value = hex_value(text.ptr[i]);
        if (value < 0) return false;
        uint64_t *part = i < 8 ? &tag : &id;
        *part = *part << 4 | (uint64_t)value;
    }
    if (tag != store_tag || id == 0) return false;
    *out = id;
    return true;
}

uint64_t rt_hash_u64(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 33);
}

uint64_t rt_hash_str(rt_str s) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.len; i++) hash = (hash ^ (unsigned char)s.ptr[i]) * 0x100000001b3u;
    hash = rt_hash_u64(hash);
    return hash == 0 ? 1 : hash;
}
