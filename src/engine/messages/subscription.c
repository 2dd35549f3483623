#include "engine/messages/subscription.h"

#include <openssl/evp.h>

#include "engine/common/cursor.h"
#include "engine/common/job.h"
#include "engine/common/queue.h"

enum { FORMAT = 1, HASH_BYTES = 32, SUBSCRIBER_NAME_LEN = 8 + HASH_BYTES };

/* ---- names and stored form --------------------------------------------------------------------------- */

rt_str rt_subscription_name(rt_arena *arena, rt_id queue, rt_id subscription) {
    unsigned char *name = rt_arena_alloc(arena, RT_SUBSCRIPTION_NAME_LEN);
    if (name == NULL) return (rt_str){0};
    rt_put_be64(name, queue);
    rt_put_be64(name + 8, subscription);
    return (rt_str){.ptr = (const char *)name, .len = RT_SUBSCRIPTION_NAME_LEN};
}

/* A client chooses the uri, so nothing less than a cryptographic hash keeps two subscribers apart. */
static rt_str subscriber_name(rt_arena *arena, rt_id queue, rt_str uri) {
    unsigned char *name = rt_arena_alloc(arena, SUBSCRIBER_NAME_LEN);
    if (name == NULL) return (rt_str){0};
    rt_put_be64(name, queue);
    unsigned len = 0;
    if (EVP_Digest(uri.ptr, uri.len, name + 8, &len, EVP_sha256(), NULL) != 1) return (rt_str){0};
    RT_ASSERT(len == HASH_BYTES);
    return (rt_str){.ptr = (const char *)name, .len = SUBSCRIBER_NAME_LEN};
}

rt_str rt_subscription_encode(rt_arena *arena, const rt_subscription *s) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, s->id);
    rt_pack_u64(&b, s->queue);
    rt_pack_str(&b, s->tenant);
    rt_pack_str(&b, s->queue_name);
    rt_pack_str(&b, s->uri);
    rt_pack_u32(&b, s->ttl_s);
    rt_pack_i64(&b, s->created_ms);
    rt_pack_u8(&b, s->confirmed);
    rt_pack_u8(&b, s->has_policy);
    if (s->has_policy) rt_policy_pack(&b, &s->policy);
    rt_pack_str(&b, s->headers);
    rt_pack_str(&b, s->post_data);
    for (int i = 0; i < RT_SECRETS_MAX; i++) rt_pack_str(&b, s->secrets[i]);
    rt_pack_str(&b, s->subject);
    rt_pack_str(&b, s->from);
    rt_pack_str(&b, s->options_json);
    return rt_pack_finish(&b, arena);
}

bool rt_subscription_decode(rt_str value, rt_subscription *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_subscription){.id = rt_unpack_u64(&u)};
    out->queue = rt_unpack_u64(&u);
    out->tenant = rt_unpack_str(&u);
    out->queue_name = rt_unpack_str(&u);
    out->uri = rt_unpack_str(&u);
    out->ttl_s = rt_unpack_u32(&u);
    out->created_ms = rt_unpack_i64(&u);
    out->confirmed = rt_unpack_bool(&u);
    out->has_policy = rt_unpack_bool(&u);
    if (out->has_policy) rt_policy_unpack(&u, &out->policy);
    out->headers = rt_unpack_str(&u);
    out->post_data = rt_unpack_str(&u);
    for (int i = 0; i < RT_SECRETS_MAX; i++) out->secrets[i] = rt_unpack_str(&u);
    out->subject = rt_unpack_str(&u);
    out->from = rt_unpack_str(&u);
    out->options_json = rt_unpack_str(&u);
    // They become parts of names that have these bounds.
    if (out->tenant.len > RT_TENANT_MAX || out->queue_name.len > RT_QUEUE_TITLE_MAX) return false;
    return !u.failed && u.rest.len == 0;
}

/* ---- parts of decisions ------------------------------------------------------------------------------ */

static rt_code no_memory(rt_tx *tx) {
    return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a subscription");
}

static bool has_ended(const rt_doc *doc, int64_t now_ms) {
    return doc->expires_ms > 0 && doc->expires_ms <= now_ms;
}

