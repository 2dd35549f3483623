#include <inttypes.h>

#include "face/common/query.h"
#include "face/notifications/caller.h"
#include "face/notifications/messages.h"
#include "face/notifications/render.h"

/* ---- one ----------------------------------------------------------------------------------------------- */

static void refuse_delete(rt_exchange *x, rt_delete_refusal refusal) {
    static const char TITLE[] = "Unable to delete";
    switch (refusal) {
        case RT_DELETE_CLAIMED:
            rt_zaqar_refuse(x, 403, TITLE,
                            RT_STR("This message is claimed; it cannot be deleted without a valid claim ID."));
            return;
        case RT_DELETE_NOT_CLAIMED:
            rt_zaqar_refuse(x, 400, TITLE,
                            RT_STR("A claim was specified, but the message is not currently claimed."));
            return;
        case RT_DELETE_CLAIM_UNKNOWN:
            rt_zaqar_refuse(x, 400, TITLE, RT_STR("The specified claim does not exist or has expired."));
            return;
    }
}

static void delete_one_done(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_render_no_content(x);
    else if (cmd->code == RT_E_FENCED) refuse_delete(x, ((const rt_message_delete *)cmd)->refusal);
    else rt_zaqar_fail(x, cmd->code, "Message could not be deleted.");
}

void rt_messages_delete_one(rt_exchange *x) {
    const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
    rt_caller caller;
    if (!rt_caller_admit(x, true, &caller)) return;
    rt_id id;
    if (!rt_id_parse(tag, rt_exchange_param(x, 1), &id)) {
        rt_render_no_content(x); // no such message: that is what was asked for
        return;
    }
    rt_message_delete *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_message_delete_init(c);
    c->tenant = caller.project;
    c->queue = caller.queue;
    c->id = id;
    rt_str claim;
    c->has_claim = rt_query_str(x, "claim_id", &claim) == RT_QUERY_FOUND;
    if (c->has_claim && !rt_id_parse(tag, claim, &c->claim)) c->claim = 0;
    rt_api_submit(x, &c->cmd, sizeof *c, delete_one_done, rt_zaqar_busy);
}

/* ---- many ---------------------------------------------------------------------------------------------- */

static void delete_many_done(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_render_no_content(x);
    else if (cmd->code == RT_E_FENCED) refuse_delete(x, ((const rt_messages_delete *)cmd)->refusal);
    else rt_zaqar_fail(x, cmd->code, "Messages could not be deleted.");
}

/* Those that are ids of ours; the others name nothing. */
static uint32_t parse_ids(uint32_t tag, const rt_str *texts, size_t count, rt_id out[RT_MESSAGES_PER_REQUEST_MAX]) {
    uint32_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (rt_id_parse(tag, texts[i], &out[kept])) kept++;
    }
    return kept;
}

static void delete_many(rt_exchange *x, const rt_caller *caller, const rt_str *ids, size_t count, const rt_str *claims,
                        size_t claims_count) {
    const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
    rt_messages_delete *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_messages_delete_init(c);
    c->tenant = caller->project;
    c->queue = caller->queue;
    c->count = parse_ids(tag, ids, count, c->ids);
    c->has_claims = claims_count > 0;
    c->claims_count = parse_ids(tag, claims, claims_count, c->claims);
    rt_api_submit(x, &c->cmd, sizeof *c, delete_many_done, rt_zaqar_busy);
}

static void pop_done(rt_exchange *x, rt_command *cmd) {
    const rt_api *api = rt_api_of(x);
    const rt_pop *c = (const rt_pop *)cmd;
    if (cmd->code != RT_OK) {
        rt_zaqar_fail(x, cmd->code, "Messages could not be popped.");
        return;
    }
    const uint32_t tag = rt_engine_tag(api->engine);
    const int64_t now_ms = api->now_ms();
    rt_buf body = {0};
    rt_buf_add(&body, RT_STR("{\"messages\": ["));
    for (uint32_t i = 0; i < c->count; i++) {
        const rt_job *job = &c->messages[i].job;
        rt_buf_addf(&body, "%s{\"id\": \"%s\", \"age\": %" PRId64 ", \"ttl\": %" PRIu32 ", \"claim_count\": %" PRIu32
                    ", \"body\": ", i > 0 ? ", " : "", rt_id_format(tag, job->id).s, rt_message_age_s(job, now_ms),
                    job->ttl_s, job->claims);
        rt_buf_add(&body, c->messages[i].body);
        rt_buf_add(&body, RT_STR(", \"claim_id\": null}"));
    }
    rt_buf_add(&body, RT_STR("]}"));
    rt_render_json(x, &body);
}

static void pop(rt_exchange *x, const rt_caller *caller, uint32_t limit) {
    rt_pop *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_pop_init(c);
    c->tenant = caller->project;
    c->queue = caller->queue;
    c->limit = limit;
    c->arena = rt_exchange_arena(x);
    rt_api_submit(x, &c->cmd, sizeof *c, pop_done, rt_zaqar_busy);
}

void rt_messages_delete_or_pop(rt_exchange *x) {
    enum { MAX = RT_MESSAGES_PER_REQUEST_MAX };
    rt_caller caller;
    int64_t limit = 0;
    bool pops;
    if (!rt_caller_admit(x, true, &caller)) return;
    const rt_limits *limits = rt_limits_of(x);
    rt_str ids[MAX], claims[MAX];
    const size_t count = rt_query_list(x, "ids", ids, MAX);
    const bool by_claims = limits->message_delete_with_claim_id;
    const size_t claims_count = by_claims ? rt_query_list(x, "claim_ids", claims, MAX) : 0;
    if (!rt_take_int(x, "pop", &limit, &pops)) return;
    if (pops && count > 0) {
        rt_zaqar_bad_request(x, "pop and id params cannot be present together in the delete request.");
    } else if (!pops && count == 0) {
        rt_zaqar_bad_request(x, "The request should have either \"ids\" or \"pop\" parameter in the request, "
                             "to be able to delete.");
    } else if (by_claims && (count > 0) != (claims_count > 0)) {
        rt_zaqar_bad_request(x, "The request should have both \"ids\" and \"claim_ids\" parameter in the request when "
                             "message_delete_with_claim_id is True.");
    } else if (pops && !rt_is_page_size(limit, limits->max_messages_per_claim_or_pop)) {
        rt_zaqar_bad_request(x, "Pop value must be at least 1 and may not be greater than %" PRIu64 ".",
                             limits->max_messages_per_claim_or_pop);
    } else if (count > limits->max_messages_per_page || claims_count > MAX) {
        rt_zaqar_bad_request(x, "ids parameter should have at least 1 and not greater than %" PRIu64 " values.",
                             limits->max_messages_per_page);
    } else if (pops) {
        pop(x, &caller, (uint32_t)limit);
    } else {
        delete_many(x, &caller, ids, count, claims, claims_count);
    }
}
