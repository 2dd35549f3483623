#include "engine/common/queue.h"
#include "engine/work/work_parts.h"

/* What stands in the way of a session that wants to work. */
typedef enum way { WAY_FREE, WAY_BUSY, WAY_RESTS } way;

static rt_code refuse(rt_tx *tx, rt_work_refusal *out, rt_work_refusal why, const char *words) {
    *out = why;
    return rt_fail(tx->err, RT_E_FENCED, 0, "%s", words);
}

/* ---- may it be worked on? ---------------------------------------------------------------------------- */

static rt_code look(rt_tx *tx, const rt_work_claim *c, const rt_process *process, rt_entity *e, way *out) {
    *out = WAY_BUSY;
    for (uint32_t i = 0; i < e->slots_count; i++) {
        rt_slot *slot = &e->slots[i];
        if (slot->work == 0) continue;
        bool excluded;
        rt_code code = rt_process_excludes(tx, c->tenant, c->process, process, slot->process, &excluded);
        if (code != RT_OK) return code;
        if (!excluded) continue;
        bool dead;
        code = rt_session_is_dead(tx, c->tenant, slot->session, &dead);
        if (code != RT_OK) return code;
        if (!dead) return RT_OK;
    }
    const rt_slot *slot = rt_entity_slot(e, c->process);
    const bool rests = slot != NULL && slot->until_ms > tx->now_ms && !c->ignore_backoff;
    *out = rests ? WAY_RESTS : WAY_FREE;
    return RT_OK;
}

/* ---- taking ------------------------------------------------------------------------------------------ */

