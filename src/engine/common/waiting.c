#include "engine/common/waiting.h"

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

static void wake(rt_waiting *w, rt_wait *wait) {
    take_out(w, wait);
    wait->cmd->tries = 0;
    rt_command_list_push(w->inbox, wait->cmd);
}

/* Was any of its topics told since it was decided? */
static bool missed_something(rt_waiting *w, const rt_wait *wait) {
    if (w->told_all > wait->seen) return true;
    for (uint32_t i = 0; i < wait->topics_count; i++) {
        if (*stamp_of(w, wait->topics[i]) > wait->seen) return true;
    }
    return false;
}

bool rt_waiting_park(rt_waiting *w, rt_command *cmd, int64_t now_ms) {
    rt_wait *wait = cmd->wait;
    wait->cmd = cmd;
    if (w->closed || wait->until_ms <= now_ms) return false;
    if (missed_something(w, wait)) {
        cmd->tries = 0;
        rt_command_list_push(w->inbox, cmd);
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

void rt_waiting_tell(rt_waiting *w, uint64_t topic) {
    *stamp_of(w, topic) = ++w->told;
    for (rt_wait *wait = w->first, *next; wait != NULL; wait = next) {
        next = wait->after;
        if (!listens_to(wait, topic)) continue;
        wait->cmd->woken_by = wait->one ? topic : 0;
        wake(w, wait);
        if (wait->one) return;
    }
}

void rt_waiting_wake_all(rt_waiting *w) {
    w->told_all = ++w->told;
    while (w->first != NULL) wake(w, w->first);
}

void rt_waiting_end_overdue(rt_waiting *w, int64_t now_ms) {
    rt_heap_node *first;
    while ((first = rt_heap_first(&w->deadlines)) != NULL && first->at_ms <= now_ms) {
        rt_wait *wait = (rt_wait *)first;
        if (wait->until_ms > now_ms) {
            wait->cmd->woken_by = 0;
            wake(w, wait);
            continue;
        }
        take_out(w, wait);
        wait->cmd->done(wait->cmd);
    }
}

int64_t rt_waiting_next_ms(const rt_waiting *w) {
    const rt_heap_node *first = rt_heap_first(&w->deadlines);
    return first == NULL ? INT64_MAX : first->at_ms;
}

void rt_waiting_close(rt_waiting *w) {
    w->closed = true;
    while (w->first != NULL) {
        rt_wait *wait = w->first;
        take_out(w, wait);
        wait->cmd->done(wait->cmd);
    }
}

void rt_waiting_deinit(rt_waiting *w) {
    rt_waiting_close(w);
    rt_heap_deinit(&w->deadlines);
}

static rt_code decide_end(rt_tx *tx, rt_command *cmd) {
    (void)cmd;
    if (tx->waiting != NULL) rt_waiting_close(tx->waiting);
    return RT_OK;
}

void rt_waits_end_init(rt_waits_end *c) { *c = (rt_waits_end){.cmd = {.decide = decide_end}}; }
