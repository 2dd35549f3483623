#include "face/notifications/messages.h"

#include <inttypes.h>

#include "face/common/query.h"
#include "face/notifications/caller.h"
#include "face/notifications/render.h"

static const char WHAT_LIST[] = "Messages could not be listed.";
static const char WHAT_GET[] = "Message could not be retrieved.";

_Static_assert((int)RT_PAGE_MAX == (int)RT_MESSAGES_PER_REQUEST_MAX, "a page has room for all that one request may name");

static void refuse_limit(rt_exchange *x) {
    rt_zaqar_bad_request(x, "Limit must be at least 1 and may not be greater than %" PRIu64 ".",
                         rt_limits_of(x)->max_messages_per_page);
}

/* ---- a page -------------------------------------------------------------------------------------------- */

typedef struct listing {
    rt_str marker;
    int64_t limit;
    bool echo, include_claimed, include_delayed;
    bool given_marker, given_limit, given_echo, given_include_claimed, given_include_delayed;
} listing;

static bool take_listing(rt_exchange *x, listing *l) {
    const uint64_t max = rt_limits_of(x)->max_messages_per_page;
    *l = (listing){.marker = RT_STR_EMPTY, .limit = rt_page_default(max)};
    l->given_marker = rt_query_str(x, "marker", &l->marker) == RT_QUERY_FOUND;
    if (!rt_take_int(x, "limit", &l->limit, &l->given_limit) || !rt_take_bool(x, "echo", &l->echo, &l->given_echo) ||
        !rt_take_bool(x, "include_claimed", &l->include_claimed, &l->given_include_claimed) ||
        !rt_take_bool(x, "include_delayed", &l->include_delayed, &l->given_include_delayed)) {
        return false;
    }
    if (rt_is_page_size(l->limit, max)) return true;
    refuse_limit(x);
    return false;
}

/* What was given, in Zaqar's order; the marker is last unless the client had one. */
static rt_link make_link(const listing *l, rt_str last) {
    rt_link link = {0};
    if (l->given_marker) rt_link_str(&link, RT_STR("marker"), last);
    if (l->given_limit) rt_link_int(&link, RT_STR("limit"), l->limit);
    if (l->given_echo) rt_link_bool(&link, RT_STR("echo"), l->echo);
    if (l->given_include_claimed) rt_link_bool(&link, RT_STR("include_claimed"), l->include_claimed);
    if (l->given_include_delayed) rt_link_bool(&link, RT_STR("include_delayed"), l->include_delayed);
    if (!l->given_marker) rt_link_str(&link, RT_STR("marker"), last);
    return link;
}

static rt_code read_page(rt_exchange *x, rt_view *view, const rt_caller *caller, listing *l, int64_t now_ms,
                         rt_message out[RT_PAGE_MAX], uint32_t *count) {
    rt_arena *arena = rt_exchange_arena(x);
    rt_message_range range = {
        .limit = (uint32_t)l->limit,
        .skip_hash = l->echo ? 0 : caller->client_hash,
        .include_claimed = l->include_claimed,
        .now_ms = now_ms,
    };
    *count = 0;
    // A marker that is no id has nothing behind it.
    if (l->given_marker && !rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), l->marker, &range.after)) return RT_OK;
    rt_metadata metadata;
    uint64_t version;
    const rt_code code = rt_read_metadata(view, arena, caller->project, caller->queue, &metadata, &version);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    // Where a queue has no delays Zaqar always includes delayed messages, and says so in the link.
    const bool delays = metadata.default_delay_s > 0 || rt_limits_of(x)->default_message_delay > 0;
    if (!delays) l->include_delayed = l->given_include_delayed = true;
    range.include_delayed = l->include_delayed;
    range.jobs = metadata.jobs;
    return rt_read_messages(view, arena, &range, out, count);
}

/* A claim's id is shown only while the claim lasts. */
static void write_messages(rt_buf *body, rt_view *view, const rt_message_place *place, const rt_message *messages,
                           uint32_t count) {
    rt_buf_add(body, RT_STR("{\"messages\": ["));
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) rt_buf_add(body, RT_STR(", "));
        rt_render_message(body, place, &messages[i], rt_read_claim_of(view, &messages[i].job, place->now_ms));
    }
    rt_buf_add_char(body, ']');
}

