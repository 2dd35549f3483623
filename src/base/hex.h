/* hex.h: hexadecimal digits, and the %XX of URLs that are made of them. Pure. */
#ifndef RT_BASE_HEX_H
#define RT_BASE_HEX_H
#include "base/str.h"

int rt_hex_value(char digit); /* either case; -1: no digit */
/* Sixteen lower-case digits: one spelling only, so that numbers can be compared as text. */
bool rt_hex_read_u64(rt_str text, uint64_t *out);
/* Lower case, two digits a byte: `out` has room for 2 * count; no NUL behind them. */
void rt_hex_write(char *out, const unsigned char *bytes, size_t count);
/* Undoes %XX into to[cap] and returns the length; what does not fit is cut off, and a '%' that two digits do not follow
 * stays. `plus_is_space`: as forms have it. No more bytes come out than went in. */
size_t rt_hex_unescape(rt_str s, bool plus_is_space, char *to, size_t cap);

#endif