static int64_t expiry_of(const rt_subscription *s) {
    return s->ttl_s == 0 ? 0 : s->created_ms + (int64_t)s->ttl_s * 1000;
}

/* A document of this decision: name and value in the arena. */
static rt_code load_doc(rt_tx *tx, rt_doc_kind kind, rt_str name, rt_doc *out) {
    const rt_code code = rt_view_doc(tx->view, kind, name, out);
    if (code != RT_OK) return code;
    out->name = name;
    out->value = rt_arena_dup(tx->arena, out->value);
    return out->value.ptr == NULL ? no_memory(tx) : RT_OK;
}

/* RT_E_ABSENT: none, or its time is over. */
static rt_code load_live(rt_tx *tx, rt_id queue, rt_id id, rt_doc *doc, rt_subscription *out) {
    const rt_str name = rt_subscription_name(tx->arena, queue, id);
    if (name.ptr == NULL) return no_memory(tx);
    const rt_code code = load_doc(tx, RT_DOC_SUBSCRIPTION, name, doc);
    if (code != RT_OK) return code;
    if (has_ended(doc, tx->now_ms)) return RT_E_ABSENT;
    if (rt_subscription_decode(doc->value, out)) return RT_OK;
    return rt_fail(tx->err, RT_E_CORRUPT, 0, "a subscription cannot be read");
}

static rt_code put_subscription(rt_tx *tx, const rt_doc *was, rt_str name, const rt_subscription *now) {
    const rt_doc doc = {
        .kind = RT_DOC_SUBSCRIPTION,
        .name = name,
        .expires_ms = expiry_of(now),
        .value = rt_subscription_encode(tx->arena, now),
    };
    if (doc.value.ptr == NULL) return no_memory(tx);
    if (doc.value.len > RT_DOC_VALUE_MAX) {
        return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "the subscription's options are too large");
    }
    rt_tx_put_doc(tx, was, &doc);
    return RT_OK;
}

/* What tells that a uri is taken. It has no end of its own: it ends with its subscription. */
static rt_code put_subscriber(rt_tx *tx, const rt_doc *was, rt_str name, rt_id id) {
    unsigned char *value = rt_arena_alloc(tx->arena, 8);
    if (value == NULL) return no_memory(tx);
    rt_put_be64(value, id);
    const rt_doc doc = {
        .kind = RT_DOC_SUBSCRIBER, .name = name, .value = {.ptr = (const char *)value, .len = 8}};
    rt_tx_put_doc(tx, was, &doc);
    return RT_OK;
}

static rt_code put_delivery_queue(rt_tx *tx, const rt_queue *was, const rt_subscription *s) {
    rt_queue queue = {.id = s->id, .owner = s->queue, .kind = RT_QUEUE_DELIVERY};
    if (was != NULL) queue = *was;
    queue.name = rt_queue_label(tx->arena, s->tenant, s->queue_name, s->uri);
    if (queue.name.ptr == NULL) return no_memory(tx);
    rt_tx_put_queue(tx, was, &queue);
    return RT_OK;
}

/* A word to the subscriber itself, delivered like a message. */
static rt_code send_word(rt_tx *tx, const rt_subscription *s, rt_str body) {
    if (body.ptr == NULL) return no_memory(tx);
    if (body.len == 0) return RT_OK;
    if (body.len > RT_BODY_BYTES_MAX) return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "confirmation is too large");
    const rt_id id = rt_tx_new_id(tx);
    rt_job job = {
        .id = id,
        .queue = s->id,
        .owner = s->queue,
        .body = id,
        .placed_ms = tx->now_ms,
        .body_bytes = (uint32_t)body.len,
        .flags = RT_JOB_CONFIRMATION,
    };
    rt_job_place(tx, &job);
    rt_tx_put_body(tx, id, body);
    rt_tx_insert_job(tx, &job);
    return RT_OK;
}

/* ---- removing ---------------------------------------------------------------------------------------- */

/* All of a subscription but its claim to the uri. */
static rt_code remove_record(rt_tx *tx, const rt_doc *doc, rt_id id) {
    rt_doc was = *doc;
    was.name = rt_arena_dup(tx->arena, doc->name);
    if (was.name.ptr == NULL) return no_memory(tx);
    rt_tx_put_doc(tx, &was, NULL);
    return rt_queue_drain(tx, id, RT_REASON_UNSUBSCRIBED, true);
}

