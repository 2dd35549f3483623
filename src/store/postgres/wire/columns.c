#include "store/postgres/wire/columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FIELD(record, field) .bytes = sizeof(((record *)0)->field), .offset = offsetof(record, field)
/* Unsigned numbers have a type that holds them; those of 64 bits keep their bits. */
#define SMALL(record, field) {#field, RT_OID_INT2, FIELD(record, field)}
#define MEDIUM(record, field) {#field, RT_OID_INT4, FIELD(record, field)}
#define BIG(record, field) {#field, RT_OID_INT8, FIELD(record, field)}
#define BYTES(record, field) {.name = #field, .type = RT_OID_BYTEA, .offset = offsetof(record, field)}
#define BRAKE(type, field) {#field, type, FIELD(rt_queue, brakes.field)}

static const rt_pg_column JOBS[] = {
    BIG(rt_job, id),         BIG(rt_job, version),     BIG(rt_job, queue),      SMALL(rt_job, state),
    BIG(rt_job, due_ms),     BIG(rt_job, owner),       BIG(rt_job, body),       BIG(rt_job, lease),
    BIG(rt_job, last_event), BIG(rt_job, key_hash),    BIG(rt_job, placed_ms),  BIG(rt_job, expires_ms),
    BIG(rt_job, attempt),    BIG(rt_job, claims),      BIG(rt_job, interval_ms), BIG(rt_job, ttl_s),
    BIG(rt_job, generation), BIG(rt_job, body_bytes),  SMALL(rt_job, reason),   SMALL(rt_job, flags),
    MEDIUM(rt_job, delay_s), MEDIUM(rt_job, bucket),
};
static const rt_pg_column QUEUES[] = {
    BIG(rt_queue, id),
    BIG(rt_queue, version),
    BIG(rt_queue, owner),
    SMALL(rt_queue, kind),
    SMALL(rt_queue, gone),
    BIG(rt_queue, paused_until_ms),
    BIG(rt_queue, in_flight_max),
    BRAKE(RT_OID_INT2, circuit),
    BRAKE(RT_OID_INT2, forced),
    BRAKE(RT_OID_INT8, circuit_since_ms),
    BRAKE(RT_OID_INT8, circuit_until_ms),
    BRAKE(RT_OID_INT8, opened_ms),
    BRAKE(RT_OID_INT8, pace_until_ms),
    BRAKE(RT_OID_INT8, sleep_ms),
    BRAKE(RT_OID_INT8, pace_ms),
    BRAKE(RT_OID_INT4, probes),
    BYTES(rt_queue, name),
};
static const rt_pg_column LEASES[] = {
    BIG(rt_lease, id),       BIG(rt_lease, version), BIG(rt_lease, queue),   BIG(rt_lease, from_ms),
    BIG(rt_lease, until_ms), BIG(rt_lease, ttl_s),   BIG(rt_lease, grace_s),
    {.name = "jobs", .type = RT_OID_TEXT, .offset = offsetof(rt_lease, jobs_count)},
};
static const rt_pg_column DOCS[] = {
    SMALL(rt_doc, kind),     BYTES(rt_doc, name),  BIG(rt_doc, version),
    BIG(rt_doc, expires_ms), BYTES(rt_doc, value),
};
static const rt_pg_column EVENTS[] = {
    BIG(rt_event, seq),      BIG(rt_event, prev),    BIG(rt_event, job),       BIG(rt_event, queue),
    BIG(rt_event, at_ms),    BIG(rt_event, attempt), BIG(rt_event, took_ms),   BIG(rt_event, delay_ms),
    MEDIUM(rt_event, status), SMALL(rt_event, type), SMALL(rt_event, reason), BYTES(rt_event, text),
};
static const rt_pg_column BODIES[] = {BIG(rt_pg_body, id), BIG(rt_pg_body, users), BYTES(rt_pg_body, bytes)};
static const rt_pg_column COUNTERS[] = {
    BIG(rt_pg_sums, queue),  BIG(rt_pg_sums, ready), BIG(rt_pg_sums, scheduled), BIG(rt_pg_sums, free),
    BIG(rt_pg_sums, leased), BIG(rt_pg_sums, dead),  BIG(rt_pg_sums, done),      BIG(rt_pg_sums, bytes),
    BIG(rt_pg_sums, events),
};

