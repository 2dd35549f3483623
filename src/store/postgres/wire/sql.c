/* sql.c: what is asked of the database. Nothing in here that CockroachDB or YugabyteDB could not run, but for
 * the planner's settings and turns, which they do without.
 *
 * Writes are array-valued: one statement for all records of a kind, sorted by key, so that nodes take their
 * locks in one order. A statement that meets fewer rows than it was given divides by zero: that ends the
 * transaction in the middle of its pipeline, without another round trip to ask how it went. */
#include "store/postgres/wire/sql.h"

#define DUE_INDEX "(state = 2 OR (state = 4 AND (flags & 1) = 0))"
#define ALL_INDEX "(state IN (2, 3, 4) AND (flags & 1) = 1)"
#define ALL_MET "SELECT 1 / (CASE WHEN count(*) = array_length($1, 1) THEN 1 ELSE 0 END) "
#define PATIENCE_MS "'2000'"
#define TURN(lock) \
    "SELECT set_config('lock_timeout', '1000', true), " lock \
    "(1920234340, 'retryd_jobs'::regclass::oid::integer), set_config('lock_timeout', " PATIENCE_MS ", true)"
#define CLOCK_MS "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

static const char *type_name(Oid type) {
    switch (type) {
    case RT_OID_INT2: return "smallint";
    case RT_OID_INT4: return "integer";
    case RT_OID_INT8: return "bigint";
    case RT_OID_TEXT: return "text";
    default: return "bytea";
    }
}

/* "a, b, c", each with `before` in front. */
static void add_names(rt_buf *b, const rt_pg_table *t, int first, int count, const char *before) {
    for (int i = first; i < first + count; i++)
        rt_buf_addf(b, "%s%s%s", i == first ? "" : ", ", before, t->columns[i].name);
}

static void add_array(rt_buf *b, const rt_pg_table *t, int column) {
    const char *type = type_name(t->columns[column].type);
    rt_buf_addf(b, "%s$%d::%s[]", column == 0 ? "" : ", ", column + 1, type);
}

/* "unnest($1::bigint[], …) AS u(id, …)": the first `count` columns. */
static void add_unnest(rt_buf *b, const rt_pg_table *t, int count) {
    rt_buf_addf(b, "unnest(");
    for (int i = 0; i < count; i++) add_array(b, t, i);
    rt_buf_addf(b, ") AS u(");
    add_names(b, t, 0, count, "");
    rt_buf_addf(b, ")");
}

/* PostgreSQL finds the n-th element of an array at once where all are of one size. So only keys and what has
 * no fixed size is unnested, which costs a stored row for each array and element; the rest is looked up by
 * the row's number. */
static bool is_unnested(const rt_pg_table *t, int column) {
    const Oid type = t->columns[column].type;
    return column < t->keys_count || type == RT_OID_BYTEA || type == RT_OID_TEXT;
}

/* "unnest($1::bigint[], …) WITH ORDINALITY AS u(id, …, n)" of the first `count` columns. */
static void add_rows(rt_buf *b, const rt_pg_table *t, int count) {
    rt_buf_addf(b, "unnest(");
    for (int i = 0; i < count; i++) {
        if (is_unnested(t, i)) add_array(b, t, i);
    }
    rt_buf_addf(b, ") WITH ORDINALITY AS u(");
    for (int i = 0; i < count; i++) {
        if (is_unnested(t, i)) rt_buf_addf(b, "%s, ", t->columns[i].name);
    }
    rt_buf_addf(b, "n)");
}

static void add_value(rt_buf *b, const rt_pg_table *t, int column) {
    const rt_pg_column *c = &t->columns[column];
    if (is_unnested(t, column)) rt_buf_addf(b, c->type == RT_OID_TEXT ? "u.%s::bigint[]" : "u.%s", c->name);
    else rt_buf_addf(b, "($%d::%s[])[u.n]", column + 1, type_name(c->type));
}

static void add_same_key(rt_buf *b, const rt_pg_table *t) {
    for (int i = 0; i < t->keys_count; i++)
        rt_buf_addf(b, "%st.%s = u.%s", i == 0 ? "" : " AND ", t->columns[i].name, t->columns[i].name);
}

static void make_get(rt_buf *b, const rt_pg_table *t) {
    rt_buf_addf(b, "SELECT ");
    add_names(b, t, 0, t->columns_count, "t.");
    rt_buf_addf(b, " FROM %s t", t->name);
    if (t->keys_count == 1) {
        rt_buf_addf(b, " WHERE t.%s = ANY($1::bigint[])", t->columns[0].name);
        return;
    }
    rt_buf_addf(b, " JOIN ");
    add_unnest(b, t, t->keys_count);
    rt_buf_addf(b, " ON ");
    add_same_key(b, t);
}

