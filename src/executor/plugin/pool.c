#include "executor/plugin/pool.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/utf8.h"
#include "os/clock.h"

enum {
    START_MS_MAX = 10000, /* for loading and init */
    START_DELAY_MS_MIN = 100,
    START_DELAY_MS_MAX = 10000,
    IDLE_MS_MAX = 60000,
    LEAVE_MS_MAX = 1000, /* between being told to go and being killed */
    LAST_WORDS_MAX = 16  /* reads of what an ended process has printed: all that fits into a pipe */
};

/* ---- outcomes ------------------------------------------------------------------------------------------ */

/* The text goes into histories and logs: UTF-8 without control characters. */
static void set_text(rt_outcome *out, const char *text) {
    const rt_str s = rt_str_of(text);
    const bool utf8 = s.len <= sizeof out->text && rt_utf8_is_valid(s);
    out->text_len = (uint16_t)(s.len < sizeof out->text ? s.len : sizeof out->text);
    for (size_t i = 0; i < out->text_len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        out->text[i] = c < ' ' || c == 0x7f || (c >= 0x80 && !utf8) ? '?' : (char)c;
    }
}

static rt_outcome outcome_of(const rt_attempt *attempt, rt_reason reason, const char *why) {
    rt_outcome out = {.job = attempt->job, .token = attempt->token, .reason = reason, .retry_after_ms = -1};
    set_text(&out, why);
    return out;
}

void rt_pools_refuse(rt_pools *all, rt_attempt *attempt, rt_reason reason, const char *why) {
    const rt_outcome out = outcome_of(attempt, reason, why);
    rt_attempt_free(attempt);
    all->cfg.outcome(all->cfg.ctx, &out);
}

static void unqueue(rt_run *run) {
    rt_pool *pool = run->pool;
    if (run->prev != NULL) run->prev->next = run->next;
    else pool->first = run->next;
    if (run->next != NULL) run->next->prev = run->prev;
    else pool->last = run->prev;
    run->next = run->prev = NULL;
    pool->waiting--;
}

void rt_run_drop(rt_run *run) {
    if (run->process != NULL) run->process->run = NULL;
    else unqueue(run);
    rt_heap_remove(&run->pool->all->deadlines, &run->deadline);
    rt_attempt_free(run->attempt);
    free(run);
}

static void finish(rt_run *run, rt_outcome *out) {
    const rt_plugins_config *cfg = &run->pool->all->cfg;
    out->took_ms = (uint32_t)(rt_mono_ms() - run->began_ms);
    rt_run_drop(run);
    cfg->outcome(cfg->ctx, out);
}

static void fail(rt_run *run, rt_reason reason, const char *why) {
    rt_outcome out = outcome_of(run->attempt, reason, why);
    finish(run, &out);
}

/* ---- processes ----------------------------------------------------------------------------------------- */

static void say(const rt_pool *pool, const char *line) {
    pool->all->cfg.say(pool->all->cfg.say_ctx, rt_str_of(pool->name), rt_str_of(line));
}

static void say_printed(void *ctx, rt_str line) {
    const rt_pool *pool = ctx;
    pool->all->cfg.say(pool->all->cfg.say_ctx, rt_str_of(pool->name), line);
}

/* Into a state in which it is looked at again after `ms`. A timer that does not fit into memory never rings;
 * then the deadline of its next run ends it. */
static void enter(rt_process *p, rt_process_state state, int64_t at_ms) {
    p->state = state;
    (void)rt_heap_set(&p->pool->all->timers, &p->timer, at_ms);
}

static void send_away(rt_process *p, int64_t now_ms) {
    rt_process_hang_up(p);
    enter(p, RT_PROCESS_LEAVING, now_ms + LEAVE_MS_MAX);
}

static void kill_process(rt_process *p) {
    rt_process_kill(p);
    rt_heap_remove(&p->pool->all->timers, &p->timer);
    p->state = RT_PROCESS_LEAVING;
}

static bool is_same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* NULL: none. Sends those away that have loaded what the file was before. */
static rt_process *find_idle(rt_pool *pool, int64_t now_ms) {
    for (rt_process *p = pool->processes; p != NULL; p = p->next) {
        if (p->state != RT_PROCESS_IDLE) continue;
        if (is_same_file(&p->file, &pool->file)) return p;
        send_away(p, now_ms);
    }
    return NULL;
}

