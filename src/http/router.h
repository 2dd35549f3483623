/* router.h: which handler answers for a path and a method. Built once, then read by any thread. */
#ifndef RT_HTTP_ROUTER_H
#define RT_HTTP_ROUTER_H
#include "http/exchange.h"

enum {
    RT_PATH_SEGMENTS_MAX = 16, /* a longer path is nobody's: 404 */
    RT_ALLOW_BYTES_MAX = 64    /* of an Allow header */
};

typedef struct rt_router rt_router;

/* Borrows the faces, which must outlive it; the last should have the prefix "", so that each path has a face.
 * RT_OK: returns an owned router, for rt_router_free. RT_E_INVALID: a pattern that breaks a rule of rt_route
 * or is there twice for one method. */
RT_MUST_USE rt_code rt_router_new(const rt_face *const *faces, size_t faces_count, rt_router **out,
                                  rt_err *err);
void rt_router_free(rt_router *r); /* NULL is a no-op */

typedef enum rt_match_kind {
    RT_MATCH_NONE,    /* no such path */
    RT_MATCH_METHOD,  /* the path exists for other methods */
    RT_MATCH_OPTIONS, /* OPTIONS on a path that lists no handler for it */
    RT_MATCH_ROUTE
} rt_match_kind;

typedef struct rt_match {
    rt_match_kind kind;
    const rt_face *face;   /* whose prefix is the longest that matches; the last face if none does */
    const rt_route *route; /* RT_MATCH_ROUTE */
    rt_str allow;          /* METHOD: "GET, PUT, OPTIONS"; OPTIONS: "GET, PUT"; lent by the router */
    rt_str params[RT_PATH_PARAMS_MAX];
    size_t params_count;
} rt_match;

/* `path` is encoded and passed rt_uri_split; one trailing slash is as if it were not there. Parameters and
 * segments are decoded one by one, so that an encoded slash is part of its segment; what has no escapes is
 * lent from `path`, the rest lives in `arena`. RT_E_NOMEM leaves only out->face. */
RT_MUST_USE rt_code rt_router_match(const rt_router *r, rt_str method, rt_str path, rt_arena *arena,
                                    rt_match *out);

#endif
