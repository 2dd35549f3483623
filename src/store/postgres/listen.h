/* listen.h: what nodes shout to each other, so that nobody has to look again and again. A help, not a must:
 * where the server has no LISTEN, or a pooler stands in between, nodes look a few times a second.
 *
 * NOTIFY has the commits that it is part of wait for each other, until they are on disk. So it is never part
 * of a batch, but follows one that is durable, on a connection of its own, where there is nothing to sync. */
#ifndef RT_STORE_POSTGRES_LISTEN_H
#define RT_STORE_POSTGRES_LISTEN_H
#include "store/postgres/link.h"

typedef struct rt_pg_listener {
    const rt_pg_link *link; /* lent: whom to wake */
    pthread_t thread;
    bool started;
    int stop_fd;            /* eventfd: the thread is to end … */
    int shout_fd;           /* eventfd: … or to tell other nodes that there is something for them */
    atomic_bool shouted;    /* another node wrote something */
} rt_pg_listener;

/* RT_OK or not: to be closed. Both descriptors are -1 before. */
rt_code rt_pg_listener_start(rt_pg_listener *l, const rt_pg_link *link, rt_err *err);
void rt_pg_listener_close(rt_pg_listener *l); /* before its link */
void rt_pg_shout(const rt_pg_listener *l);    /* has other nodes look, soon */

#endif
