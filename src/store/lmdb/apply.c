/* apply.c: a change, all or nothing: every condition is looked at before the first write. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "store/lmdb/inside.h"

/* What an op will write, made before the first write: its strings may be lent by the batch itself, whose
 * pages move. */
typedef struct planned {
    MDB_val key;   /* DOC */
    MDB_val value; /* QUEUE, LEASE, DOC, EVENT */
} planned;

/* ---- body users ---------------------------------------------------------------------------------------- */

static rt_body_use *use_of(rt_lmdb *s, rt_id body) {
    RT_ASSERT(body != 0);
    if (s->uses_count > 0 && s->uses[s->uses_count - 1].body == body) return &s->uses[s->uses_count - 1];
    rt_body_use *use = rt_map_get(&s->use_of_body, body);
    if (use != NULL) return use;
    RT_ASSERT(s->uses_count < RT_BODY_USES_MAX);
    use = &s->uses[s->uses_count];
    if (!rt_map_put(&s->use_of_body, body, use)) return NULL;
    *use = (rt_body_use){.body = body};
    s->uses_count++;
    return use;
}

static void forget_uses(rt_lmdb *s) {
    for (uint32_t i = 0; i < s->uses_count; i++) (void)rt_map_remove(&s->use_of_body, s->uses[i].body);
    s->uses_count = 0;
}

static rt_id body_used(const rt_job *job) { return job != NULL && job->state != RT_JOB_DONE ? job->body : 0; }

static rt_code note_uses(rt_lmdb *s, const rt_job *was, const rt_job *now, rt_err *err) {
    const rt_id before = body_used(was);
    const rt_id after = body_used(now);
    if (before == after) return RT_OK;
    rt_body_use *left = before != 0 ? use_of(s, before) : NULL;
    rt_body_use *taken = after != 0 ? use_of(s, after) : NULL;
    if ((before != 0 && left == NULL) || (after != 0 && taken == NULL)) {
        return rt_fail(err, RT_E_NOMEM, ENOMEM, "users of bodies");
    }
    if (left != NULL) left->delta--;
    if (taken != NULL) taken->delta++;
    return RT_OK;
}

static rt_code check_use(rt_lmdb *s, const rt_body_use *use, rt_err *err) {
    if (use->made != NULL) {
        if (use->delta > 0) return RT_OK;
        return rt_fail(err, RT_E_INVALID, 0, "no job of the change names body %" PRIu64, use->body);
    }
    if (use->delta <= 0) return RT_OK;
    rt_str value;
    const int rc = rt_lmdb_find(&s->batch, RT_TREE_BODIES, use->body, &value);
    if (rc == MDB_NOTFOUND) return rt_fail(err, RT_E_INVALID, 0, "there is no body %" PRIu64, use->body);
    return rc == 0 ? RT_OK : rt_lmdb_fail(err, rc, "body");
}

static int write_users(rt_lmdb *s, rt_id body, int64_t users) {
    return rt_lmdb_put_at(s, RT_TREE_USERS, rt_lmdb_val(&body, sizeof body), rt_lmdb_val(&users, sizeof users));
}

static int make_body(rt_lmdb *s, const rt_body_use *use) {
    MDB_val value = {.mv_size = rt_stored_body_bytes(*use->made)};
    int rc = rt_lmdb_insert(s, RT_TREE_BODIES, use->body, &value, MDB_RESERVE);
    if (rc != 0) return rc;
    rt_stored_write_body(value.mv_data, *use->made);
    if (use->delta == 1) return 0;
    value = rt_lmdb_val(&use->delta, sizeof use->delta);
    return rt_lmdb_insert(s, RT_TREE_USERS, use->body, &value, 0);
}

static int settle_use(rt_lmdb *s, const rt_body_use *use) {
    if (use->made != NULL) return make_body(s, use);
    if (use->delta == 0) return 0;
    rt_str value;
    int64_t users = 1; // what no record in `users` means
    int rc = rt_lmdb_find(&s->batch, RT_TREE_USERS, use->body, &value);
    const bool shared = rc == 0;
    if (rc != 0 && rc != MDB_NOTFOUND) return rc;
    if (shared && value.len != sizeof users) return MDB_CORRUPTED;
    if (shared) memcpy(&users, value.ptr, sizeof users);
    users += use->delta;
    if (users < 0) return MDB_CORRUPTED;
    if (users > 1) return write_users(s, use->body, users);
    rc = shared ? rt_lmdb_remove(s, RT_TREE_USERS, use->body) : 0;
    if (rc == 0 && users == 0) rc = rt_lmdb_remove(s, RT_TREE_BODIES, use->body);
    return rc;
}

