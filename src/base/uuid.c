#include "base/uuid.h"

#include "base/hex.h"
#include "base/pack.h"

enum { UUID_BYTES = 16, GROUPS = 5 };
static const uint8_t GROUP_BYTES[GROUPS] = {4, 2, 2, 2, 6};
static const uint64_t SEQUENCE_MASK = (UINT64_C(1) << 48) - 1;

/* Twelve check bits in the high half, fourteen in the low one, between version and variant. */
static void lay_out(uint32_t store_tag, rt_id id, unsigned char bytes[UUID_BYTES]) {
    const uint64_t check = rt_hash_u64(id ^ rt_hash_u64(store_tag));
    const uint64_t home = id >> 48;
    rt_put_be64(bytes, (uint64_t)store_tag << 32 | home << 16 | 0x8000 | (check & 0x0fff));
    rt_put_be64(bytes + 8, UINT64_C(1) << 63 | (check >> 12 & 0x3fff) << 48 | (id & SEQUENCE_MASK));
}

rt_uuid_text rt_uuid_format(uint32_t store_tag, rt_id id) {
    unsigned char bytes[UUID_BYTES];
    lay_out(store_tag, id, bytes);
    rt_uuid_text text;
    char *at = text.s;
    const unsigned char *from = bytes;
    for (int i = 0; i < GROUPS; i++) {
        if (i > 0) *at++ = '-';
        rt_hex_write(at, from, GROUP_BYTES[i]);
        at += 2 * GROUP_BYTES[i];
        from += GROUP_BYTES[i];
    }
    *at = '\0';
    return text;
}

/* The id that stands in a text of the right shape. */
static bool read_id(rt_str text, rt_id *out) {
    uint64_t home = 0, sequence = 0;
    for (size_t i = 0; i < text.len; i++) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        const int value = rt_hex_value(text.ptr[i]);
        if (dash ? text.ptr[i] != '-' : value < 0) return false;
        if (i > 8 && i < 13) home = home << 4 | (uint64_t)value;
        if (i > 23) sequence = sequence << 4 | (uint64_t)value;
    }
    *out = home << 48 | sequence;
    return *out != 0;
}

bool rt_uuid_parse(uint32_t store_tag, rt_str text, rt_id *out) {
    rt_id id;
    if (text.len != RT_UUID_TEXT_LEN || !read_id(text, &id)) return false;
    const rt_uuid_text right = rt_uuid_format(store_tag, id);
    if (!rt_str_eq_nocase(text, rt_str_of(right.s))) return false;
    *out = id;
    return true;
}