const rt_pg_table RT_PG_TABLES[RT_PG_PART_COUNT] = {
    [RT_PG_JOBS] = {"retryd_jobs", JOBS, COUNT(JOBS), 1, 1},
    [RT_PG_QUEUES] = {"retryd_queues", QUEUES, COUNT(QUEUES), 1, 1},
    [RT_PG_LEASES] = {"retryd_leases", LEASES, COUNT(LEASES), 1, 1},
    [RT_PG_DOCS] = {"retryd_documents", DOCS, COUNT(DOCS), 2, 2},
    [RT_PG_EVENTS] = {"retryd_events", EVENTS, COUNT(EVENTS), 1, 0},
    [RT_PG_BODIES] = {"retryd_bodies", BODIES, COUNT(BODIES), 1, 0},
    [RT_PG_COUNTERS] = {"retryd_counters", COUNTERS, COUNT(COUNTERS), 1, 0},
};
_Static_assert(COUNT(JOBS) < RT_PG_COLUMNS_MAX, "all columns of a job are parameters of one statement");

rt_counts rt_pg_counts_of(const rt_pg_sums *sums) {
    return (rt_counts){.ready = sums->ready,
                       .scheduled = sums->scheduled,
                       .free = sums->free,
                       .leased = sums->leased,
                       .dead = sums->dead,
                       .done = sums->done,
                       .bytes = sums->bytes};
}

/* ---- big endian, as PostgreSQL sends numbers ----------------------------------------------------------- */

static void add_be(rt_buf *b, uint64_t value, size_t bytes) {
    char out[8];
    for (size_t i = 0; i < bytes; i++) out[i] = (char)(unsigned char)(value >> (8 * (bytes - 1 - i)));
    rt_buf_add(b, (rt_str){.ptr = out, .len = bytes});
}

/* Sign-extended. */
static int64_t read_be(const char *from, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value = value << 8 | (unsigned char)from[i];
    const unsigned unused = (unsigned)(64 - 8 * bytes);
    return (int64_t)(value << unused) >> unused;
}

static uint64_t field_u64(const void *field, size_t bytes) {
    uint64_t value = 0; // little endian, like record.h
    memcpy(&value, field, bytes);
    return value;
}

static size_t width_of(Oid type) { return type == RT_OID_INT2 ? 2 : type == RT_OID_INT4 ? 4 : 8; }

static Oid array_of(Oid type) {
    switch (type) {
    case RT_OID_INT2: return RT_OID_INT2_ARRAY;
    case RT_OID_INT4: return RT_OID_INT4_ARRAY;
    case RT_OID_INT8: return RT_OID_INT8_ARRAY;
    case RT_OID_TEXT: return RT_OID_TEXT_ARRAY;
    default: return RT_OID_BYTEA_ARRAY;
    }
}

/* ---- parameters ---------------------------------------------------------------------------------------- */

void rt_pg_args_clear(rt_pg_args *a) {
    rt_buf_clear(&a->bytes);
    a->count = 0;
}

void rt_pg_args_deinit(rt_pg_args *a) { rt_buf_deinit(&a->bytes); }

static void begin_arg(rt_pg_args *a, Oid type) {
    RT_ASSERT(a->count < RT_PG_COLUMNS_MAX + 1);
    a->types[a->count] = type;
    a->at[a->count++] = a->bytes.len;
}

static void add_number(rt_pg_args *a, Oid type, uint64_t value) {
    begin_arg(a, type);
    add_be(&a->bytes, value, width_of(type));
}

void rt_pg_arg_i64(rt_pg_args *a, int64_t value) { add_number(a, RT_OID_INT8, (uint64_t)value); }
void rt_pg_arg_i32(rt_pg_args *a, int32_t value) { add_number(a, RT_OID_INT4, (uint64_t)value); }
void rt_pg_arg_i16(rt_pg_args *a, int16_t value) { add_number(a, RT_OID_INT2, (uint64_t)value); }

void rt_pg_arg_bytes(rt_pg_args *a, rt_str bytes) {
    begin_arg(a, RT_OID_BYTEA);
    rt_buf_add(&a->bytes, bytes);
}

