#include "base/utf8.h"
#include "engine/common/job.h"
#include "engine/common/key.h"
#include "engine/orders/order_count.h"
#include "engine/orders/order_parts.h"
#include "engine/orders/secret.h"

enum { FORMAT = 1, CANCEL_FORMAT = 1 };

static const rt_str FIRST_TASK = {.ptr = "create_order", .len = 12};

/* ---- stored form ------------------------------------------------------------------------------------- */

const char *rt_order_status_name(rt_order_status s) {
    switch (s) {
    case RT_ORDER_PENDING: return "PENDING";
    case RT_ORDER_ACTIVE: return "ACTIVE";
    case RT_ORDER_ERROR: return "ERROR";
    }
    return "?";
}

rt_str rt_order_name(rt_arena *arena, rt_str tenant, rt_id id) { return rt_name_id(arena, tenant, id); }

rt_str rt_order_encode(rt_arena *arena, const rt_order *o) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, o->id);
    rt_pack_u64(&b, o->job);
    rt_pack_i64(&b, o->created_ms);
    rt_pack_i64(&b, o->updated_ms);
    rt_pack_u8(&b, (uint8_t)o->status);
    rt_pack_u8(&b, o->has_sub_status);
    rt_pack_u32(&b, o->retries);
    rt_pack_u32(&b, o->failures);
    rt_pack_u64(&b, o->interval_s);
    rt_pack_u64(&b, o->answered);
    rt_pack_u64(&b, o->secret);
    rt_pack_u64(&b, o->container);
    const rt_str texts[] = {
        o->type,  o->meta, o->creator, o->sub_status, o->sub_status_message, o->error_code,   o->error_reason,
        o->state, o->task, o->args,    o->kwargs,     o->secret_ref,         o->container_ref};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) rt_pack_str(&b, texts[i]);
    return rt_pack_finish(&b, arena);
}

bool rt_order_decode(rt_str value, rt_order *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_order){.id = rt_unpack_u64(&u)};
    out->job = rt_unpack_u64(&u);
    out->created_ms = rt_unpack_i64(&u);
    out->updated_ms = rt_unpack_i64(&u);
    const uint8_t status = rt_unpack_u8(&u);
    out->has_sub_status = rt_unpack_bool(&u);
    out->retries = rt_unpack_u32(&u);
    out->failures = rt_unpack_u32(&u);
    out->interval_s = rt_unpack_u64(&u);
    out->answered = rt_unpack_u64(&u);
    out->secret = rt_unpack_u64(&u);
    out->container = rt_unpack_u64(&u);
    rt_str *const texts[] = {
        &out->type,       &out->meta,         &out->creator,      &out->sub_status, &out->sub_status_message,
        &out->error_code, &out->error_reason, &out->state,        &out->task,       &out->args,
        &out->kwargs,     &out->secret_ref,   &out->container_ref};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) *texts[i] = rt_unpack_str(&u);
    if (u.failed || u.rest.len > 0 || status < RT_ORDER_PENDING || status > RT_ORDER_ERROR) return false;
    out->status = (rt_order_status)status;
    return true;
}
enum {
    /* A character has up to four bytes. */
    SHORT_TEXTS_MAX = 4 * (RT_ORDER_SUB_STATUS_MAX + RT_ORDER_MESSAGE_MAX + RT_ORDER_ERROR_CODE_MAX +
                           RT_ORDER_ERROR_REASON_MAX + RT_ORDER_CREATOR_MAX),
    ORDER_BYTES_MAX = RT_ORDER_META_MAX + RT_RUN_STATE_MAX + 2 * RT_RUN_ARGS_MAX + RT_RUN_TASK_MAX +
                      2 * RT_RUN_REF_MAX + SHORT_TEXTS_MAX + 1024
};
_Static_assert((int)ORDER_BYTES_MAX <= (int)RT_DOC_VALUE_MAX, "every order fits into its document");
_Static_assert((int)ORDER_BYTES_MAX + RT_TENANT_MAX + 16 <= (int)RT_BODY_BYTES_MAX,
               "every order that is deleted fits into the body of its good-bye");

/* ---- in decisions ------------------------------------------------------------------------------------ */

