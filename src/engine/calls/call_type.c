#include "engine/calls/call_type.h"

#include <string.h>

#include "engine/common/cursor.h"
#include "engine/common/name.h"
#include "engine/common/queue.h"
#include "engine/common/stored.h"

enum { FORMAT = 1, DEAD_CHAIN_MAX = 16 };

_Static_assert(RT_TENANT_MAX + 1 + RT_CALL_TYPE_NAME_MAX <= RT_QUEUE_NAME_MAX,
               "a queue's name holds both whole");

/* ---- stored form --------------------------------------------------------------------------------------- */

static void pack_double(rt_buf *b, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    rt_pack_u64(b, bits);
}
_Static_assert(sizeof(double) == sizeof(uint64_t), "a double is packed as its bits");

static double unpack_double(rt_unpack *u) {
    const uint64_t bits = rt_unpack_u64(u);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void pack_circuit(rt_buf *b, const rt_circuit_settings *s) {
    rt_pack_u8(b, s->enabled);
    rt_pack_u32(b, s->window_s);
    rt_pack_u32(b, s->minimum_attempts);
    pack_double(b, s->failure_rate);
    pack_double(b, s->slow_call_s);
    pack_double(b, s->slow_call_rate);
    rt_pack_u32(b, s->sleep_s);
    rt_pack_u32(b, s->maximum_sleep_s);
    rt_pack_u32(b, s->probes);
    rt_pack_u32(b, s->release_per_s);
    rt_pack_u32(b, s->max_open_s);
}

static void unpack_circuit(rt_unpack *u, rt_circuit_settings *s) {
    s->enabled = rt_unpack_bool(u);
    s->window_s = rt_unpack_u32(u);
    s->minimum_attempts = rt_unpack_u32(u);
    s->failure_rate = unpack_double(u);
    s->slow_call_s = unpack_double(u);
    s->slow_call_rate = unpack_double(u);
    s->sleep_s = rt_unpack_u32(u);
    s->maximum_sleep_s = rt_unpack_u32(u);
    s->probes = rt_unpack_u32(u);
    s->release_per_s = rt_unpack_u32(u);
    s->max_open_s = rt_unpack_u32(u);
    if (!u->failed && rt_circuit_settings_check(s) != NULL) u->failed = true;
}

rt_str rt_call_type_encode(rt_arena *arena, const rt_call_type *t) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, t->queue);
    rt_pack_i64(&b, t->changed_ms);
    rt_pack_u8(&b, (uint8_t)t->policy);
    rt_policy_pack(&b, &t->delivery);
    rt_backoff_pack(&b, &t->backoff);
    rt_pack_u32(&b, t->max_attempts);
    rt_pack_str(&b, t->target);
    rt_pack_str(&b, t->headers);
    for (size_t i = 0; i < RT_SECRETS_MAX; i++) rt_pack_str(&b, t->secrets[i]);
    pack_circuit(&b, &t->circuit);
    rt_pack_u8(&b, t->pace.enabled);
    rt_pack_u32(&b, t->pace.initial_ms);
    rt_pack_u32(&b, t->pace.maximum_ms);
    rt_pack_u32(&b, t->concurrency);
    rt_pack_u32(&b, t->rate_per_s);
    rt_pack_u8(&b, t->ordered);
    rt_pack_str(&b, t->dead_type);
    rt_pack_u32(&b, t->dead_keep_s);
    rt_pack_u32(&b, t->buckets);
    rt_pack_str(&b, t->json);
    return rt_pack_finish(&b, arena);
}

bool rt_call_type_decode(rt_str value, rt_call_type *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_call_type){.queue = rt_unpack_u64(&u)};
    out->changed_ms = rt_unpack_i64(&u);
    const uint8_t policy = rt_unpack_u8(&u);
    if (policy > RT_CALL_BACKOFF) return false;
    out->policy = (rt_call_policy)policy;
    rt_policy_unpack(&u, &out->delivery);
    rt_backoff_unpack(&u, &out->backoff);
    out->max_attempts = rt_unpack_u32(&u);
    out->target = rt_unpack_str(&u);
    out->headers = rt_unpack_str(&u);
    for (size_t i = 0; i < RT_SECRETS_MAX; i++) out->secrets[i] = rt_unpack_str(&u);
    unpack_circuit(&u, &out->circuit);
    out->pace.enabled = rt_unpack_bool(&u);
    out->pace.initial_ms = rt_unpack_u32(&u);
    out->pace.maximum_ms = rt_unpack_u32(&u);
    out->concurrency = rt_unpack_u32(&u);
    out->rate_per_s = rt_unpack_u32(&u);
    out->ordered = rt_unpack_bool(&u);
    out->dead_type = rt_unpack_str(&u);
    out->dead_keep_s = rt_unpack_u32(&u);
    out->buckets = rt_unpack_u32(&u);
    out->json = rt_unpack_str(&u);
    if (u.failed || u.rest.len > 0) return false;
    return rt_pace_settings_check(&out->pace) == NULL;
}
_Static_assert(RT_CALL_DELIVERY_POLICY < RT_CALL_BACKOFF, "all below are known");