rt_code rt_subscription_remove(rt_tx *tx, const rt_doc *doc) {
    RT_ASSERT(doc->kind == RT_DOC_SUBSCRIPTION);
    if (doc->name.len != RT_SUBSCRIPTION_NAME_LEN) {
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "a subscription has a wrong name");
    }
    const rt_id queue = rt_get_be64((const unsigned char *)doc->name.ptr);
    const rt_id id = rt_get_be64((const unsigned char *)doc->name.ptr + 8);
    rt_subscription s;
    // One that cannot be read goes as well; what is left of it, its claim to the uri, counts as nobody's.
    if (rt_subscription_decode(doc->value, &s)) {
        const rt_str name = subscriber_name(tx->arena, queue, s.uri);
        if (name.ptr == NULL) return no_memory(tx);
        rt_doc subscriber;
        const rt_code code = load_doc(tx, RT_DOC_SUBSCRIBER, name, &subscriber);
        if (code != RT_OK && code != RT_E_ABSENT) return code;
        const bool own = code == RT_OK && subscriber.value.len == 8 &&
                         rt_get_be64((const unsigned char *)subscriber.value.ptr) == id;
        if (own) rt_tx_put_doc(tx, &subscriber, NULL);
    }
    return remove_record(tx, doc, id);
}

typedef struct some_names {
    rt_arena *arena;
    rt_id last;
    rt_str names[RT_CURSOR_SLICE];
    uint32_t count;
    bool more, no_memory;
} some_names;

static bool add_name(void *ctx, const rt_doc *doc) {
    some_names *some = ctx;
    if (doc->name.len != RT_SUBSCRIPTION_NAME_LEN) return true;
    if (rt_get_be64((const unsigned char *)doc->name.ptr + 8) > some->last) return false;
    some->more = some->count == RT_CURSOR_SLICE;
    if (some->more) return false;
    const rt_str name = rt_arena_dup(some->arena, doc->name);
    some->no_memory = name.ptr == NULL;
    some->names[some->count++] = name;
    return !some->no_memory;
}

/* Removes the first RT_CURSOR_SLICE of them up to `last`; *more: there are others. */
static rt_code remove_some(rt_tx *tx, rt_id queue, rt_id last, bool *more) {
    unsigned char be[8];
    rt_put_be64(be, queue);
    const rt_str prefix = {.ptr = (const char *)be, .len = sizeof be};
    some_names some = {.arena = tx->arena, .last = last};
    rt_code code = rt_view_docs(tx->view, RT_DOC_SUBSCRIPTION, prefix, RT_STR_EMPTY, add_name, &some);
    if (code != RT_OK) return code;
    if (some.no_memory) return no_memory(tx);
    tx->frees = true;
    for (uint32_t i = 0; i < some.count; i++) {
        rt_doc doc;
        code = rt_view_doc(tx->view, RT_DOC_SUBSCRIPTION, some.names[i], &doc);
        if (code == RT_OK) code = rt_subscription_remove(tx, &doc);
        if (code != RT_OK && code != RT_E_ABSENT) return code;
    }
    *more = some.more;
    return RT_OK;
}

rt_code rt_subscriptions_remove(rt_tx *tx, rt_id queue, bool *rest) {
    *rest = false;
    const rt_code code = remove_some(tx, queue, UINT64_MAX, rest);
    if (code != RT_OK || !*rest) return code;
    rt_cursor cursor = {.kind = RT_CURSOR_UNSUBSCRIBE, .queue = queue, .last = rt_tx_new_id(tx)};
    return rt_cursor_start(tx, &cursor);
}

rt_code rt_unsubscribe_slice(rt_tx *tx, rt_cursor *c, bool *finished) {
    bool more = false;
    const rt_code code = remove_some(tx, c->queue, c->last, &more);
    *finished = !more;
    return code;
}

/* ---- who has a uri ----------------------------------------------------------------------------------- */

