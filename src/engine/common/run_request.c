#include "engine/common/run_request.h"

#include <inttypes.h>

#include "base/quote.h"
#include "base/uuid.h"

static void add_text(rt_buf *out, const char *key, rt_str text) {
    rt_buf_add(out, rt_str_of(key));
    rt_quote(out, text);
}

static void add_json(rt_buf *out, const char *key, rt_str json) {
    rt_buf_add(out, rt_str_of(key));
    rt_buf_add(out, json);
}

void rt_run_request_write(rt_buf *out, const rt_run_request *run) {
    rt_buf_addf(out, "{\"order\":\"%s\"", rt_uuid_format(run->tag, run->id).s);
    add_text(out, ",\"type\":", run->type);
    add_text(out, ",\"task\":", run->task);
    add_json(out, ",\"args\":", run->args);
    add_json(out, ",\"kwargs\":", run->kwargs);
    add_json(out, ",\"meta\":", run->meta);
    if (run->state.len > 0) add_text(out, ",\"state\":", run->state);
    else rt_buf_add(out, RT_STR(",\"state\":null"));
    rt_buf_addf(out, ",\"attempt\":%" PRIu32 ",\"token\":\"%016" PRIx64 "\",\"deadline\":%" PRId64,
                run->attempt, run->token, run->deadline_ms);
    add_text(out, ",\"project\":", run->project);
    rt_buf_addf(out, ",\"verb\":\"%s\"}", run->cancel ? "cancel" : "run");
}
