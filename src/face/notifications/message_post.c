#include <inttypes.h>

#include "face/notifications/caller.h"
#include "face/notifications/messages.h"
#include "face/notifications/render.h"

static const char WHAT[] = "Messages could not be enqueued.";

enum field { BODY, TTL, DELAY, FIELDS_COUNT };

/* In the Location header, which must fit a connection's memory. A client can ask for 20 of them at once anyway; the reply's
 * body names them all. */
enum { LOCATION_IDS_MAX = 100 };

/* ---- the reply ----------------------------------------------------------------------------------------- */

static void reply_posted(rt_exchange *x, const rt_post *p) {
    const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
    const rt_str path = rt_about_path(x);
    rt_buf location = {0}, body = {0};
    rt_buf_add(&location, path);
    rt_buf_add(&location, RT_STR("/messages?ids="));
    rt_buf_add(&body, RT_STR("{\"resources\": ["));
    for (uint32_t i = 0; i < p->count; i++) {
        const rt_id_text id = rt_id_format(tag, p->items[i].id);
        const rt_str text = {.ptr = id.s, .len = RT_ID_TEXT_LEN};
        if (i < LOCATION_IDS_MAX) {
            if (i > 0) rt_buf_add_char(&location, ',');
            rt_buf_add(&location, text);
        }
        rt_buf_add(&body, i > 0 ? RT_STR(", \"") : RT_STR("\""));
        rt_buf_add(&body, path);
        rt_buf_add(&body, RT_STR("/messages/"));
        rt_buf_add(&body, text);
        rt_buf_add_char(&body, '"');
    }
    rt_buf_add(&body, RT_STR("]}"));
    if (location.failed) body.failed = true;
    else rt_exchange_set_header(x, RT_LOCATION, rt_buf_str(&location));
    rt_buf_deinit(&location);
    rt_exchange_reply_buf(x, 201, "application/json", &body);
}

static void refuse_size(rt_exchange *x, uint32_t queue_limit) {
    const uint64_t max = rt_limits_of(x)->max_messages_post_size;
    if (queue_limit == 0) {
        rt_zaqar_bad_request(x, "Message collection size is too large. Max size %" PRIu64, max);
        return;
    }
    rt_zaqar_bad_request(x, "Message collection size is too large. The max size for current queue is %" PRIu64
                         ". It is calculated by max size = min(max_messages_post_size_config: %" PRIu64 ", "
                         "max_messages_post_size_queue: %" PRIu32 ").", queue_limit < max ? queue_limit : max, max,
                         queue_limit);
}

static void post_done(rt_exchange *x, rt_command *cmd) {
    const rt_post *p = (const rt_post *)cmd;
    if (cmd->code == RT_OK) reply_posted(x, p);
    else if (cmd->code == RT_E_TOO_LARGE && p->limit_bytes > 0) refuse_size(x, p->limit_bytes);
    else if (cmd->code == RT_E_TOO_LARGE) rt_zaqar_bad_request(x, "%s", cmd->err.msg);
    else rt_zaqar_fail(x, cmd->code, WHAT);
}

/* ---- the request --------------------------------------------------------------------------------------- */

/* Of a queue that may not be there. False: return. */
static bool read_queue(rt_exchange *x, const rt_caller *caller, rt_metadata *out) {
    rt_view *view;
    if (!rt_take_view(x, WHAT, &view)) return false;
    uint64_t version;
    const rt_code code = rt_read_metadata(view, rt_exchange_arena(x), caller->project, caller->queue, out, &version);
    rt_view_close(view);
    if (code == RT_E_ABSENT) *out = (rt_metadata){0};
    if (code == RT_OK || code == RT_E_ABSENT) return true;
    rt_zaqar_fail(x, code, WHAT);
    return false;
}

/* Zaqar looks at a body's size before it reads it. Here the engine does, with the queue at hand, so it is only asked for
 * what is refused anyway. True: return. */
static bool is_too_large(rt_exchange *x, const rt_caller *caller) {
    rt_metadata queue;
    const size_t bytes = rt_exchange_body(x).len;
    if (!read_queue(x, caller, &queue)) return true;
    const bool by_queue = queue.max_post_bytes > 0 && bytes > queue.max_post_bytes;
    if (!by_queue && bytes <= rt_limits_of(x)->max_messages_post_size) return false;
    refuse_size(x, by_queue ? queue.max_post_bytes : 0);
    return true;
}

static bool is_sound(const rt_json_scan *scan, rt_json_fault fault) {
    return fault == RT_JSON_FINE && scan->list_kind == RT_JSON_ARRAY && !scan->odd_rows && scan->rows_count > 0;
}