typedef struct taker {
    rt_str name; /* of the subscriber's document */
    rt_doc doc;  /* version 0: there is none */
    bool live;   /* it stands for a subscription whose time is not over: this one */
    rt_subscription subscription;
} taker;

/* Removes what is left of one whose time is over, but not its document, which the caller writes anew. */
static rt_code find_taker(rt_tx *tx, rt_id queue, rt_str uri, taker *out) {
    *out = (taker){.name = subscriber_name(tx->arena, queue, uri)};
    if (out->name.ptr == NULL) return no_memory(tx);
    rt_code code = load_doc(tx, RT_DOC_SUBSCRIBER, out->name, &out->doc);
    if (code == RT_E_ABSENT) {
        // Another node may take the uri in between: then it is decided again, by what is there now.
        rt_tx_guard(tx, RT_DOC_SUBSCRIBER, out->name, 0);
        return RT_OK;
    }
    if (code != RT_OK) return code;
    if (out->doc.value.len != 8) return rt_fail(tx->err, RT_E_CORRUPT, 0, "subscriber cannot be read");
    const rt_id id = rt_get_be64((const unsigned char *)out->doc.value.ptr);
    rt_doc doc = {.version = 0};
    code = load_live(tx, queue, id, &doc, &out->subscription);
    out->live = code == RT_OK;
    if (out->live) rt_tx_guard(tx, RT_DOC_SUBSCRIPTION, doc.name, doc.version);
    if (code != RT_E_ABSENT) return code;
    return doc.version == 0 ? RT_OK : remove_record(tx, &doc, id);
}

static const rt_doc *doc_of(const taker *t) { return t->doc.version == 0 ? NULL : &t->doc; }

static rt_code fail_taken(rt_tx *tx) {
    return rt_fail(tx->err, RT_E_EXISTS, 0, "another subscription has this subscriber");
}

/* ---- commands ---------------------------------------------------------------------------------------- */

static rt_code ask_to_confirm(rt_tx *tx, rt_subscription_create *c, const rt_subscription *s) {
    if (c->confirm == NULL) return RT_OK;
    rt_str body = {0};
    c->confirm(c, s->id, expiry_of(s), tx->arena, &body);
    return send_word(tx, s, body);
}

static rt_code decide_create(rt_tx *tx, rt_command *cmd) {
    rt_subscription_create *c = (rt_subscription_create *)cmd;
    c->id = 0;
    c->existed = false;
    rt_doc queue_doc;
    rt_metadata queue;
    rt_code code = rt_metadata_load_or_create(tx, c->tenant, c->queue, &queue_doc, &queue);
    if (code != RT_OK) return code;
    taker taken;
    code = find_taker(tx, queue.id, c->like.uri, &taken);
    if (code != RT_OK) return code;
    if (taken.live) {
        if (taken.subscription.confirmed) return fail_taken(tx);
        c->id = taken.subscription.id;
        c->existed = true;
        return ask_to_confirm(tx, c, &taken.subscription);
    }

    rt_subscription s = c->like;
    s.id = rt_tx_new_id(tx);
    s.queue = queue.id;
    s.tenant = c->tenant;
    s.queue_name = c->queue;
    s.created_ms = tx->now_ms;
    const rt_str name = rt_subscription_name(tx->arena, queue.id, s.id);
    if (name.ptr == NULL) return no_memory(tx);
    code = put_subscription(tx, NULL, name, &s);
    if (code == RT_OK) code = put_subscriber(tx, doc_of(&taken), taken.name, s.id);
    if (code == RT_OK) code = put_delivery_queue(tx, NULL, &s);
    if (code == RT_OK) code = ask_to_confirm(tx, c, &s);
    c->id = s.id;
    return code;
}

void rt_subscription_create_init(rt_subscription_create *c) {
    *c = (rt_subscription_create){.cmd = {.decide = decide_create}};
}

/* The subscription a command names by its queue's name and its id. */
static rt_code load_named(rt_tx *tx, rt_str tenant, rt_str queue_name, rt_id id, rt_doc *doc,
                          rt_subscription *out) {
    rt_doc queue_doc;
    rt_metadata queue;
    const rt_code code = rt_metadata_load(tx, tenant, queue_name, &queue_doc, &queue);
    if (code != RT_OK) return code;
    return load_live(tx, queue.id, id, doc, out);
}

