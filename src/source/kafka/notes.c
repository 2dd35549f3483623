#include "source/kafka/notes.h"

#include <poll.h>
#include <unistd.h>

#include "os/clock.h"
#include "source/kafka/partition.h"

enum { NOTES_BATCH = 64, SLEEP_MS_MAX = 1000 };

static void take_note(rt_source *s, rt_note *note) {
    const int64_t now_ms = rt_mono_ms();
    switch (note->kind) {
    case RT_NOTE_STOP: s->stopping = true; break;
    case RT_NOTE_DECIDED: rt_partition_decided(note->partition, now_ms); break;
    case RT_NOTE_LETTER:
        s->letters--;
        rt_partition_lettered(note->partition, (rt_letter *)(void *)note, now_ms);
        break;
    }
}

void rt_notes_take(rt_source *s) {
    void *items[NOTES_BATCH];
    size_t count;
    do {
        count = rt_ring_take(s->notes, items, NOTES_BATCH);
        for (size_t i = 0; i < count; i++) take_note(s, items[i]);
    } while (count == NOTES_BATCH);
}

static bool is_unsettled(const rt_source *s) {
    for (const rt_partition *p = s->partitions; p != NULL; p = p->after) {
        if (p->revoked && p->state == RT_PARTITION_ENGINE) return true;
    }
    return false;
}

void rt_notes_sleep(rt_source *s, bool client, int64_t wait_ms) {
    struct pollfd fds[] = {{.fd = rt_ring_fd(s->notes), .events = POLLIN},
                           {.fd = client ? s->fd : -1, .events = POLLIN}};
    if (!rt_ring_sleep(s->notes)) wait_ms = 0;
    const int ms = wait_ms < 0 ? 0 : wait_ms < SLEEP_MS_MAX ? (int)wait_ms : SLEEP_MS_MAX;
    if (poll(fds, 2, ms) <= 0) return;
    uint64_t count;
    if (fds[0].revents != 0) rt_ring_woken(s->notes);
    if (fds[1].revents != 0) (void)!read(s->fd, &count, sizeof count);
}

void rt_notes_settle(rt_source *s, int64_t wait_ms) {
    const int64_t end_ms = wait_ms == RT_NEVER_MS ? RT_NEVER_MS : rt_mono_ms() + wait_ms;
    rt_notes_take(s);
    for (int64_t left; is_unsettled(s) && (left = end_ms - rt_mono_ms()) > 0; rt_notes_take(s))
        rt_notes_sleep(s, false, left);
}
