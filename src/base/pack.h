/* pack.h: fixed-width little-endian fields and counted strings, for stored values.
 *
 * Reading never goes past the end: what is not there reads as 0 or empty and sets `failed`; check it once at the end. */
#ifndef RT_BASE_PACK_H
#define RT_BASE_PACK_H
#include "base/str.h"

void rt_pack_u8(rt_buf *b, uint8_t v);
void rt_pack_u16(rt_buf *b, uint16_t v);
void rt_pack_u32(rt_buf *b, uint32_t v);
void rt_pack_u64(rt_buf *b, uint64_t v);
void rt_pack_i64(rt_buf *b, int64_t v);
void rt_pack_str(rt_buf *b, rt_str s); /* u32 length, then the bytes */

typedef struct rt_unpack {
    rt_str rest;
    bool failed;
} rt_unpack;

uint8_t rt_unpack_u8(rt_unpack *u);
uint16_t rt_unpack_u16(rt_unpack *u);
uint32_t rt_unpack_u32(rt_unpack *u);
uint64_t rt_unpack_u64(rt_unpack *u);
int64_t rt_unpack_i64(rt_unpack *u);
rt_str rt_unpack_str(rt_unpack *u); /* lends from what is read */

/* Big endian, so that numbers sort as bytes: for document names. */
void rt_put_be64(unsigned char out[8], uint64_t v);
uint64_t rt_get_be64(const unsigned char in[8]);

#endif
