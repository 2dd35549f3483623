#include "face/notifications/queues.h"

#include <inttypes.h>

#include "engine/messages/message_queue.h"
#include "face/common/timestamp.h"
#include "face/notifications/caller.h"
#include "face/notifications/queue_metadata.h"
#include "face/notifications/render.h"
#include "json/tree.h"

/* ---- GET one ------------------------------------------------------------------------------------------- */

void rt_queues_get(rt_exchange *x) {
    static const char WHAT[] = "Queue metadata could not be retrieved.";
    rt_caller caller;
    rt_view *view;
    if (!rt_caller_admit(x, true, &caller) || !rt_take_view(x, WHAT, &view)) return;
    rt_metadata metadata = {.json = RT_STR("{}")}; // of a queue that nobody has made yet
    uint64_t version;
    rt_code code = rt_read_metadata(view, rt_exchange_arena(x), caller.project, caller.queue, &metadata, &version);
    rt_view_close(view);
    if (code == RT_E_ABSENT) code = RT_OK;
    rt_buf body = {0};
    if (code == RT_OK && !rt_metadata_write(&body, metadata.json, rt_metadata_shown_of(x))) code = RT_E_NOMEM;
    if (code == RT_OK) {
        rt_render_json(x, &body);
        return;
    }
    rt_buf_deinit(&body);
    rt_zaqar_fail(x, code, WHAT);
}

/* ---- PUT ----------------------------------------------------------------------------------------------- */

static void reply_located(rt_exchange *x, unsigned status) {
    rt_exchange_set_header(x, RT_LOCATION, rt_about_path(x));
    rt_exchange_reply(x, status, status == 204 ? NULL : "application/json", RT_STR_EMPTY);
}

static void put_done(rt_exchange *x, rt_command *cmd) {
    const rt_queue_create *c = (const rt_queue_create *)cmd;
    if (cmd->code == RT_OK) reply_located(x, c->existed ? 204 : 201);
    else rt_zaqar_fail(x, cmd->code, "Queue could not be created.");
}

static bool metadata_fits(rt_exchange *x) {
    const uint64_t max = rt_limits_of(x)->max_queue_metadata;
    if (rt_exchange_body(x).len <= max) return true;
    rt_zaqar_bad_request(x, "Queue metadata is too large. Max size: %" PRIu64, max);
    return false;
}

/* False: replied. */
static bool take_metadata(rt_exchange *x, rt_metadata *out) {
    if (rt_exchange_body(x).len == 0) {
        *out = (rt_metadata){.json = RT_STR("{}")};
        return true;
    }
    json_t *json;
    if (!rt_take_document(x, JSON_OBJECT, &json)) return false;
    rt_str why;
    const rt_code code = rt_metadata_from_json(json, rt_limits_of(x), rt_exchange_arena(x), out, &why);
    json_decref(json);
    if (code == RT_E_INVALID) rt_zaqar_bad_request(x, "%.*s", RT_STR_ARG(why));
    else if (code != RT_OK) rt_zaqar_fail(x, code, "Queue could not be created.");
    return code == RT_OK;
}

void rt_queues_put(rt_exchange *x) {
    rt_caller caller;
    rt_metadata metadata;
    if (!rt_caller_admit(x, true, &caller) || !metadata_fits(x) || !take_metadata(x, &metadata)) return;
    rt_queue_create *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_queue_create_init(c);
    c->tenant = caller.project;
    c->queue = caller.queue;
    c->like = metadata;
    rt_api_submit(x, &c->cmd, sizeof *c + metadata.json.len, put_done, rt_zaqar_busy);
}

/* ---- DELETE, purge ------------------------------------------------------------------------------------- */

static void delete_done(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_render_no_content(x);
    else rt_zaqar_fail(x, cmd->code, "Queue could not be deleted.");
}

