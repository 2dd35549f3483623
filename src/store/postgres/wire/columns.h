/* columns.h: which field of a record is which column of its table, and how one becomes the other.
 *
 * Statements and their parameters are made from these tables, so that a field is named once. */
#ifndef RT_STORE_POSTGRES_WIRE_COLUMNS_H
#define RT_STORE_POSTGRES_WIRE_COLUMNS_H
#include <libpq-fe.h>

#include "base/arena.h"
#include "port/store.h"

/* What a row of `retryd_bodies` is: written once, gone with its last user. */
typedef struct rt_pg_body {
    rt_id id;
    int64_t users; /* jobs that are not done and name it */
    rt_str bytes;
} rt_pg_body;

/* Sums of one queue, of which each node keeps its own row. */
typedef struct rt_pg_sums {
    rt_id queue;
    int64_t ready, scheduled, free, leased, dead, done, bytes;
    int64_t events; /* of all queues together: kept with queue 0 only */
} rt_pg_sums;

typedef enum rt_pg_part {
    RT_PG_JOBS,
    RT_PG_QUEUES,
    RT_PG_LEASES,
    RT_PG_DOCS,
    RT_PG_EVENTS,
    RT_PG_BODIES,
    RT_PG_COUNTERS,
    RT_PG_PART_COUNT
} rt_pg_part;

/* PostgreSQL's numbers of the types that are used here. */
enum {
    RT_OID_BYTEA = 17,
    RT_OID_INT8 = 20,
    RT_OID_INT2 = 21,
    RT_OID_INT4 = 23,
    RT_OID_TEXT = 25,
    RT_OID_BYTEA_ARRAY = 1001,
    RT_OID_INT2_ARRAY = 1005,
    RT_OID_INT4_ARRAY = 1007,
    RT_OID_TEXT_ARRAY = 1009,
    RT_OID_INT8_ARRAY = 1016
};

typedef struct rt_pg_column {
    const char *name;
    Oid type;        /* of the column; TEXT stands for the array of a lease's jobs, which is sent as text */
    uint8_t bytes;   /* of the field, if it is a number: 1, 2, 4 or 8 */
    uint16_t offset; /* in the record */
} rt_pg_column;

typedef struct rt_pg_table {
    const char *name;
    const rt_pg_column *columns;
    uint8_t columns_count;
    uint8_t keys_count; /* the first columns are the primary key */
    uint8_t version;    /* which column is compared when a row is written; 0: none */
} rt_pg_table;

enum { RT_PG_COLUMNS_MAX = 24 };

extern const rt_pg_table RT_PG_TABLES[RT_PG_PART_COUNT];

rt_counts rt_pg_counts_of(const rt_pg_sums *sums);

/* ---- parameters of a statement ------------------------------------------------------------------------- */

/* Built in order, sent in binary. All zero is empty and ready; its memory is kept over rt_pg_args_clear. */
typedef struct rt_pg_args {
    rt_buf bytes;
    size_t at[RT_PG_COLUMNS_MAX + 2];
    Oid types[RT_PG_COLUMNS_MAX + 2];
    int count;
} rt_pg_args;

void rt_pg_args_clear(rt_pg_args *a);
void rt_pg_args_deinit(rt_pg_args *a);
void rt_pg_arg_i64(rt_pg_args *a, int64_t value);
void rt_pg_arg_i32(rt_pg_args *a, int32_t value);
void rt_pg_arg_i16(rt_pg_args *a, int16_t value);
void rt_pg_arg_bytes(rt_pg_args *a, rt_str bytes);
/* An array of numbers. */
void rt_pg_arg_i64s(rt_pg_args *a, const int64_t *values, size_t count);
/* One array: a column of many records. `records[i]` points to the record itself. */
void rt_pg_arg_column(rt_pg_args *a, const rt_pg_column *column, const void *const *records, size_t count);

/* ---- rows ---------------------------------------------------------------------------------------------- */

/* Fills *record from the columns of `table` that begin at `first` of row `row`; bytes are copied into
 * `arena`. False: out of memory, or not what the table says. */
bool rt_pg_read_row(const rt_pg_table *table, const PGresult *rows, int row, int first, rt_arena *arena,
                    void *record);
int64_t rt_pg_read_i64(const PGresult *rows, int row, int column); /* of any width; NULL reads as 0 */
rt_str rt_pg_read_bytes(const PGresult *rows, int row, int column); /* lent by `rows` */

#endif
