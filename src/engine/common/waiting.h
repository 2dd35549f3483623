/* waiting.h: commands that found nothing and wait for it, without asking again and again.
 *
 * A command that may wait sets cmd->wait in its decision, with the topics it listens to. Changes tell
 * topics: a job that becomes free tells its queue and its entity. Whoever is woken decides again. In
 * memory only, bounded, and none waits beyond its time. */
#ifndef RT_ENGINE_COMMON_WAITING_H
#define RT_ENGINE_COMMON_WAITING_H
#include "base/heap.h"
#include "engine/common/command.h"

enum { RT_WAIT_TOPICS_MAX = 1000, RT_WAITING_MAX = 4096, RT_TOPIC_STAMPS = 1024 };

typedef struct rt_wait {
    rt_heap_node node; /* first member: until when */
    /* Set by the decision. */
    const uint64_t *topics;
    uint32_t topics_count;
    bool one; /* what is told is for one: of those who listen to it only the first is woken */
    int64_t until_ms;
    int64_t again_ms; /* decided again then, whatever was told; 0: only when something is told */
    /* The engine's. */
    rt_command *cmd;
    struct rt_wait *before, *after;
    uint64_t seen; /* how much had been told when it was decided */
    uint64_t mask; /* bits of its topics: most of what is told is none of its business */
} rt_wait;

typedef struct rt_waiting {
    rt_command_list *inbox; /* borrowed: where those who are woken go */
    rt_wait *first, *last; /* who came first is woken first */
    uint32_t count;
    rt_heap deadlines;
    uint64_t told;
    uint64_t told_all;               /* value of `told` when all were told */
    uint64_t stamps[RT_TOPIC_STAMPS]; /* value of `told` when a topic of this hash was last told */
    bool closed;                      /* nobody may wait any more */
} rt_waiting;

/* `cmd` was decided, its batch is durable, and it found nothing. True: it waits, or decides again; false:
 * it is done, with RT_E_FULL if there is no room to wait. */
bool rt_waiting_park(rt_waiting *w, rt_command *cmd, int64_t now_ms);
void rt_waiting_tell(rt_waiting *w, uint64_t topic);
/* All that waits decides again: something may have been missed. */
void rt_waiting_wake_all(rt_waiting *w);
/* Those whose time is over are done, with nothing found. */
void rt_waiting_end_overdue(rt_waiting *w, int64_t now_ms);
int64_t rt_waiting_next_ms(const rt_waiting *w); /* INT64_MAX: nobody waits */
/* Ends all waits, now and from now on. */
void rt_waiting_close(rt_waiting *w);
void rt_waiting_deinit(rt_waiting *w);

/* A command that has the engine end all waits: a server that is about to stop does not keep its clients. */
typedef struct rt_waits_end {
    rt_command cmd;
} rt_waits_end;
void rt_waits_end_init(rt_waits_end *c);

#endif
