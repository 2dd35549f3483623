/* utf8.h: what is UTF-8 and what is not: no overlong spellings, no surrogates, nothing past U+10FFFF. Pure.
 * Source: The Unicode Standard, table 3-7; RFC 3629, section 4. */
#ifndef RT_BASE_UTF8_H
#define RT_BASE_UTF8_H
#include "base/str.h"

bool rt_utf8_is_valid(rt_str s);

/* Bytes of the character that `s` (not empty) begins with; 0: none stands there. *begun: it is right as far as `s` goes,
 * but not whole. */
size_t rt_utf8_char(rt_str s, bool *begun);

/* The longest beginning of `s` that is UTF-8 and has at most `chars` characters. */
rt_str rt_utf8_cut(rt_str s, size_t chars);

#endif
