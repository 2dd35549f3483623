#include "face/common/query.h"

#include <string.h>

rt_query rt_query_str(const rt_exchange *x, const char *name, rt_str *out) {
    rt_str value;
    if (!rt_exchange_arg(x, name, &value) || value.len == 0) return RT_QUERY_ABSENT;
    *out = value;
    return RT_QUERY_FOUND;
}

rt_query rt_query_int(const rt_exchange *x, const char *name, int64_t *out) {
    rt_str value;
    if (rt_query_str(x, name, &value) != RT_QUERY_FOUND) return RT_QUERY_ABSENT;
    return rt_str_to_i64(rt_str_trim(value), out) ? RT_QUERY_FOUND : RT_QUERY_INVALID;
}

bool rt_query_parse_bool(rt_str text, bool *out) {
    static const char *const YES[] = {"true", "True", "t", "yes", "y", "1", "on"};
    static const char *const NO[] = {"false", "False", "f", "no", "n", "0", "off"};
    _Static_assert(sizeof YES == sizeof NO, "one loop walks both");
    for (size_t i = 0; i < sizeof YES / sizeof YES[0]; i++) {
        const bool yes = rt_str_eq(text, rt_str_of(YES[i]));
        if (!yes && !rt_str_eq(text, rt_str_of(NO[i]))) continue;
        *out = yes;
        return true;
    }
    return false;
}

rt_query rt_query_bool(const rt_exchange *x, const char *name, bool *out) {
    rt_str value;
    if (rt_query_str(x, name, &value) != RT_QUERY_FOUND) return RT_QUERY_ABSENT;
    return rt_query_parse_bool(value, out) ? RT_QUERY_FOUND : RT_QUERY_INVALID;
}

size_t rt_query_list(const rt_exchange *x, const char *name, rt_str out[], size_t max) {
    const rt_str wanted = rt_str_of(name);
    size_t count = 0;
    rt_str arg, value;
    for (size_t i = 0; rt_exchange_arg_at(x, i, &arg, &value); i++) {
        if (!rt_str_eq(arg, wanted)) continue;
        bool more = true;
        while (more) {
            rt_str one;
            more = rt_str_cut(value, ',', &one, &value);
            if (one.len == 0) continue;
            if (count < max) out[count] = one;
            count++;
        }
    }
    return count;
}

void rt_query_encode(rt_buf *out, rt_str text) {
    static const char PLAIN[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        if (c != '\0' && strchr(PLAIN, c) != NULL) rt_buf_add_char(out, c);
        else rt_buf_addf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
}