static rt_code move_uri(rt_tx *tx, const rt_subscription *was, const rt_subscription *now) {
    taker taken;
    rt_code code = find_taker(tx, was->queue, now->uri, &taken);
    if (code != RT_OK) return code;
    if (taken.live) return fail_taken(tx);
    code = put_subscriber(tx, doc_of(&taken), taken.name, was->id);
    if (code != RT_OK) return code;

    const rt_str old_name = subscriber_name(tx->arena, was->queue, was->uri);
    if (old_name.ptr == NULL) return no_memory(tx);
    rt_doc old;
    code = load_doc(tx, RT_DOC_SUBSCRIBER, old_name, &old);
    if (code == RT_OK) rt_tx_put_doc(tx, &old, NULL);
    if (code != RT_OK && code != RT_E_ABSENT) return code;

    rt_queue queue;
    code = rt_view_queue(tx->view, was->id, &queue);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    return put_delivery_queue(tx, &queue, now);
}

static void set_options(rt_subscription *s, const rt_subscription *with) {
    s->has_policy = with->has_policy;
    s->policy = with->policy;
    s->headers = with->headers;
    s->post_data = with->post_data;
    for (int i = 0; i < RT_SECRETS_MAX; i++) s->secrets[i] = with->secrets[i];
    s->subject = with->subject;
    s->from = with->from;
    s->options_json = with->options_json;
}

static rt_code decide_patch(rt_tx *tx, rt_command *cmd) {
    rt_subscription_patch *c = (rt_subscription_patch *)cmd;
    rt_doc doc;
    rt_subscription was;
    rt_code code = load_named(tx, c->tenant, c->queue, c->id, &doc, &was);
    if (code != RT_OK) return code;
    if (doc.version != c->version) {
        return rt_fail(tx->err, RT_E_CONFLICT, 0, "the subscription has changed meanwhile");
    }
    rt_subscription now = was;
    if (c->set_options) set_options(&now, &c->with);
    if (c->set_ttl) {
        now.ttl_s = c->with.ttl_s;
        now.created_ms = tx->now_ms;
    }
    if (c->set_uri && !rt_str_eq(was.uri, c->with.uri)) {
        now.uri = c->with.uri;
        now.confirmed = false;
        code = move_uri(tx, &was, &now);
        if (code != RT_OK) return code;
    }
    return put_subscription(tx, &doc, doc.name, &now);
}

void rt_subscription_patch_init(rt_subscription_patch *c) {
    *c = (rt_subscription_patch){.cmd = {.decide = decide_patch}};
}

static rt_code decide_confirm(rt_tx *tx, rt_command *cmd) {
    rt_subscription_confirm *c = (rt_subscription_confirm *)cmd;
    rt_doc doc;
    rt_subscription s;
    rt_code code = load_named(tx, c->tenant, c->queue, c->id, &doc, &s);
    if (code != RT_OK) return code;
    if (s.confirmed != c->confirmed) {
        s.confirmed = c->confirmed;
        code = put_subscription(tx, &doc, doc.name, &s);
        if (code != RT_OK) return code;
    }
    if (c->confirmed || c->goodbye.len == 0) return RT_OK;
    return send_word(tx, &s, c->goodbye);
}

void rt_subscription_confirm_init(rt_subscription_confirm *c) {
    *c = (rt_subscription_confirm){.cmd = {.decide = decide_confirm}};
}

static rt_code decide_delete(rt_tx *tx, rt_command *cmd) {
    rt_subscription_delete *c = (rt_subscription_delete *)cmd;
    tx->frees = true;
    rt_doc queue_doc, doc;
    rt_metadata queue;
    rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &queue_doc, &queue);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    const rt_str name = rt_subscription_name(tx->arena, queue.id, c->id);
    if (name.ptr == NULL) return no_memory(tx);
    code = load_doc(tx, RT_DOC_SUBSCRIPTION, name, &doc);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    return rt_subscription_remove(tx, &doc);
}

void rt_subscription_delete_init(rt_subscription_delete *c) {
    *c = (rt_subscription_delete){.cmd = {.decide = decide_delete}};
}
