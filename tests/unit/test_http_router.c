/* Targets and routes, as tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "http/router.h"
#include "http/uri.h"

static void handler(rt_exchange *x) { (void)x; }

static const rt_route ROUTES[] = {
    {"GET", "/", handler, 0},
    {"GET", "/q", handler, 0},
    {"GET", "/q/{a}", handler, 0},
    {"PUT", "/q/{a}", handler, 0},
    {"GET", "/q/special", handler, 0},
    {"POST", "/q/{a}/m/{b}", handler, 0},
    {"POST", "/q/{a}/m/all", handler, 0},
    {"OPTIONS", "/listed", handler, 0},
    {"GET", "/listed", handler, 0},
};
static const rt_face ROOT = {.prefix = "", .routes = ROUTES, .routes_count = sizeof ROUTES / sizeof *ROUTES};
static const rt_route DEEP_ROUTES[] = {{"GET", "/q/deep/x", handler, 0}};
static const rt_face DEEP = {.prefix = "/q/deep", .routes = DEEP_ROUTES, .routes_count = 1};

static void router__matches(void **state) {
    (void)state;
    const struct {
        const char *method, *path;
        rt_match_kind kind;
        const char *pattern; /* or Allow */
        const char *a, *b;   /* parameters, NULL: none */
    } rows[] = {
        {"GET", "/", RT_MATCH_ROUTE, "/", NULL, NULL},
        {"GET", "//", RT_MATCH_NONE, NULL, NULL, NULL},
        {"GET", "/q", RT_MATCH_ROUTE, "/q", NULL, NULL},
        {"GET", "/q/", RT_MATCH_ROUTE, "/q", NULL, NULL},
        {"GET", "/q//", RT_MATCH_NONE, NULL, NULL, NULL},
        {"GET", "/Q", RT_MATCH_NONE, NULL, NULL, NULL},
        {"get", "/q", RT_MATCH_METHOD, "GET, OPTIONS", NULL, NULL},
        {"GET", "/q/x", RT_MATCH_ROUTE, "/q/{a}", "x", NULL},
        {"GET", "/q/special", RT_MATCH_ROUTE, "/q/special", NULL, NULL},
        {"GET", "/q/speci%61l", RT_MATCH_ROUTE, "/q/special", NULL, NULL},
        {"PUT", "/q/special", RT_MATCH_METHOD, "GET, OPTIONS", NULL, NULL},
        {"PUT", "/q/special2", RT_MATCH_ROUTE, "/q/{a}", "special2", NULL},
        {"DELETE", "/q/x", RT_MATCH_METHOD, "GET, PUT, OPTIONS", "x", NULL},
        {"OPTIONS", "/q/x", RT_MATCH_OPTIONS, "GET, PUT", "x", NULL},
        {"OPTIONS", "/listed", RT_MATCH_ROUTE, "/listed", NULL, NULL},
        {"PUT", "/listed", RT_MATCH_METHOD, "OPTIONS, GET", NULL, NULL},
        {"POST", "/q/x/m/y", RT_MATCH_ROUTE, "/q/{a}/m/{b}", "x", "y"},
        {"POST", "/q/x%2Fz/m/%C3%A9+", RT_MATCH_ROUTE, "/q/{a}/m/{b}", "x/z", "\xc3\xa9+"},
        {"POST", "/q/x/m/all", RT_MATCH_ROUTE, "/q/{a}/m/all", "x", NULL},
        {"POST", "/q//m/all", RT_MATCH_NONE, NULL, NULL, NULL},
        {"POST", "/q/x/n/all", RT_MATCH_NONE, NULL, NULL, NULL},
        {"GET", "/q/deep/x", RT_MATCH_ROUTE, "/q/deep/x", NULL, NULL},
        {"GET", "/q/deep", RT_MATCH_NONE, NULL, NULL, NULL}, // the longer prefix answers for all below it
        {"GET", "/q/deeper", RT_MATCH_ROUTE, "/q/{a}", "deeper", NULL},
        {"GET", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", RT_MATCH_NONE, NULL, NULL, NULL},
    };
    const rt_face *faces[] = {&DEEP, &ROOT};
    rt_router *r;
    rt_err err;
    assert_int_equal(rt_router_new(faces, 2, &r, &err), RT_OK);
    rt_arena arena = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_match m;
        assert_int_equal(rt_router_match(r, rt_str_of(rows[i].method), rt_str_of(rows[i].path), &arena, &m),
                         RT_OK);
        if (m.kind != rows[i].kind) fail_msg("%s %s: %d", rows[i].method, rows[i].path, (int)m.kind);
        if (m.kind == RT_MATCH_ROUTE) assert_string_equal(m.route->pattern, rows[i].pattern);
        else if (m.kind != RT_MATCH_NONE) assert_true(rt_str_eq(m.allow, rt_str_of(rows[i].pattern)));
        const char *want[] = {rows[i].a, rows[i].b};
        size_t count = 0;
        while (count < 2 && want[count] != NULL) count++;
        assert_int_equal(m.params_count, count);
        for (size_t p = 0; p < count; p++) assert_true(rt_str_eq(m.params[p], rt_str_of(want[p])));
        const bool deep = strncmp(rows[i].path, "/q/deep", 7) == 0 && strcmp(rows[i].path, "/q/deeper") != 0;
        assert_ptr_equal(m.face, deep ? &DEEP : &ROOT);
    }
    rt_arena_deinit(&arena);
    rt_router_free(r);
}