/* ---- conditions ---------------------------------------------------------------------------------------- */

static rt_code conflict(rt_err *err, const char *what, uint64_t number) {
    return rt_fail(err, RT_E_CONFLICT, 0, "%s %" PRIu64 " is not as it was read", what, number);
}

static rt_code exists(rt_err *err, const char *what, uint64_t number) {
    return rt_fail(err, RT_E_EXISTS, 0, "there is a %s %" PRIu64, what, number);
}

/* Free to be inserted? */
static rt_code check_free(rt_lmdb *s, rt_tree tree, uint64_t number, const char *what, rt_err *err) {
    RT_ASSERT(number != 0);
    if (number > s->env.last[tree]) return RT_OK;
    rt_str value;
    const int rc = rt_lmdb_find(&s->batch, tree, number, &value);
    if (rc == 0) return exists(err, what, number);
    return rc == MDB_NOTFOUND ? RT_OK : rt_lmdb_fail(err, rc, what);
}

/* Is the record that was looked for, and `found` or not, still of the version that was read? */
static rt_code check_version(rt_code found, uint64_t version, uint64_t was, const char *what, uint64_t number,
                             rt_err *err) {
    if (found == RT_E_ABSENT || (found == RT_OK && version != was)) return conflict(err, what, number);
    return found == RT_OK ? RT_OK : rt_fail(err, found, 0, "%s %" PRIu64 ": %s", what, number, rt_code_name(found));
}

/* Each write raises the version by one; an insert makes it 1, or brings its own. */
static bool is_next(const rt_lmdb *s, uint64_t was, uint64_t now) {
    return s->importing && was == 0 ? now >= 1 : now == was + 1;
}

#define ASSERT_NEXT(s, was, now) \
    do { \
        RT_ASSERT((was) != NULL || (now) != NULL); \
        RT_ASSERT((now) == NULL || is_next(s, (was) != NULL ? (was)->version : 0, (now)->version)); \
    } while (0)

/* What a job may become; an engine that breaks this has a bug. */
static void assert_sane(const rt_job *was, const rt_job *now) {
    const bool pull = (now->flags & RT_JOB_PULL) != 0;
    RT_ASSERT(now->state > RT_JOB_NONE && now->state < RT_JOB_STATE_COUNT);
    RT_ASSERT(now->state != (pull ? RT_JOB_READY : RT_JOB_FREE));
    RT_ASSERT(now->reason < RT_REASON_COUNT);
    RT_ASSERT(now->due_ms >= 0);
    if (was == NULL) return;
    RT_ASSERT(was->id == now->id);
    RT_ASSERT(was->state != RT_JOB_DONE || now->state == RT_JOB_DONE);
    RT_ASSERT(was->body == now->body || now->state == RT_JOB_DONE);
}

static rt_code check_job(rt_lmdb *s, const rt_job *was, const rt_job *now, rt_err *err) {
    ASSERT_NEXT(s, was, now);
    if (now != NULL) assert_sane(was, now);
    if (now != NULL && now->state == RT_JOB_DONE && now->last_event == 0) {
        return rt_fail(err, RT_E_INVALID, 0, "job %" PRIu64 " is done without an event", now->id);
    }
    if (was == NULL) {
        const rt_code code = check_free(s, RT_TREE_JOBS, now->id, "job", err);
        if (code != RT_OK) return code;
    } else {
        rt_job stored;
        const int rc = rt_lmdb_find_job(&s->batch, was->id, &stored);
        if (rc != 0 && rc != MDB_NOTFOUND) return rt_lmdb_fail(err, rc, "job");
        if (rc != 0 || memcmp(&stored, was, sizeof stored) != 0) return conflict(err, "job", was->id);
    }
    return s->importing ? RT_OK : note_uses(s, was, now, err);
}

static rt_code make_room(rt_lmdb *s, MDB_val *value, size_t bytes, rt_err *err) {
    *value = (MDB_val){.mv_size = bytes, .mv_data = rt_arena_alloc(&s->scratch, bytes)};
    return value->mv_data != NULL ? RT_OK : rt_fail(err, RT_E_NOMEM, ENOMEM, "change");
}

