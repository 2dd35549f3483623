#include "http/router.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"

enum { METHODS_MAX = 8 };

/* One path of a face with everything that can be done to it. */
typedef struct entry {
    rt_str segments[RT_PATH_SEGMENTS_MAX]; /* ptr NULL: a placeholder */
    size_t segments_count;
    const rt_route *routes[METHODS_MAX];
    size_t routes_count;
    bool has_options;
    char allow[RT_ALLOW_BYTES_MAX], allow_options[RT_ALLOW_BYTES_MAX];
} entry;

typedef struct table {
    const rt_face *face;
    rt_str prefix[RT_PATH_SEGMENTS_MAX];
    size_t prefix_count;
    entry *entries; /* by number of segments, then literals before placeholders */
    size_t entries_count;
    size_t first[RT_PATH_SEGMENTS_MAX + 2]; /* entries with n segments: first[n] to first[n + 1] */
} table;

struct rt_router {
    table *tables; /* longer prefixes first */
    size_t tables_count;
    const rt_face *last;
};

/* Cuts "/a/{b}/" into its segments. False: more than RT_PATH_SEGMENTS_MAX. */
static bool split(rt_str path, rt_str segments[RT_PATH_SEGMENTS_MAX], size_t *count) {
    size_t n = 0;
    rt_str rest = path;
    if (rest.len > 0 && rest.ptr[0] == '/') rest = (rt_str){.ptr = rest.ptr + 1, .len = rest.len - 1};
    while (rest.len > 0) {
        if (n == RT_PATH_SEGMENTS_MAX) return false;
        rt_str *segment = &segments[n++];
        (void)rt_str_cut(rest, '/', segment, &rest);
    }
    *count = n;
    return true;
}

static bool is_placeholder(rt_str segment) {
    return segment.len >= 2 && segment.ptr[0] == '{' && segment.ptr[segment.len - 1] == '}';
}

/* ---- building ------------------------------------------------------------------------------------------ */

static rt_code parse_pattern(const rt_route *route, entry *out, rt_err *err) {
    size_t params = 0;
    if (route->method == NULL || route->pattern == NULL || route->handler == NULL ||
        route->pattern[0] != '/' || !split(rt_str_of(route->pattern), out->segments, &out->segments_count)) {
        return rt_fail(err, RT_E_INVALID, 0, "route %s is not a path",
                       route->pattern == NULL ? "" : route->pattern);
    }
    for (size_t i = 0; i < out->segments_count; i++) {
        if (out->segments[i].len == 0) {
            return rt_fail(err, RT_E_INVALID, 0, "%s: empty segment", route->pattern);
        }
        if (!is_placeholder(out->segments[i])) continue;
        out->segments[i] = (rt_str){0};
        if (++params > RT_PATH_PARAMS_MAX) {
            return rt_fail(err, RT_E_INVALID, 0, "%s: too many placeholders", route->pattern);
        }
    }
    return RT_OK;
}

static bool same_path(const entry *a, const entry *b) {
    if (a->segments_count != b->segments_count) return false;
    for (size_t i = 0; i < a->segments_count; i++) {
        const bool a_open = a->segments[i].ptr == NULL, b_open = b->segments[i].ptr == NULL;
        if (a_open != b_open) return false;
        if (!a_open && !rt_str_eq(a->segments[i], b->segments[i])) return false;
    }
    return true;
}

static rt_code add_route(table *t, const rt_route *route, rt_err *err) {
    entry fresh = {0};
    const rt_code code = parse_pattern(route, &fresh, err);
    if (code != RT_OK) return code;
    entry *e = NULL;
    for (size_t i = 0; i < t->entries_count && e == NULL; i++) {
        if (same_path(&t->entries[i], &fresh)) e = &t->entries[i];
    }
    if (e == NULL) {
        e = &t->entries[t->entries_count++];
        *e = fresh;
    }
    for (size_t i = 0; i < e->routes_count; i++) {
        if (strcmp(e->routes[i]->method, route->method) == 0) {
            return rt_fail(err, RT_E_INVALID, 0, "%s %s is there twice", route->method, route->pattern);
        }
    }
    if (e->routes_count == METHODS_MAX) {
        return rt_fail(err, RT_E_INVALID, 0, "%s: too many methods", route->pattern);
    }
    e->routes[e->routes_count++] = route;
    if (strcmp(route->method, "OPTIONS") == 0) e->has_options = true;
    return RT_OK;
}

/* "GET, PUT", with OPTIONS behind unless it is among them. False: does not fit. */
static bool write_allow(const entry *e, bool with_options, char out[RT_ALLOW_BYTES_MAX]) {
    size_t len = 0;
    for (size_t i = 0; i < e->routes_count + 1; i++) {
        const bool extra = i == e->routes_count;
        if (extra && (!with_options || e->has_options)) break;
        const rt_str name = extra ? RT_STR("OPTIONS") : rt_str_of(e->routes[i]->method);
        const rt_str comma = len == 0 ? RT_STR_EMPTY : RT_STR(", ");
        if (len + comma.len + name.len >= RT_ALLOW_BYTES_MAX) return false;
        memcpy(out + len, comma.ptr, comma.len);
        memcpy(out + len + comma.len, name.ptr, name.len);
        len += comma.len + name.len;
    }
    out[len] = '\0';
    return true;
}

static int by_shape(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->segments_count != b->segments_count) return a->segments_count < b->segments_count ? -1 : 1;
    for (size_t i = 0; i < a->segments_count; i++) {
        const bool a_open = a->segments[i].ptr == NULL, b_open = b->segments[i].ptr == NULL;
        if (a_open != b_open) return a_open ? 1 : -1;
    }
    return 0;
}