/* False: replied. */
static bool scan_body(rt_exchange *x, const rt_caller *caller, rt_json_scan *scan) {
    static const rt_str FIELDS[FIELDS_COUNT] = {
        [BODY] = {"body", 4}, [TTL] = {"ttl", 3}, [DELAY] = {"delay", 5}};
    *scan = (rt_json_scan){.list = RT_STR("messages"), .fields = FIELDS, .fields_count = FIELDS_COUNT,
                           .rows_max = RT_POST_MESSAGES_MAX, .arena = rt_exchange_arena(x)};
    const rt_json_fault fault = rt_json_scan_text(scan, rt_exchange_body(x));
    if (is_sound(scan, fault)) return true;
    if (is_too_large(x, caller)) return false;
    if (fault == RT_JSON_TOO_MANY) {
        rt_zaqar_bad_request(x, "Message collection is too large. Max count %d", RT_POST_MESSAGES_MAX);
        return false;
    }
    if (rt_zaqar_refuse_json(x, fault)) return false;
    if (scan->top != RT_JSON_OBJECT && scan->top != RT_JSON_ARRAY) {
        (void)rt_zaqar_refuse_json(x, RT_JSON_MALFORMED);
    } else if (scan->list_kind == RT_JSON_ABSENT) {
        rt_zaqar_bad_request(x, "No messages were found in the request body.");
    } else if (scan->list_kind != RT_JSON_ARRAY || scan->odd_rows) {
        rt_zaqar_bad_body(x, "Document type not supported.");
    } else {
        rt_zaqar_bad_request(x, "No messages to enqueu.");
    }
    return false;
}

/* Queues without a default delay ignore what messages say about it, whatever that is. Only asked when one says it. */
static bool has_delays(rt_exchange *x, const rt_caller *caller, bool *out) {
    rt_metadata queue;
    if (!read_queue(x, caller, &queue)) return false;
    *out = queue.default_delay_s > 0 || rt_limits_of(x)->default_message_delay > 0;
    return true;
}

static bool take_item(rt_exchange *x, const rt_json_slice row[FIELDS_COUNT], bool delays, rt_post_item *out) {
    *out = (rt_post_item){.ttl_s = 0, .delay_s = -1};
    if (!rt_take_int_field(x, &row[TTL], "ttl", &out->ttl_s)) return false;
    if (row[BODY].kind == RT_JSON_ABSENT) {
        rt_zaqar_bad_body(x, "Missing \"body\" field.");
        return false;
    }
    out->body = row[BODY].text;
    return !delays || rt_take_int_field(x, &row[DELAY], "delay", &out->delay_s);
}

static bool is_in_range(rt_exchange *x, const rt_json_slice row[FIELDS_COUNT], bool delays, const rt_post_item *item) {
    const rt_limits *limits = rt_limits_of(x);
    if (row[TTL].kind != RT_JSON_ABSENT &&
        (item->ttl_s < RT_TTL_S_MIN || (uint64_t)item->ttl_s > limits->max_message_ttl)) {
        rt_zaqar_bad_request(x, "The TTL for a message may not exceed %" PRIu64 " seconds, and must be at least %d seconds "
                             "long.", limits->max_message_ttl, RT_TTL_S_MIN);
        return false;
    }
    const bool said = delays && row[DELAY].kind != RT_JSON_ABSENT;
    if (said && (item->delay_s < 0 || (uint64_t)item->delay_s > limits->max_message_delay)) {
        rt_zaqar_bad_request(x, "The Delay TTL for a message may not exceed %" PRIu64 " seconds,and must be at least 0 "
                             "seconds long.", limits->max_message_delay);
        return false;
    }
    return true;
}

/* Types of all messages first, then ranges, as Zaqar does. False: replied. */
static bool take_items(rt_exchange *x, const rt_caller *caller, const rt_json_scan *scan, rt_post_item *items) {
    bool delays = false;
    for (uint32_t i = 0; i < scan->rows_count && !delays; i++) {
        delays = scan->rows[i * FIELDS_COUNT + DELAY].kind != RT_JSON_ABSENT;
    }
    if (delays && !has_delays(x, caller, &delays)) return false;
    for (uint32_t i = 0; i < scan->rows_count; i++) {
        if (!take_item(x, &scan->rows[i * FIELDS_COUNT], delays, &items[i])) return false;
    }
    for (uint32_t i = 0; i < scan->rows_count; i++) {
        if (!is_in_range(x, &scan->rows[i * FIELDS_COUNT], delays, &items[i])) return false;
    }
    return true;
}

void rt_messages_post(rt_exchange *x) {
    const rt_api *api = rt_api_of(x);
    const rt_str body = rt_exchange_body(x);
    rt_arena *arena = rt_exchange_arena(x);
    rt_caller caller;
    if (!rt_caller_admit(x, true, &caller)) return;
    if (!rt_exchange_has_body(x)) {
        rt_zaqar_bad_body(x, "Request body can not be empty");
        return;
    }
    if (body.len > api->limits->max_messages_post_size) {
        (void)is_too_large(x, &caller);
        return;
    }
    rt_json_scan scan;
    if (!scan_body(x, &caller, &scan)) return;
    rt_post *p = rt_arena_alloc(arena, sizeof *p);
    rt_post_item *items = rt_arena_alloc(arena, scan.rows_count * sizeof *items);
    if (p == NULL || items == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    if (!take_items(x, &caller, &scan, items)) return;
    rt_post_init(p);
    p->tenant = caller.project;
    p->queue = caller.queue;
    p->client_hash = caller.client_hash;
    p->bytes = (uint32_t)body.len;
    p->items = items;
    p->count = scan.rows_count;
    p->confirmed_only = api->require_confirmation;
    rt_api_submit(x, &p->cmd, sizeof *p + body.len + scan.rows_count * sizeof *items, post_done, rt_zaqar_busy);
}