static rt_code check_queue(rt_lmdb *s, const rt_queue *was, const rt_queue *now, planned *plan, rt_err *err) {
    ASSERT_NEXT(s, was, now);
    RT_ASSERT(was == NULL || now == NULL || was->id == now->id);
    if (now != NULL && now->name.len > RT_QUEUE_NAME_MAX) {
        return rt_fail(err, RT_E_TOO_LARGE, 0, "a queue's name has at most %d bytes", RT_QUEUE_NAME_MAX);
    }
    rt_code code = RT_OK;
    if (was == NULL) {
        code = check_free(s, RT_TREE_QUEUES, now->id, "queue", err);
    } else {
        rt_queue stored = {.version = 0};
        const rt_code found = rt_view_queue(&s->batch.base, was->id, &stored);
        code = check_version(found, stored.version, was->version, "queue", was->id, err);
    }
    if (code != RT_OK || now == NULL) return code;
    code = make_room(s, &plan->value, rt_stored_queue_bytes(now), err);
    if (code == RT_OK) rt_stored_write_queue(plan->value.mv_data, now);
    return code;
}

static rt_code check_lease(rt_lmdb *s, const rt_lease *was, const rt_lease *now, planned *plan, rt_err *err) {
    ASSERT_NEXT(s, was, now);
    RT_ASSERT(was == NULL || now == NULL || was->id == now->id);
    RT_ASSERT(now == NULL || now->jobs_count <= RT_LEASE_JOBS_MAX);
    rt_code code = RT_OK;
    if (was == NULL) {
        code = check_free(s, RT_TREE_LEASES, now->id, "lease", err);
    } else {
        rt_lease stored = {.version = 0};
        const rt_code found = rt_view_lease(&s->batch.base, was->id, &stored);
        code = check_version(found, stored.version, was->version, "lease", was->id, err);
    }
    if (code != RT_OK || now == NULL) return code;
    code = make_room(s, &plan->value, rt_stored_lease_bytes(now), err);
    if (code == RT_OK) rt_stored_write_lease(plan->value.mv_data, now);
    return code;
}

/* Is there a document of this version? 0: none at all. */
static rt_code check_doc_version(rt_lmdb *s, rt_doc_kind kind, rt_str name, uint64_t version, rt_err *err) {
    rt_doc stored = {0};
    const rt_code code = rt_view_doc(&s->batch.base, kind, name, &stored);
    if (code != RT_OK && code != RT_E_ABSENT) {
        return rt_fail(err, code, 0, "document: %s", rt_code_name(code));
    }
    if (stored.version == version) return RT_OK;
    return rt_fail(err, RT_E_CONFLICT, 0, "a document of kind %d is not as it was read", (int)kind);
}

static rt_code check_doc(rt_lmdb *s, const rt_doc *was, const rt_doc *now, planned *plan, rt_err *err) {
    ASSERT_NEXT(s, was, now);
    RT_ASSERT(was == NULL || now == NULL || (was->kind == now->kind && rt_str_eq(was->name, now->name)));
    const rt_doc *doc = now != NULL ? now : was;
    RT_ASSERT(doc->kind != RT_DOC_NONE);
    if (doc->name.len == 0 || doc->name.len > RT_DOC_NAME_MAX || doc->value.len > RT_DOC_VALUE_MAX) {
        return rt_fail(err, RT_E_TOO_LARGE, 0, "a document's name has 1 to %d bytes, its value at most %d",
                       RT_DOC_NAME_MAX, RT_DOC_VALUE_MAX);
    }
    rt_code code = check_doc_version(s, doc->kind, doc->name, was != NULL ? was->version : 0, err);
    if (code == RT_E_CONFLICT && was == NULL) return rt_fail(err, RT_E_EXISTS, 0, "there is such a document");
    if (code != RT_OK) return code;
    rt_long_key key;
    rt_key_doc(&key, doc->kind, doc->name);
    code = make_room(s, &plan->key, key.len, err);
    if (code != RT_OK) return code;
    memcpy(plan->key.mv_data, key.bytes, key.len);
    if (now == NULL) return RT_OK;
    code = make_room(s, &plan->value, rt_stored_doc_bytes(now), err);
    if (code == RT_OK) rt_stored_write_doc(plan->value.mv_data, now);
    return code;
}

