/* worker.c: plugins and HTTP workers: what they say about a run, and when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "site.h"

enum { MARGIN_MS = 5000 };

/* ---- words --------------------------------------------------------------------------------------------- */

#define TEN(x) x x x x x x x x x x
static const char *const TASKS[] = {"check", "issue \"it\"", "pay"};
static const char *const ARGS[] = {"[]", "[1, 2]", "[\"\xc3\xa4\", null]"};
static const char *const KWARGS[] = {"{}", "{\"k\": [true]}"};
static const char *const STATUSES[] = {"waiting", "",
                                       TEN("\xc3\xa4\xe2\x82\xac,-")}; /* the last: 40 characters */
static const char *const MESSAGES[] = {"for the CA",
                                       TEN(TEN("\xf0\x9f\x98\x80\xc3\xa4."))}; /* 300 characters */
static const char *const CODES[] = {"400", "409", "a code that is far too long"};
static const char *const REASONS[] = {"no such algorithm", TEN(TEN("\xe2\x82\xac\xc3\xa4x"))};

#define ONE_OF(s, list) ((list)[site_below((s), sizeof(list) / sizeof(list)[0])])

static rt_run_action choose_action(site *s) {
    const uint64_t dice = site_below(s, 100);
    if (s->calm || dice < 25) return RT_RUN_DONE;
    if (dice < 33) return RT_RUN_FAILED;
    return dice < 80 ? RT_RUN_RETRY : RT_RUN_UNAVAILABLE;
}

static words choose_answer(site *s) {
    words w = {
        .say = SAY_ANSWER, .status = 200, .retry_after_ms = -1, .after_ms = -1, .action = choose_action(s)};
    if (site_chance(s, 500)) (void)snprintf(w.state, sizeof w.state, "s%u \"\xc3\xa4\"", s->runs_count);
    if (site_chance(s, 300)) w.sub_status = ONE_OF(s, STATUSES);
    if (site_chance(s, 300)) w.message = ONE_OF(s, MESSAGES);
    if (w.action == RT_RUN_DONE) w.made = (uint8_t)site_below(s, 4);
    if (w.action == RT_RUN_FAILED && site_chance(s, 700)) w.code = ONE_OF(s, CODES);
    if (w.action == RT_RUN_FAILED && site_chance(s, 700)) w.reason = ONE_OF(s, REASONS);
    if (w.action == RT_RUN_RETRY) w.after_ms = site_chance(s, 300) ? 0 : site_draw(s, 1, 15000);
    if (w.action == RT_RUN_UNAVAILABLE && site_chance(s, 400)) w.after_ms = site_draw(s, 0, 9000);
    if (w.action != RT_RUN_RETRY) return w;
    if (site_chance(s, 500)) w.task = ONE_OF(s, TASKS);
    if (site_chance(s, 500)) w.args = ONE_OF(s, ARGS);
    if (site_chance(s, 500)) w.kwargs = ONE_OF(s, KWARGS);
    return w;
}

static words choose(site *s, uint32_t type) {
    static const uint16_t ODD[] = {500, 503, 503, 429, 429, 404, 302, 204};
    words w = choose_answer(s);
    const uint64_t dice = site_below(s, 100);
    if (s->calm || dice < 60) return w;
    if (dice < 65) w.say = SAY_NONSENSE;
    else if (dice < 70) w.say = SAY_TIMEOUT;
    else if (dice < 74) w.say = SAY_NOTHING;
    else if (type == TYPE_PLUG) w.say = SAY_CRASH;
    else if (dice < 90) w.say = SAY_ACCEPT;
    else w.say = SAY_STATUS;
    if (w.say != SAY_STATUS) return w;
    w.status = ONE_OF(s, ODD);
    w.retry_after_ms = site_chance(s, 500) ? site_draw(s, 0, 9) * 1000 : -1;
    return w;
}

/* ---- as an answer -------------------------------------------------------------------------------------- */