/* What excludes the process and belongs to dead sessions ends here, before it would by itself. */
static rt_code clear_dead(rt_tx *tx, const rt_work_claim *c, const rt_process *process, rt_entity *e) {
    for (uint32_t i = 0; i < e->slots_count; i++) {
        rt_slot *slot = &e->slots[i];
        if (slot->work == 0) continue;
        bool excluded;
        rt_code code = rt_process_excludes(tx, c->tenant, c->process, process, slot->process, &excluded);
        if (code == RT_OK && excluded) code = rt_work_drop_dead(tx, e, slot);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

static rt_code put_doc(rt_tx *tx, rt_doc_kind kind, rt_str name, int64_t expires_ms, rt_str value) {
    if (name.ptr == NULL || value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for work");
    const rt_doc doc = {.kind = kind, .name = name, .expires_ms = expires_ms, .value = value};
    rt_tx_put_doc(tx, NULL, &doc);
    return RT_OK;
}

/* Results outlive the decision. */
static rt_code keep(rt_tx *tx, rt_work_claim *c, const rt_work *work, rt_str value) {
    c->work = *work;
    c->work.entity = rt_arena_dup(c->arena, work->entity);
    c->work.process = rt_arena_dup(c->arena, work->process);
    c->value = rt_arena_dup(c->arena, value);
    const bool kept = c->work.entity.ptr != NULL && c->work.process.ptr != NULL && c->value.ptr != NULL;
    c->found = kept;
    return kept ? RT_OK : rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for work");
}

static rt_code take(rt_tx *tx, rt_work_claim *c, const rt_process *process, rt_entity *e) {
    rt_code code = clear_dead(tx, c, process, e);
    if (code != RT_OK) return code;
    rt_slot *slot = rt_entity_slot_add(e, c->process);
    if (slot == NULL) return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "The entity has too many processes.");
    rt_doc rest_doc;
    rt_rest rest = {0};
    code = slot->until_ms == 0 ? RT_E_ABSENT : rt_rest_load(tx, e, c->process, &rest_doc, &rest);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    const rt_work work = {.id = rt_tx_new_id(tx),
                          .session = c->session,
                          .token = rt_rng_next(tx->rng) | 1,
                          .entity = e->name,
                          .process = c->process,
                          .started_ms = tx->now_ms,
                          .previous_s = code == RT_OK ? rest.interval_s : 0};
    slot->work = work.id;
    slot->session = c->session;
    slot->changed = true;
    const rt_history line = {.process = c->process, .session = c->session, .work = work.id};
    const rt_str text = rt_history_write(tx->arena, &line);
    if (text.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for work");
    rt_entity_event(tx, e, (rt_event){.type = RT_EVENT_STARTED, .text = text});
    code = put_doc(tx, RT_DOC_WORK, rt_name_ids(tx->arena, c->tenant, c->session, work.id), 0,
                   rt_work_encode(tx->arena, &work));
    if (code == RT_OK && c->key.len > 0) {
        code = put_doc(tx, RT_DOC_WORK_KEY, rt_name_key(tx->arena, c->tenant, c->session, c->key),
                       tx->now_ms + RT_WORK_END_KEPT_MS, rt_work_encode(tx->arena, &work));
    }
    if (code == RT_OK) code = keep(tx, c, &work, e->value);
    return code == RT_OK ? rt_entity_save(tx, e) : code;
}

/* ---- by candidates ----------------------------------------------------------------------------------- */

static rt_code claim_candidate(rt_tx *tx, rt_work_claim *c, const rt_process *process) {
    const uint32_t count = c->strict && c->candidates_count > 1 ? 1 : c->candidates_count;
    for (uint32_t i = 0; i < count; i++) {
        rt_entity *e;
        way now;
        rt_code code = rt_entity_load(tx, c->tenant, c->candidates[i], &e);
        if (code == RT_OK) code = look(tx, c, process, e, &now);
        if (code != RT_OK) return code;
        if (now == WAY_FREE) {
            e->gone = false; // who names it wants it back
            return take(tx, c, process, e);
        }
        c->topics[i] = rt_entity_topic(c->tenant, c->candidates[i]);
        if (!c->strict) continue;
        return refuse(tx, &c->refusal, RT_WORK_BUSY,
                      now == WAY_RESTS ? "The candidate is in backoff."
                                       : "The candidate is worked on, by this or an excluded process.");
    }
    c->wait.one = false;
    c->wait.topics_count = c->candidates_count;
    return RT_OK;
}

/* ---- by kind ----------------------------------------------------------------------------------------- */

typedef struct search {
    rt_tx *tx;
    const rt_work_claim *c;
    const rt_process *process;
    rt_entity *found;
    uint32_t looks;
    rt_code code;
} search;

static bool look_at_job(void *ctx, const rt_job *job) {
    search *s = ctx;
    rt_str name;
    rt_entity *e;
    way now = WAY_BUSY;
    s->code = rt_view_body(s->tx->view, job->body, &name);
    if (s->code == RT_OK) s->code = rt_entity_load(s->tx, s->c->tenant, name, &e);
    if (s->code == RT_OK) s->code = look(s->tx, s->c, s->process, e, &now);
    if (s->code != RT_OK) return false;
    if (now == WAY_FREE) s->found = e;
    return now != WAY_FREE && ++s->looks < RT_CLAIM_LOOKS_MAX;
}

static rt_code claim_kind(rt_tx *tx, rt_work_claim *c, const rt_process *process) {
    rt_id queue;
    rt_code code = rt_entity_queue(tx, c->tenant, c->kind, c->process, &queue);
    c->wait.one = code == RT_OK;
    c->wait.topics_count = 1;
    c->topics[0] = code == RT_OK ? queue : rt_entity_queue_topic(c->tenant, c->kind, c->process);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    bool paused;
    code = rt_queue_is_paused(tx, queue, &paused);
    if (code != RT_OK || paused) return code;
    search s = {.tx = tx, .c = c, .process = process};
    const rt_job_range ready = {.index = RT_INDEX_FREE, .queue = queue, .to_take = true};
    code = rt_view_jobs(tx->view, &ready, look_at_job, &s);
    if (code == RT_OK && s.code == RT_OK &&
        s.found == NULL) { // what has rested enough in this very moment, or any
        const int64_t until_ms = c->ignore_backoff ? INT64_MAX : tx->now_ms;
        const rt_job_range due = {
            .index = RT_INDEX_DUE, .queue = queue, .until_ms = until_ms, .to_take = true};
        code = rt_view_jobs(tx->view, &due, look_at_job, &s);
    }
    if (code == RT_OK) code = s.code;
    if (code != RT_OK || s.found == NULL) return code;
    return take(tx, c, process, s.found);
}

/* ---- command ----------------------------------------------------------------------------------------- */

/* The same claim came before and its answer was lost. */
static rt_code find_repeated(rt_tx *tx, rt_work_claim *c) {
    rt_doc doc;
    rt_work work;
    const rt_str name = rt_name_key(tx->arena, c->tenant, c->session, c->key);
    const rt_code code = rt_work_load(tx, RT_DOC_WORK_KEY, name, &doc, &work);
    if (code != RT_OK) return code;
    rt_entity *e;
    const rt_code loaded = rt_entity_load(tx, c->tenant, work.entity, &e);
    return loaded == RT_OK ? keep(tx, c, &work, e->value) : loaded;
}

static rt_code decide_claim(rt_tx *tx, rt_command *cmd) {
    rt_work_claim *c = (rt_work_claim *)cmd;
    RT_ASSERT(c->candidates_count <= RT_CLAIM_CANDIDATES_MAX);
    tx->frees = true; // a store that is full is emptied by those who get something done
    c->found = false;
    c->refusal = RT_WORK_DEAD;
    c->wait.topics = c->topics;
    c->wait.topics_count = 0;
    int64_t deadline_ms;
    rt_code code = rt_session_alive(tx, c->tenant, c->session, &deadline_ms);
    if (code != RT_OK) return code;
    if (c->key.len > 0) {
        code = find_repeated(tx, c);
        if (code != RT_E_ABSENT) return code;
    }
    rt_process process;
    code = rt_process_load(tx, c->tenant, c->process, &process);
    if (code != RT_OK) return code;
    code = c->candidates != NULL ? claim_candidate(tx, c, &process) : claim_kind(tx, c, &process);
    if (code != RT_OK || c->found || c->wait_until_ms <= tx->now_ms) return code;
    // It wakes when the session ends as well, to be told so.
    c->wait.until_ms = c->wait_until_ms < deadline_ms ? c->wait_until_ms : deadline_ms;
    cmd->wait = &c->wait;
    return RT_OK;
}

void rt_work_claim_init(rt_work_claim *c) { *c = (rt_work_claim){.cmd = {.decide = decide_claim}}; }
