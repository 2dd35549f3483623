#include "face/notifications/caller.h"

#include <inttypes.h>
#include <string.h>

#include "engine/messages/metadata.h"
#include "face/notifications/limits.h"
#include "face/notifications/signature.h"

/* ---- Accept -------------------------------------------------------------------------------------------- */

/* How specific a media range is for application/json; 0: it does not match. */
static int specificity(rt_str range) {
    if (rt_str_eq_nocase(range, RT_STR("application/json"))) return 3;
    if (rt_str_eq_nocase(range, RT_STR("application/*"))) return 2;
    return rt_str_eq(range, RT_STR("*/*")) ? 1 : 0;
}

/* "0", "0.0", … */
static bool is_zero(rt_str number) {
    for (size_t i = 0; i < number.len; i++) {
        if (number.ptr[i] != '0' && number.ptr[i] != '.') return false;
    }
    return number.len > 0;
}

/* Is there a "q" among the parameters that is 0? */
static bool is_refused(rt_str params) {
    bool more = params.len > 0;
    while (more) {
        rt_str param, name, value;
        more = rt_str_cut(params, ';', &param, &params);
        if (!rt_str_cut(param, '=', &name, &value) || !rt_str_eq_nocase(rt_str_trim(name), RT_STR("q"))) continue;
        return is_zero(rt_str_trim(value));
    }
    return false;
}

bool rt_accept_admits_json(rt_str accept) {
    if (rt_str_trim(accept).len == 0) return true;
    int best = 0;
    bool admits = false;
    bool more = true;
    while (more) {
        rt_str item, range, params;
        more = rt_str_cut(accept, ',', &item, &accept);
        (void)rt_str_cut(item, ';', &range, &params);
        const int how = specificity(rt_str_trim(range));
        if (how <= best) continue;
        best = how;
        admits = !is_refused(params);
    }
    return admits;
}

bool rt_caller_takes_json(rt_exchange *x) {
    rt_str accept;
    if (!rt_exchange_header(x, "Accept", &accept) || rt_accept_admits_json(accept)) return true;
    rt_exchange_set_header(x, "Vary", RT_STR("Accept"));
    rt_exchange_reply(x, 406, "application/json", RT_STR_EMPTY);
    return false;
}

/* ---- Client-ID ----------------------------------------------------------------------------------------- */

static rt_str without_prefix(rt_str s, rt_str prefix) {
    if (!rt_str_starts(s, prefix)) return s;
    return (rt_str){.ptr = s.ptr + prefix.len, .len = s.len - prefix.len};
}

static bool is_brace(char c) { return c == '{' || c == '}'; }

bool rt_client_id_parse(rt_str text, char out[RT_CLIENT_ID_LEN]) {
    text = without_prefix(without_prefix(text, RT_STR("urn:")), RT_STR("uuid:"));
    while (text.len > 0 && is_brace(text.ptr[0])) text = (rt_str){.ptr = text.ptr + 1, .len = text.len - 1};
    while (text.len > 0 && is_brace(text.ptr[text.len - 1])) text.len--;
    size_t digits = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '-') continue;
        if (c >= 'A' && c <= 'F') c = (char)(c - 'A' + 'a');
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) || digits == RT_CLIENT_ID_LEN) return false;
        out[digits++] = c;
    }
    return digits == RT_CLIENT_ID_LEN;
}

/* Where it need be no UUID, one that is counts as the same client in all its spellings nevertheless. */
static bool take_any_client_id(rt_exchange *x, rt_str text, rt_caller *out) {
    const rt_limits *limits = rt_limits_of(x);
    char id[RT_CLIENT_ID_LEN];
    if (text.len < limits->min_length_client_id || text.len > limits->max_length_client_id) {
        const rt_str rule = rt_arena_printf(rt_exchange_arena(x), "Length of client id must be at least %" PRIu64
                                            " and no greater than %" PRIu64 ".", limits->min_length_client_id,
                                            limits->max_length_client_id);
        if (rule.ptr == NULL) rt_zaqar_busy(x);
        else rt_zaqar_refuse(x, 400, rule.ptr, (rt_str){0});
        return false;
    }
    if (rt_client_id_parse(text, id)) text = (rt_str){.ptr = id, .len = sizeof id};
    out->client_hash = rt_hash_str(text);
    return true;
}

