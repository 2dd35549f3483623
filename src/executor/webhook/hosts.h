/* hosts.h: how many attempts are under way to each host and port, and who waits for a turn there.
 *
 * libcurl has such a limit too, but wakes only the first transfer that waits, whatever host it waits for,
 * so that one busy host would hold up the others. One thread at a time. */
#ifndef RT_EXECUTOR_WEBHOOK_HOSTS_H
#define RT_EXECUTOR_WEBHOOK_HOSTS_H
#include "base/map.h"
#include "base/str.h"

typedef struct rt_host rt_host;

/* Embedded in what waits. */
typedef struct rt_host_waiter {
    struct rt_host_waiter *prev, *next;
    bool waits;
} rt_host_waiter;

typedef struct rt_hosts {
    rt_map map;
    uint32_t limit; /* 0: none, and nobody ever waits */
} rt_hosts;

/* Scheme, host and port of a URL as a number, never 0. Two hosts with one number would share a limit, no more. */
uint64_t rt_host_key(rt_str url);

/* True: go ahead. False: `waiter` waits until rt_hosts_leave returns it. *host is what leaving takes; NULL
 * when nothing is counted (no limit, or no memory to count with). */
bool rt_hosts_enter(rt_hosts *hosts, rt_str url, rt_host_waiter *waiter, rt_host **host);
/* One that was let in has ended. Returns the one whose turn it is now (it counts as let in), or NULL. */
rt_host_waiter *rt_hosts_leave(rt_hosts *hosts, rt_host *host);
/* `waiter` waits no longer. */
void rt_hosts_give_up(rt_hosts *hosts, rt_host *host, rt_host_waiter *waiter);
/* All must have left. */
void rt_hosts_deinit(rt_hosts *hosts);

#endif