static uint32_t count_of(const rt_pool *pool, rt_process_state state) {
    uint32_t count = 0;
    for (const rt_process *p = pool->processes; p != NULL; p = p->next) count += p->state == state;
    return count;
}

/* Nobody is started for a while, longer each time; who comes meanwhile is told why. */
static void start_failed(rt_pool *pool, rt_reason reason, const char *why, int64_t now_ms) {
    const uint32_t doubled = pool->start_delay_ms * 2;
    pool->start_delay_ms = doubled < START_DELAY_MS_MIN   ? START_DELAY_MS_MIN
                           : doubled > START_DELAY_MS_MAX ? START_DELAY_MS_MAX
                                                          : doubled;
    pool->start_at_ms = now_ms + pool->start_delay_ms;
    pool->problem = reason;
    (void)snprintf(pool->problem_text, sizeof pool->problem_text, "%s", why);
    say(pool, pool->problem_text);
}

static bool start_one(rt_pool *pool, int64_t now_ms) {
    rt_process *p;
    rt_err err = {.msg = ""};
    const rt_code code = rt_process_start(pool->name, pool->path, &pool->file, rt_str_of(pool->settings),
                                          pool->all->epoll_fd, &p, &err);
    if (code != RT_OK) {
        start_failed(pool, RT_REASON_UNAVAILABLE, err.msg, now_ms);
        return false;
    }
    p->pool = pool;
    p->next = pool->processes;
    pool->processes = p;
    pool->count++;
    pool->all->processes++;
    enter(p, RT_PROCESS_STARTING, now_ms + START_MS_MAX);
    return true;
}

/* ---- who is next --------------------------------------------------------------------------------------- */

static void begin(rt_run *run, rt_process *p) {
    const rt_attempt *a = run->attempt;
    const bool bounded = a->answer_max > 0 && a->answer_max < RT_PLUGIN_ANSWER_MAX;
    p->answer_max = bounded ? a->answer_max : RT_PLUGIN_ANSWER_MAX;
    if (!rt_process_send_run(p, p->answer_max, a->body)) {
        fail(run, RT_REASON_UNAVAILABLE, "out of memory");
        return;
    }
    unqueue(run);
    run->process = p;
    p->run = run;
    rt_heap_remove(&p->pool->all->timers, &p->timer);
    p->state = RT_PROCESS_BUSY;
}

static void serve(rt_pool *pool, int64_t now_ms) {
    while (pool->first != NULL) {
        rt_process *idle = find_idle(pool, now_ms);
        if (idle == NULL) break;
        begin(pool->first, idle);
    }
    uint32_t starting = count_of(pool, RT_PROCESS_STARTING);
    while (starting < pool->waiting && pool->count < pool->all->cfg.processes &&
           now_ms >= pool->start_at_ms) {
        if (!start_one(pool, now_ms)) break;
        starting++;
    }
    // Nobody is there who could take them, and nobody may be started.
    const bool hopeless = pool->count == count_of(pool, RT_PROCESS_LEAVING) && now_ms < pool->start_at_ms;
    while (hopeless && pool->first != NULL) fail(pool->first, pool->problem, pool->problem_text);
}

void rt_pool_take(rt_pool *pool, rt_attempt *attempt, const struct stat *file, int64_t now_ms) {
    rt_run *run = calloc(1, sizeof *run);
    if (run == NULL || !rt_heap_set(&pool->all->deadlines, &run->deadline, now_ms + attempt->timeout_ms)) {
        free(run);
        rt_pools_refuse(pool->all, attempt, RT_REASON_UNAVAILABLE, "out of memory");
        return;
    }
    run->pool = pool;
    run->attempt = attempt;
    run->began_ms = now_ms;
    run->prev = pool->last;
    if (pool->last != NULL) pool->last->next = run;
    else pool->first = run;
    pool->last = run;
    pool->waiting++;
    // A file that was replaced may start at once, whatever the one before it did.
    if (!is_same_file(file, &pool->file)) pool->start_at_ms = pool->start_delay_ms = 0;
    pool->file = *file;
    serve(pool, now_ms);
}

