#include "engine/common/queue.h"
#include "engine/orders/order_parts.h"

enum { FORMAT = 1 };

/* ---- stored form ------------------------------------------------------------------------------------- */

rt_str rt_order_type_encode(rt_arena *arena, const rt_order_type *t) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, t->queue);
    rt_pack_i64(&b, t->changed_ms);
    rt_pack_str(&b, t->target);
    rt_pack_str(&b, t->headers);
    for (int i = 0; i < RT_SECRETS_MAX; i++) rt_pack_str(&b, t->secrets[i]);
    rt_pack_str(&b, t->first_task);
    rt_backoff_pack(&b, &t->backoff);
    rt_pack_u32(&b, t->max_attempts);
    rt_pack_u32(&b, t->run_limit_ms);
    rt_pack_u32(&b, t->answer_limit_s);
    rt_pack_u32(&b, t->concurrency);
    rt_pack_u8(&b, t->cancel);
    return rt_pack_finish(&b, arena);
}

bool rt_order_type_decode(rt_str value, rt_order_type *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_order_type){.queue = rt_unpack_u64(&u)};
    out->changed_ms = rt_unpack_i64(&u);
    out->target = rt_unpack_str(&u);
    out->headers = rt_unpack_str(&u);
    for (int i = 0; i < RT_SECRETS_MAX; i++) out->secrets[i] = rt_unpack_str(&u);
    out->first_task = rt_unpack_str(&u);
    rt_backoff_unpack(&u, &out->backoff);
    out->max_attempts = rt_unpack_u32(&u);
    out->run_limit_ms = rt_unpack_u32(&u);
    out->answer_limit_s = rt_unpack_u32(&u);
    out->concurrency = rt_unpack_u32(&u);
    out->cancel = rt_unpack_bool(&u);
    return !u.failed && u.rest.len == 0;
}

/* ---- in decisions ------------------------------------------------------------------------------------ */

rt_code rt_order_type_load(rt_tx *tx, rt_str tenant, rt_str name, rt_doc *doc, rt_order_type *out) {
    const rt_code code = rt_doc_load(tx, RT_DOC_ORDER_TYPE, rt_name(tx->arena, tenant, name), doc);
    if (code != RT_OK) return code;
    if (rt_order_type_decode(doc->value, out)) return RT_OK;
    return rt_fail(tx->err, RT_E_CORRUPT, 0, "order type %.*s cannot be read", RT_STR_ARG(name));
}

rt_code rt_order_type_find(rt_tx *tx, rt_str tenant, rt_str name, rt_doc *doc, rt_order_type *out) {
    const rt_code code = rt_order_type_load(tx, tenant, name, doc, out);
    return code == RT_E_ABSENT ? rt_order_type_load(tx, RT_ORDER_EVERYBODY, name, doc, out) : code;
}

static bool count_doc(void *ctx, const rt_doc *doc) {
    (void)doc;
    return ++*(uint32_t *)ctx < RT_ORDER_TYPES_MAX;
}

static rt_code check_room(rt_tx *tx, rt_str tenant) {
    uint32_t count = 0;
    const rt_str prefix = rt_name(tx->arena, tenant, RT_STR_EMPTY);
    if (prefix.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a name");
    const rt_code code = rt_view_docs(tx->view, RT_DOC_ORDER_TYPE, prefix, RT_STR_EMPTY, count_doc, &count);
    if (code != RT_OK || count < RT_ORDER_TYPES_MAX) return code;
    return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "there are at most %d order types", RT_ORDER_TYPES_MAX);
}

static rt_code make_queue(rt_tx *tx, const rt_order_type_put *c, rt_order_type *t) {
    const rt_code code = check_room(tx, c->tenant);
    if (code != RT_OK) return code;
    t->queue = rt_tx_new_id(tx);
    const rt_queue queue = {
        .id = t->queue,
        .kind = RT_QUEUE_ORDERS,
        .in_flight_max = t->concurrency,
        .name = rt_queue_label(tx->arena, c->tenant, c->name, RT_STR_EMPTY),
    };
    if (queue.name.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's name");
    rt_tx_put_queue(tx, NULL, &queue);
    return RT_OK;
}

static rt_code adjust_queue(rt_tx *tx, const rt_order_type *t) {
    rt_queue was;
    const rt_code code = rt_queue_load(tx, t->queue, &was);
    if (code != RT_OK || was.in_flight_max == t->concurrency) return code;
    rt_queue now = was;
    now.in_flight_max = t->concurrency;
    rt_tx_put_queue(tx, &was, &now);
    return RT_OK;
}

/* ---- commands ---------------------------------------------------------------------------------------- */

static rt_code decide_put(rt_tx *tx, rt_command *cmd) {
    rt_order_type_put *c = (rt_order_type_put *)cmd;
    RT_ASSERT(rt_name_is_word(c->name));
    RT_ASSERT(c->like.run_limit_ms > 0);
    rt_doc was;
    rt_order_type before;
    rt_code code = rt_order_type_load(tx, c->tenant, c->name, &was, &before);
    c->created = code == RT_E_ABSENT;
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    if (!c->created && c->only_new) return RT_OK;
    rt_order_type type = c->like;
    type.changed_ms = tx->now_ms;
    if (!c->created) type.queue = before.queue;
    code = c->created ? make_queue(tx, c, &type) : adjust_queue(tx, &type);
    if (code != RT_OK) return code;
    rt_doc now = was;
    now.value = rt_order_type_encode(tx->arena, &type);
    if (now.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an order type");
    rt_tx_put_doc(tx, c->created ? NULL : &was, &now);
    return RT_OK;
}

void rt_order_type_put_init(rt_order_type_put *c) { *c = (rt_order_type_put){.cmd = {.decide = decide_put}}; }

/* Each job of its queue that has not ended stands for an order that is PENDING, or tells of one that was. */
static rt_code decide_delete(rt_tx *tx, rt_command *cmd) {
    rt_order_type_delete *c = (rt_order_type_delete *)cmd;
    tx->frees = true;
    rt_doc was;
    rt_order_type type;
    rt_code code = rt_order_type_load(tx, c->tenant, c->name, &was, &type);
    if (code != RT_OK) return code;
    rt_counts counts;
    code = rt_view_counts(tx->view, type.queue, &counts);
    if (code != RT_OK) return code;
    if (counts.ready + counts.scheduled + counts.leased > 0) {
        return rt_fail(tx->err, RT_E_FENCED, 0, "Orders of this type are PENDING.");
    }
    rt_tx_put_doc(tx, &was, NULL);
    return rt_queue_drain(tx, type.queue, RT_REASON_UNSUBSCRIBED, false);
}

void rt_order_type_delete_init(rt_order_type_delete *c) {
    *c = (rt_order_type_delete){.cmd = {.decide = decide_delete}};
}
