/* quote.h: a string as JSON writes it. Pure. */
#ifndef RT_BASE_QUOTE_H
#define RT_BASE_QUOTE_H
#include "base/str.h"

/* Adds it with its quotes: as it is where it may be (UTF-8 unescaped), escapes as short as can be. What is not UTF-8
 * becomes U+FFFD. */
void rt_quote(rt_buf *out, rt_str s);

#endif