void rt_run_expire(rt_run *run, int64_t now_ms) {
    rt_pool *pool = run->pool;
    rt_process *p = run->process;
    if (p == NULL) {
        fail(run, RT_REASON_TIMEOUT, "no turn in time: all processes of the plugin were busy");
        return;
    }
    kill_process(p);
    say(pool, "no answer in time: killed");
    fail(run, RT_REASON_TIMEOUT, "no answer in time: the plugin's process was killed");
    serve(pool, now_ms);
}

/* ---- what processes do --------------------------------------------------------------------------------- */

static void nonsense(rt_process *p, const char *why, int64_t now_ms) {
    rt_run *run = p->run;
    kill_process(p);
    // Without a run nobody would pay for it, and it would be started again and again.
    if (run == NULL) {
        start_failed(p->pool, RT_REASON_NONSENSE, why, now_ms);
    } else {
        say(p->pool, why);
        fail(run, RT_REASON_NONSENSE, why);
    }
}

/* Takes the body of an answer. */
static void answered(rt_process *p, int64_t now_ms) {
    rt_run *run = p->run;
    rt_outcome out = outcome_of(run->attempt, RT_REASON_STATUS, "");
    out.status = 200;
    if (run->attempt->answer_max > 0) {
        out.answer = p->in.body;
        out.answer_len = p->in.len;
        p->in.body = NULL;
    }
    finish(run, &out);
    enter(p, RT_PROCESS_IDLE, now_ms + IDLE_MS_MAX);
}

static void fell_short(rt_process *p, rt_reason reason, const char *why, int64_t now_ms) {
    fail(p->run, reason, why);
    enter(p, RT_PROCESS_IDLE, now_ms + IDLE_MS_MAX);
}

static void take_frame(rt_process *p, int64_t now_ms) {
    char text[RT_FRAME_WORDS_MAX];
    const bool starting = p->state == RT_PROCESS_STARTING, busy = p->state == RT_PROCESS_BUSY;
    const rt_frame_kind kind = p->in.kind;
    if (starting && kind == RT_FRAME_READY) {
        p->pool->start_delay_ms = 0;
        enter(p, RT_PROCESS_IDLE, now_ms + IDLE_MS_MAX);
    } else if (starting && kind == RT_FRAME_PROBLEM) {
        send_away(p, now_ms);
        start_failed(p->pool, RT_REASON_NO_PLUGIN, p->in.body, now_ms);
    } else if (busy && kind == RT_FRAME_ANSWER && p->in.len <= p->answer_max) {
        answered(p, now_ms);
    } else if (busy && kind == RT_FRAME_TOO_LARGE) {
        (void)snprintf(text, sizeof text, "the answer is longer than %u bytes", (unsigned)p->answer_max);
        fell_short(p, RT_REASON_BROKEN, text, now_ms);
    } else if (busy && kind == RT_FRAME_NONSENSE) {
        fell_short(p, RT_REASON_NONSENSE, p->in.body, now_ms);
    } else {
        nonsense(p, "the plugin's process spoke without being asked: killed", now_ms);
    }
    rt_frame_clear(&p->in);
}

static void close_socket(rt_process *p) {
    if (p->fd >= 0) (void)close(p->fd);
    p->fd = -1;
}

static void read_socket(rt_process *p, int64_t now_ms) {
    while (p->fd >= 0 && p->state != RT_PROCESS_LEAVING) {
        const uint32_t max =
            p->state == RT_PROCESS_BUSY ? p->answer_max + RT_FRAME_WORDS_MAX : RT_FRAME_WORDS_MAX;
        switch (rt_frame_read(&p->in, p->fd, max)) {
        case RT_FRAME_WHOLE: take_frame(p, now_ms); break;
        case RT_FRAME_MORE: return;
        case RT_FRAME_BAD: nonsense(p, "the plugin's process wrote what is no answer: killed", now_ms); break;
        case RT_FRAME_CLOSED:
            // As a rule it is just dying, and its end will say how; one that lives on without us does so not for long.
            close_socket(p);
            p->remark = "hung up";
            (void)rt_heap_set(&p->pool->all->timers, &p->timer, now_ms + LEAVE_MS_MAX);
            return;
        }
    }
    // Nobody reads on, and nobody should be told again and again that there is something.
    close_socket(p);
}

static void unlink_process(rt_process *p) {
    rt_process **at = &p->pool->processes;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    p->pool->count--;
    p->pool->all->processes--;
    rt_heap_remove(&p->pool->all->timers, &p->timer);
    p->next = p->pool->all->ended;
    p->pool->all->ended = p;
}