static void make_insert(rt_buf *b, const rt_pg_table *t) {
    rt_buf_addf(b, "INSERT INTO %s (", t->name);
    add_names(b, t, 0, t->columns_count, "");
    rt_buf_addf(b, ") SELECT ");
    for (int i = 0; i < t->columns_count; i++) {
        rt_buf_addf(b, i == 0 ? "" : ", ");
        add_value(b, t, i);
    }
    rt_buf_addf(b, " FROM ");
    add_rows(b, t, t->columns_count);
}

/* Parameters: all columns as they shall be, then the versions as they were. */
static void make_update(rt_buf *b, const rt_pg_table *t) {
    rt_buf_addf(b, "WITH w AS (UPDATE %s t SET ", t->name);
    for (int i = t->keys_count; i < t->columns_count; i++) {
        rt_buf_addf(b, "%s%s = ", i == t->keys_count ? "" : ", ", t->columns[i].name);
        add_value(b, t, i);
    }
    rt_buf_addf(b, " FROM ");
    add_rows(b, t, t->columns_count);
    rt_buf_addf(b, " WHERE ");
    add_same_key(b, t);
    rt_buf_addf(b, " AND t.version = ($%d::bigint[])[u.n] RETURNING 1) " ALL_MET "FROM w",
                t->columns_count + 1);
}

/* Parameters: the key's columns, then the versions as they were. */
static void make_delete(rt_buf *b, const rt_pg_table *t) {
    rt_buf_addf(b, "WITH w AS (DELETE FROM %s t USING ", t->name);
    add_rows(b, t, t->keys_count);
    rt_buf_addf(b, " WHERE ");
    add_same_key(b, t);
    rt_buf_addf(b, " AND t.version = ($%d::bigint[])[u.n] RETURNING 1) " ALL_MET "FROM w", t->keys_count + 1);
}

/* They are what they were. Parameters as for deleting. */
static void make_same(rt_buf *b, const rt_pg_table *t) {
    rt_buf_addf(b, ALL_MET "FROM (SELECT 1 FROM ");
    add_rows(b, t, t->keys_count);
    rt_buf_addf(b, " JOIN %s t ON ", t->name);
    add_same_key(b, t);
    rt_buf_addf(b, " AND t.version = ($%d::bigint[])[u.n]) AS w", t->keys_count + 1);
}

/* The row of a queue's sums is one a node, so that nodes do not wait for each other. */
static void make_sums(rt_buf *b, const rt_pg_table *t, rt_sql_verb verb) {
    if (verb == RT_SQL_GET) {
        rt_buf_addf(b, "SELECT queue");
        for (int i = 1; i < t->columns_count; i++) rt_buf_addf(b, ", sum(%s)::bigint", t->columns[i].name);
        rt_buf_addf(b, " FROM %s WHERE queue = ANY($1::bigint[]) GROUP BY queue", t->name);
    } else if (verb == RT_SQL_INSERT) {
        rt_buf_addf(b, "INSERT INTO %s AS t (", t->name);
        add_names(b, t, 0, t->columns_count, "");
        rt_buf_addf(b, ", slot) SELECT ");
        add_names(b, t, 0, t->columns_count, "u.");
        rt_buf_addf(b, ", $%d::smallint FROM ", t->columns_count + 1);
        add_unnest(b, t, t->columns_count);
        rt_buf_addf(b, " ON CONFLICT (queue, slot) DO UPDATE SET ");
        for (int i = 1; i < t->columns_count; i++) {
            const char *name = t->columns[i].name;
            rt_buf_addf(b, "%s%s = t.%s + excluded.%s", i == 1 ? "" : ", ", name, name, name);
        }
    }
}

static void make_part(rt_buf *b, rt_pg_part part, rt_sql_verb verb) {
    const rt_pg_table *t = &RT_PG_TABLES[part];
    if (part == RT_PG_COUNTERS) {
        make_sums(b, t, verb);
        return;
    }
    switch (verb) {
    case RT_SQL_GET: make_get(b, t); return;
    case RT_SQL_INSERT: make_insert(b, t); return;
    case RT_SQL_UPDATE:
        if (t->version > 0) make_update(b, t);
        return;
    case RT_SQL_DELETE:
        if (t->version > 0) make_delete(b, t);
        return;
    case RT_SQL_SAME:
        if (part == RT_PG_JOBS || part == RT_PG_LEASES) make_same(b, t);
        return;
    case RT_SQL_VERB_COUNT: return;
    }
}

