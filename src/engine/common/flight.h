/* flight.h: the attempts that are under way: who holds which pushed job until when.
 *
 * With a store that only this engine takes from, this table IS the lease: a crash forgets it and the job is due again. */
#ifndef RT_ENGINE_COMMON_FLIGHT_H
#define RT_ENGINE_COMMON_FLIGHT_H
#include "engine/common/command.h"
#include "engine/common/schedule.h"
#include "port/executor.h"

typedef struct rt_flight {
    rt_heap_node deadline;     /* first member: when it is to be looked at; INT64_MAX until it is started */
    int64_t until_ms;          /* the attempt is over by then, or lost */
    int64_t lease_until_ms;    /* what the store says, if the lease is written: renewed before */
    rt_id job, queue;
    uint64_t token;            /* fences the outcome */
    size_t bytes;              /* counted against in_flight_bytes_max */
    rt_attempt *attempt;       /* owned until it is handed to the executor */
    bool settling;             /* its outcome is being written */
    struct rt_flight *next;    /* in its batch, until that has ended */
} rt_flight;

typedef struct rt_flights {
    rt_map by_job;
    rt_heap deadlines;
    uint64_t last_token;       /* tokens start at random, so that those of another life never match */
} rt_flights;

void rt_flights_init(rt_flights *f, uint64_t first_token);
void rt_flights_deinit(rt_flights *f);
uint64_t rt_flights_new_token(rt_flights *f); /* never 0 */
/* Takes `attempt`, which carries a new token. NULL: out of memory, `attempt` stays the caller's. */
rt_flight *rt_flights_add(rt_flights *f, rt_attempt *attempt, size_t bytes, int64_t until_ms, int64_t lease_until_ms);
/* Its batch is durable: gives the attempt back, to be started, and watches its lease. */
rt_attempt *rt_flights_start(rt_flights *f, rt_flight *flight, int64_t until_ms, int64_t lease_until_ms);
/* Its lease is about to be written anew: nothing is to be done about it until it was. */
void rt_flights_renew(rt_flights *f, rt_flight *flight);
void rt_flights_renewed(rt_flights *f, rt_flight *flight, int64_t lease_until_ms);
/* NULL: no such job under way, or under way with another token. token 0: any. */
rt_flight *rt_flights_find(const rt_flights *f, rt_id job, uint64_t token);
void rt_flights_remove(rt_flights *f, rt_flight *flight); /* frees it */
/* The first that is to be looked at by now and is not being settled; it leaves the deadlines. NULL: none. */
rt_flight *rt_flights_overdue(rt_flights *f, int64_t now_ms);
int64_t rt_flights_next_ms(const rt_flights *f); /* INT64_MAX: none */

#endif
