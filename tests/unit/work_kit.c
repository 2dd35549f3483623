#include "work_kit.h"

static void prepare(kit *k) { k->settings.history_ms = WORK_HISTORY_MS; }

int work_setup(void **state) {
    const int failed = kit_setup(state);
    prepare(*state);
    return failed;
}

int work_setup_troubled(void **state) {
    const int failed = kit_setup_troubled(state);
    prepare(*state);
    return failed;
}

/* ---- sessions ------------------------------------------------------------------------------------------ */

rt_id work_session(kit *k, uint32_t interval_s) {
    rt_session_create c;
    rt_session_create_init(&c);
    c.tenant = RT_STR("p");
    c.interval_s = interval_s;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(c.deadline_ms, k->now_ms + (int64_t)interval_s * 1000);
    return c.id;
}

rt_code work_beat(kit *k, rt_id session, int64_t *deadline_ms) {
    rt_session_beat c;
    rt_session_beat_init(&c);
    c.tenant = RT_STR("p");
    c.id = session;
    const rt_code code = kit_run(k, &c.cmd);
    if (code == RT_OK && deadline_ms != NULL) *deadline_ms = c.deadline_ms;
    return code;
}

rt_code work_close(kit *k, rt_id session) {
    rt_session_close c;
    rt_session_close_init(&c);
    c.tenant = RT_STR("p");
    c.id = session;
    return kit_run(k, &c.cmd);
}

/* ---- processes, entities ------------------------------------------------------------------------------- */

rt_backoff work_backoff(uint64_t initial_s, uint64_t maximum_s, double exponent) {
    return (rt_backoff){.given = true,
                        .descriptor = {.initial_ns = initial_s * 1000000000,
                                       .maximum_ns = maximum_s * 1000000000,
                                       .exponent = exponent}};
}

void work_process(kit *k, const char *name, const char *excludes, const rt_backoff *backoff) {
    rt_process_put c;
    rt_process_put_init(&c);
    c.tenant = RT_STR("p");
    c.name = rt_str_of(name);
    if (excludes != NULL) c.like.excludes[c.like.excludes_count++] = rt_str_of(excludes);
    if (backoff != NULL) c.like.backoff = *backoff;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
}

void work_put(kit *k, const char *entity) {
    rt_entity_put c;
    rt_entity_put_init(&c);
    c.tenant = RT_STR("p");
    c.name = rt_str_of(entity);
    c.kind = RT_STR("machine");
    c.value = RT_STR("{}");
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
}

rt_code work_delete(kit *k, const char *entity) {
    rt_entity_delete c;
    rt_entity_delete_init(&c);
    c.tenant = RT_STR("p");
    c.name = rt_str_of(entity);
    return kit_run(k, &c.cmd);
}

/* ---- work ---------------------------------------------------------------------------------------------- */

static rt_work_claim claim_of(kit *k, rt_id session, const char *process) {
    rt_work_claim c;
    rt_work_claim_init(&c);
    c.tenant = RT_STR("p");
    c.session = session;
    c.process = rt_str_of(process);
    c.arena = &k->out;
    return c;
}

rt_work_claim work_claim_kind(kit *k, rt_id session, const char *process) {
    rt_work_claim c = claim_of(k, session, process);
    c.kind = RT_STR("machine");
    c.cmd.code = kit_run(k, &c.cmd);
    return c;
}

static rt_work_claim claim_one(kit *k, rt_id session, const char *process, const char *entity, bool strict,
                               bool ignore_backoff) {
    const rt_str name = rt_str_of(entity);
    rt_work_claim c = claim_of(k, session, process);
    c.candidates = &name;
    c.candidates_count = 1;
    c.strict = strict;
    c.ignore_backoff = ignore_backoff;
    c.cmd.code = kit_run(k, &c.cmd);
    c.candidates = NULL;
    return c;
}

rt_work_claim work_claim(kit *k, rt_id session, const char *process, const char *entity) {
    return claim_one(k, session, process, entity, false, false);
}

rt_work_claim work_claim_strict(kit *k, rt_id session, const char *process, const char *entity,
                                bool ignore_backoff) {
    return claim_one(k, session, process, entity, true, ignore_backoff);
}

static rt_work_end end_of(kit *k, const rt_work *work, rt_event_type verb) {
    rt_work_end c;
    rt_work_end_init(&c);
    c.tenant = RT_STR("p");
    c.id = work->id;
    c.session = work->session;
    c.token = work->token;
    c.verb = verb;
    c.cause = RT_STR("cause");
    c.arena = &k->out;
    return c;
}

rt_work_end work_end(kit *k, const rt_work *work, rt_event_type verb) {
    rt_work_end c = end_of(k, work, verb);
    c.cmd.code = kit_run(k, &c.cmd);
    return c;
}

rt_work_end work_fail(kit *k, const rt_work *work, const char *cause) {
    rt_work_end c = end_of(k, work, RT_EVENT_FAILED);
    c.cause = rt_str_of(cause);
    c.cmd.code = kit_run(k, &c.cmd);
    return c;
}

/* ---- what is stored ------------------------------------------------------------------------------------ */

rt_entity work_entity(kit *k, const char *name) {
    rt_entity *e = rt_arena_alloc(&k->out, sizeof *e);
    assert_non_null(e);
    const rt_code code = rt_read_entity(kit_view(k), &k->out, RT_STR("p"), rt_str_of(name), e);
    assert_true(code == RT_OK || code == RT_E_ABSENT);
    return *e;
}

bool work_has_rest(kit *k, const char *entity, const char *process, rt_rest *out) {
    rt_rest rest;
    const rt_code code =
        rt_read_rest(kit_view(k), &k->out, RT_STR("p"), rt_str_of(entity), rt_str_of(process), &rest);
    assert_true(code == RT_OK || code == RT_E_ABSENT);
    if (code == RT_OK && out != NULL) *out = rest;
    return code == RT_OK;
}

typedef struct letters {
    char text[256];
    size_t at; /* filled from the end */
} letters;

static bool add_letter(void *ctx, const rt_event *event, const rt_history *h) {
    static const char LETTERS[RT_EVENT_TYPE_COUNT] = {[RT_EVENT_STARTED] = 'S',
                                                      [RT_EVENT_FINISHED] = 'D',
                                                      [RT_EVENT_FAILED] = 'F',
                                                      [RT_EVENT_CANCELED] = 'C',
                                                      [RT_EVENT_EXPIRED] = 'X'};
    letters *l = ctx;
    (void)h;
    assert_true(l->at > 0);
    l->text[--l->at] = LETTERS[event->type];
    return true;
}

const char *work_history(kit *k, const char *entity) {
    static letters l;
    l = (letters){.at = sizeof l.text - 1};
    rt_entity e = work_entity(k, entity);
    assert_int_equal(rt_read_history(kit_view(k), &e, 0, add_letter, &l), RT_OK);
    return l.text + l.at;
}

rt_job work_job(kit *k, const char *entity, const char *process) {
    rt_entity e = work_entity(k, entity);
    const rt_slot *slot = rt_entity_slot(&e, rt_str_of(process));
    return slot == NULL ? (rt_job){.state = RT_JOB_NONE} : kit_job(k, slot->job);
}
