/* cursor.h: work on many records, carried on a slice at a time, in the same durable way as everything else: a document
 * that says what is left. A restart goes on where it was. */
#ifndef RT_ENGINE_COMMON_CURSOR_H
#define RT_ENGINE_COMMON_CURSOR_H
#include "engine/common/command.h"
#include "engine/common/dead_filter.h"

enum {
    RT_CURSOR_SLICE = 64, /* records a cursor touches in one change */
    RT_CURSOR_NAME_LEN = 8
};

/* Stored: only ever add at the end. */
typedef enum rt_cursor_kind {
    RT_CURSOR_NONE = 0,
    RT_CURSOR_FANOUT,    /* deliveries of posted messages to the subscriptions of `queue` up to `last`, see fanout.h */
    RT_CURSOR_DRAIN,     /* empties queue `queue`: jobs end with `reason`, dead ones stay if keep_dead; then it goes */
    RT_CURSOR_UNSUBSCRIBE, /* removes all subscriptions of message queue `queue` up to `last` */
    RT_CURSOR_DEAD,      /* redrives or deletes dead jobs that match `filter`, up to `last` */
    RT_CURSOR_CIRCUIT,   /* ends what waits behind the circuit of `queue`, open since `last`, for too long */
    RT_CURSOR_AGE,       /* calls that wait on `queue` note when they are too old; done up to (`from`, `after`) */
    RT_CURSOR_KIND_COUNT
} rt_cursor_kind;

typedef struct rt_cursor {
    rt_id id;            /* also its document's name */
    rt_cursor_kind kind;
    rt_id queue;         /* see kind */
    rt_id after, last;   /* done up to `after`; nothing beyond `last` */
    rt_id from;          /* FANOUT: each message starts behind this subscription; `after` is where the first one is */
    rt_id after_queue;   /* DEAD: position is (after_queue, after) */
    rt_reason reason;    /* DRAIN */
    bool keep_dead;      /* DRAIN */
    bool confirmed_only; /* FANOUT */
    bool remove;         /* DEAD */
    rt_dead_filter filter;
    uint32_t rate;       /* records a second; 0: no limit */
    int64_t next_ms;     /* not before */
} rt_cursor;

rt_str rt_cursor_encode(rt_arena *arena, const rt_cursor *c); /* ptr NULL: out of memory */
bool rt_cursor_decode(rt_str value, rt_cursor *out);          /* lends; false: corrupt */

/* For decisions: writes a new cursor (sets its id, unless the caller has); the engine carries it on from the next step. */
rt_code rt_cursor_start(rt_tx *tx, rt_cursor *c);

/* One slice of a kind, in the file of its subject: moves `c` on within this change, or says that it is done. */
typedef rt_code rt_cursor_slice(rt_tx *tx, rt_cursor *c, bool *finished);
/* What a slice of jobs is read into: the first RT_CURSOR_SLICE of `range`. */
typedef struct rt_cursor_jobs {
    rt_job jobs[RT_CURSOR_SLICE];
    uint32_t count;
} rt_cursor_jobs;
rt_code rt_cursor_read_jobs(rt_tx *tx, const rt_job_range *range, rt_cursor_jobs *out);
/* Writes it as it is now. */
rt_code rt_cursor_write(rt_tx *tx, const rt_doc *was, const rt_cursor *c);

#endif