static rt_code check_event(rt_lmdb *s, const rt_event *event, planned *plan, rt_err *err) {
    rt_code code = check_free(s, RT_TREE_EVENTS, event->seq, "event", err);
    if (code == RT_OK) code = make_room(s, &plan->value, rt_stored_event_bytes(event), err);
    if (code == RT_OK) rt_stored_write_event(plan->value.mv_data, event);
    return code;
}

static rt_code check_body(rt_lmdb *s, rt_id id, const rt_str *bytes, uint64_t users, rt_err *err) {
    if (bytes->len > RT_BODY_BYTES_MAX) {
        return rt_fail(err, RT_E_TOO_LARGE, 0, "a body has at most %d bytes", RT_BODY_BYTES_MAX);
    }
    const rt_code code = check_free(s, RT_TREE_BODIES, id, "body", err);
    if (code != RT_OK) return code;
    rt_body_use *use = use_of(s, id);
    if (use == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "users of bodies");
    use->made = bytes;
    if (s->importing) use->delta = (int64_t)users;
    return RT_OK;
}

static rt_code check_op(rt_lmdb *s, const rt_op *op, planned *plan, rt_err *err) {
    switch (op->kind) {
    case RT_OP_JOB: return check_job(s, op->job.was, op->job.now, err);
    case RT_OP_QUEUE: return check_queue(s, op->queue.was, op->queue.now, plan, err);
    case RT_OP_LEASE: return check_lease(s, op->lease.was, op->lease.now, plan, err);
    case RT_OP_DOC: return check_doc(s, op->doc.was, op->doc.now, plan, err);
    case RT_OP_BODY: return check_body(s, op->body.id, &op->body.bytes, op->body.users, err);
    case RT_OP_EVENT: return check_event(s, op->event, plan, err);
    }
    return rt_fail(err, RT_E_INVALID, 0, "unknown kind of op: %d", (int)op->kind);
}

