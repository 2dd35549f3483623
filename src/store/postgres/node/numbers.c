#include "store/postgres/node/numbers.h"

#include "base/pack.h"
#include "os/clock.h"

enum {
    BLOCK = 1024,    /* as the sequence counts, see schema.c */
    FRESH_MS = 1000, /* numbers that are kept for longer would be far behind those of other nodes */
    LOW = BLOCK / 2
};

static uint64_t left(const rt_pg_numbers *n) {
    uint64_t sum = 0;
    for (uint32_t i = n->at; i < n->count; i++) sum += n->blocks[i].end - n->blocks[i].next;
    return sum;
}

bool rt_pg_numbers_low(const rt_pg_numbers *n) {
    if (n->count == 0 || left(n) < LOW + n->usual) return true;
    return n->blocks[n->count - 1].end <= n->least || rt_mono_ms() - n->fetched_ms > FRESH_MS;
}

static rt_code take_numbers(void *ctx, const PGresult *rows) {
    rt_pg_numbers *n = ctx;
    // What is left of the old ones is given up: later numbers shall be larger than those that others gave out
    // before.
    n->count = n->at = 0;
    for (int i = 0; i < PQntuples(rows) && n->count < RT_PG_BLOCKS_MAX; i++) {
        const uint64_t first = (uint64_t)rt_pg_read_i64(rows, i, 0);
        n->blocks[n->count].next = first;
        n->blocks[n->count++].end = first + BLOCK;
    }
    // Nodes that start one after the other do not meet in a row of sums.
    if (n->fetched_ms == 0 && n->count > 0) n->slot = (int16_t)(n->blocks[0].next / BLOCK % RT_PG_SLOTS);
    n->fetched_ms = rt_mono_ms();
    return n->count > 0 ? RT_OK : RT_E_CORRUPT;
}

void rt_pg_numbers_send(rt_pg_numbers *n, rt_pg_pipe *pipe, rt_pg_args *args) {
    while (n->wants < RT_PG_BLOCKS_MAX && n->wants * BLOCK < 2 * (LOW + n->usual)) n->wants *= 2;
    rt_pg_args_clear(args);
    rt_pg_arg_i32(args, (int32_t)n->wants);
    rt_pg_send(pipe, RT_SQL_NUMBERS, args, take_numbers, n);
}

void rt_pg_numbers_seen(rt_pg_numbers *n, uint64_t number) {
    if (number >= n->least) n->least = number + 1;
}

/* Beyond so many stretches nothing is noted: such numbers are looked for, and not found. */
static void note_given(rt_pg_numbers *n, uint64_t number) {
    const uint32_t last = n->given_count - 1;
    if (n->given_count > 0 && n->given[last].end == number) {
        n->given[last].end++;
    } else if (n->given_count < RT_PG_BLOCKS_MAX) {
        n->given[n->given_count].from = number;
        n->given[n->given_count++].end = number + 1;
    }
}

bool rt_pg_is_fresh(const rt_pg_numbers *n, uint64_t number) {
    const uint64_t sequence = number & RT_PG_SEQUENCE_MASK;
    if ((number & ~RT_PG_SEQUENCE_MASK) > RT_PG_HOME) return false;
    for (uint32_t i = 0; i < n->given_count; i++) {
        if (sequence >= n->given[i].from && sequence < n->given[i].end) return true;
    }
    return false;
}

bool rt_pg_starts_fresh(const rt_pg_numbers *n, rt_str name) {
    if (name.len < 8) return false;
    const uint64_t id = rt_get_be64((const unsigned char *)name.ptr);
    return (id & ~RT_PG_SEQUENCE_MASK) == RT_PG_HOME && rt_pg_is_fresh(n, id);
}

bool rt_pg_numbers_take(rt_pg_numbers *n, uint64_t *out) {
    for (; n->at < n->count; n->at++) {
        uint64_t *next = &n->blocks[n->at].next;
        if (*next < n->least) *next = n->least;
        if (*next >= n->blocks[n->at].end) continue;
        *out = (*next)++;
        note_given(n, *out);
        n->taken++;
        return true;
    }
    return false;
}

void rt_pg_numbers_wants_more(rt_pg_numbers *n) {
    if (n->count > 0 && n->wants < RT_PG_BLOCKS_MAX) n->wants *= 2;
}

void rt_pg_numbers_next(rt_pg_numbers *n) {
    n->given_count = 0;
    n->usual = n->taken;
    n->taken = 0;
}