static rt_code build_table(const rt_face *face, table *t, rt_err *err) {
    *t = (table){.face = face};
    if (!split(rt_str_of(face->prefix), t->prefix, &t->prefix_count)) {
        return rt_fail(err, RT_E_INVALID, 0, "prefix %s is too long", face->prefix);
    }
    t->entries = calloc(face->routes_count + 1, sizeof *t->entries);
    if (t->entries == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "router");
    for (size_t i = 0; i < face->routes_count; i++) {
        const rt_code code = add_route(t, &face->routes[i], err);
        if (code != RT_OK) return code;
    }
    qsort(t->entries, t->entries_count, sizeof *t->entries, by_shape);
    for (size_t i = 0, n = 0; n < RT_PATH_SEGMENTS_MAX + 2; n++) {
        while (i < t->entries_count && t->entries[i].segments_count < n) i++;
        t->first[n] = i;
    }
    for (size_t i = 0; i < t->entries_count; i++) {
        entry *e = &t->entries[i];
        if (write_allow(e, true, e->allow) && write_allow(e, false, e->allow_options)) continue;
        return rt_fail(err, RT_E_INVALID, 0, "%s: Allow is too long", e->routes[0]->pattern);
    }
    return RT_OK;
}

static int by_prefix(const void *left, const void *right) {
    const table *a = left, *b = right;
    if (a->prefix_count == b->prefix_count) return 0;
    return a->prefix_count > b->prefix_count ? -1 : 1;
}

rt_code rt_router_new(const rt_face *const *faces, size_t faces_count, rt_router **out, rt_err *err) {
    if (faces_count == 0) return rt_fail(err, RT_E_INVALID, 0, "no faces");
    rt_router *r = calloc(1, sizeof *r);
    if (r == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "router");
    r->last = faces[faces_count - 1];
    r->tables = calloc(faces_count, sizeof *r->tables);
    rt_code code = r->tables == NULL ? rt_fail(err, RT_E_NOMEM, ENOMEM, "router") : RT_OK;
    for (size_t i = 0; code == RT_OK && i < faces_count; i++) {
        r->tables_count++;
        code = build_table(faces[i], &r->tables[i], err);
    }
    if (code != RT_OK) {
        rt_router_free(r);
        return code;
    }
    qsort(r->tables, r->tables_count, sizeof *r->tables, by_prefix);
    *out = r;
    return RT_OK;
}

void rt_router_free(rt_router *r) {
    if (r == NULL) return;
    for (size_t i = 0; i < r->tables_count; i++) free(r->tables[i].entries);
    free(r->tables);
    free(r);
}

/* ---- matching ------------------------------------------------------------------------------------------ */

static rt_code decode_segments(rt_str segments[], size_t count, rt_arena *arena) {
    for (size_t i = 0; i < count; i++) {
        if (segments[i].len == 0 || memchr(segments[i].ptr, '%', segments[i].len) == NULL) continue;
        char *to = rt_arena_alloc(arena, segments[i].len + 1);
        if (to == NULL) return RT_E_NOMEM;
        segments[i] = (rt_str){.ptr = to, .len = rt_hex_unescape(segments[i], false, to, segments[i].len)};
    }
    return RT_OK;
}

static bool has_prefix(const table *t, const rt_str segments[], size_t count) {
    if (count < t->prefix_count) return false;
    for (size_t i = 0; i < t->prefix_count; i++) {
        if (!rt_str_eq(t->prefix[i], segments[i])) return false;
    }
    return true;
}

static bool matches(const entry *e, const rt_str segments[]) {
    for (size_t i = 0; i < e->segments_count; i++) {
        const bool open = e->segments[i].ptr == NULL;
        if (open ? segments[i].len == 0 : !rt_str_eq(e->segments[i], segments[i])) return false;
    }
    return true;
}

static void take_entry(const entry *e, rt_str method, const rt_str segments[], rt_match *out) {
    for (size_t i = 0; i < e->segments_count; i++) {
        if (e->segments[i].ptr == NULL) out->params[out->params_count++] = segments[i];
    }
    for (size_t i = 0; i < e->routes_count; i++) {
        if (!rt_str_eq(method, rt_str_of(e->routes[i]->method))) continue;
        out->kind = RT_MATCH_ROUTE;
        out->route = e->routes[i];
        return;
    }
    const bool asks = rt_str_eq(method, RT_STR("OPTIONS"));
    out->kind = asks ? RT_MATCH_OPTIONS : RT_MATCH_METHOD;
    out->allow = rt_str_of(asks ? e->allow_options : e->allow);
}

rt_code rt_router_match(const rt_router *r, rt_str method, rt_str path, rt_arena *arena, rt_match *out) {
    rt_str segments[RT_PATH_SEGMENTS_MAX];
    size_t count = RT_PATH_SEGMENTS_MAX;
    *out = (rt_match){.kind = RT_MATCH_NONE, .face = r->last};
    const bool fits = split(path, segments, &count);
    if (decode_segments(segments, count, arena) != RT_OK) return RT_E_NOMEM;
    const table *t = NULL;
    for (size_t i = 0; i < r->tables_count && t == NULL; i++) {
        if (has_prefix(&r->tables[i], segments, count)) t = &r->tables[i];
    }
    if (t == NULL) return RT_OK;
    out->face = t->face;
    if (!fits) return RT_OK;
    for (size_t i = t->first[count]; i < t->first[count + 1]; i++) {
        if (!matches(&t->entries[i], segments)) continue;
        take_entry(&t->entries[i], method, segments, out);
        break;
    }
    return RT_OK;
}