rt_run_answer worker_answer(const words *w) {
    rt_run_answer a = {.action = w->action, .after_ms = w->after_ms};
    a.has_task = w->task != NULL;
    a.has_args = w->args != NULL;
    a.has_kwargs = w->kwargs != NULL;
    a.has_state = w->state[0] != '\0';
    a.has_progress = w->sub_status != NULL || w->message != NULL;
    a.task = rt_str_of(w->task);
    a.args = rt_str_of(w->args);
    a.kwargs = rt_str_of(w->kwargs);
    a.state = rt_str_of(w->state);
    a.sub_status = rt_str_of(w->sub_status);
    a.message = rt_str_of(w->message);
    a.code = rt_str_of(w->code);
    a.reason = rt_str_of(w->reason);
    a.container = w->made == 2;
    a.secrets_count = w->made < 3 ? w->made : 0;
    for (uint32_t i = 0; i < a.secrets_count; i++) {
        a.secrets[i] =
            (rt_run_secret){.role = i == 0 ? RT_STR("one") : RT_STR("two"), .payload = RT_STR("p")};
    }
    if (w->made == 3) a.secret_ref = RT_STR("http://x/1");
    return a;
}

static void add_text(rt_buf *b, const char *name, const char *text) {
    if (text == NULL) return;
    rt_buf_addf(b, ",\"%s\":", name);
    rt_quote(b, rt_str_of(text));
}

static void add_json(rt_buf *b, const char *name, const char *json) {
    if (json != NULL) rt_buf_addf(b, ",\"%s\":%s", name, json);
}

static void write_answer(rt_buf *b, const words *w) {
    static const char *const ACTIONS[] = {"done", "failed", "retry", "unavailable"};
    static const char *const MADE[] = {
        "", ",\"secret\":{\"payload\":\"p\"}",
        ",\"container\":{\"secrets\":{\"one\":{\"payload\":\"p\"},\"two\":{\"payload\":\"p\"}}}",
        ",\"secret_ref\":\"http://x/1\""};
    rt_buf_addf(b, "{\"action\":\"%s\"", ACTIONS[w->action]);
    if (w->after_ms >= 0) rt_buf_addf(b, ",\"after_ms\":%lld", (long long)w->after_ms);
    add_text(b, "state", w->state[0] == '\0' ? NULL : w->state);
    add_text(b, "sub_status", w->sub_status);
    add_text(b, "message", w->message);
    add_text(b, "code", w->code);
    add_text(b, "reason", w->reason);
    add_text(b, "task", w->task);
    add_json(b, "args", w->args);
    add_json(b, "kwargs", w->kwargs);
    rt_buf_addf(b, "%s}", MADE[w->made]);
}

/* ---- telling ------------------------------------------------------------------------------------------- */

static rt_outcome outcome_of(const run *r) {
    const words *w = &r->words;
    rt_outcome o = {
        .job = r->job, .token = r->token, .reason = RT_REASON_STATUS, .took_ms = 1, .retry_after_ms = -1};
    rt_buf b = {0};
    switch (w->say) {
    case SAY_TIMEOUT: o.reason = RT_REASON_TIMEOUT; break;
    case SAY_CRASH: o.reason = RT_REASON_CRASHED; break;
    case SAY_ACCEPT: o.status = 202; break;
    case SAY_STATUS:
        o.status = w->status;
        o.retry_after_ms = w->retry_after_ms;
        o.text_len = 3;
        memcpy(o.text, "odd", 3);
        break;
    case SAY_NONSENSE:
        o.status = 200;
        rt_buf_add(&b, RT_STR("{\"action\":"));
        break;
    case SAY_ANSWER:
    case SAY_NOTHING:
        o.status = 200;
        write_answer(&b, w);
        break;
    }
    if (b.failed) abort();
    o.answer = b.ptr; // the engine frees it
    o.answer_len = (uint32_t)b.len;
    return o;
}

