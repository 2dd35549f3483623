#include "engine/calls/call_plugin.h"

#include "base/base64.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "engine/common/run_request.h"
#include "engine/common/settings.h"

static void add(rt_buf *b, const char *key, rt_str text) {
    rt_buf_add(b, rt_str_of(key));
    rt_quote(b, text);
}

static void add_base64(rt_tx *tx, rt_buf *b, rt_str payload) {
    RT_ASSERT(payload.len <= RT_BODY_BYTES_MAX);
    char *text = rt_arena_alloc(tx->arena, RT_BASE64_LEN(payload.len) + 1); // never of 0 bytes
    if (text == NULL) {
        b->failed = true;
        return;
    }
    add(b, ",\"body_base64\":", (rt_str){.ptr = text, .len = rt_base64_encode(payload, text)});
}

static rt_str write_meta(rt_tx *tx, const rt_call *call) {
    rt_buf b = {0};
    add(&b, "{\"type\":", call->type);
    add(&b, ",\"reason\":", call->reason);
    add(&b, ",\"order_key\":", call->order_key);
    add(&b, ",\"content_type\":", call->content_type);
    if (rt_utf8_is_valid(call->payload)) add(&b, ",\"body\":", call->payload);
    else add_base64(tx, &b, call->payload);
    rt_buf_add_char(&b, '}');
    return rt_pack_finish(&b, tx->arena);
}

rt_str rt_call_plugin_run(rt_tx *tx, const rt_job *job, const rt_call *call, uint64_t token,
                          int64_t deadline_ms) {
    const rt_run_request run = {
        .id = job->id,
        .tag = tx->store->tag,
        .project = call->tenant,
        .type = call->type,
        .task = RT_STR("call"),
        .args = RT_STR("[]"),
        .kwargs = RT_STR("{}"),
        .meta = write_meta(tx, call),
        .attempt = job->attempt + 1,
        .token = token,
        .deadline_ms = deadline_ms,
    };
    if (run.meta.ptr == NULL) return run.meta;
    rt_buf b = {0};
    rt_run_request_write(&b, &run);
    return rt_pack_finish(&b, tx->arena);
}

rt_code rt_call_plugin_judge(rt_tx *tx, const rt_outcome *o, rt_call_news *news) {
    const rt_str text = {.ptr = o->answer == NULL ? "" : o->answer, .len = o->answer_len};
    rt_run_answer answer;
    const rt_code code = tx->settings->read_run == NULL
                             ? rt_fail(tx->err, RT_E_INVALID, 0, "nobody here reads the answers of plugins")
                             : tx->settings->read_run(text, tx->arena, &answer, tx->err);
    news->verdict = RT_VERDICT_RETRY;
    if (code == RT_E_INVALID) {
        news->attempt.reason = RT_REASON_NONSENSE;
        news->attempt.text = rt_arena_dup(tx->arena, rt_str_of(tx->err->msg));
        return news->attempt.text.ptr == NULL ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an answer")
                                              : RT_OK;
    }
    if (code != RT_OK) return code;
    switch (answer.action) {
    case RT_RUN_DONE: news->verdict = RT_VERDICT_SUCCESS; break;
    case RT_RUN_FAILED:
        news->verdict = RT_VERDICT_REJECTED;
        news->rejected_as = RT_REASON_FAILED;
        news->attempt.reason = RT_REASON_FAILED;
        news->attempt.text = answer.reason;
        break;
    case RT_RUN_RETRY:
    case RT_RUN_UNAVAILABLE:
        news->attempt.reason = RT_REASON_UNAVAILABLE;
        news->obey = true;
        news->retry_after_ms = answer.after_ms;
        break;
    }
    return RT_OK;
}
