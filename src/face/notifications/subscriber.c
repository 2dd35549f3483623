#include "face/notifications/subscriber.h"

#include <string.h>

#include "engine/messages/subscription.h"
#include "face/common/target.h"

static bool is_scheme(rt_str scheme, const char *name) { return rt_str_eq_nocase(scheme, rt_str_of(name)); }

static bool is_listed(rt_str types, rt_str scheme) {
    bool more = true;
    while (more) {
        rt_str type;
        more = rt_str_cut(types, ',', &type, &types);
        if (rt_str_eq_nocase(rt_str_trim(type), scheme)) return true;
    }
    return false;
}

/* In Zaqar's words, which show the list as Python does. */
static rt_code refuse_type(rt_str types, rt_err *err) {
    rt_buf list = {0};
    bool more = true;
    while (more) {
        rt_str type;
        more = rt_str_cut(types, ',', &type, &types);
        rt_buf_addf(&list, "%s'%.*s'", list.len > 0 ? ", " : "", RT_STR_ARG(rt_str_trim(type)));
    }
    const rt_code code =
        list.failed ? rt_fail(err, RT_E_NOMEM, 0, "no memory for a refusal")
                    : rt_fail(err, RT_E_INVALID, 0, "The subscriber type of subscription must be supported in the list "
                              "[%.*s].", RT_STR_ARG(rt_buf_str(&list)));
    rt_buf_deinit(&list);
    return code;
}

rt_code rt_subscriber_parse(rt_str uri, rt_str types, rt_subscriber *out, rt_err *err) {
    rt_str scheme, rest;
    if (!rt_str_cut(uri, ':', &scheme, &rest) || !is_listed(types, scheme)) return refuse_type(types, err);
    if (is_scheme(scheme, "trust+http") || is_scheme(scheme, "trust+https")) {
        return rt_fail(err, RT_E_INVALID, 0, "Subscribers of the types trust+http and trust+https need Keystone, "
                       "which this server does not use. Subscribe with http or https instead.");
    }
    *out = (rt_subscriber){.mail = is_scheme(scheme, "mailto"), .host = RT_STR_EMPTY};
    if (!out->mail && !is_scheme(scheme, "http") && !is_scheme(scheme, "https")) return refuse_type(types, err);
    if (uri.len > RT_URI_MAX) {
        return rt_fail(err, RT_E_INVALID, 0, "The subscriber may not be longer than %d characters.", RT_URI_MAX);
    }
    if (rt_target_has_odd_characters(uri)) {
        return rt_fail(err, RT_E_INVALID, 0, "The subscriber contains characters that must be percent-encoded in a URI.");
    }
    if (out->mail) {
        rt_str address;
        (void)rt_str_cut(rest, '?', &address, &rest);
        if (address.len > 0 && memchr(address.ptr, '@', address.len) != NULL) return RT_OK;
        return rt_fail(err, RT_E_INVALID, 0, "The subscriber has no mail address.");
    }
    if (rt_target_host(uri, &out->host)) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "The subscriber must be an absolute URI with a host.");
}
