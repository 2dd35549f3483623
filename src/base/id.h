/* id.h: the numbers that name records, and how they are shown.
 *
 * An id is given out by the store: home (16 bits) | sequence (48 bits), rising within a home whatever the clock does.
 * 0 is "none". Outside it is written as 24 lower-case hex digits: 8 of the store's tag (random, made with the store,
 * so that ids of two stores never meet at a receiver), then 16 of the id. */
#ifndef RT_BASE_ID_H
#define RT_BASE_ID_H
#include "base/str.h"

enum { RT_ID_TEXT_LEN = 24 };
typedef struct rt_id_text {
    char s[RT_ID_TEXT_LEN + 1]; /* NUL-terminated */
} rt_id_text;

rt_id_text rt_id_format(uint32_t store_tag, rt_id id);
/* False: not 24 hex digits, another store's tag, or 0. */
bool rt_id_parse(uint32_t store_tag, rt_str text, rt_id *out);

/* 64-bit mix for hash tables of ids and for client hashes (not for secrets). Source: MurmurHash3's finaliser. */
uint64_t rt_hash_u64(uint64_t x);
/* FNV-1a with rt_hash_u64 behind it; never 0, so that 0 can mean "none". */
uint64_t rt_hash_str(rt_str s);

#endif
