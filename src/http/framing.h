/* framing.h: where the body of a request ends and whom it is for, said so that nobody can read it in two ways.
 *
 * Whoever stands between client and server (a proxy that ends TLS, a firewall) finds the next request behind
 * the end of this one. If the two of them disagree on that end, a client can hide a request within another's
 * body. So what RFC 9112 calls ambiguous (2.2, 3.2, 5.1, 6.1, 6.3) is refused rather than interpreted, and the
 * connection is not read any further. Pure; any thread. */
#ifndef RT_HTTP_FRAMING_H
#define RT_HTTP_FRAMING_H
#include "base/str.h"

/* Of one request: start with all zero, add each header field in order. */
typedef struct rt_framing {
    bool has_host, has_length, has_chunks;
    rt_str trouble; /* why the request is to be refused with 400; length 0: it is not. Never freed */
} rt_framing;

void rt_framing_add(rt_framing *f, rt_str name, rt_str value);

#endif
