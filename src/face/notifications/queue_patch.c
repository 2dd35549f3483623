#include <inttypes.h>

#include "engine/messages/message_queue.h"
#include "face/notifications/caller.h"
#include "face/notifications/queue_metadata.h"
#include "face/notifications/queues.h"
#include "face/notifications/render.h"
#include "json/patch.h"

enum { TRIES_MAX = 5 };
#define TOO_LARGE "Queue metadata is too large. Max size: %" PRIu64
static const char WHAT[] = "Queue could not be updated.";

/* A patch under way: read, patched and replaced if nobody was faster, else once more. */
typedef struct patching {
    rt_queue_replace replace; /* first: the command */
    rt_str project, queue;
    uint32_t tries;
} patching;

static bool has_patch_type(rt_exchange *x) {
    rt_str type;
    if (rt_exchange_header(x, "Content-Type", &type) &&
        rt_str_eq(type, RT_STR("application/openstack-messaging-v2.0-json-patch"))) {
        return true;
    }
    rt_zaqar_refuse(x, 415, "415 Unsupported Media Type",
                    RT_STR("Accepted media type for PATCH: "
                           "{'Accept-Patch': 'application/openstack-messaging-v2.0-json-patch'}."));
    return false;
}

static void reply_metadata(rt_exchange *x, rt_command *cmd) {
    rt_buf body = {0};
    if (rt_metadata_write(&body, ((const rt_queue_replace *)cmd)->like.json, rt_metadata_shown_of(x))) {
        rt_render_json(x, &body);
        return;
    }
    rt_buf_deinit(&body);
    rt_zaqar_fail(x, RT_E_NOMEM, WHAT);
}

static void try_patch(rt_exchange *x, patching *p);

static void replace_done(rt_exchange *x, rt_command *cmd) {
    patching *p = (patching *)cmd;
    if (cmd->code == RT_OK) reply_metadata(x, cmd);
    // A queue that went away meanwhile is found absent by the next try.
    else if ((cmd->code == RT_E_CONFLICT || cmd->code == RT_E_ABSENT) && p->tries < TRIES_MAX) try_patch(x, p);
    else rt_zaqar_fail(x, cmd->code, WHAT);
}

/* The patched metadata. RT_E_INVALID, RT_E_ABSENT (a key that is not there) with *why. */
static rt_code patch_stored(rt_exchange *x, const rt_patch *patch, rt_str stored, rt_metadata *out, rt_str *why) {
    rt_arena *arena = rt_exchange_arena(x);
    json_t *json;
    if (rt_json_parse(stored, &json) != RT_JSON_FINE) return RT_E_CORRUPT;
    const rt_limits *limits = rt_limits_of(x);
    rt_code code = rt_patch_apply(
        patch, json, rt_about_topics(x) ? rt_metadata_is_reserved_of_topics : rt_metadata_is_reserved, arena, why);
    if (code == RT_OK) code = rt_metadata_from_json(json, limits, arena, out, why);
    // What is there already may be larger as it is written than as it was sent; it may shrink, and stay.
    if (code == RT_OK && out->json.len > limits->max_queue_metadata && out->json.len > stored.len) {
        *why = rt_arena_printf(arena, TOO_LARGE, limits->max_queue_metadata);
        code = RT_E_INVALID;
    }
    json_decref(json);
    return code;
}

/* False: replied. */
static bool read_stored(rt_exchange *x, patching *p, rt_metadata *stored) {
    rt_view *view;
    if (!rt_take_view(x, WHAT, &view)) return false;
    const rt_code code = rt_read_metadata(view, rt_exchange_arena(x), p->project, p->queue, stored, &p->replace.version);
    rt_view_close(view);
    if (code == RT_OK) return true;
    if (code == RT_E_ABSENT) {
        rt_zaqar_not_found(x, "%s %.*s does not exist for project %.*s", rt_queue_is_topic(p->queue) ? "Topic" : "Queue",
                           RT_STR_ARG(rt_queue_title(p->queue)), RT_STR_ARG(p->project));
    } else {
        rt_zaqar_fail(x, code, WHAT);
    }
    return false;
}

/* The document is parsed again for each try: nothing of jansson's outlives a call, so none leaks when the client's time is
 * over in between. */
static void try_patch(rt_exchange *x, patching *p) {
    json_t *document;
    if (rt_exchange_moves(x)) return; // before anything of the last try is forgotten
    if (rt_zaqar_refuse_json(x, rt_json_parse(rt_exchange_body(x), &document))) return;
    const uint32_t tries = p->tries + 1;
    rt_queue_replace_init(&p->replace);
    p->tries = tries;
    rt_patch patch;
    rt_metadata stored;
    rt_str why;
    rt_code code = rt_patch_parse(document, rt_exchange_arena(x), &patch, &why);
    const bool read = code == RT_OK && read_stored(x, p, &stored);
    if (read) code = patch_stored(x, &patch, stored.json, &p->replace.like, &why);
    json_decref(document);
    if (code == RT_OK && !read) return;
    if (code == RT_OK) {
        p->replace.tenant = p->project;
        p->replace.queue = p->queue;
        rt_api_submit(x, &p->replace.cmd, sizeof *p + p->replace.like.json.len, replace_done, rt_zaqar_busy);
    } else if (code == RT_E_INVALID) {
        rt_zaqar_bad_body(x, "%.*s", RT_STR_ARG(why));
    } else if (code == RT_E_ABSENT) {
        rt_zaqar_refuse(x, 409, "Resource conflict", why);
    } else {
        rt_zaqar_fail(x, code, WHAT);
    }
}

void rt_queues_patch(rt_exchange *x) {
    rt_caller caller;
    if (!rt_caller_admit(x, true, &caller)) return;
    const rt_str body = rt_exchange_body(x);
    if (body.len > rt_limits_of(x)->max_queue_metadata) {
        rt_zaqar_bad_body(x, TOO_LARGE, rt_limits_of(x)->max_queue_metadata);
        return;
    }
    if (!has_patch_type(x)) return;
    if (body.len == 0) {
        rt_zaqar_bad_body(x, "PATCH body could not be empty for update.");
        return;
    }
    patching *p = rt_arena_alloc(rt_exchange_arena(x), sizeof *p);
    if (p == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    p->project = caller.project;
    p->queue = caller.queue;
    try_patch(x, p);
}