static void tell(site *s, run *r) {
    node *n = &s->nodes[r->node];
    if (n->paused_until_ms > s->now_ms) { // its executor stands still with it
        r->tell_ms = n->paused_until_ms;
        return;
    }
    r->tell_ms = INT64_MAX;
    const rt_outcome o = outcome_of(r);
    if (r->words.say == SAY_ACCEPT) r->accepted_wall_ms = site_wall_ms(s);
    else r->said = true;
    site_mix(s, r->token ^ o.status);
    rt_engine_outcome(n->engine, &o);
    n->wake_ms = s->now_ms;
}

static bool is_silent(const run *r) {
    return r->tell_ms == INT64_MAX && r->put_ms == INT64_MAX && !r->putting;
}

void worker_act(site *s) {
    while (s->runs_first < s->runs_count && is_silent(&s->runs[s->runs_first])) s->runs_first++;
    for (uint32_t i = s->runs_first; i < s->runs_count; i++) {
        run *r = &s->runs[i];
        if (r->tell_ms <= s->now_ms) tell(s, r);
        if (r->put_ms > s->now_ms) continue;
        r->put_ms = INT64_MAX;
        r->said = true;
        r->putting = client_put(s, r);
        if (!r->putting) r->put_ms = s->now_ms + 500;
    }
}

int64_t worker_next_ms(const site *s) {
    int64_t next = INT64_MAX;
    for (uint32_t i = s->runs_first; i < s->runs_count; i++) {
        const run *r = &s->runs[i];
        if (r->tell_ms < next) next = r->tell_ms;
        if (r->put_ms < next) next = r->put_ms;
    }
    return next;
}

void worker_forget(site *s, const node *n) {
    for (uint32_t i = s->runs_first; i < s->runs_count; i++) {
        run *r = &s->runs[i];
        // A worker goes on, whatever becomes of the server, and comes with a token that is stale.
        if (r->node == n->number) r->tell_ms = INT64_MAX;
    }
}

/* ---- the port ------------------------------------------------------------------------------------------ */

static void plan(site *s, run *r, uint32_t type) {
    r->words = choose(s, type);
    if (r->cancel) r->words.say = site_chance(s, 300) ? SAY_CRASH : SAY_ANSWER;
    r->put_ms = INT64_MAX;
    r->tell_ms = s->now_ms + site_draw(s, 1, 400);
    if (r->words.say == SAY_TIMEOUT) r->tell_ms = s->now_ms + s->run_limit_ms + site_draw(s, 0, 1000);
    if (r->words.say == SAY_NOTHING) r->tell_ms = INT64_MAX;
    else if (!s->calm && !r->cancel && site_chance(s, 40)) // too late
        r->tell_ms = s->now_ms + s->run_limit_ms + MARGIN_MS + site_draw(s, 0, 9000);
    if (r->words.say != SAY_ACCEPT) return;
    const int64_t answer_ms = site_draw(s, 1, site_chance(s, 500) ? 400 : ANSWER_LIMIT_S * 1300);
    const int64_t lost_ms = s->run_limit_ms + MARGIN_MS + site_draw(s, 0, 10);
    // At times before it is accepted, when nobody wants it any more, or just when it is given up.
    if (site_chance(s, 900)) r->put_ms = s->now_ms + answer_ms;
    if (site_chance(s, 300)) r->put_ms = r->tell_ms + site_draw(s, 0, 6); // in the same moment
    if (!site_chance(s, 200)) return;
    r->tell_ms = INT64_MAX;
    r->put_ms = s->now_ms + lost_ms;
}

static void start(void *ctx, rt_attempt *attempt) {
    node *n = ctx;
    site *s = n->site;
    MUST(s, s->runs_count < RUNS_MAX, "too many runs for this simulation");
    site_look(s);
    run *r = &s->runs[s->runs_count++];
    *r = (run){
        .node = n->number,
        .life = n->life,
        .token = attempt->token,
        .job = attempt->job,
        .attempt = attempt->number,
        .started_wall_ms = site_wall_ms(s),
        .jumps = s->jumps,
    };
    books_start(s, r, attempt);
    plan(s, r, s->orders[r->order].type);
    rt_attempt_free(attempt);
}

rt_executor worker_executor(node *n) { return (rt_executor){.ctx = n, .start = start}; }
