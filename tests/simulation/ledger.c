#include "ledger.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t SEQUENCE_MASK = (UINT64_C(1) << 48) - 1;
enum { SHADOWS_MAX = 1 << 20, SHADOWS_FIRST = 1024 };

static void *must(void *memory) {
    if (memory == NULL) abort();
    return memory;
}

void ledger_init(ledger *l, trace *t) {
    *l = (ledger){.trace = t};
    l->posts = must(calloc(POSTS_MAX, sizeof *l->posts));
    l->messages = must(calloc(MESSAGES_MAX, sizeof *l->messages));
    l->subscribers = must(calloc(SUBSCRIBERS_MAX, sizeof *l->subscribers));
    l->wipes = must(calloc(WIPES_MAX, sizeof *l->wipes));
}

void ledger_deinit(ledger *l) {
    free(l->posts);
    free(l->messages);
    free(l->subscribers);
    free(l->wipes);
    free(l->shadows);
    *l = (ledger){0};
}

instant ledger_tick(ledger *l) { return ++l->now; }

shadow *ledger_shadow(ledger *l, rt_id id) {
    const uint64_t at = id & SEQUENCE_MASK;
    TRACE_CHECK(l->trace, id != 0 && at < SHADOWS_MAX, "an id out of range: %llx", (unsigned long long)id);
    if (at >= l->shadows_count) {
        uint32_t count = l->shadows_count == 0 ? SHADOWS_FIRST : l->shadows_count;
        while (count <= at) count *= 2;
        l->shadows = must(realloc(l->shadows, count * sizeof *l->shadows));
        memset(&l->shadows[l->shadows_count], 0, (count - l->shadows_count) * sizeof *l->shadows);
        l->shadows_count = count;
    }
    return &l->shadows[at];
}

/* Bodies look like {"n":17}; notices contain them. */
int32_t ledger_message_in(const ledger *l, rt_str body) {
    const char *mark = body.len == 0 ? NULL : memmem(body.ptr, body.len, "{\"n\":", 5);
    if (mark == NULL) return -1;
    int32_t number = 0;
    for (const char *c = mark + 5; c < body.ptr + body.len && *c >= '0' && *c <= '9'; c++) {
        number = number * 10 + (*c - '0');
    }
    return number < (int32_t)l->messages_count ? number : -1;
}

subscriber *ledger_subscriber(ledger *l, rt_id id) {
    for (uint32_t i = 0; i < l->subscribers_count; i++) {
        if (l->subscribers[i].id == id) return &l->subscribers[i];
    }
    return NULL;
}

bool ledger_wiped(const ledger *l, uint32_t queue, bool messages, instant since) {
    for (uint32_t i = 0; i < l->wipes_count; i++) {
        const wipe *w = &l->wipes[i];
        if (w->queue != queue || !(messages ? w->messages : w->subscriptions)) continue;
        if (w->promise == PROMISE_OPEN || w->promise == PROMISE_UNKNOWN) return true;
        if (w->promise == PROMISE_KEPT && w->answered > since) return true;
    }
    return false;
}

void ledger_told(shadow *s, const told *t) {
    s->told[s->told_count % TOLD_KEPT] = *t;
    s->told_count++;
}

const told *ledger_was_told(const shadow *s, uint32_t number, uint16_t status) {
    for (uint32_t i = 0; i < TOLD_KEPT && i < s->told_count; i++) {
        const told *t = &s->told[(s->told_count - 1 - i) % TOLD_KEPT];
        if (t->number == number && t->status == status) return t;
    }
    return NULL;
}
