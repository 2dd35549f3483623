#include "http/deadline.h"

void rt_deadline_clear(rt_deadline *d) {
    rt_deadlines *list = d->list;
    if (list == NULL) return;
    if (d->before != NULL) d->before->after = d->after;
    else list->first = d->after;
    if (d->after != NULL) d->after->before = d->before;
    else list->last = d->before;
    *d = (rt_deadline){0};
}

void rt_deadline_set(rt_deadlines *list, rt_deadline *d, int64_t now_mono_ms) {
    rt_deadline_clear(d);
    *d = (rt_deadline){.before = list->last, .list = list, .at_mono_ms = now_mono_ms + list->limit_ms};
    if (list->last != NULL) list->last->after = d;
    else list->first = d;
    list->last = d;
}

rt_deadline *rt_deadlines_over(const rt_deadlines *list, int64_t now_mono_ms) {
    rt_deadline *d = list->first;
    return d != NULL && d->at_mono_ms <= now_mono_ms ? d : NULL;
}

int64_t rt_deadlines_next_ms(const rt_deadlines *list) {
    return list->first == NULL ? INT64_MAX : list->first->at_mono_ms;
}
