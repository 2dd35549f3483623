/* sql.h: the statements, made once from the tables of columns.h. */
#ifndef RT_STORE_POSTGRES_WIRE_SQL_H
#define RT_STORE_POSTGRES_WIRE_SQL_H
#include "store/postgres/wire/columns.h"

/* Of each part; SQL_OF(RT_PG_JOBS, RT_SQL_GET) is the number of a statement. */
typedef enum rt_sql_verb {
    RT_SQL_GET,
    RT_SQL_INSERT,
    RT_SQL_UPDATE,
    RT_SQL_DELETE,
    RT_SQL_SAME, /* of jobs and leases: they have these versions */
    RT_SQL_VERB_COUNT
} rt_sql_verb;
#define RT_SQL_OF(part, verb) ((int)(part) * RT_SQL_VERB_COUNT + (int)(verb))

enum rt_sql {
    RT_SQL_PARTS_END = RT_PG_PART_COUNT * RT_SQL_VERB_COUNT,
    RT_SQL_BEGIN = RT_SQL_PARTS_END,
    RT_SQL_BEGIN_READ,
    RT_SQL_SETTINGS,      /* for this transaction only; answers the clock in ms */
    RT_SQL_COMMIT,
    RT_SQL_ROLLBACK,
    RT_SQL_TURN,          /* to be made beside others, while nobody is alone … */
    RT_SQL_TURN_ALONE,    /* … or alone */
    RT_SQL_IMPATIENT,     /* waits for locks end after a moment, from here on … */
    RT_SQL_PATIENT,       /* … as in SETTINGS again */
    RT_SQL_GUARD,         /* documents of these versions, locked against change */
    RT_SQL_GUARD_ABSENT,  /* … that are not there, and cannot come before the commit */
    RT_SQL_GUARD_RELEASE,
    RT_SQL_DOCS_LOCK,     /* in the order in which they are given */
    RT_SQL_BODIES_END,    /* of those that had one user */
    RT_SQL_BODIES_LOCK,
    RT_SQL_BODIES_DROP,
    RT_SQL_BODIES_COUNT,
    RT_SQL_NODE,          /* this batch of this node, unless it was fenced */
    RT_SQL_FENCE,
    RT_SQL_NUMBERS,
    RT_SQL_CLOCK,
    RT_SQL_ADOPT,         /* tag and numbers of another store */
    RT_SQL_TIDY_LOOK,
    RT_SQL_TIDY_EVENTS,
    RT_SQL_TIDY_JOBS,
    /* Listings of jobs; each is followed by the one that locks. The one of free jobs that does has their
     * bodies behind them: who takes one hands it out. */
    RT_SQL_READY,
    RT_SQL_READY_TAKE,
    RT_SQL_DUE,
    RT_SQL_DUE_TAKE,
    RT_SQL_FREE,
    RT_SQL_FREE_TAKE,
    RT_SQL_ALL,
    RT_SQL_ALL_TAKE,
    RT_SQL_ALL_BACK,
    RT_SQL_ALL_BACK_TAKE,
    RT_SQL_DEAD,
    RT_SQL_DEAD_TAKE,
    RT_SQL_DEAD_ALL,
    RT_SQL_DEAD_ALL_TAKE,
    RT_SQL_EVERY,
    RT_SQL_EVERY_TAKE,
    RT_SQL_DOCS,
    RT_SQL_QUEUES,
    RT_SQL_EVENTS,
    RT_SQL_LEASES,
    RT_SQL_BODIES,
    RT_SQL_EXPIRIES,
    RT_SQL_WAKES,
    RT_SQL_COUNT
};

/* Index scans in the order of the arrays, by one plan for ever: none that a table's sudden growth could turn,
 * and locks are taken in key order. A server that lacks one of these plans in its own way. */
enum { RT_SQL_PLANNER_COUNT = 7 };
extern const char *const RT_SQL_PLANNER[RT_SQL_PLANNER_COUNT][2]; /* setting, value */

/* What the server can do. */
typedef struct rt_sql_flavour {
    bool planner[RT_SQL_PLANNER_COUNT]; /* it has the setting */
    uint32_t statement_ms;
} rt_sql_flavour;

/* Fills texts[RT_SQL_COUNT] with strings of `arena`. False: out of memory. */
bool rt_sql_make(const char *texts[RT_SQL_COUNT], const rt_sql_flavour *flavour, rt_arena *arena);

#endif
