/* numbers.c: ids and event numbers, and the database's clock. */
#include "base/pack.h"
#include "os/clock.h"
#include "store/postgres/inside.h"

enum {
    FRESH_MS = 1000, /* numbers that are kept for longer would be far behind those of other nodes */
    LOW = RT_PG_NUMBERS_BLOCK / 2
};

/* ---- clock --------------------------------------------------------------------------------------------- */

void rt_pg_clock_note(rt_pg_clock *c, int64_t sent_boot_ms, int64_t received_boot_ms, int64_t server_ms) {
    const long long most = server_ms - sent_boot_ms + 1; // the server's milliseconds were cut off
    const long long least = server_ms - received_boot_ms;
    const long long ahead = atomic_load(&c->ahead_ms);
    if (!atomic_exchange(&c->known, true)) atomic_store(&c->ahead_ms, least);
    else if (ahead < least) atomic_store(&c->ahead_ms, least);
    else if (ahead > most) atomic_store(&c->ahead_ms, most);
}

int64_t rt_pg_clock_now(const rt_pg_clock *c) {
    if (!atomic_load(&c->known)) return rt_wall_ms();
    return rt_boot_ms() + (int64_t)atomic_load(&c->ahead_ms);
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

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
    rt_pg *s = ctx;
    rt_pg_numbers *n = &s->numbers;
    // What is left of the old ones is given up: later numbers shall be larger than those that others gave out before.
    n->count = n->at = 0;
    for (int i = 0; i < PQntuples(rows) && n->count < RT_PG_BLOCKS_MAX; i++) {
        const uint64_t first = (uint64_t)rt_pg_read_i64(rows, i, 0);
        n->blocks[n->count].next = first;
        n->blocks[n->count++].end = first + RT_PG_NUMBERS_BLOCK;
    }
    // Nodes that start one after the other do not meet in a row of sums.
    if (n->fetched_ms == 0 && n->count > 0) s->slot = (int16_t)(n->blocks[0].next / RT_PG_NUMBERS_BLOCK % RT_PG_SLOTS);
    n->fetched_ms = rt_mono_ms();
    return n->count > 0 ? RT_OK : RT_E_CORRUPT;
}

void rt_pg_numbers_send(rt_pg *s) {
    rt_pg_numbers *n = &s->numbers;
    while (n->wants < RT_PG_BLOCKS_MAX && n->wants * RT_PG_NUMBERS_BLOCK < 2 * (LOW + n->usual)) n->wants *= 2;
    rt_pg_args_clear(&s->args);
    rt_pg_arg_i32(&s->args, (int32_t)n->wants);
    rt_pg_send(&s->pipe, RT_SQL_NUMBERS, &s->args, take_numbers, s);
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

static bool next_of_blocks(rt_pg_numbers *n, uint64_t *out) {
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

uint64_t rt_pg_number(rt_pg *s) {
    rt_pg_numbers *n = &s->numbers;
    uint64_t number;
    if (next_of_blocks(n, &number)) return number;
    // More than were fetched along with a load: a round trip of its own, and more of them the next time.
    if (n->count > 0 && n->wants < RT_PG_BLOCKS_MAX) n->wants *= 2;
    rt_err unused;
    if (!s->batch.broken && rt_pg_ready(s, &unused)) {
        rt_pg_numbers_send(s);
        if (rt_pg_finish(s) == RT_OK && next_of_blocks(n, &number)) return number;
    }
    n->failed = true;
    return ++n->least;
}
