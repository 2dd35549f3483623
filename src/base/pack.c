#include "base/pack.h"

static void pack_bytes(rt_buf *b, uint64_t v, size_t bytes) {
    char out[8];
    for (size_t i = 0; i < bytes; i++) out[i] = (char)(unsigned char)(v >> (8 * i));
    rt_buf_add(b, (rt_str){.ptr = out, .len = bytes});
}

void rt_pack_u8(rt_buf *b, uint8_t v) { pack_bytes(b, v, 1); }
void rt_pack_u16(rt_buf *b, uint16_t v) { pack_bytes(b, v, 2); }
void rt_pack_u32(rt_buf *b, uint32_t v) { pack_bytes(b, v, 4); }
void rt_pack_u64(rt_buf *b, uint64_t v) { pack_bytes(b, v, 8); }
void rt_pack_i64(rt_buf *b, int64_t v) { pack_bytes(b, (uint64_t)v, 8); }

void rt_pack_str(rt_buf *b, rt_str s) {
    RT_ASSERT(s.len <= UINT32_MAX);
    rt_pack_u32(b, (uint32_t)s.len);
    rt_buf_add(b, s);
}

static rt_str take(rt_unpack *u, size_t bytes) {
    if (u->failed || u->rest.len < bytes) {
        u->failed = true;
        return RT_STR_EMPTY;
    }
    const rt_str out = {.ptr = u->rest.ptr, .len = bytes};
    u->rest = (rt_str){.ptr = u->rest.ptr + bytes, .len = u->rest.len - bytes};
    return out;
}

static uint64_t unpack_bytes(rt_unpack *u, size_t bytes) {
    const rt_str in = take(u, bytes);
    uint64_t v = 0;
    for (size_t i = 0; i < in.len; i++) v |= (uint64_t)(unsigned char)in.ptr[i] << (8 * i);
    return v;
}

uint8_t rt_unpack_u8(rt_unpack *u) { return (uint8_t)unpack_bytes(u, 1); }
uint16_t rt_unpack_u16(rt_unpack *u) { return (uint16_t)unpack_bytes(u, 2); }
uint32_t rt_unpack_u32(rt_unpack *u) { return (uint32_t)unpack_bytes(u, 4); }
uint64_t rt_unpack_u64(rt_unpack *u) { return unpack_bytes(u, 8); }
int64_t rt_unpack_i64(rt_unpack *u) { return (int64_t)unpack_bytes(u, 8); }
rt_str rt_unpack_str(rt_unpack *u) { return take(u, rt_unpack_u32(u)); }

void rt_put_be64(unsigned char out[8], uint64_t v) {
    for (int i = 0; i < 8; i++) out[i] = (unsigned char)(v >> (56 - 8 * i));
}

uint64_t rt_get_be64(const unsigned char in[8]) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v = v << 8 | in[i];
    return v;
}