/* ---- documents ----------------------------------------------------------------------------------------- */

rt_str rt_call_type_name(rt_arena *arena, rt_str tenant, rt_str name) {
    return rt_name(arena, tenant, name);
}

static rt_code load(rt_tx *tx, rt_str tenant, rt_str name, rt_doc *doc, rt_call_type *out) {
    const rt_code code = rt_doc_load(tx, RT_DOC_CALL_TYPE, rt_call_type_name(tx->arena, tenant, name), doc);
    if (code != RT_OK) return code;
    if (rt_call_type_decode(doc->value, out)) return RT_OK;
    return rt_fail(tx->err, RT_E_CORRUPT, 0, "event type %.*s cannot be read", RT_STR_ARG(name));
}

rt_code rt_call_type_load(rt_tx *tx, rt_str tenant, rt_str name, rt_call_type *out, uint64_t *version) {
    rt_doc doc;
    const rt_code code = load(tx, tenant, name, &doc, out);
    if (code == RT_OK && version != NULL) *version = doc.version;
    return code;
}

bool rt_call_type_split(rt_str queue_name, rt_str *tenant, rt_str *name) {
    size_t slash = queue_name.len;
    while (slash > 0 && queue_name.ptr[slash - 1] != '/') slash--;
    if (slash == 0) return false;
    *tenant = (rt_str){.ptr = queue_name.ptr, .len = slash - 1};
    *name = (rt_str){.ptr = queue_name.ptr + slash, .len = queue_name.len - slash};
    return true;
}

