/* headers.h: the header lines of one request, in the form that libcurl takes, built again and again in the
 * same memory. One thread at a time. */
#ifndef RT_EXECUTOR_WEBHOOK_HEADERS_H
#define RT_EXECUTOR_WEBHOOK_HEADERS_H
#include <curl/curl.h>

#include "base/str.h"

enum { RT_HEADERS_USER_MAX = 128 }; /* lines taken from an attempt; what follows is left out */

typedef struct rt_headers {
    rt_buf text; /* each line ends in NUL */
    size_t count;
    struct curl_slist *nodes;
    size_t cap;
} rt_headers;

/* An all-zero rt_headers is empty and ready. */
void rt_headers_clear(rt_headers *h); /* keeps the memory */
void rt_headers_add(rt_headers *h, rt_str name, rt_str value);
/* The attempt's own lines, "Name: value\n"…, and, when they name no Content-Type, `content_type`; where that
 * is empty or cannot be sent, application/json. Of two with one name the later is sent. Left out: what is no
 * header line, and names that are not RT_HEADER_FREE. So nothing in `lines` can become a second request. */
void rt_headers_add_users(rt_headers *h, rt_str lines, rt_str content_type);
/* Lends the list until the next change. NULL: out of memory. */
struct curl_slist *rt_headers_list(rt_headers *h);
void rt_headers_deinit(rt_headers *h);

#endif
