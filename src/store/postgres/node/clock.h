/* clock.h: the database's clock, which is everybody's. Any thread. */
#ifndef RT_STORE_POSTGRES_NODE_CLOCK_H
#define RT_STORE_POSTGRES_NODE_CLOCK_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Ahead of this machine's CLOCK_BOOTTIME by so much. All zero: not known, and our own is as good. */
typedef struct rt_pg_clock {
    atomic_bool known;
    atomic_llong ahead_ms;
} rt_pg_clock;

/* The server said `server_ms` at some moment between the two of our own. */
void rt_pg_clock_note(rt_pg_clock *c, int64_t sent_boot_ms, int64_t received_boot_ms, int64_t server_ms);
int64_t rt_pg_clock_now(const rt_pg_clock *c);

#endif