void rt_queues_delete(rt_exchange *x) {
    rt_caller caller;
    if (!rt_caller_admit(x, true, &caller)) return;
    rt_queue_delete *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_queue_delete_init(c);
    c->tenant = caller.project;
    c->queue = caller.queue;
    rt_api_submit(x, &c->cmd, sizeof *c, delete_done, rt_zaqar_busy);
}

static bool take_resource_types(rt_exchange *x, bool *messages, bool *subscriptions) {
    *messages = *subscriptions = true;
    if (rt_exchange_body(x).len == 0) return true;
    json_t *document;
    if (!rt_take_document(x, JSON_OBJECT, &document)) return false;
    const json_t *types = json_object_get(document, "resource_types");
    *messages = *subscriptions = false;
    bool known = json_is_array(types);
    for (size_t i = 0; known && i < json_array_size(types); i++) {
        const rt_str type = rt_str_of(json_string_value(json_array_get(types, i)));
        if (rt_str_eq(type, RT_STR("messages"))) *messages = true;
        else if (rt_str_eq(type, RT_STR("subscriptions"))) *subscriptions = true;
        else known = false;
    }
    if (types == NULL) rt_zaqar_bad_request(x, "Post body must contain key \"resource_types\".");
    else if (!known) rt_zaqar_bad_request(x, "Resource types must be a sub set of {'messages', 'subscriptions'}.");
    json_decref(document);
    return known;
}

static void purge_done(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_render_no_content(x);
    else rt_zaqar_fail(x, cmd->code, "Queue could not be purged.");
}

void rt_queues_purge(rt_exchange *x) {
    rt_caller caller;
    bool messages, subscriptions;
    if (!rt_caller_admit(x, true, &caller) || !take_resource_types(x, &messages, &subscriptions)) return;
    rt_queue_purge *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_queue_purge_init(c);
    c->tenant = caller.project;
    c->queue = caller.queue;
    c->messages = messages;
    c->subscriptions = subscriptions;
    rt_api_submit(x, &c->cmd, sizeof *c, purge_done, rt_zaqar_busy);
}

/* ---- statistics ---------------------------------------------------------------------------------------- */

static void write_end(rt_buf *out, const char *name, const rt_message_place *place, const rt_job *job) {
    const int64_t age_s = rt_message_age_s(job, place->now_ms);
    rt_buf_addf(out, ", \"%s\": {\"href\": \"%.*s/messages/%s\", \"age\": %" PRId64
                ", \"created\": \"%sZ\"}", name, RT_STR_ARG(place->path), rt_id_format(place->tag, job->id).s, age_s,
                rt_timestamp_format(place->now_ms / 1000 - age_s).s);
}

void rt_queues_stats(rt_exchange *x) {
    static const char WHAT[] = "Queue stats could not be read.";
    rt_caller caller;
    rt_view *view;
    if (!rt_caller_admit(x, true, &caller) || !rt_take_view(x, WHAT, &view)) return;
    const rt_message_place place = rt_message_place_of(x);
    rt_metadata metadata;
    uint64_t version;
    rt_queue_stats stats = {0};
    rt_code code = rt_read_metadata(view, rt_exchange_arena(x), caller.project, caller.queue, &metadata, &version);
    if (code == RT_OK) code = rt_read_stats(view, metadata.jobs, place.now_ms, &stats);
    rt_view_close(view);
    if (code != RT_OK && code != RT_E_ABSENT) {
        rt_zaqar_fail(x, code, WHAT);
        return;
    }
    rt_buf body = {0};
    rt_buf_addf(&body, "{\"messages\": {\"claimed\": %" PRId64 ", \"free\": %" PRId64 ", \"total\": %" PRId64,
                stats.claimed, stats.free, stats.total);
    if (stats.has_ends) {
        write_end(&body, "oldest", &place, &stats.oldest);
        write_end(&body, "newest", &place, &stats.newest);
    }
    rt_buf_add(&body, RT_STR("}}"));
    rt_render_json(x, &body);
}