static void router__refuses_wrong_patterns(void **state) {
    (void)state;
    const rt_route wrong[][2] = {
        {{"GET", "no-slash", handler, 0}, {"GET", "/a", handler, 0}},
        {{"GET", "/a//b", handler, 0}, {"GET", "/a", handler, 0}},
        {{"GET", "/{a}/{b}/{c}/{d}/{e}", handler, 0}, {"GET", "/a", handler, 0}},
        {{"GET", "/a/{x}", handler, 0}, {"GET", "/a/{y}", handler, 0}},
        {{"GET", "/a", NULL, 0}, {"GET", "/b", handler, 0}},
        {{"GET", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", handler, 0}, {"GET", "/b", handler, 0}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const rt_face face = {.prefix = "", .routes = wrong[i], .routes_count = 2};
        const rt_face *faces[] = {&face};
        rt_router *r;
        rt_err err;
        assert_int_equal(rt_router_new(faces, 1, &r, &err), RT_E_INVALID);
    }
}

static void uri__splits(void **state) {
    (void)state;
    const struct {
        const char *target, *path, *query; /* path NULL: refused */
    } rows[] = {
        {"/", "/", ""},
        {"/a?b", "/a", "b"},
        {"/a?b?c", "/a", "b?c"},
        {"/a?", "/a", ""},
        {"/%41%ff?%20", "/%41%ff", "%20"},
        {"/\xc3\xa9", "/\xc3\xa9", ""},
        {"http://h/a?b", "/a", "b"},
        {"HTTP://h:80", "/", ""},
        {"http://h?b/c", "/", "b/c"},
        {"", NULL, NULL},
        {"a", NULL, NULL},
        {"*", NULL, NULL},
        {"?a", NULL, NULL},
        {"https://h/a", NULL, NULL},
        {"/a b", NULL, NULL},
        {"/a\x7f", NULL, NULL},
        {"/a\t", NULL, NULL},
        {"/%", NULL, NULL},
        {"/%4", NULL, NULL},
        {"/%4x", NULL, NULL},
        {"/%x4", NULL, NULL},
        {"/%00", NULL, NULL},
        {"/a?%00", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_uri uri;
        rt_err err;
        const rt_code code = rt_uri_split(rt_str_of(rows[i].target), &uri, &err);
        if ((code == RT_OK) != (rows[i].path != NULL)) fail_msg("%s", rows[i].target);
        if (code != RT_OK) continue;
        assert_true(rt_str_eq(uri.path, rt_str_of(rows[i].path)));
        assert_true(rt_str_eq(uri.query, rt_str_of(rows[i].query)));
    }
}

static void uri__gives_arguments_in_order(void **state) {
    (void)state;
    const char *want[][2] = {{"a", "1"}, {"b", ""}, {"c", ""}, {"", "x"}, {"d", "e=f"}};
    rt_str query = RT_STR("&a=1&&b&c=&=x&d=e=f&"), name, value;
    for (size_t i = 0; i < 5; i++) {
        assert_true(rt_uri_next_arg(&query, &name, &value));
        assert_true(rt_str_eq(name, rt_str_of(want[i][0])));
        assert_true(rt_str_eq(value, rt_str_of(want[i][1])));
    }
    assert_false(rt_uri_next_arg(&query, &name, &value));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(router__matches),
        cmocka_unit_test(router__refuses_wrong_patterns),
        cmocka_unit_test(uri__splits),
        cmocka_unit_test(uri__gives_arguments_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