/* ---- listings ------------------------------------------------------------------------------------------ */

/* All take the same parameters: $1 queue, $2 after, $3 what comes before it in the order, $4 until, $5 hash
 * to skip, $6 how many. The conditions repeat those of the partial indexes word by word, so that the planner
 * sees it. */
static const struct {
    enum rt_sql number;
    const char *condition;
} JOB_LISTS[] = {
    {RT_SQL_READY, "state = 1 AND id > $2 ORDER BY id"},
    {RT_SQL_DUE, DUE_INDEX " AND queue = $1 AND due_ms <= $4 AND (due_ms, id) > ($3, $2) "
     "ORDER BY due_ms, id"},
    {RT_SQL_FREE, "state = 3 AND queue = $1 AND id > $2 AND ($5 = 0 OR key_hash <> $5) ORDER BY id"},
    {RT_SQL_ALL, ALL_INDEX " AND queue = $1 AND id > $2 ORDER BY id"},
    {RT_SQL_ALL_BACK, ALL_INDEX " AND queue = $1 AND id < $2 ORDER BY id DESC"},
    {RT_SQL_DEAD, "state = 5 AND queue = $1 AND id > $2 ORDER BY id"},
    {RT_SQL_DEAD_ALL, "state = 5 AND (queue, id) > ($3, $2) ORDER BY queue, id"},
    {RT_SQL_EVERY, "id > $2 ORDER BY id"},
};