static void begin_array(rt_pg_args *a, Oid element, size_t count) {
    RT_ASSERT(count <= INT32_MAX);
    begin_arg(a, array_of(element));
    add_be(&a->bytes, count > 0 ? 1 : 0, 4); // dimensions
    add_be(&a->bytes, 0, 4);                 // no NULLs
    add_be(&a->bytes, element, 4);
    if (count == 0) return;
    add_be(&a->bytes, count, 4);
    add_be(&a->bytes, 1, 4); // the first one's number
}

void rt_pg_arg_i64s(rt_pg_args *a, const int64_t *values, size_t count) {
    begin_array(a, RT_OID_INT8, count);
    for (size_t i = 0; i < count; i++) {
        add_be(&a->bytes, 8, 4);
        add_be(&a->bytes, (uint64_t)values[i], 8);
    }
}

/* A lease's jobs as the text of an array: arrays of arrays would be torn apart on their way. */
static void add_lease_jobs(rt_buf *b, const rt_lease *lease) {
    char text[RT_LEASE_JOBS_MAX * 21 + 3];
    size_t len = 0;
    text[len++] = '{';
    for (uint32_t i = 0; i < lease->jobs_count; i++) {
        if (i > 0) text[len++] = ',';
        const int n = snprintf(text + len, sizeof text - len, "%" PRIu64, lease->jobs[i]);
        len += (size_t)n;
    }
    text[len++] = '}';
    add_be(b, len, 4);
    rt_buf_add(b, (rt_str){.ptr = text, .len = len});
}

void rt_pg_arg_column(rt_pg_args *a, const rt_pg_column *column, const void *const *records, size_t count) {
    begin_array(a, column->type, count);
    for (size_t i = 0; i < count; i++) {
        const char *field = (const char *)records[i] + column->offset;
        if (column->type == RT_OID_TEXT) {
            add_lease_jobs(&a->bytes, records[i]);
        } else if (column->type == RT_OID_BYTEA) {
            const rt_str *bytes = (const void *)field;
            add_be(&a->bytes, bytes->len, 4);
            rt_buf_add(&a->bytes, *bytes);
        } else {
            const size_t width = width_of(column->type);
            add_be(&a->bytes, width, 4);
            add_be(&a->bytes, field_u64(field, column->bytes), width);
        }
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

int64_t rt_pg_read_i64(const PGresult *rows, int row, int column) {
    const int bytes = PQgetlength(rows, row, column);
    return bytes < 1 || bytes > 8 ? 0 : read_be(PQgetvalue(rows, row, column), (size_t)bytes);
}

rt_str rt_pg_read_bytes(const PGresult *rows, int row, int column) {
    return (rt_str){.ptr = PQgetvalue(rows, row, column), .len = (size_t)PQgetlength(rows, row, column)};
}

static bool read_lease_jobs(rt_str array, rt_lease *lease) {
    enum { HEAD = 12, DIMENSION = 8, ELEMENT = 12 };
    lease->jobs_count = 0;
    if (array.len < HEAD) return false;
    if (read_be(array.ptr, 4) == 0) return true;
    if (array.len < HEAD + DIMENSION) return false;
    const int64_t count = read_be(array.ptr + HEAD, 4);
    if (count < 0 || count > RT_LEASE_JOBS_MAX) return false;
    if (array.len != HEAD + DIMENSION + (size_t)count * ELEMENT) return false;
    const char *at = array.ptr + HEAD + DIMENSION;
    for (int64_t i = 0; i < count; i++, at += ELEMENT) lease->jobs[i] = (rt_id)read_be(at + 4, 8);
    lease->jobs_count = (uint32_t)count;
    return true;
}

bool rt_pg_read_row(const rt_pg_table *table, const PGresult *rows, int row, int first, rt_arena *arena,
                    void *record) {
    for (int i = 0; i < table->columns_count; i++) {
        const rt_pg_column *column = &table->columns[i];
        char *field = (char *)record + column->offset;
        if (column->type == RT_OID_TEXT) {
            if (!read_lease_jobs(rt_pg_read_bytes(rows, row, first + i), record)) return false;
        } else if (column->type == RT_OID_BYTEA) {
            rt_str *bytes = (void *)field;
            *bytes = rt_arena_dup(arena, rt_pg_read_bytes(rows, row, first + i));
            if (bytes->ptr == NULL) return false;
        } else {
            const int64_t value = rt_pg_read_i64(rows, row, first + i);
            memcpy(field, &value, column->bytes);
        }
    }
    return true;
}
