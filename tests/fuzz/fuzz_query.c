/* Any bytes as the target of a request: what is taken apart decodes to no more bytes than it has, holds no
 * NUL, and finds its way through a router. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "http/router.h"
#include "http/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void handler(rt_exchange *x) { (void)x; }

static const rt_route ROUTES[] = {
    {"GET", "/", handler, 0},
    {"GET", "/v2/queues/{queue}", handler, 0},
    {"GET", "/v2/queues/{queue}/messages/{id}", handler, 0},
    {"GET", "/v2/queues/special", handler, 0},
};
static const rt_face FACE = {.prefix = "", .routes = ROUTES, .routes_count = sizeof ROUTES / sizeof *ROUTES};

static void check_decoded(rt_str s) {
    char *to = malloc(s.len + 1);
    if (to == NULL) return;
    const size_t len = rt_hex_unescape(s, true, to, s.len);
    RT_ASSERT(len <= s.len);
    RT_ASSERT(memchr(to, '\0', len) == NULL);
    free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static rt_router *router;
    rt_err err;
    const rt_face *faces[] = {&FACE};
    if (router == NULL && rt_router_new(faces, 1, &router, &err) != RT_OK) return 0;
    rt_uri uri;
    if (rt_uri_split((rt_str){.ptr = (const char *)data, .len = size}, &uri, &err) != RT_OK) {
        RT_ASSERT(err.msg[0] != '\0');
        return 0;
    }
    check_decoded(uri.path);
    rt_str query = uri.query, name, value;
    size_t bytes = 0;
    while (rt_uri_next_arg(&query, &name, &value)) {
        check_decoded(name);
        check_decoded(value);
        bytes += name.len + value.len;
    }
    RT_ASSERT(bytes <= uri.query.len);
    rt_arena arena = {0};
    rt_match match;
    if (rt_router_match(router, RT_STR("GET"), uri.path, &arena, &match) == RT_OK &&
        match.kind == RT_MATCH_ROUTE) {
        for (size_t i = 0; i < match.params_count; i++) RT_ASSERT(match.params[i].len > 0);
    }
    rt_arena_deinit(&arena);
    return 0;
}