static bool take_client_id(rt_exchange *x, rt_caller *out) {
    rt_str text;
    char id[RT_CLIENT_ID_LEN];
    if (!rt_exchange_header(x, "Client-ID", &text)) {
        rt_zaqar_refuse(x, 400, "Missing header value", RT_STR("The \"Client-ID\" header is required."));
        return false;
    }
    if (strcmp(rt_limits_of(x)->client_id_uuid_safe, "off") == 0) return take_any_client_id(x, text, out);
    if (!rt_client_id_parse(text, id)) {
        rt_zaqar_refuse(x, 400, "Wrong UUID value", RT_STR("Malformed hexadecimal UUID."));
        return false;
    }
    out->client_hash = rt_hash_str((rt_str){.ptr = id, .len = sizeof id});
    return true;
}

/* ---- project and queue --------------------------------------------------------------------------------- */

static bool take_project(rt_exchange *x, rt_caller *out) {
    if (!rt_exchange_header(x, "X-Project-ID", &out->project)) {
        rt_zaqar_refuse(x, 400, "Project-Id Missing", RT_STR("The header X-PROJECT-ID was missing"));
        return false;
    }
    if (out->project.len > 0) return true;
    rt_zaqar_refuse(x, 400, "Empty project header not allowed",
                    RT_STR("X-PROJECT-ID cannot be an empty string. "
                           "Specify the right header X-PROJECT-ID and retry."));
    return false;
}

static bool names_are_valid(rt_exchange *x, bool with_queue, const rt_caller *c) {
    if (c->project.len <= RT_TENANT_MAX && (!with_queue || rt_name_is_word(c->queue))) return true;
    if (rt_about_topics(x)) {
        rt_zaqar_refuse(x, 400, "Invalid topic identification",
                        RT_STR("The format of the submitted topic name or project id is not valid."));
    } else {
        rt_zaqar_refuse(x, 400, "Invalid queue identification",
                        RT_STR("The format of the submitted queue name or project id is not valid."));
    }
    return false;
}

static bool mark_topic(rt_exchange *x, bool with_queue, rt_caller *c) {
    if (!with_queue || !rt_about_topics(x)) return true;
    c->queue = rt_arena_printf(rt_exchange_arena(x), "%c%.*s", RT_TOPIC_MARK, RT_STR_ARG(c->queue));
    if (c->queue.ptr != NULL) return true;
    rt_zaqar_busy(x);
    return false;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

/* A valid pre-signed URL stands for a token. */
static bool is_let_in(rt_exchange *x) {
    rt_str signature, project = RT_STR_EMPTY;
    if (rt_exchange_header(x, "URL-Signature", &signature)) {
        if (rt_signature_admits(x)) return true;
        rt_zaqar_no_such_page(x);
        return false;
    }
    const bool named = rt_exchange_header(x, "X-Project-ID", &project) && project.len > 0;
    const unsigned status = rt_api_refusal(x, project);
    if (status == 401) {
        rt_exchange_set_header(x, "WWW-Authenticate", RT_STR("Bearer"));
        rt_zaqar_refuse(x, 401, "Unauthorized", RT_STR("The request you have made requires authentication."));
        return false;
    }
    // A missing project has words of its own.
    if (status == 0 || !named) return true;
    rt_zaqar_refuse(x, 403, "Not authorized", RT_STR("You are not authorized to complete this action."));
    return false;
}

static bool has_proper_type(rt_exchange *x) {
    rt_str type;
    if (!rt_exchange_has_body(x) || !rt_exchange_header(x, "Content-Type", &type) ||
        !rt_str_eq_nocase(type, RT_STR("application/x-www-form-urlencoded"))) {
        return true;
    }
    rt_zaqar_refuse(x, 400, "Invalid Content-Type",
                    RT_STR("Endpoint does not accept `application/x-www-form-urlencoded` content; currently supported "
                           "media type is `application/json`; specify proper client-side media type with the "
                           "\"Content-Type\" header."));
    return false;
}

bool rt_caller_admit(rt_exchange *x, bool with_queue, rt_caller *out) {
    *out = (rt_caller){.queue = with_queue ? rt_exchange_param(x, 0) : RT_STR_EMPTY};
    return is_let_in(x) && has_proper_type(x) && rt_caller_takes_json(x) && take_client_id(x, out) &&
           take_project(x, out) && names_are_valid(x, with_queue, out) && mark_topic(x, with_queue, out);
}