static rt_code no_memory(rt_tx *tx) { return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an order"); }

rt_code rt_order_load(rt_tx *tx, rt_str name, rt_order_case *out) {
    rt_code code = rt_doc_load(tx, RT_DOC_ORDER, name, &out->was);
    if (code != RT_OK) return code;
    if (!rt_order_decode(out->was.value, &out->order))
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "an order cannot be read");
    out->tenant = rt_name_tenant(out->was.name);
    rt_doc doc;
    code = rt_order_type_find(tx, out->tenant, out->order.type, &doc, &out->type);
    out->has_type = code == RT_OK;
    if (code == RT_E_ABSENT) out->type = (rt_order_type){0};
    return code == RT_E_ABSENT ? RT_OK : code;
}

rt_code rt_order_save(rt_tx *tx, rt_order_case *c) {
    RT_ASSERT((c->order.status == RT_ORDER_PENDING) == (c->order.job != 0));
    c->order.updated_ms = tx->now_ms;
    rt_doc now = c->was;
    now.value = rt_order_encode(tx->arena, &c->order);
    if (now.value.ptr == NULL) return no_memory(tx);
    rt_tx_put_doc(tx, c->was.version == 0 ? NULL : &c->was, &now);
    return RT_OK;
}

static void add_job(rt_tx *tx, const rt_order_type *t, rt_id order, uint8_t flags, rt_str body, rt_id *out) {
    rt_job job = {
        .id = rt_tx_new_id(tx),
        .queue = t->queue,
        .owner = order,
        .placed_ms = tx->now_ms,
        .body_bytes = (uint32_t)body.len,
        .flags = flags,
    };
    job.body = job.id;
    rt_job_place(tx, &job);
    rt_tx_put_body(tx, job.body, body);
    rt_tx_insert_job(tx, &job);
    *out = job.id;
}

void rt_order_add_task(rt_tx *tx, const rt_order_type *t, rt_str name, rt_order *o) {
    add_job(tx, t, o->id, RT_JOB_TASK, name, &o->job);
}

/* ---- the good-bye of an order that was deleted ------------------------------------------------------- */

rt_code rt_order_add_cancel(rt_tx *tx, const rt_order_case *c) {
    rt_buf b = {0};
    rt_pack_u8(&b, CANCEL_FORMAT);
    rt_pack_str(&b, c->tenant);
    rt_pack_str(&b, c->was.value);
    const rt_str body = rt_pack_finish(&b, tx->arena);
    if (body.ptr == NULL) return no_memory(tx);
    rt_id job;
    add_job(tx, &c->type, c->order.id, RT_JOB_TASK | RT_JOB_CANCEL, body, &job);
    return RT_OK;
}

rt_code rt_order_read_cancel(rt_tx *tx, const rt_job *job, rt_order_case *out) {
    rt_str lent;
    rt_code code = rt_view_body(tx->view, job->body, &lent);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_E_CORRUPT : code;
    rt_unpack u = {.rest = rt_arena_dup(tx->arena, lent)};
    if (u.rest.ptr == NULL) return no_memory(tx);
    const bool known = rt_unpack_u8(&u) == CANCEL_FORMAT;
    *out = (rt_order_case){.tenant = rt_unpack_str(&u)};
    const rt_str value = rt_unpack_str(&u);
    if (!known || u.failed || u.rest.len > 0 || !rt_order_decode(value, &out->order))
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "a deleted order cannot be read");
    rt_doc doc;
    code = rt_order_type_find(tx, out->tenant, out->order.type, &doc, &out->type);
    out->has_type = code == RT_OK;
    return code == RT_E_ABSENT ? RT_OK : code;
}

/* ---- commands ---------------------------------------------------------------------------------------- */

/* Was it created before? */
static rt_code find_key(rt_tx *tx, const rt_order_create *c, rt_key *out) {
    const rt_str of = rt_name(tx->arena, c->type, c->meta);
    if (of.ptr == NULL) return no_memory(tx);
    const rt_code code = rt_key_find(tx, RT_DOC_ORDER_KEY, rt_name(tx->arena, c->tenant, c->key), of, out);
    if (code != RT_E_FENCED) return code;
    return rt_fail(tx->err, code, 0, "This idempotency key came with another order before.");
}
_Static_assert(RT_TENANT_MAX + 1 + RT_ORDER_KEY_MAX <= RT_DOC_NAME_MAX, "every key has a name");