static void list_page(rt_exchange *x, const rt_caller *caller) {
    listing l;
    rt_view *view;
    if (!take_listing(x, &l) || !rt_take_view(x, WHAT_LIST, &view)) return;
    const rt_message_place place = rt_message_place_of(x);
    rt_message messages[RT_PAGE_MAX];
    uint32_t count;
    const rt_code code = read_page(x, view, caller, &l, place.now_ms, messages, &count);
    rt_buf body = {0};
    if (code == RT_OK) {
        write_messages(&body, view, &place, messages, count);
        const rt_id_text last = rt_id_format(place.tag, count == 0 ? 0 : messages[count - 1].job.id);
        rt_link link = make_link(&l, rt_str_of(last.s));
        const rt_str path = rt_arena_printf(rt_exchange_arena(x), "%.*s/messages", RT_STR_ARG(place.path));
        rt_buf_add(&body, RT_STR(", "));
        rt_link_write(&body, &link, path, count > 0);
        rt_buf_add_char(&body, '}');
    }
    rt_view_close(view);
    if (code == RT_OK) rt_render_json(x, &body);
    else rt_zaqar_fail(x, code, WHAT_LIST);
}

/* ---- by id --------------------------------------------------------------------------------------------- */

static rt_code read_one(rt_exchange *x, rt_view *view, rt_id jobs, rt_str id_text, int64_t now_ms, rt_message *out) {
    rt_id id;
    if (!rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), id_text, &id)) return RT_E_ABSENT;
    return rt_read_message(view, rt_exchange_arena(x), jobs, id, now_ms, out);
}

static void refuse_unknown_ids(rt_exchange *x, const rt_caller *caller, const rt_str *ids, size_t count) {
    rt_buf list = {0};
    for (size_t i = 0; i < count; i++) {
        if (i > 0) rt_buf_add(&list, RT_STR(", "));
        rt_render_python_str(&list, ids[i]);
    }
    rt_zaqar_not_found(x, "No messages with IDs: [%.*s] found in the queue %.*s for project %.*s.",
                       RT_STR_ARG(rt_buf_str(&list)), RT_STR_ARG(rt_queue_title(caller->queue)),
                       RT_STR_ARG(caller->project));
    rt_buf_deinit(&list);
}

static void list_by_ids(rt_exchange *x, const rt_caller *caller, const rt_str *ids, size_t ids_count) {
    rt_view *view;
    if (!rt_take_view(x, WHAT_GET, &view)) return;
    const rt_message_place place = rt_message_place_of(x);
    rt_message messages[RT_PAGE_MAX];
    uint32_t count = 0;
    rt_metadata metadata;
    uint64_t version;
    rt_code code = rt_read_metadata(view, rt_exchange_arena(x), caller->project, caller->queue, &metadata, &version);
    const bool there = code == RT_OK;
    if (code == RT_E_ABSENT) code = RT_OK;
    for (size_t i = 0; i < ids_count && there && code == RT_OK; i++) {
        code = read_one(x, view, metadata.jobs, ids[i], place.now_ms, &messages[count]);
        if (code == RT_OK) count++;
        else if (code == RT_E_ABSENT) code = RT_OK;
    }
    rt_buf body = {0};
    if (code == RT_OK && count > 0) {
        write_messages(&body, view, &place, messages, count);
        rt_buf_add_char(&body, '}');
    }
    rt_view_close(view);
    if (code != RT_OK) rt_zaqar_fail(x, code, WHAT_GET);
    else if (count == 0) refuse_unknown_ids(x, caller, ids, ids_count);
    else rt_render_json(x, &body);
}

void rt_messages_list(rt_exchange *x) {
    rt_caller caller;
    if (!rt_caller_admit(x, true, &caller)) return;
    rt_str ids[RT_MESSAGES_PER_REQUEST_MAX];
    const size_t count = rt_query_list(x, "ids", ids, RT_MESSAGES_PER_REQUEST_MAX);
    if (count == 0) list_page(x, &caller);
    else if (count > rt_limits_of(x)->max_messages_per_page) refuse_limit(x);
    else list_by_ids(x, &caller, ids, count);
}

void rt_messages_get(rt_exchange *x) {
    rt_caller caller;
    rt_view *view;
    if (!rt_caller_admit(x, true, &caller) || !rt_take_view(x, WHAT_GET, &view)) return;
    const rt_message_place place = rt_message_place_of(x);
    const rt_str id = rt_exchange_param(x, 1);
    rt_metadata metadata;
    uint64_t version;
    rt_message message;
    rt_id claim = 0;
    rt_code code = rt_read_metadata(view, rt_exchange_arena(x), caller.project, caller.queue, &metadata, &version);
    if (code == RT_OK) code = read_one(x, view, metadata.jobs, id, place.now_ms, &message);
    if (code == RT_OK) claim = rt_read_claim_of(view, &message.job, place.now_ms);
    rt_view_close(view);
    if (code == RT_OK) {
        rt_buf body = {0};
        rt_render_message(&body, &place, &message, claim);
        rt_render_json(x, &body);
    } else if (code == RT_E_ABSENT) {
        rt_zaqar_not_found(x, "Message %.*s does not exist in queue %.*s for project %.*s", RT_STR_ARG(id),
                           RT_STR_ARG(rt_queue_title(caller.queue)), RT_STR_ARG(caller.project));
    } else {
        rt_zaqar_fail(x, code, WHAT_GET);
    }
}