rt_code rt_call_type_of_queue(rt_tx *tx, rt_id queue, rt_queue *record, rt_call_type *out) {
    rt_code code = rt_view_queue(tx->view, queue, record);
    if (code != RT_OK) return code;
    record->name = rt_arena_dup(tx->arena, record->name); // it is written back with what changes
    if (record->name.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's name");
    rt_str tenant, name;
    if (record->kind != RT_QUEUE_CALLS || !rt_call_type_split(record->name, &tenant, &name))
        return RT_E_ABSENT;
    code = rt_call_type_load(tx, tenant, name, out, NULL);
    // Deleted, and perhaps made anew: what is left of the old one has no type.
    return code == RT_OK && out->queue != queue ? RT_E_ABSENT : code;
}

/* ---- putting ------------------------------------------------------------------------------------------- */

static bool count_doc(void *ctx, const rt_doc *doc) {
    (void)doc;
    return ++*(uint32_t *)ctx < RT_CALL_TYPES_MAX;
}

static rt_code check_room(rt_tx *tx, rt_str tenant) {
    uint32_t count = 0;
    const rt_str prefix = rt_call_type_name(tx->arena, tenant, RT_STR_EMPTY);
    if (prefix.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a name");
    const rt_code code = rt_view_docs(tx->view, RT_DOC_CALL_TYPE, prefix, RT_STR_EMPTY, count_doc, &count);
    if (code != RT_OK || count < RT_CALL_TYPES_MAX) return code;
    return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "there are at most %d event types", RT_CALL_TYPES_MAX);
}

/* Dead calls that went round in a circle would never be given up in plain sight. */
static rt_code check_dead_chain(rt_tx *tx, const rt_call_type_put *c) {
    rt_str next = c->like.dead_type;
    for (int i = 0; next.len > 0; i++) {
        if (i == DEAD_CHAIN_MAX || rt_str_eq(next, c->name)) {
            return rt_fail(tx->err, RT_E_INVALID, 0,
                           "its dead calls would come back to it, or pass through more than %d types",
                           DEAD_CHAIN_MAX);
        }
        rt_call_type type;
        const rt_code code = rt_call_type_load(tx, c->tenant, next, &type, NULL);
        if (code == RT_E_ABSENT) return RT_OK;
        if (code != RT_OK) return code;
        next = type.dead_type;
    }
    return RT_OK;
}

static int64_t alive(const rt_counts *counts) {
    return counts->ready + counts->scheduled + counts->free + counts->leased;
}

/* Where its calls stand depends on who fetches them. */
static rt_code check_switch(rt_tx *tx, const rt_call_type *was, const rt_call_type *now) {
    if ((was->target.len == 0) == (now->target.len == 0)) return RT_OK;
    rt_counts counts;
    const rt_code code = rt_view_counts(tx->view, was->queue, &counts);
    if (code != RT_OK || alive(&counts) <= 0) return code;
    return rt_fail(
        tx->err, RT_E_FENCED, 0,
        "its calls would have to change from pushed to pulled or back: it must have none that wait");
}

static void fit_brakes(rt_brakes *b, const rt_call_type *type) {
    if (!type->circuit.enabled && !b->forced)
        *b = (rt_brakes){.pace_ms = b->pace_ms, .pace_until_ms = b->pace_until_ms};
    if (!type->pace.enabled) b->pace_ms = 0;
    if (!type->pace.enabled) b->pace_until_ms = 0;
}

/* The queue's record tells every node that the type has changed, and takes off the brakes that are none any more. */
static rt_code put_queue(rt_tx *tx, const rt_call_type_put *c, const rt_call_type *type, bool created) {
    rt_queue was, now = {.id = type->queue, .kind = RT_QUEUE_CALLS};
    if (created) {
        now.name = rt_queue_label(tx->arena, c->tenant, c->name, RT_STR_EMPTY);
    } else {
        const rt_code code = rt_view_queue(tx->view, type->queue, &was);
        if (code != RT_OK) return code == RT_E_ABSENT ? RT_E_CORRUPT : code;
        was.name = rt_arena_dup(tx->arena, was.name);
        now = was;
    }
    if (now.name.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's name");
    now.in_flight_max = type->concurrency;
    fit_brakes(&now.brakes, type);
    rt_tx_put_queue(tx, created ? NULL : &was, &now);
    return RT_OK;
}

/* If calls may not grow as old as before, those that wait note it (call_age.c). */
static rt_code watch_age(rt_tx *tx, const rt_call_type *was, const rt_call_type *now) {
    const uint32_t before_s = was->delivery.maximum_age_s, now_s = now->delivery.maximum_age_s;
    // What is allowed to grow older than it noted is looked at when that time has come.
    if (now_s == 0 || (before_s != 0 && before_s <= now_s)) return RT_OK;
    rt_cursor cursor = {.kind = RT_CURSOR_AGE, .queue = now->queue};
    return rt_cursor_start(tx, &cursor);
}

static rt_code decide_put(rt_tx *tx, rt_command *cmd) {
    rt_call_type_put *c = (rt_call_type_put *)cmd;
    RT_ASSERT(c->name.len >= 1 && c->name.len <= RT_CALL_TYPE_NAME_MAX);
    RT_ASSERT(rt_circuit_settings_check(&c->like.circuit) == NULL);
    rt_doc was;
    rt_call_type before;
    rt_code code = load(tx, c->tenant, c->name, &was, &before);
    c->created = code == RT_E_ABSENT;
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    if ((c->only_new && !c->created) || (c->only_known && c->created))
        return rt_fail(tx->err, RT_E_CONFLICT, 0, "there is %s event type of this name", c->created ? "no" : "an");
    if (c->version != 0 && c->version != was.version)
        return rt_fail(tx->err, RT_E_CONFLICT, 0, "the event type has version %llu",
                       (unsigned long long)was.version);
    code = c->created ? check_room(tx, c->tenant) : check_switch(tx, &before, &c->like);
    if (code == RT_OK) code = check_dead_chain(tx, c);
    if (code != RT_OK) return code;
    c->like.queue = c->created ? rt_tx_new_id(tx) : before.queue;
    c->like.changed_ms = tx->now_ms;
    const rt_call_type type = c->like;
    rt_doc now = was;
    now.value = rt_call_type_encode(tx->arena, &type);
    if (now.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an event type");
    rt_tx_put_doc(tx, c->created ? NULL : &was, &now);
    c->version_now = was.version + 1;
    code = c->created ? RT_OK : watch_age(tx, &before, &type);
    return code == RT_OK ? put_queue(tx, c, &type, c->created) : code;
}

void rt_call_type_put_init(rt_call_type_put *c) { *c = (rt_call_type_put){.cmd = {.decide = decide_put}}; }

/* ---- deleting ------------------------------------------------------------------------------------------ */

static rt_code decide_delete(rt_tx *tx, rt_command *cmd) {
    rt_call_type_delete *c = (rt_call_type_delete *)cmd;
    tx->frees = true;
    rt_doc doc;
    rt_call_type type;
    rt_code code = load(tx, c->tenant, c->name, &doc, &type);
    if (code != RT_OK) return code;
    rt_counts counts;
    code = rt_view_counts(tx->view, type.queue, &counts);
    if (code != RT_OK) return code;
    if (!c->force && alive(&counts) > 0) {
        return rt_fail(tx->err, RT_E_FENCED, 0, "%lld of its calls wait", (long long)alive(&counts));
    }
    rt_tx_put_doc(tx, &doc, NULL);
    return rt_queue_drain(tx, type.queue, RT_REASON_DELETED, false);
}

void rt_call_type_delete_init(rt_call_type_delete *c) {
    *c = (rt_call_type_delete){.cmd = {.decide = decide_delete}};
}
