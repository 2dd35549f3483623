#include "face/notifications/render.h"

#include <inttypes.h>
#include <string.h>

#include "face/common/query.h"
#include "face/notifications/caller.h"
#include "json/tree.h"

/* ---- replies ------------------------------------------------------------------------------------------- */

void rt_render_no_content(rt_exchange *x) { rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY); }

void rt_render_json(rt_exchange *x, rt_buf *body) { rt_exchange_reply_buf(x, 200, "application/json", body); }

int64_t rt_message_age_s(const rt_job *job, int64_t now_ms) {
    // A claim may have given the message a longer life, which began with the claim.
    const int64_t from_ms = job->expires_ms > 0 ? job->expires_ms - (int64_t)job->ttl_s * 1000 : job->placed_ms;
    return now_ms > from_ms ? (now_ms - from_ms) / 1000 : 0;
}

rt_message_place rt_message_place_of(const rt_exchange *x) {
    const rt_api *api = rt_api_of(x);
    return (rt_message_place){rt_engine_tag(api->engine), rt_about_path(x), api->now_ms()};
}

void rt_render_message(rt_buf *out, const rt_message_place *place, const rt_message *m, rt_id claim) {
    const rt_id_text id = rt_id_format(place->tag, m->job.id);
    rt_buf_addf(out, "{\"id\": \"%s\", \"href\": \"%.*s/messages/%s", id.s, RT_STR_ARG(place->path), id.s);
    if (claim != 0) rt_buf_addf(out, "?claim_id=%s", rt_id_format(place->tag, claim).s);
    rt_buf_addf(out, "\", \"ttl\": %" PRIu32 ", \"age\": %" PRId64 ", \"body\": ", m->job.ttl_s,
                rt_message_age_s(&m->job, place->now_ms));
    rt_buf_add(out, m->body);
    rt_buf_add_char(out, '}');
}

void rt_render_python_str(rt_buf *out, rt_str s) {
    const bool apostrophe = s.len > 0 && memchr(s.ptr, '\'', s.len) != NULL;
    const bool quote = s.len > 0 && memchr(s.ptr, '"', s.len) != NULL;
    const char mark = apostrophe && !quote ? '"' : '\'';
    rt_buf_add_char(out, mark);
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if ((unsigned char)c < 0x20 || c == 0x7F) {
            rt_buf_addf(out, "\\x%02x", (unsigned)(unsigned char)c);
            continue;
        }
        if (c == mark || c == '\\') rt_buf_add_char(out, '\\');
        rt_buf_add_char(out, c);
    }
    rt_buf_add_char(out, mark);
}

/* ---- the link to the next page ------------------------------------------------------------------------- */

void rt_link_str(rt_link *l, rt_str name, rt_str value) {
    rt_buf_add_char(&l->query, l->query.len == 0 ? '?' : '&');
    rt_query_encode(&l->query, name);
    rt_buf_add_char(&l->query, '=');
    rt_query_encode(&l->query, value);
}

void rt_link_int(rt_link *l, rt_str name, int64_t value) {
    rt_buf_addf(&l->query, "%c%.*s=%" PRId64, l->query.len == 0 ? '?' : '&', RT_STR_ARG(name), value);
}

void rt_link_bool(rt_link *l, rt_str name, bool value) {
    rt_link_str(l, name, value ? RT_STR("true") : RT_STR("false"));
}

void rt_link_write(rt_buf *out, rt_link *l, rt_str path, bool there) {
    rt_buf_add(out, RT_STR("\"links\": ["));
    if (there) {
        // Neither a path of ours nor what is percent-encoded has a character that JSON would escape.
        rt_buf_add(out, RT_STR("{\"rel\": \"next\", \"href\": \""));
        rt_buf_add(out, path);
        rt_buf_add(out, rt_buf_str(&l->query));
        rt_buf_add(out, RT_STR("\"}"));
    }
    rt_buf_add_char(out, ']');
    if (l->query.failed) out->failed = true;
    rt_buf_deinit(&l->query);
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static bool refuse_parameter(rt_exchange *x, const char *name, const char *rule) {
    const rt_str text = rt_arena_printf(rt_exchange_arena(x), "The \"%s\" parameter is invalid. %s", name, rule);
    rt_zaqar_refuse(x, 400, "Invalid parameter", text);
    return false;
}

bool rt_take_int(rt_exchange *x, const char *name, int64_t *out, bool *given) {
    const rt_query found = rt_query_int(x, name, out);
    *given = found == RT_QUERY_FOUND;
    return found != RT_QUERY_INVALID || refuse_parameter(x, name, "The value must be an integer.");
}

bool rt_take_bool(rt_exchange *x, const char *name, bool *out, bool *given) {
    const rt_query found = rt_query_bool(x, name, out);
    *given = found == RT_QUERY_FOUND;
    return found != RT_QUERY_INVALID ||
           refuse_parameter(x, name, "The value of the parameter must be \"true\" or \"false\".");
}

bool rt_take_int_field(rt_exchange *x, const rt_json_slice *s, const char *name, int64_t *out) {
    if (s->kind == RT_JSON_ABSENT) return true;
    if (s->kind == RT_JSON_INT || s->kind == RT_JSON_BOOL) {
        *out = s->integer;
        return true;
    }
    rt_zaqar_bad_body(x, "The value of the \"%s\" field must be a int.", name);
    return false;
}

bool rt_take_document(rt_exchange *x, json_type type, json_t **out) {
    if (!rt_exchange_has_body(x)) {
        rt_zaqar_bad_body(x, "Request body can not be empty");
        return false;
    }
    if (rt_zaqar_refuse_json(x, rt_json_parse(rt_exchange_body(x), out))) return false;
    if (json_typeof(*out) == type) return true;
    json_decref(*out);
    rt_zaqar_bad_body(x, "Document type not supported.");
    return false;
}

bool rt_take_view(rt_exchange *x, const char *what, rt_view **out) {
    rt_err err;
    if (rt_exchange_moves(x)) return false;
    const rt_code code = rt_engine_view(rt_api_of(x)->engine, out, &err);
    if (code == RT_OK) return true;
    rt_zaqar_fail(x, code, what);
    return false;
}
