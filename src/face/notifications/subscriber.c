#include "face/notifications/subscriber.h"

#include <string.h>

#include "engine/messages/subscription.h"

static rt_str behind(rt_str s, size_t count) { return (rt_str){.ptr = s.ptr + count, .len = s.len - count}; }

/* Nothing that could end a line or is read in two ways: controls, blanks, backslashes, quotes, angle brackets. */
static bool has_odd_characters(rt_str s) {
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (c <= 0x20 || c >= 0x7F || strchr("\\\"<>", c) != NULL) return true;
    }
    return false;
}

/* What stands before the first of `marks`. */
static rt_str until(rt_str s, const char *marks) {
    size_t len = 0;
    while (len < s.len && strchr(marks, s.ptr[len]) == NULL) len++;
    return (rt_str){.ptr = s.ptr, .len = len};
}

static bool is_port(rt_str text) {
    int64_t port;
    if (text.len == 0) return true; // "http://host:/"
    return text.ptr[0] >= '0' && text.ptr[0] <= '9' && rt_str_to_i64(text, &port) && port >= 1 && port <= 65535;
}

/* "[::1]:80" or "host:80", user and password taken off. False: neither. */
static bool take_host(rt_str authority, rt_str *host) {
    for (size_t i = authority.len; i > 0; i--) {
        if (authority.ptr[i - 1] != '@') continue;
        authority = behind(authority, i);
        break;
    }
    rt_str port = RT_STR_EMPTY;
    if (authority.len > 0 && authority.ptr[0] == '[') {
        rt_str rest;
        if (!rt_str_cut(behind(authority, 1), ']', host, &rest)) return false;
        if (rest.len > 0 && rest.ptr[0] != ':') return false;
        if (rest.len > 0) port = behind(rest, 1);
    } else {
        (void)rt_str_cut(authority, ':', host, &port);
    }
    return host->len > 0 && is_port(port);
}

static bool is_scheme(rt_str scheme, const char *name) { return rt_str_eq_nocase(scheme, rt_str_of(name)); }

rt_code rt_subscriber_parse(rt_str uri, rt_subscriber *out, rt_err *err) {
    rt_str scheme, rest;
    const bool has_scheme = rt_str_cut(uri, ':', &scheme, &rest);
    if (has_scheme && (is_scheme(scheme, "trust+http") || is_scheme(scheme, "trust+https"))) {
        return rt_fail(err, RT_E_INVALID, 0, "Subscribers of the types trust+http and trust+https need Keystone, "
                       "which this server does not use. Subscribe with http or https instead.");
    }
    *out = (rt_subscriber){.mail = has_scheme && is_scheme(scheme, "mailto"), .host = RT_STR_EMPTY};
    if (!has_scheme || (!out->mail && !is_scheme(scheme, "http") && !is_scheme(scheme, "https"))) {
        return rt_fail(err, RT_E_INVALID, 0, "The subscriber type of subscription must be supported in the list "
                       "['http', 'https', 'mailto', 'trust+http', 'trust+https'].");
    }
    if (uri.len > RT_URI_MAX) {
        return rt_fail(err, RT_E_INVALID, 0, "The subscriber may not be longer than %d characters.", RT_URI_MAX);
    }
    if (has_odd_characters(uri)) {
        return rt_fail(err, RT_E_INVALID, 0, "The subscriber contains characters that must be percent-encoded in a URI.");
    }
    if (out->mail) {
        const rt_str address = until(rest, "?");
        if (address.len > 0 && memchr(address.ptr, '@', address.len) != NULL) return RT_OK;
        return rt_fail(err, RT_E_INVALID, 0, "The subscriber has no mail address.");
    }
    if (rt_str_starts(rest, RT_STR("//")) && take_host(until(behind(rest, 2), "/?#"), &out->host)) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "The subscriber must be an absolute URI with a host.");
}
