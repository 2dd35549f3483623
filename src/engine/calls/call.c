#include "engine/calls/call.h"

#include <string.h>

#include "engine/calls/call_wait.h"
#include "engine/calls/line.h"
#include "engine/common/job.h"
#include "engine/common/key.h"
#include "engine/common/name.h"

enum { FORMAT = 1 };

/* ---- stored form --------------------------------------------------------------------------------------- */

rt_str rt_call_encode(rt_arena *arena, const rt_call *c) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_str(&b, c->tenant);
    rt_pack_str(&b, c->type);
    rt_pack_str(&b, c->reason);
    rt_pack_str(&b, c->order_key);
    rt_pack_str(&b, c->content_type);
    rt_pack_u64(&b, c->past);
    char *out = b.failed ? NULL : rt_arena_alloc(arena, b.len + c->payload.len);
    const size_t len = b.len + c->payload.len;
    if (out != NULL) memcpy(out, b.ptr, b.len);
    if (out != NULL && c->payload.len > 0) memcpy(out + b.len, c->payload.ptr, c->payload.len);
    rt_buf_deinit(&b);
    return out == NULL ? (rt_str){0} : (rt_str){.ptr = out, .len = len};
}

bool rt_call_decode(rt_str body, rt_call *out) {
    rt_unpack u = {.rest = body};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_call){.tenant = rt_unpack_str(&u)};
    out->type = rt_unpack_str(&u);
    out->reason = rt_unpack_str(&u);
    out->order_key = rt_unpack_str(&u);
    out->content_type = rt_unpack_str(&u);
    out->past = rt_unpack_u64(&u);
    out->payload = u.rest;
    return !u.failed;
}

/* ---- idempotency keys ---------------------------------------------------------------------------------- */

/* The queue is the type's, and not another's that has its name later. */
static rt_str key_name(rt_arena *arena, rt_id queue, rt_str key) {
    unsigned char *name = rt_arena_alloc(arena, sizeof queue + key.len);
    if (name == NULL) return (rt_str){0};
    rt_put_be64(name, queue);
    memcpy(name + sizeof queue, key.ptr, key.len);
    return (rt_str){.ptr = (const char *)name, .len = sizeof queue + key.len};
}
_Static_assert(sizeof(rt_id) + RT_CALL_KEY_MAX <= RT_DOC_NAME_MAX, "every key has a name");

static rt_code find_key(rt_tx *tx, const rt_call_type *type, const rt_call_item *item, rt_key *out) {
    const rt_str name = key_name(tx->arena, type->queue, item->key);
    const rt_code code = rt_key_find(tx, RT_DOC_CALL_KEY, name, item->payload, out);
    if (code != RT_E_FENCED) return code;
    return rt_fail(tx->err, code, 0, "this idempotency key came with another payload before");
}

/* ---- scheduling ---------------------------------------------------------------------------------------- */