static rt_code check(rt_lmdb *s, const rt_change *change, planned *plans, rt_err *err) {
    rt_code code = change->frees ? RT_OK : rt_lmdb_env_room(&s->env, s->batch.txn, err);
    for (uint32_t i = 0; i < change->guards_count && code == RT_OK; i++) {
        const rt_guard *guard = &change->guards[i];
        code = check_doc_version(s, guard->kind, guard->name, guard->version, err);
    }
    for (uint32_t i = 0; i < change->ops_count && code == RT_OK; i++) {
        code = check_op(s, &change->ops[i], &plans[i], err);
    }
    for (uint32_t i = 0; i < s->uses_count && code == RT_OK; i++) code = check_use(s, &s->uses[i], err);
    return code;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static int move_expiry(rt_lmdb *s, const rt_long_key *old, const rt_long_key *new) {
    int rc = 0;
    if (old != NULL) rc = rt_lmdb_remove_at(s, RT_TREE_EXPIRY, rt_lmdb_val(old->bytes, old->len));
    if (rc != 0 || new == NULL) return rc;
    return rt_lmdb_put_at(s, RT_TREE_EXPIRY, rt_lmdb_val(new->bytes, new->len), rt_lmdb_val("", 0));
}

static int write_numbered(rt_lmdb *s, rt_tree tree, uint64_t number, bool is_new, bool goes, planned *plan) {
    if (goes) return rt_lmdb_remove(s, tree, number);
    if (is_new) return rt_lmdb_insert(s, tree, number, &plan->value, 0);
    return rt_lmdb_put_at(s, tree, rt_lmdb_val(&number, sizeof number), plan->value);
}

static int write_queue(rt_lmdb *s, const rt_queue *was, const rt_queue *now, planned *plan) {
    const rt_id id = was != NULL ? was->id : now->id;
    return write_numbered(s, RT_TREE_QUEUES, id, was == NULL, now == NULL, plan);
}

static int write_lease(rt_lmdb *s, const rt_lease *was, const rt_lease *now, planned *plan) {
    const rt_id id = was != NULL ? was->id : now->id;
    const int rc = write_numbered(s, RT_TREE_LEASES, id, was == NULL, now == NULL, plan);
    const int64_t was_at = was != NULL && was->until_ms > 0 ? was->until_ms : 0;
    const int64_t now_at = now != NULL && now->until_ms > 0 ? now->until_ms : 0;
    if (rc != 0 || was_at == now_at) return rc;
    rt_long_key old;
    rt_long_key new;
    rt_key_expiry_id(&old, was_at, RT_EXPIRY_LEASE, id);
    rt_key_expiry_id(&new, now_at, RT_EXPIRY_LEASE, id);
    return move_expiry(s, was_at != 0 ? &old : NULL, now_at != 0 ? &new : NULL);
}

static int write_doc(rt_lmdb *s, const rt_doc *was, const rt_doc *now, const planned *plan) {
    const int rc = now == NULL ? rt_lmdb_remove_at(s, RT_TREE_DOCS, plan->key)
                               : rt_lmdb_put_at(s, RT_TREE_DOCS, plan->key, plan->value);
    const int64_t was_at = was != NULL && was->expires_ms > 0 ? was->expires_ms : 0;
    const int64_t now_at = now != NULL && now->expires_ms > 0 ? now->expires_ms : 0;
    if (rc != 0 || was_at == now_at) return rc;
    rt_long_key old;
    rt_long_key new;
    rt_key_expiry_doc(&old, was_at, rt_lmdb_str(&plan->key));
    rt_key_expiry_doc(&new, now_at, rt_lmdb_str(&plan->key));
    return move_expiry(s, was_at != 0 ? &old : NULL, now_at != 0 ? &new : NULL);
}

static int write_op(rt_lmdb *s, const rt_op *op, planned *plan) {
    switch (op->kind) {
    case RT_OP_JOB: return rt_lmdb_write_job(s, op->job.was, op->job.now);
    case RT_OP_QUEUE: return write_queue(s, op->queue.was, op->queue.now, plan);
    case RT_OP_LEASE: return write_lease(s, op->lease.was, op->lease.now, plan);
    case RT_OP_DOC: return write_doc(s, op->doc.was, op->doc.now, plan);
    case RT_OP_BODY: return 0; // written when its users are known
    case RT_OP_EVENT: return rt_lmdb_insert(s, RT_TREE_EVENTS, op->event->seq, &plan->value, 0);
    }
    return EINVAL;
}

void rt_lmdb_break(rt_lmdb *s, int rc, const char *what) {
    if (s->broken) return;
    s->broken = true;
    (void)rt_lmdb_fail(&s->why, rc, what);
}

static void write_change(rt_lmdb *s, const rt_change *change, planned *plans) {
    int rc = 0;
    for (uint32_t i = 0; i < change->ops_count && rc == 0; i++) rc = write_op(s, &change->ops[i], &plans[i]);
    for (uint32_t i = 0; i < s->uses_count && rc == 0; i++) rc = settle_use(s, &s->uses[i]);
    if (rc != 0) rt_lmdb_break(s, rc, "the store cannot write");
}

static void adopt(rt_lmdb *s, const rt_import *import) {
    if (import->ids_from > s->next_id) s->next_id = import->ids_from;
    if (import->seqs_from > s->next_seq) s->next_seq = import->seqs_from;
    s->adopts = true;
    s->tag = import->tag;
}

rt_code rt_lmdb_apply(rt_lmdb *s, const rt_change *change, rt_err *err) {
    RT_ASSERT(change->ops_count <= RT_CHANGE_OPS_MAX);
    RT_ASSERT(change->guards_count <= RT_CHANGE_GUARDS_MAX);
    RT_ASSERT(s->batch.txn != NULL);
    s->importing = change->import != NULL;
    if (!s->broken) {
        planned *plans = rt_arena_alloc(&s->scratch, (change->ops_count + 1) * sizeof *plans);
        rt_code code = plans != NULL ? RT_OK : rt_fail(err, RT_E_NOMEM, ENOMEM, "change");
        if (code == RT_OK) code = check(s, change, plans, err);
        if (code == RT_OK && s->importing) adopt(s, change->import);
        if (code == RT_OK) write_change(s, change, plans);
        forget_uses(s);
        rt_arena_clear(&s->scratch);
        if (code != RT_OK) return code;
    }
    return s->broken ? rt_fail(err, RT_E_UNAVAILABLE, s->why.sys_errno, "%s", s->why.msg) : RT_OK;
}
