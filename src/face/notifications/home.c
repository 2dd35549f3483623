#include "face/notifications/home.h"

#include <inttypes.h>
#include <string.h>

#include "face/notifications/caller.h"
#include "face/notifications/render.h"
#include "os/clock.h"

void rt_home_versions(rt_exchange *x) {
    if (!rt_caller_takes_json(x)) return;
    rt_exchange_reply(x, 300, "application/json", RT_STR(
        "{\"versions\": [{\"id\": \"2\", \"status\": \"CURRENT\", \"updated\": \"2014-9-24T04:06:47Z\", "
        "\"media-types\": [{\"base\": \"application/json\", "
        "\"type\": \"application/vnd.openstack.messaging-v2+json\"}], "
        "\"links\": [{\"href\": \"/v2/\", \"rel\": \"self\"}]}]}"));
}

/* ---- JSON home: https://tools.ietf.org/html/draft-nottingham-json-home-03 ------------------------------ */

typedef struct resource {
    const char *rel, *path;
    const char *query; /* "a,b": names of query parameters */
    const char *vars;  /* "name=param name=param" */
    const char *allow; /* "GET PUT" */
} resource;

#define QUEUE "/v2/queues/{queue_name}"
#define QUEUE_VAR "queue_name=queue_name"
static const resource RESOURCES[] = {
    {"queues", "/v2/queues", "marker,limit,detailed", "marker=marker limit=queue_limit detailed=detailed", "GET"},
    {"queue", QUEUE, NULL, QUEUE_VAR, "GET PUT DELETE PATCH"},
    {"queue_stats", QUEUE "/stats", NULL, QUEUE_VAR, "GET"},
    {"queue_share", QUEUE "/share", NULL, QUEUE_VAR, "POST"},
    {"queue_purge", QUEUE "/purge", NULL, QUEUE_VAR, "POST"},
    {"messages", QUEUE "/messages", "marker,limit,echo,include_claimed",
     QUEUE_VAR " marker=marker limit=messages_limit echo=echo include_claimed=include_claimed", "GET"},
    {"post_messages", QUEUE "/messages", NULL, QUEUE_VAR, "POST"},
    {"messages_delete", QUEUE "/messages", "ids,pop", QUEUE_VAR " ids=ids pop=pop", "DELETE"},
    {"message_delete", QUEUE "/messages/{message_id}", "claim", QUEUE_VAR " message_id=message_id claim=claim_id",
     "DELETE"},
    {"message_get", QUEUE "/messages/{message_id}", NULL, QUEUE_VAR " message_id=message_id", "GET"},
    {"claim", QUEUE "/claims/{claim_id}", NULL, QUEUE_VAR " claim_id=claim_id", "GET"},
    {"post_claim", QUEUE "/claims", "limit", QUEUE_VAR " limit=claim_limit", "POST"},
    {"patch_claim", QUEUE "/claims/{claim_id}", NULL, QUEUE_VAR " claim_id=claim_id", "PATCH"},
    {"delete_claim", QUEUE "/claims/{claim_id}", NULL, QUEUE_VAR " claim_id=claim_id", "DELETE"},
    {"subscriptions_get", QUEUE "/subscriptions", "marker,limit",
     QUEUE_VAR " marker=marker limit=subscription_limit", "GET"},
    {"subscriptions_post", QUEUE "/subscriptions", NULL, QUEUE_VAR " limit=subscription_limit", "POST"},
    {"subscription", QUEUE "/subscriptions/{subscriptions_id}", NULL,
     QUEUE_VAR " subscriptions_id=subscriptions_id", "GET DELETE"},
    {"subscription_patch", QUEUE "/subscriptions/{subscriptions_id}", NULL,
     QUEUE_VAR " subscriptions_id=subscriptions_id", "PATCH"},
    {"ping", "/v2/ping", NULL, NULL, "GET"},
    {"health", "/v2/health", NULL, NULL, "GET"},
};

static void write_vars(rt_buf *out, const char *vars) {
    rt_str rest = rt_str_of(vars);
    bool more = true;
    rt_buf_add(out, RT_STR("\"href-vars\": {"));
    while (more) {
        rt_str var, name, param;
        more = rt_str_cut(rest, ' ', &var, &rest);
        (void)rt_str_cut(var, '=', &name, &param);
        rt_buf_addf(out, "\"%.*s\": \"param/%.*s\"%s", RT_STR_ARG(name), RT_STR_ARG(param), more ? ", " : "}, ");
    }
}

