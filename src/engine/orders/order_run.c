#include "engine/orders/order_run.h"

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

void rt_order_run_write(rt_buf *out, const rt_order_run *run) {
    const rt_order *o = run->order;
    rt_buf_addf(out, "{\"order\":\"%s\"", rt_uuid_format(run->tag, o->id).s);
    add_text(out, ",\"type\":", o->type);
    add_text(out, ",\"task\":", o->task);
    add_json(out, ",\"args\":", o->args);
    add_json(out, ",\"kwargs\":", o->kwargs);
    add_json(out, ",\"meta\":", o->meta);
    if (o->state.len > 0) add_text(out, ",\"state\":", o->state);
    else rt_buf_add(out, RT_STR(",\"state\":null"));
    rt_buf_addf(out, ",\"attempt\":%" PRIu32 ",\"token\":\"%016" PRIx64 "\",\"deadline\":%" PRId64,
                run->attempt, run->token, run->deadline_ms);
    rt_buf_addf(out, ",\"verb\":\"%s\"}", run->cancel ? "cancel" : "run");
}
