/* base64.h: bytes as text. Pure. Source: RFC 4648, section 4. */
#ifndef RT_BASE_BASE64_H
#define RT_BASE_BASE64_H
#include "base/str.h"

/* Strict: padded to a multiple of four, no blanks, no other alphabet. Writes to to[s.len / 4 * 3]; NULL: only counts.
 * Returns how many bytes it stands for; SIZE_MAX: it is not base64. */
size_t rt_base64_decode(rt_str s, char *to);

/* How long `bytes` bytes are as base64. */
#define RT_BASE64_LEN(bytes) (((bytes) + 2) / 3 * 4)
/* Writes to[RT_BASE64_LEN(bytes.len)], padded and without NUL; returns how many characters those are. */
size_t rt_base64_encode(rt_str bytes, char *to);

#endif
