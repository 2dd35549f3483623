#include "face/notifications/subscriptions.h"

#include <inttypes.h>

#include "face/common/query.h"
#include "face/notifications/caller.h"
#include "face/notifications/render.h"
#include "json/tree.h"

static const char WHAT_LIST[] = "Subscriptions could not be listed.";
static const char WHAT_GET[] = "Subscription could not be retrieved.";

/* ---- as clients see it --------------------------------------------------------------------------------- */

static void write_subscription(rt_buf *out, uint32_t tag, int64_t now_ms, const rt_subscription *s) {
    const int64_t age_ms = now_ms > s->created_ms ? now_ms - s->created_ms : 0;
    rt_buf_addf(out, "{\"id\": \"%s\", \"source\": \"%.*s\", \"subscriber\": ", rt_id_format(tag, s->id).s,
                RT_STR_ARG(rt_queue_title(s->queue_name)));
    rt_json_write_str(out, s->uri);
    rt_buf_addf(out, ", \"ttl\": %" PRIu32 ", \"age\": %" PRId64 ", \"options\": ", s->ttl_s, age_ms / 1000);
    rt_buf_add(out, s->options_json);
    rt_buf_addf(out, ", \"confirmed\": %s}", s->confirmed ? "true" : "false");
}

/* ---- one ----------------------------------------------------------------------------------------------- */

static rt_code read_one(rt_exchange *x, rt_view *view, const rt_caller *caller, int64_t now_ms, rt_subscription *out) {
    rt_arena *arena = rt_exchange_arena(x);
    rt_id id;
    rt_metadata queue;
    uint64_t version;
    if (!rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, 1), &id)) return RT_E_ABSENT;
    const rt_code code = rt_read_metadata(view, arena, caller->project, caller->queue, &queue, &version);
    if (code != RT_OK) return code;
    return rt_read_subscription(view, arena, queue.id, id, now_ms, out, &version);
}

void rt_subscriptions_get(rt_exchange *x) {
    const rt_api *api = rt_api_of(x);
    rt_caller caller;
    rt_view *view;
    if (!rt_caller_admit(x, true, &caller) || !rt_take_view(x, WHAT_GET, &view)) return;
    const int64_t now_ms = api->now_ms();
    rt_subscription s;
    const rt_code code = read_one(x, view, &caller, now_ms, &s);
    rt_view_close(view);
    if (code == RT_OK) {
        rt_buf body = {0};
        write_subscription(&body, rt_engine_tag(api->engine), now_ms, &s);
        rt_render_json(x, &body);
    } else if (code == RT_E_ABSENT) {
        rt_zaqar_not_found(x, "Subscription %.*s does not exist", RT_STR_ARG(rt_exchange_param(x, 1)));
    } else {
        rt_zaqar_fail(x, code, WHAT_GET);
    }
}

static void delete_done(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_render_no_content(x);
    else rt_zaqar_fail(x, cmd->code, "Subscription could not be deleted.");
}

void rt_subscriptions_delete(rt_exchange *x) {
    rt_caller caller;
    if (!rt_caller_admit(x, true, &caller)) return;
    rt_id id;
    if (!rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, 1), &id)) {
        rt_render_no_content(x); // no such subscription: that is what was asked for
        return;
    }
    rt_subscription_delete *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_subscription_delete_init(c);
    c->tenant = caller.project;
    c->queue = caller.queue;
    c->id = id;
    rt_api_submit(x, &c->cmd, sizeof *c, delete_done, rt_zaqar_busy);
}

/* ---- a page -------------------------------------------------------------------------------------------- */

typedef struct page {
    rt_buf rows;
    uint32_t tag;
    int64_t now_ms, limit, count;
    rt_id last;
} page;

static bool add_row(void *ctx, const rt_subscription *s) {
    page *p = ctx;
    if (p->count > 0) rt_buf_add(&p->rows, RT_STR(", "));
    write_subscription(&p->rows, p->tag, p->now_ms, s);
    p->last = s->id;
    p->count++;
    return p->count < p->limit;
}

static rt_code read_page(rt_exchange *x, const rt_caller *caller, rt_view *view, rt_str marker, page *p) {
    rt_id after = 0;
    rt_metadata queue;
    uint64_t version;
    // A marker that is no id has nothing behind it.
    if (marker.len > 0 && !rt_id_parse(p->tag, marker, &after)) return RT_OK;
    const rt_code code =
        rt_read_metadata(view, rt_exchange_arena(x), caller->project, caller->queue, &queue, &version);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    return rt_read_subscriptions(view, queue.id, after, p->now_ms, add_row, p);
}

/* What was given; the marker is last unless the client had one. */
static rt_link make_link(const page *p, bool given_marker, bool given_limit) {
    const rt_id_text last = rt_id_format(p->tag, p->last);
    rt_link link = {0};
    if (given_marker) rt_link_str(&link, RT_STR("marker"), rt_str_of(last.s));
    if (given_limit) rt_link_int(&link, RT_STR("limit"), p->limit);
    if (!given_marker) rt_link_str(&link, RT_STR("marker"), rt_str_of(last.s));
    return link;
}

void rt_subscriptions_list(rt_exchange *x) {
    const rt_api *api = rt_api_of(x);
    rt_caller caller;
    rt_str marker = RT_STR_EMPTY;
    bool given_limit;
    const uint64_t max = api->limits->max_subscriptions_per_page;
    page p = {.tag = rt_engine_tag(api->engine), .now_ms = api->now_ms(), .limit = rt_page_default(max)};
    if (!rt_caller_admit(x, true, &caller) || !rt_take_int(x, "limit", &p.limit, &given_limit)) return;
    if (!rt_is_page_size(p.limit, max)) {
        rt_zaqar_bad_request(x, "Limit must be at least 1 and may not be greater than %" PRIu64 ".", max);
        return;
    }
    const bool given_marker = rt_query_str(x, "marker", &marker) == RT_QUERY_FOUND;
    rt_view *view;
    if (!rt_take_view(x, WHAT_LIST, &view)) return;
    const rt_code code = read_page(x, &caller, view, marker, &p);
    rt_view_close(view);
    if (code != RT_OK) {
        rt_buf_deinit(&p.rows);
        rt_zaqar_fail(x, code, WHAT_LIST);
        return;
    }
    rt_buf body = {0};
    rt_buf_add(&body, RT_STR("{\"subscriptions\": ["));
    rt_buf_add(&body, rt_buf_str(&p.rows));
    rt_buf_add(&body, RT_STR("], "));
    rt_link link = make_link(&p, given_marker, given_limit);
    const rt_str path = rt_arena_printf(rt_exchange_arena(x), "%.*s/subscriptions", RT_STR_ARG(rt_about_path(x)));
    rt_link_write(&body, &link, path, p.count > 0);
    rt_buf_add_char(&body, '}');
    if (p.rows.failed) body.failed = true;
    rt_buf_deinit(&p.rows);
    rt_render_json(x, &body);
}
