#include "http/uri.h"

#include "base/hex.h"

static rt_code check_bytes(rt_str s, rt_err *err) {
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c == 0x7f) {
            return rt_fail(err, RT_E_INVALID, 0,
                           "The request's target has a space or control character in it.");
        }
        if (c != '%') continue;
        const int high = i + 2 < s.len ? rt_hex_value(s.ptr[i + 1]) : -1;
        const int low = i + 2 < s.len ? rt_hex_value(s.ptr[i + 2]) : -1;
        if (high < 0 || low < 0) {
            return rt_fail(err, RT_E_INVALID, 0,
                           "The request's target has a '%%' that two hex digits do not follow.");
        }
        if (high == 0 && low == 0) {
            return rt_fail(err, RT_E_INVALID, 0, "The request's target has an encoded NUL in it.");
        }
        i += 2;
    }
    return RT_OK;
}

/* "http://host/a?b" -> "/a?b". What is not in absolute form stays as it is. */
static rt_str without_host(rt_str target) {
    const rt_str scheme = RT_STR("http://");
    if (target.len < scheme.len) return target;
    if (!rt_str_eq_nocase((rt_str){.ptr = target.ptr, .len = scheme.len}, scheme)) return target;
    size_t at = scheme.len;
    while (at < target.len && target.ptr[at] != '/' && target.ptr[at] != '?') at++;
    return (rt_str){.ptr = target.ptr + at, .len = target.len - at};
}

rt_code rt_uri_split(rt_str target, rt_uri *out, rt_err *err) {
    const rt_code code = check_bytes(target, err);
    if (code != RT_OK) return code;
    const rt_str origin = without_host(target);
    rt_uri uri;
    (void)rt_str_cut(origin, '?', &uri.path, &uri.query);
    if (uri.path.len == 0 && origin.ptr != target.ptr) uri.path = RT_STR("/");  // RFC 9112, 3.2.2
    if (uri.path.len == 0 || uri.path.ptr[0] != '/') {
        return rt_fail(err, RT_E_INVALID, 0, "The request's target must be a path that begins with '/'.");
    }
    *out = uri;
    return RT_OK;
}

bool rt_uri_next_arg(rt_str *query, rt_str *name, rt_str *value) {
    while (query->len > 0) {
        rt_str one;
        (void)rt_str_cut(*query, '&', &one, query);
        if (one.len == 0) continue;
        (void)rt_str_cut(one, '=', name, value);
        return true;
    }
    return false;
}