static void write_hints(rt_buf *out, const char *allow) {
    rt_str rest = rt_str_of(allow);
    bool more = true;
    rt_buf_add(out, RT_STR("\"hints\": {\"allow\": ["));
    while (more) {
        rt_str method;
        more = rt_str_cut(rest, ' ', &method, &rest);
        rt_buf_addf(out, "\"%.*s\"%s", RT_STR_ARG(method), more ? ", " : "], ");
    }
    rt_buf_add(out, RT_STR("\"formats\": {\"application/json\": {}}"));
    if (strcmp(allow, "POST") == 0 || strcmp(allow, "PATCH") == 0) {
        rt_buf_add(out, RT_STR(", \"accept-post\": [\"application/json\"]"));
    }
    rt_buf_add(out, RT_STR("}}"));
}

void rt_home_v2(rt_exchange *x) {
    if (!rt_caller_takes_json(x)) return;
    rt_buf body = {0};
    rt_buf_add(&body, RT_STR("{\"resources\": {"));
    for (size_t i = 0; i < sizeof RESOURCES / sizeof *RESOURCES; i++) {
        const resource *r = &RESOURCES[i];
        rt_buf_addf(&body, "%s\"rel/%s\": {\"href-template\": \"%s", i > 0 ? ", " : "", r->rel, r->path);
        if (r->query != NULL) rt_buf_addf(&body, "{?%s}", r->query);
        rt_buf_add(&body, RT_STR("\", "));
        if (r->vars != NULL) write_vars(&body, r->vars);
        write_hints(&body, r->allow);
    }
    rt_buf_add(&body, RT_STR("}}"));
    rt_exchange_set_header(x, "Cache-Control", RT_STR("max-age=86400"));
    rt_exchange_reply_buf(x, 200, "application/json-home", &body);
}

/* ---- ping and health ----------------------------------------------------------------------------------- */

/* Can the store be read, and does it take batches? Fills *counts when it can be read. */
static bool look_at_store(const rt_api *api, bool *readable, rt_counts *counts) {
    rt_err why;
    rt_view *view;
    *readable = false;
    if (rt_engine_view(api->engine, &view, &why) == RT_OK) {
        *readable = rt_read_totals(view, counts) == RT_OK;
        rt_view_close(view);
    }
    return *readable && api->trouble(api->trouble_ctx, &why) == RT_OK;
}

void rt_home_ping(rt_exchange *x) {
    bool readable;
    rt_counts counts;
    if (rt_exchange_moves(x)) return;
    if (look_at_store(rt_api_of(x), &readable, &counts)) rt_render_no_content(x);
    else rt_zaqar_fail(x, RT_E_UNAVAILABLE, "The store does not answer.");
}

/* Zaqar tries each operation on a queue of its own; here the same store answers for all of them, those that write by
 * whether its last batch went through. */
void rt_home_health(rt_exchange *x) {
    static const char *const OPERATIONS[] = {"create_queue",    "post_messages", "list_messages",        "claim_messages",
                                             "delete_messages", "delete_claim",  "bulk_delete_messages", "delete_queue"};
    if (!rt_caller_takes_json(x) || rt_exchange_moves(x)) return;
    rt_counts counts = {0};
    bool readable;
    const uint64_t begun_us = rt_mono_us();
    const bool works = look_at_store(rt_api_of(x), &readable, &counts);
    const double took_s = (double)(rt_mono_us() - begun_us) / 1e6;
    rt_buf body = {0};
    rt_buf_addf(&body, "{\"storage_reachable\": %s, \"operation_status\": {", readable ? "true" : "false");
    for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++) {
        const bool reads = strcmp(OPERATIONS[i], "list_messages") == 0;
        rt_buf_addf(&body, "%s\"%s\": {\"succeeded\": %s, \"seconds\": %.6f, \"ref\": null}", i > 0 ? ", " : "",
                    OPERATIONS[i], (reads ? readable : works) ? "true" : "false", took_s);
    }
    rt_buf_add(&body, RT_STR("}"));
    // How much there is, is for operators.
    if (rt_api_allows(x, RT_STR("*"))) {
        rt_buf_addf(&body, ", \"message_volume\": {\"free\": %" PRId64 ", \"claimed\": %" PRId64 ", \"total\": %" PRId64
                    "}", counts.free, counts.leased, counts.free + counts.leased);
    }
    rt_buf_add_char(&body, '}');
    rt_render_json(x, &body);
}
