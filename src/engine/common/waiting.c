#include "engine/common/waiting.h"

#include "engine/machine/machine.h"

static uint64_t bit_of(uint64_t topic) { return UINT64_C(1) << (topic % 64); }
static uint64_t *stamp_of(rt_waiting *w, uint64_t topic) { return &w->stamps[topic % RT_TOPIC_STAMPS]; }

static void take_out(rt_waiting *w, rt_wait *wait) {
    if (wait->before != NULL) wait->before->after = wait->after;
    else w->first = wait->after;
    if (wait->after != NULL) wait->after->before = wait->before;
    else w->last = wait->before;
    wait->before = wait->after = NULL;
    rt_heap_remove(&w->deadlines, &wait->node);
    w->count--;
}

static void wake(rt_engine *e, rt_wait *wait) {
    take_out(&e->waiting, wait);
    wait->cmd->tries = 0;
    rt_command_list_push(&e->inbox, wait->cmd);
}

/* Was any of its topics told since it was decided? */
static bool missed_something(rt_waiting *w, const rt_wait *wait) {
    for (uint32_t i = 0; i < wait->topics_count; i++) {
        if (*stamp_of(w, wait->topics[i]) > wait->seen) return true;
    }
    return false;
}

bool rt_waiting_park(rt_engine *e, rt_command *cmd) {
    rt_waiting *w = &e->waiting;
    rt_wait *wait = cmd->wait;
    wait->cmd = cmd;
    if (w->closed || wait->until_ms <= e->now_ms) return false;
    if (missed_something(w, wait)) {
        cmd->tries = 0;
        rt_command_list_push(&e->inbox, cmd);
        return true;
    }
    wait->node = (rt_heap_node){.tie = wait->seen};
    const bool again = wait->again_ms > 0 && wait->again_ms < wait->until_ms;
    // Whoever finds nothing before its time is over asks again at once: not where there is no room to wait.
    if (w->count == RT_WAITING_MAX ||
        !rt_heap_set(&w->deadlines, &wait->node, again ? wait->again_ms : wait->until_ms)) {
        cmd->code = rt_fail(&cmd->err, RT_E_FULL, 0, "too many requests wait for something to come");
        return false;
    }
    wait->mask = 0;
    for (uint32_t i = 0; i < wait->topics_count; i++) wait->mask |= bit_of(wait->topics[i]);
    wait->before = w->last;
    wait->after = NULL;
    if (w->last != NULL) w->last->after = wait;
    else w->first = wait;
    w->last = wait;
    w->count++;
    return true;
}

static bool listens_to(const rt_wait *wait, uint64_t topic) {
    if ((wait->mask & bit_of(topic)) == 0) return false;
    for (uint32_t i = 0; i < wait->topics_count; i++) {
        if (wait->topics[i] == topic) return true;
    }
    return false;
}

void rt_waiting_tell(rt_engine *e, uint64_t topic) {
    rt_waiting *w = &e->waiting;
    *stamp_of(w, topic) = ++w->told;
    for (rt_wait *wait = w->first, *next; wait != NULL; wait = next) {
        next = wait->after;
        if (!listens_to(wait, topic)) continue;
        wait->cmd->woken_by = wait->one ? topic : 0;
        wake(e, wait);
        if (wait->one) return;
    }
}

void rt_waiting_wake_all(rt_engine *e) {
    while (e->waiting.first != NULL) wake(e, e->waiting.first);
}

void rt_waiting_end_overdue(rt_engine *e) {
    rt_heap_node *first;
    while ((first = rt_heap_first(&e->waiting.deadlines)) != NULL && first->at_ms <= e->now_ms) {
        rt_wait *wait = (rt_wait *)first;
        if (wait->until_ms > e->now_ms) {
            wait->cmd->woken_by = 0;
            wake(e, wait);
            continue;
        }
        take_out(&e->waiting, wait);
        wait->cmd->done(wait->cmd);
    }
}

int64_t rt_waiting_next_ms(const rt_engine *e) {
    const rt_heap_node *first = rt_heap_first(&e->waiting.deadlines);
    return first == NULL ? INT64_MAX : first->at_ms;
}

void rt_waiting_close(rt_engine *e) {
    e->waiting.closed = true;
    while (e->waiting.first != NULL) {
        rt_wait *wait = e->waiting.first;
        take_out(&e->waiting, wait);
        wait->cmd->done(wait->cmd);
    }
}

void rt_waiting_deinit(rt_engine *e) {
    rt_waiting_close(e);
    rt_heap_deinit(&e->waiting.deadlines);
}

static rt_code decide_end(rt_tx *tx, rt_command *cmd) {
    (void)cmd;
    rt_waiting_close(tx->engine);
    return RT_OK;
}

void rt_waits_end_init(rt_waits_end *c) { *c = (rt_waits_end){.cmd = {.decide = decide_end}}; }
