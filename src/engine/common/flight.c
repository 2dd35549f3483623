#include "engine/common/flight.h"

#include <stdlib.h>

#include "engine/common/renew.h"

void rt_flights_init(rt_flights *f, uint64_t first_token) { *f = (rt_flights){.last_token = first_token}; }

static void free_flight(rt_flight *flight) {
    rt_attempt_free(flight->attempt);
    free(flight);
}

void rt_flights_deinit(rt_flights *f) {
    size_t at = 0;
    for (rt_flight *x = rt_map_next(&f->by_job, &at); x != NULL; x = rt_map_next(&f->by_job, &at))
        free_flight(x);
    rt_map_deinit(&f->by_job);
    rt_heap_deinit(&f->deadlines);
}

uint64_t rt_flights_new_token(rt_flights *f) {
    if (++f->last_token == 0) f->last_token = 1;
    return f->last_token;
}

rt_flight *rt_flights_add(rt_flights *f, rt_attempt *attempt, size_t bytes, int64_t until_ms, int64_t lease_until_ms) {
    RT_ASSERT(rt_map_get(&f->by_job, attempt->job) == NULL);
    rt_flight *flight = calloc(1, sizeof *flight);
    if (flight == NULL) return NULL;
    *flight = (rt_flight){
        .deadline = {.tie = attempt->job},
        .job = attempt->job,
        .queue = attempt->queue,
        .token = attempt->token,
        .bytes = bytes,
        .until_ms = until_ms,
        .lease_until_ms = lease_until_ms,
    };
    if (!rt_map_put(&f->by_job, flight->job, flight)) {
        free(flight);
        return NULL;
    }
    // Its place is made now, so that starting it cannot fail.
    if (!rt_heap_set(&f->deadlines, &flight->deadline, INT64_MAX)) {
        (void)rt_map_remove(&f->by_job, flight->job);
        free(flight);
        return NULL;
    }
    flight->attempt = attempt;
    return flight;
}

/* It is in the heap already, or its place there is kept: this cannot fail. */
static void look_at(rt_flights *f, rt_flight *flight, int64_t at_ms) {
    const bool moved = rt_heap_set(&f->deadlines, &flight->deadline, at_ms);
    RT_ASSERT(moved);
}

/* A lease that ends before the attempt does is renewed in time. */
static int64_t look_ms(const rt_flight *flight) {
    if (flight->lease_until_ms >= flight->until_ms) return flight->until_ms;
    return flight->lease_until_ms - RT_LEASE_RENEW_MS;
}

rt_attempt *rt_flights_start(rt_flights *f, rt_flight *flight, int64_t until_ms, int64_t lease_until_ms) {
    RT_ASSERT(flight->attempt != NULL);
    rt_attempt *attempt = flight->attempt;
    flight->attempt = NULL;
    flight->until_ms = until_ms;
    flight->lease_until_ms = lease_until_ms;
    look_at(f, flight, look_ms(flight));
    return attempt;
}

void rt_flights_renew(rt_flights *f, rt_flight *flight) { look_at(f, flight, INT64_MAX); }

void rt_flights_renewed(rt_flights *f, rt_flight *flight, int64_t lease_until_ms) {
    flight->lease_until_ms = lease_until_ms;
    look_at(f, flight, look_ms(flight));
}

rt_flight *rt_flights_find(const rt_flights *f, rt_id job, uint64_t token) {
    rt_flight *flight = rt_map_get(&f->by_job, job);
    if (flight == NULL || (token != 0 && flight->token != token)) return NULL;
    return flight;
}

void rt_flights_remove(rt_flights *f, rt_flight *flight) {
    rt_heap_remove(&f->deadlines, &flight->deadline);
    (void)rt_map_remove(&f->by_job, flight->job);
    free_flight(flight);
}

rt_flight *rt_flights_overdue(rt_flights *f, int64_t now_ms) {
    rt_heap_node *first = rt_heap_first(&f->deadlines);
    if (first == NULL || first->at_ms > now_ms) return NULL;
    rt_heap_remove(&f->deadlines, first);
    return (rt_flight *)first;
}

int64_t rt_flights_next_ms(const rt_flights *f) {
    const rt_heap_node *first = rt_heap_first(&f->deadlines);
    return first == NULL ? INT64_MAX : first->at_ms;
}
