/* uri.h: taking a request's target apart. Pure, no allocation. */
#ifndef RT_HTTP_URI_H
#define RT_HTTP_URI_H
#include "base/str.h"

/* A target cut into path and query, both still encoded. */
typedef struct rt_uri {
    rt_str path;  /* begins with '/' */
    rt_str query; /* what follows the first '?'; empty if there is none */
} rt_uri;

/* `target` is the request line's, in origin form ("/a?b") or absolute form ("http://host/a?b"). RT_E_INVALID,
 * with words for the client: any other form, a control character or space, an escape that is not %XX, an
 * encoded NUL. */
RT_MUST_USE rt_code rt_uri_split(rt_str target, rt_uri *out, rt_err *err);

/* Takes the next "name=value" off the front of *query, both still encoded; empty ones ("a&&b") are passed
 * over. False: there is none. */
bool rt_uri_next_arg(rt_str *query, rt_str *name, rt_str *value);

#endif