/* Writes the call and its body. */
static rt_code insert(rt_tx *tx, const rt_call_type *type, const rt_call *call, int64_t due_ms, rt_id *id) {
    const rt_str body = rt_call_encode(tx->arena, call);
    if (body.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an event");
    if (body.len > RT_BODY_BYTES_MAX)
        return rt_fail(tx->err, RT_E_TOO_LARGE, 0,
                       "an event with all that belongs to it has at most %d bytes", RT_BODY_BYTES_MAX);
    const bool ordered = type->ordered || call->order_key.len > 0;
    const uint64_t key_hash = ordered ? rt_hash_str(call->order_key) : 0;
    rt_code code = RT_OK;
    if (ordered) code = rt_line_new_id(tx, type->queue, key_hash, id);
    else *id = rt_tx_new_id(tx);
    if (code != RT_OK) return code;
    rt_job job = {
        .id = *id,
        .queue = type->queue,
        .key_hash = key_hash,
        .placed_ms = tx->now_ms,
        .body_bytes = (uint32_t)body.len,
        .flags = RT_JOB_CALL | (type->target.len == 0 ? RT_JOB_PULL : 0),
    };
    job.body = job.id;
    // Fixed for good: a type that gets more of them moves nothing.
    if (type->buckets > 1)
        job.bucket = (uint16_t)((ordered ? job.key_hash : rt_hash_u64(job.id)) % type->buckets);
    rt_call_note_age(&job, type);
    rt_call_wait(tx, &job, due_ms);
    if (due_ms <= tx->now_ms && !(job.flags & RT_JOB_PULL)) rt_job_place(tx, &job);
    if (ordered) code = rt_line_join(tx, &job);
    if (code != RT_OK) return code;
    rt_tx_put_body(tx, job.id, body);
    rt_tx_insert_job(tx, &job);
    return RT_OK;
}

rt_code rt_call_continue(rt_tx *tx, const rt_call_type *type, rt_str type_name, const rt_call *of, rt_id past,
                         rt_id *id) {
    rt_call call = *of;
    call.type = type_name;
    call.past = past;
    return insert(tx, type, &call, tx->now_ms, id);
}

/* ---- an operator's ------------------------------------------------------------------------------------- */

rt_code rt_call_redrive(rt_tx *tx, const rt_job *was, bool *there) {
    RT_ASSERT(was->state == RT_JOB_DEAD);
    rt_queue queue;
    rt_call_type type;
    rt_code code = rt_call_type_of_queue(tx, was->queue, &queue, &type);
    *there = code == RT_OK;
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    rt_job now = *was;
    now.reason = RT_REASON_NONE;
    now.lease = 0;
    now.attempt = 0;
    now.interval_ms = 0;
    now.generation++;
    now.placed_ms = tx->now_ms; // or it would die of its age again at once
    now.flags = RT_JOB_CALL | (type.target.len == 0 ? RT_JOB_PULL : 0); // as the type is now
    rt_call_note_age(&now, &type);
    rt_call_wait(tx, &now, tx->now_ms);
    if (now.key_hash != 0) code = rt_line_join(tx, &now);
    rt_tx_event(tx, &now, (rt_event){.type = RT_EVENT_REDRIVEN});
    rt_tx_update_job(tx, was, &now);
    return code;
}

rt_code rt_call_delete(rt_tx *tx, const rt_job *job) {
    rt_job_end(tx, job, RT_REASON_DELETED);
    if (job->state == RT_JOB_DEAD) return RT_OK; // it has left its line
    rt_tx_tell(tx, job->queue);                  // a worker may have held it
    return rt_line_leave(tx, job);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

rt_code rt_call_schedule(rt_tx *tx, rt_str tenant, const rt_call_type *type, rt_str type_name,
                         rt_call_item *item) {
    rt_key key = {.id = 0};
    rt_code code = item->key.len > 0 ? find_key(tx, type, item, &key) : RT_OK;
    item->existed = key.id != 0;
    item->id = key.id;
    if (code != RT_OK || item->existed) return code;
    const rt_call call = {.tenant = tenant,
                          .type = type_name,
                          .reason = item->reason,
                          .order_key = item->order_key,
                          .content_type = item->content_type,
                          .payload = item->payload};
    const int64_t delay_ms = item->delay_ms > 0 ? item->delay_ms : 0;
    code = insert(tx, type, &call, tx->now_ms + delay_ms, &item->id);
    return code == RT_OK && item->key.len > 0 ? rt_key_keep(tx, &key, item->id) : code;
}

/* The type of an item: the one before it mostly has the same. */
static rt_code load_type(rt_tx *tx, const rt_calls_schedule *c, rt_str name, rt_str *loaded,
                         rt_call_type *type) {
    if (loaded->ptr != NULL && rt_str_eq(*loaded, name)) return RT_OK;
    uint64_t version;
    const rt_code code = rt_call_type_load(tx, c->tenant, name, type, &version);
    if (code != RT_OK) return code;
    // Against a type that is deleted or changes between pushed and pulled meanwhile.
    const rt_str doc = rt_call_type_name(tx->arena, c->tenant, name);
    if (doc.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a name");
    if (tx->guards_count < RT_CHANGE_GUARDS_MAX) rt_tx_guard(tx, RT_DOC_CALL_TYPE, doc, version);
    *loaded = name;
    return RT_OK;
}

static rt_code decide_schedule(rt_tx *tx, rt_command *cmd) {
    rt_calls_schedule *c = (rt_calls_schedule *)cmd;
    RT_ASSERT(c->count >= 1);
    RT_ASSERT(c->count <= RT_CALLS_PER_REQUEST_MAX);
    rt_str loaded = {0};
    rt_call_type type;
    for (uint32_t i = 0; i < c->count; i++) {
        rt_call_item *item = &c->items[i];
        c->bad_item = i;
        const rt_str name = item->type.len > 0 ? item->type : c->type;
        rt_code code = load_type(tx, c, name, &loaded, &type);
        if (code == RT_E_ABSENT)
            (void)rt_fail(tx->err, code, 0, "there is no event type %.*s", RT_STR_ARG(name));
        if (code == RT_OK) code = rt_call_schedule(tx, c->tenant, &type, name, item);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

void rt_calls_schedule_init(rt_calls_schedule *c) {
    *c = (rt_calls_schedule){.cmd = {.decide = decide_schedule}};
}
