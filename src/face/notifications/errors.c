#include "face/notifications/errors.h"

#include <string.h>

#include "face/notifications/about.h"
#include "json/tree.h"

static const char RETRY_AFTER_S[] = "5";

void rt_zaqar_refuse(rt_exchange *x, unsigned status, const char *title, rt_str description) {
    rt_buf body = {0};
    rt_buf_add(&body, RT_STR("{\"title\": "));
    rt_json_write_str(&body, rt_str_of(title));
    if (description.ptr != NULL) {
        rt_buf_add(&body, RT_STR(", \"description\": "));
        rt_json_write_str(&body, description);
    }
    rt_buf_add_char(&body, '}');
    rt_exchange_set_header(x, "Vary", RT_STR("Accept"));
    rt_exchange_reply_buf(x, status, "application/json", &body);
}

/* Replies with a description of any length. */
static void refuse_with(rt_exchange *x, unsigned status, const char *title, const char *fmt, va_list args)
    RT_PRINTF(4, 0);

static void refuse_with(rt_exchange *x, unsigned status, const char *title, const char *fmt, va_list args) {
    rt_zaqar_refuse(x, status, title, rt_arena_vprintf(rt_exchange_arena(x), fmt, args));
}

void rt_zaqar_bad_request(rt_exchange *x, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    refuse_with(x, 400, "Invalid API request", fmt, args);
    va_end(args);
}

void rt_zaqar_bad_body(rt_exchange *x, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    refuse_with(x, 400, "Invalid request body", fmt, args);
    va_end(args);
}

void rt_zaqar_not_found(rt_exchange *x, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    refuse_with(x, 404, "Not found", fmt, args);
    va_end(args);
}

void rt_zaqar_no_such_page(rt_exchange *x) { rt_zaqar_refuse(x, 404, "404 Not Found", (rt_str){0}); }

void rt_zaqar_fail(rt_exchange *x, rt_code code, const char *what) {
    if (code == RT_E_CORRUPT || code == RT_E_INVALID) {
        rt_zaqar_refuse(x, 500, "Internal server error", rt_str_of(what));
        return;
    }
    rt_exchange_set_header(x, "Retry-After", rt_str_of(RETRY_AFTER_S));
    // What is said of queues holds for topics: "Topics could not be listed."
    static const char QUEUE[] = "Queue";
    const size_t skip = sizeof QUEUE - 1;
    const bool topic = rt_about_topics(x) && strncmp(what, QUEUE, skip) == 0;
    const rt_str text = rt_arena_printf(rt_exchange_arena(x), "%s%s Please try again in a few seconds.",
                                        topic ? "Topic" : "", topic ? what + skip : what);
    rt_zaqar_refuse(x, 503, "Service temporarily unavailable", text);
}

void rt_zaqar_busy(rt_exchange *x) { rt_zaqar_fail(x, RT_E_FULL, "Too many requests are waiting."); }

bool rt_zaqar_refuse_json(rt_exchange *x, rt_json_fault fault) {
    switch (fault) {
        case RT_JSON_FINE: return false;
        case RT_JSON_MALFORMED: rt_zaqar_bad_body(x, "Request body could not be parsed."); break;
        case RT_JSON_TOO_DEEP:
            rt_zaqar_bad_body(x, "Request body is nested deeper than %d levels.", RT_JSON_DEPTH_MAX);
            break;
        case RT_JSON_INT_TOO_LARGE: rt_zaqar_bad_body(x, "JSON contains integer that is too large."); break;
        case RT_JSON_TOO_MANY: rt_zaqar_bad_body(x, "JSON contains a list that is too long."); break;
        case RT_JSON_NOMEM: rt_zaqar_fail(x, RT_E_NOMEM, "Request body could not be read."); break;
    }
    return true;
}

void rt_zaqar_not_allowed(rt_exchange *x, rt_str allow) {
    rt_exchange_set_header(x, "Allow", allow);
    rt_zaqar_refuse(x, 405, "405 Method Not Allowed", (rt_str){0});
}

/* What the server itself refuses. Zaqar says 400 where a body is too large. */
void rt_zaqar_refuse_early(rt_exchange *x, unsigned status, rt_str why) {
    switch (status) {
        case 503: {
            // Retry-After is set by the server.
            const rt_str text = rt_arena_printf(rt_exchange_arena(x), "%.*s Please try again in a few seconds.",
                                                RT_STR_ARG(why));
            rt_zaqar_refuse(x, 503, "Service temporarily unavailable", text);
            break;
        }
        case 413: rt_zaqar_refuse(x, 400, "Invalid API request", why); break;
        case 414: rt_zaqar_refuse(x, 414, "414 URI Too Long", why); break;
        case 431: rt_zaqar_refuse(x, 431, "431 Request Header Fields Too Large", why); break;
        default: rt_zaqar_refuse(x, status, "Invalid API request", why); break;
    }
}