static rt_code decide_create(rt_tx *tx, rt_command *cmd) {
    rt_order_create *c = (rt_order_create *)cmd;
    RT_ASSERT(c->meta.len <= RT_ORDER_META_MAX);
    rt_doc type_doc;
    rt_order_case o = {.tenant = c->tenant};
    rt_key key = {.id = 0};
    rt_code code = c->key.len > 0 ? find_key(tx, c, &key) : RT_OK;
    c->id = key.id;
    if (code != RT_OK || c->id != 0) return code;
    code = rt_name_is_word(c->type) ? rt_order_type_find(tx, c->tenant, c->type, &type_doc, &o.type)
                                    : RT_E_ABSENT;
    if (code == RT_E_ABSENT) return rt_fail(tx->err, code, 0, "There is no order type of this name.");
    if (code != RT_OK) return code;
    rt_tx_guard(tx, RT_DOC_ORDER_TYPE, type_doc.name, type_doc.version);
    c->id = rt_tx_new_id(tx);
    o.was = (rt_doc){.kind = RT_DOC_ORDER, .name = rt_order_name(tx->arena, c->tenant, c->id)};
    if (o.was.name.ptr == NULL) return no_memory(tx);
    o.order = (rt_order){
        .id = c->id,
        .created_ms = tx->now_ms,
        .status = RT_ORDER_PENDING,
        .type = c->type,
        .meta = c->meta,
        .creator = rt_utf8_cut(c->creator, RT_ORDER_CREATOR_MAX),
        .task = o.type.first_task.len > 0 ? o.type.first_task : FIRST_TASK,
        .args = RT_STR("[]"),
        .kwargs = RT_STR("{}"),
    };
    code = rt_order_count_add(tx, c->tenant, 1);
    if (code != RT_OK) return code;
    rt_order_add_task(tx, &o.type, o.was.name, &o.order);
    code = rt_order_save(tx, &o);
    return code == RT_OK && c->key.len > 0 ? rt_key_keep(tx, &key, c->id) : code;
}

void rt_order_create_init(rt_order_create *c) { *c = (rt_order_create){.cmd = {.decide = decide_create}}; }

static rt_code decide_delete(rt_tx *tx, rt_command *cmd) {
    rt_order_delete *c = (rt_order_delete *)cmd;
    tx->frees = true;
    rt_order_case o;
    rt_code code = rt_order_load(tx, rt_order_name(tx->arena, c->tenant, c->id), &o);
    if (code != RT_OK) return code;
    const bool pending = o.order.status == RT_ORDER_PENDING;
    if (pending) {
        rt_job job;
        code = rt_view_job(tx->view, o.order.job, &job);
        if (code != RT_OK && code != RT_E_ABSENT) return code;
        if (code == RT_OK && job.state != RT_JOB_DONE) rt_job_end(tx, &job, RT_REASON_DELETED);
    }
    code = rt_secrets_drop(tx, c->tenant, &o.order);
    if (code == RT_OK && pending && o.type.cancel) code = rt_order_add_cancel(tx, &o);
    if (code == RT_OK) code = rt_order_count_add(tx, c->tenant, -1);
    rt_tx_put_doc(tx, &o.was, NULL);
    return code;
}

void rt_order_delete_init(rt_order_delete *c) { *c = (rt_order_delete){.cmd = {.decide = decide_delete}}; }

static rt_code decide_wake(rt_tx *tx, rt_command *cmd) {
    rt_order_wake *c = (rt_order_wake *)cmd;
    rt_order_case o;
    rt_code code = rt_order_load(tx, rt_order_name(tx->arena, c->tenant, c->id), &o);
    if (code != RT_OK) return code;
    if (o.order.status != RT_ORDER_PENDING) {
        return rt_fail(tx->err, RT_E_FENCED, 0, "The order is %s: it has no task.",
                       rt_order_status_name(o.order.status));
    }
    rt_job job;
    code = rt_view_job(tx->view, o.order.job, &job);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    if (job.state != RT_JOB_SCHEDULED || job.due_ms <= tx->now_ms) return RT_OK;
    rt_job now = job;
    now.due_ms = tx->now_ms;
    rt_tx_update_job(tx, &job, &now);
    return RT_OK;
}

void rt_order_wake_init(rt_order_wake *c) { *c = (rt_order_wake){.cmd = {.decide = decide_wake}}; }
