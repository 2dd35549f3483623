#include "face/notifications/confirmation.h"

#include "face/notifications/signature.h"
#include "json/tree.h"

static void add_text(rt_buf *out, const char *name, rt_str value) {
    rt_buf_addf(out, "%s\"%s\": ", out->len > 1 ? ", " : "", name);
    rt_json_write_str(out, value);
}

static rt_str say(rt_arena *arena, rt_confirmation_kind kind, rt_str queue) {
    if (kind == RT_CONFIRMATION_ASK) {
        return rt_arena_printf(arena, "You have chosen to subscribe to the queue: %.*s", RT_STR_ARG(queue));
    }
    return rt_arena_printf(arena, "You have unsubscribed successfully to the queue: %.*s, you can resubscribe it by using "
                           "confirmed=True.", RT_STR_ARG(queue));
}

rt_str rt_confirmation_write(const rt_api *api, const rt_confirmation *c, rt_arena *arena) {
    const rt_id_text id = rt_id_format(rt_engine_tag(api->engine), c->subscription);
    const rt_str path = rt_arena_printf(arena, "%.*s/subscriptions/%s/confirm", RT_STR_ARG(c->path), id.s);
    const rt_str queue = rt_queue_title(c->queue);
    const rt_str message = say(arena, c->kind, queue);
    rt_signed_url url = {
        .paths = {path}, .paths_count = 1, .methods = {RT_STR("PUT")}, .methods_count = 1, .project = c->project,
        .expires = rt_timestamp_format(c->expires_ms / 1000)};
    rt_signature signature;
    if (path.ptr == NULL || message.ptr == NULL || rt_signature_make(api->signing_key, &url, &signature) != RT_OK) {
        return (rt_str){0};
    }
    rt_buf out = {0};
    rt_buf_add_char(&out, '{');
    add_text(&out, "Message_Type",
             c->kind == RT_CONFIRMATION_ASK ? RT_STR("SubscriptionConfirmation") : RT_STR("UnsubscribeConfirmation"));
    add_text(&out, "Message", message);
    add_text(&out, "URL-Signature", rt_str_of(signature.s));
    add_text(&out, "URL-Methods", RT_STR("PUT"));
    add_text(&out, "URL-Paths", path);
    add_text(&out, "X-Project-ID", c->project);
    add_text(&out, "URL-Expires", rt_str_of(url.expires.s));
    rt_buf_add(&out, RT_STR(", \"SubscribeBody\": {\"confirmed\": true}, \"UnsubscribeBody\": {\"confirmed\": false}"));
    add_text(&out, "queue_name", queue);
    rt_buf_add_char(&out, '}');
    const rt_str kept = out.failed ? (rt_str){0} : rt_arena_dup(arena, rt_buf_str(&out));
    rt_buf_deinit(&out);
    return kept;
}