static void ended(rt_process *p, int64_t now_ms) {
    rt_pool *pool = p->pool;
    char words[128], text[RT_EVENT_TEXT_MAX];
    read_socket(p, now_ms); // an answer may have been its last word
    for (int i = 0; i < LAST_WORDS_MAX; i++) rt_process_take_printed(p, now_ms, say_printed, pool);
    if (!rt_process_ended(p, words, sizeof words)) return;
    const char *how = p->timer_killed && p->remark != NULL ? p->remark : words;
    const bool starting = p->state == RT_PROCESS_STARTING;
    (void)snprintf(text, sizeof text, "the plugin's process %s%s", how, starting ? " while it started" : "");
    unlink_process(p);
    if (starting) {
        start_failed(pool, RT_REASON_CRASHED, text, now_ms);
    } else if (p->run != NULL) {
        say(pool, text);
        fail(p->run, RT_REASON_CRASHED, text);
    }
    serve(pool, now_ms);
}

void rt_pool_event(const rt_watch *watch, uint32_t events, int64_t now_ms) {
    rt_process *p = watch->process;
    if (p->pid == 0) return; // ended earlier in this batch
    switch (watch->what) {
    case RT_WATCH_SOCKET:
        if ((events & EPOLLOUT) != 0) (void)rt_process_send(p); // a child that has hung up is seen by its end
        if ((events & ~(uint32_t)EPOLLOUT) != 0) read_socket(p, now_ms);
        serve(p->pool, now_ms);
        break;
    case RT_WATCH_PRINTED: rt_process_take_printed(p, now_ms, say_printed, p->pool); break;
    case RT_WATCH_END: ended(p, now_ms); break;
    case RT_WATCH_COUNT: break;
    }
}

void rt_pool_timer(rt_process *p, int64_t now_ms) {
    rt_heap_remove(&p->pool->all->timers, &p->timer);
    if (p->state == RT_PROCESS_IDLE && p->fd >= 0) {
        send_away(p, now_ms);
        return;
    }
    if (p->state == RT_PROCESS_STARTING && p->remark == NULL) p->remark = "did not load in time";
    p->timer_killed = true;
    rt_process_kill(p);
}

/* ---- beginning and end --------------------------------------------------------------------------------- */

static char *settings_of(const rt_plugins_config *cfg, rt_str name) {
    json_t *object = json_object();
    char *text = NULL;
    bool fine = object != NULL;
    for (size_t i = 0; i < cfg->settings_count; i++) {
        const rt_plugin_setting *s = &cfg->settings[i];
        if (!rt_str_eq(s->plugin, name)) continue;
        char *key = rt_str_dup(s->key);
        fine = key != NULL &&
               json_object_set_new(object, key, json_stringn(s->value.ptr, s->value.len)) == 0 && fine;
        free(key);
    }
    if (fine) text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

rt_pool *rt_pool_new(rt_pools *all, rt_str name, const char *path) {
    rt_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) return NULL;
    pool->all = all;
    pool->name = rt_str_dup(name);
    pool->path = rt_str_dup(rt_str_of(path));
    pool->settings = settings_of(&all->cfg, name);
    if (pool->name != NULL && pool->path != NULL && pool->settings != NULL) return pool;
    rt_pool_free(pool);
    return NULL;
}

void rt_pool_free(rt_pool *pool) {
    if (pool == NULL) return;
    RT_ASSERT(pool->first == NULL);
    while (pool->processes != NULL) {
        // The kernel does not let go of it. It ends with us at the latest.
        rt_process *p = pool->processes;
        pool->processes = p->next;
        p->pid = 0;
        rt_process_free(p);
    }
    free(pool->name);
    free(pool->path);
    free(pool->settings);
    free(pool);
}

void rt_pool_end(rt_pool *pool, bool kill, int64_t now_ms) {
    for (rt_process *p = pool->processes; p != NULL; p = p->next) {
        if (kill) kill_process(p);
        else if (p->state != RT_PROCESS_LEAVING) send_away(p, now_ms);
    }
}

void rt_pools_bury(rt_pools *all) {
    while (all->ended != NULL) {
        rt_process *p = all->ended;
        all->ended = p->next;
        rt_process_free(p);
    }
}