static void make_list(rt_buf *b, rt_pg_part part, const char *condition, const char *limit) {
    const rt_pg_table *t = &RT_PG_TABLES[part];
    rt_buf_addf(b, "SELECT ");
    add_names(b, t, 0, t->columns_count, "");
    rt_buf_addf(b, " FROM %s WHERE %s LIMIT %s", t->name, condition, limit);
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

static const struct {
    enum rt_sql number;
    const char *text;
} FIXED[] = {
    {RT_SQL_BEGIN, "BEGIN"},
    {RT_SQL_BEGIN_READ, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
    {RT_SQL_COMMIT, "COMMIT"},
    {RT_SQL_ROLLBACK, "ROLLBACK"},
    {RT_SQL_TURN, TURN("pg_advisory_xact_lock_shared")},
    {RT_SQL_TURN_ALONE, TURN("pg_advisory_xact_lock")},
    {RT_SQL_IMPATIENT, "SELECT set_config('lock_timeout', '20', true)"},
    {RT_SQL_PATIENT, "SELECT set_config('lock_timeout', " PATIENCE_MS ", true)"},
    {RT_SQL_GUARD,
     ALL_MET "FROM (SELECT 1 FROM unnest($1::smallint[], $2::bytea[], $3::bigint[]) AS u(kind, name, was) "
             "JOIN retryd_documents t ON t.kind = u.kind AND t.name = u.name AND t.version = u.was "
             "FOR SHARE OF t) AS w"},
    {RT_SQL_GUARD_ABSENT,
     "WITH w AS (INSERT INTO retryd_documents (kind, name, version, expires_ms, value) "
     "SELECT u.kind, u.name, 0, 0, ''::bytea FROM unnest($1::smallint[], $2::bytea[]) AS u(kind, name) "
     "ON CONFLICT (kind, name) DO NOTHING RETURNING 1) " ALL_MET "FROM w"},
    {RT_SQL_GUARD_RELEASE,
     "DELETE FROM retryd_documents t USING unnest($1::smallint[], $2::bytea[]) AS u(kind, name) "
     "WHERE t.kind = u.kind AND t.name = u.name AND t.version = 0"},
    {RT_SQL_DOCS_LOCK,
     "SELECT count(*) FROM (SELECT 1 FROM unnest($1::smallint[], $2::bytea[]) AS u(kind, name) "
     "JOIN retryd_documents t ON t.kind = u.kind AND t.name = u.name FOR UPDATE OF t) AS w"},
    {RT_SQL_BODIES_END,
     "WITH w AS (DELETE FROM retryd_bodies WHERE id = ANY($1::bigint[]) AND users = 1 RETURNING 1) "
     ALL_MET "FROM w"},
    {RT_SQL_BODIES_LOCK,
     ALL_MET "FROM (SELECT id FROM retryd_bodies WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE) AS w"},
    {RT_SQL_BODIES_DROP,
     "DELETE FROM retryd_bodies t USING unnest($1::bigint[], $2::bigint[]) AS u(id, more) "
     "WHERE t.id = u.id AND t.users + u.more <= 0"},
    {RT_SQL_BODIES_COUNT,
     "UPDATE retryd_bodies t SET users = t.users + u.more "
     "FROM unnest($1::bigint[], $2::bigint[]) AS u(id, more) WHERE t.id = u.id"},
    {RT_SQL_NODE,
     "WITH w AS (INSERT INTO retryd_nodes AS n (node, batch, fence, seen_ms) "
     "VALUES ($1::bigint, $2::bigint, 0, " CLOCK_MS ") ON CONFLICT (node) DO UPDATE "
     "SET batch = excluded.batch, seen_ms = excluded.seen_ms WHERE n.fence < excluded.batch RETURNING 1) "
     "SELECT 1 / (CASE WHEN count(*) = 1 THEN 1 ELSE 0 END), " CLOCK_MS " FROM w"},
    {RT_SQL_FENCE,
     "INSERT INTO retryd_nodes AS n (node, batch, fence, seen_ms) "
     "VALUES ($1::bigint, 0, $2::bigint, " CLOCK_MS ") ON CONFLICT (node) DO UPDATE "
     "SET fence = excluded.fence, seen_ms = excluded.seen_ms RETURNING batch"},
    {RT_SQL_NUMBERS, "SELECT nextval('retryd_numbers') FROM generate_series(1, $1::integer)"},
    {RT_SQL_CLOCK, "SELECT " CLOCK_MS},
    {RT_SQL_ADOPT, // a sequence that is ahead already stays where it is
     "WITH w AS (UPDATE retryd_schema SET tag = $1::bigint WHERE one = 1 RETURNING 1) "
     "SELECT setval('retryd_numbers', greatest((SELECT last_value FROM retryd_numbers), $2::bigint)) FROM w"},
    {RT_SQL_TIDY_LOOK,
     "SELECT seq, job, at_ms, (SELECT sum(events)::bigint FROM retryd_counters WHERE queue = 0) "
     "FROM retryd_events WHERE seq > $2::bigint ORDER BY seq LIMIT $1::integer FOR UPDATE SKIP LOCKED"},
    {RT_SQL_TIDY_EVENTS, "DELETE FROM retryd_events WHERE seq = ANY($1::bigint[])"},
    {RT_SQL_TIDY_JOBS,
     "DELETE FROM retryd_jobs t USING unnest($1::bigint[], $2::bigint[]) AS u(id, last_event) "
     "WHERE t.id = u.id AND t.last_event = u.last_event AND t.state = 6 RETURNING t.id, t.queue"},
    {RT_SQL_EXPIRIES,
     "SELECT at_ms, what, id, kind, name FROM ("
     "(SELECT expires_ms AS at_ms, 0::smallint AS what, id, 0::smallint AS kind, ''::bytea AS name "
     "FROM retryd_jobs WHERE expires_ms > 0 AND state < 5 AND expires_ms <= $1::bigint "
     "ORDER BY expires_ms, id LIMIT $2::integer) UNION ALL "
     "(SELECT until_ms, 1::smallint, id, 0::smallint, ''::bytea FROM retryd_leases "
     "WHERE until_ms > 0 AND until_ms <= $1::bigint ORDER BY until_ms, id LIMIT $2::integer) UNION ALL "
     "(SELECT expires_ms, 2::smallint, 0::bigint, kind, name FROM retryd_documents "
     "WHERE expires_ms > 0 AND expires_ms <= $1::bigint ORDER BY expires_ms, kind, name "
     "LIMIT $2::integer)) AS e ORDER BY at_ms, what, id, kind, name LIMIT $2::integer"},
    {RT_SQL_WAKES, // one step of the index a queue, however many jobs it has
     "WITH RECURSIVE w(queue, due_ms, n) AS ("
     "(SELECT queue, due_ms, 1 FROM retryd_jobs WHERE " DUE_INDEX " AND queue > $1::bigint "
     "ORDER BY queue, due_ms LIMIT 1) UNION ALL "
     "SELECT j.queue, j.due_ms, w.n + 1 FROM w, LATERAL (SELECT queue, due_ms FROM retryd_jobs "
     "WHERE " DUE_INDEX " AND queue > w.queue ORDER BY queue, due_ms LIMIT 1) AS j WHERE w.n < $2::integer) "
     "SELECT queue, due_ms FROM w"},
};

const char *const RT_SQL_PLANNER[RT_SQL_PLANNER_COUNT][2] = {
    {"enable_hashjoin", "off"},   {"enable_mergejoin", "off"}, {"enable_seqscan", "off"},
    {"enable_bitmapscan", "off"}, {"enable_sort", "off"},      {"jit", "off"},
    {"plan_cache_mode", "force_generic_plan"},
};

/* A node that is stopped with rows locked must not hold up the others: its session is ended. */
static void make_settings(rt_buf *b, const rt_sql_flavour *flavour) {
    rt_buf_addf(b,
                "SELECT " CLOCK_MS ", set_config('statement_timeout', '%u', true), "
                "set_config('lock_timeout', " PATIENCE_MS ", true), "
                "set_config('idle_in_transaction_session_timeout', '5000', true)",
                flavour->statement_ms);
    for (int i = 0; i < RT_SQL_PLANNER_COUNT; i++) {
        if (flavour->planner[i])
            rt_buf_addf(b, ", set_config('%s', '%s', true)", RT_SQL_PLANNER[i][0], RT_SQL_PLANNER[i][1]);
    }
}

static bool keep(const char *texts[], int number, rt_buf *b, rt_arena *arena) {
    texts[number] = b->failed ? NULL : rt_arena_dup(arena, rt_buf_str(b)).ptr;
    rt_buf_clear(b);
    return texts[number] != NULL;
}

static void make_free_take(rt_buf *b) {
    const rt_pg_table *t = &RT_PG_TABLES[RT_PG_JOBS];
    const rt_pg_table *body = &RT_PG_TABLES[RT_PG_BODIES];
    rt_buf_addf(b, "SELECT ");
    add_names(b, t, 0, t->columns_count, "t.");
    rt_buf_addf(b, ", ");
    add_names(b, body, 0, body->columns_count, "b.");
    rt_buf_addf(b,
                " FROM %s t LEFT JOIN %s b ON b.id = t.body WHERE t.state = 3 AND t.queue = $1 AND t.id > $2 "
                "AND ($5 = 0 OR t.key_hash <> $5) ORDER BY t.id LIMIT $6 FOR UPDATE OF t SKIP LOCKED",
                t->name, body->name);
}

static bool make_lists(const char *texts[], rt_buf *b, rt_arena *arena) {
    bool good = true;
    for (size_t i = 0; i < sizeof JOB_LISTS / sizeof JOB_LISTS[0]; i++) {
        make_list(b, RT_PG_JOBS, JOB_LISTS[i].condition, "$6");
        good = keep(texts, (int)JOB_LISTS[i].number, b, arena) && good;
        make_list(b, RT_PG_JOBS, JOB_LISTS[i].condition, "$6 FOR UPDATE SKIP LOCKED");
        good = keep(texts, (int)JOB_LISTS[i].number + 1, b, arena) && good;
    }
    make_free_take(b);
    good = keep(texts, RT_SQL_FREE_TAKE, b, arena) && good;
    make_list(b, RT_PG_DOCS, "kind = $1 AND name >= $2 AND name > $3 AND name < $4 ORDER BY name", "$5");
    good = keep(texts, RT_SQL_DOCS, b, arena) && good;
    make_list(b, RT_PG_QUEUES, "id > $1 ORDER BY id", "$2");
    good = keep(texts, RT_SQL_QUEUES, b, arena) && good;
    make_list(b, RT_PG_LEASES, "id > $1 ORDER BY id", "$2");
    good = keep(texts, RT_SQL_LEASES, b, arena) && good;
    make_list(b, RT_PG_BODIES, "id > $1 ORDER BY id", "$2");
    good = keep(texts, RT_SQL_BODIES, b, arena) && good;
    make_list(b, RT_PG_EVENTS, "seq > $1 ORDER BY seq", "$2");
    return keep(texts, RT_SQL_EVENTS, b, arena) && good;
}

bool rt_sql_make(const char *texts[RT_SQL_COUNT], const rt_sql_flavour *flavour, rt_arena *arena) {
    rt_buf b = {0};
    bool good = true;
    for (int part = 0; part < RT_PG_PART_COUNT; part++) {
        for (int verb = 0; verb < RT_SQL_VERB_COUNT; verb++) {
            make_part(&b, (rt_pg_part)part, (rt_sql_verb)verb);
            good = keep(texts, RT_SQL_OF(part, verb), &b, arena) && good;
        }
    }
    for (size_t i = 0; i < sizeof FIXED / sizeof FIXED[0]; i++) {
        texts[FIXED[i].number] = FIXED[i].text;
    }
    make_settings(&b, flavour);
    good = keep(texts, RT_SQL_SETTINGS, &b, arena) && good;
    good = make_lists(texts, &b, arena) && good;
    rt_buf_deinit(&b);
    return good;
}
