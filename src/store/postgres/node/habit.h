/* habit.h: what batch after batch reads is fetched along with the first that a batch asks for: the type of an
 * event, its queue, their sums. A decision that comes upon them one after the other then waits for one round
 * trip, not for three. */
#ifndef RT_STORE_POSTGRES_NODE_HABIT_H
#define RT_STORE_POSTGRES_NODE_HABIT_H
#include "store/postgres/node/known.h"

enum {
    RT_PG_HABIT_SETS = 64, /* each record has its place in one of them, by hash … */
    RT_PG_HABIT_WAYS = 8,  /* … which has room for so many */
    RT_PG_HABITS = RT_PG_HABIT_SETS * RT_PG_HABIT_WAYS,
    RT_PG_HABIT_NAME_MAX = 64 /* bytes; documents with longer names are read when they are asked for */
};

typedef struct rt_pg_habit {
    rt_pg_part part;
    rt_doc_kind kind;
    uint64_t key;
    uint32_t seen;  /* the last batch that read it */
    uint32_t times; /* of late; 0: a slot that is free */
    uint32_t name_len;
    char name[RT_PG_HABIT_NAME_MAX];
} rt_pg_habit;

typedef struct rt_pg_habits {
    rt_pg_habit of[RT_PG_HABITS];
    uint32_t batch;
} rt_pg_habits;

void rt_pg_habit_note(rt_pg_habits *all, rt_pg_record *record);     /* a decision reads it */
void rt_pg_habits_want(const rt_pg_habits *all, rt_pg_batch *b);    /* for the batch's first load */
void rt_pg_habits_next(rt_pg_habits *all);                          /* a batch begins */

#endif
