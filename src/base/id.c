#include "base/id.h"

#include "base/hex.h"
#include "base/pack.h"

rt_id_text rt_id_format(uint32_t store_tag, rt_id id) {
    rt_id_text text;
    unsigned char bytes[8];
    rt_put_be64(bytes, store_tag);
    rt_hex_write(text.s, bytes + 4, 4);
    rt_put_be64(bytes, id);
    rt_hex_write(text.s + 8, bytes, 8);
    text.s[RT_ID_TEXT_LEN] = '\0';
    return text;
}

bool rt_id_parse(uint32_t store_tag, rt_str text, rt_id *out) {
    if (text.len != RT_ID_TEXT_LEN) return false;
    uint64_t tag = 0;
    uint64_t id = 0;
    for (size_t i = 0; i < RT_ID_TEXT_LEN; i++) {
        const char digit = text.ptr[i];
        const int value = rt_hex_value(digit);
        // One spelling only, so that ids can be compared as text.
        if (value < 0 || (digit >= 'A' && digit <= 'F')) return false;
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
