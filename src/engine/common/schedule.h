/* schedule.h: which queue may start its next job. In memory only; bounded by the queues that have something to do.
 *
 * Three sources of work: the store's FIFO `ready` (fresh deliveries of queues that have room), a heap of queues by their
 * next due time, and queues that are due now and wait for their turn. Fairness:
 *  - turns: due queues are served round robin, a quantum each;
 *  - trust: a queue starts with room for RT_ROOM_FIRST attempts at once; each success doubles it up to its maximum, each
 *    failure halves it, down to one. An endpoint that hangs therefore holds few attempts;
 *  - two classes: queues whose last attempt failed are suspect. While sound queues are being served, all suspects
 *    together get one start for RT_SUSPECT_SHARE sound ones and a trickle by time; they never hold more than half of all
 *    attempts. A thousand dead endpoints cannot slow down a healthy one by more than that. */
#ifndef RT_ENGINE_COMMON_SCHEDULE_H
#define RT_ENGINE_COMMON_SCHEDULE_H
#include "base/heap.h"
#include "base/map.h"
#include "policy/circuit.h"
#include "policy/pace.h"
#include "port/record.h"

enum {
    RT_ROOM_FIRST = 2,
    RT_LANE_QUANTUM = 16,           /* starts of one queue a turn */
    RT_SUSPECT_SHARE = 16,
    RT_SUSPECT_TRICKLE_PER_S = 500,
    RT_SUSPECT_CREDIT_MAX = 64,     /* starts that may be saved up */
    RT_SOUND_BUSY_MS = 20,          /* sound queues count as being served this long after a start */
    RT_LANES_IDLE_MAX = 16384,      /* idle queues whose trust is remembered */
    RT_ASK_MS = 1000,               /* a node that starves so long asks others for a place, which is kept for so long */
    RT_RELEASE_MS = 60000           /* after a circuit has closed, starts are held to release_per_s so long */
};

/* What slows one queue down: as stored, by which settings, and what is counted. With a store that only this engine takes
 * from, counts live in memory only; otherwise they are all nodes' (calls/starts.h, calls/window.h) as last read. */
typedef struct rt_lane_brakes {
    rt_brakes stored;
    rt_circuit_settings circuit;
    uint32_t rate_per_s;     /* 0: no limit */
    uint32_t concurrency;    /* 0: no limit but the lane's own */
    bool pull;               /* its jobs are fetched, not started */
    bool shared;             /* other nodes take from the queue, too */
    bool tripped;            /* what is known opens the circuit: nothing starts until that is written, or known better */
    bool telling;            /* a change is on its way that tells others, or opens the circuit */
    rt_circuit_window window;
    rt_circuit_window untold;/* shared: what of it only this node knows */
    int64_t told_ms;         /* shared: when others were last told; 0: never */
    int64_t heard_ms;        /* shared: since when they know that not all goes well; 0: they do not */
    rt_rate rate, release;   /* all starts; those of the minute after closing */
    int64_t started_ms;      /* the last start; 0: none yet */
    uint32_t others;         /* under way, but not from here */
    uint32_t kept;           /* places that are kept for another node, which has asked for one */
    uint64_t asker;          /* that node, or this one (rt_schedule.self); 0: none … */
    int64_t asked_ms;        /* … and when */
    int64_t starved_ms;      /* since when others have all the places, or this node asked for one; 0: they do not */
    int64_t lost_due_ms;     /* no lease of them that has run out is left up to here, see take.c … */
    rt_id lost_job;          /* … and this job */
    uint32_t dither_ms;      /* shared: waits so much longer, so that not all nodes come at the same moment */
} rt_lane_brakes;
/* Is anything there at `now_ms` that counts starts, or what is under way? */
bool rt_lane_brakes_limit(const rt_lane_brakes *b, int64_t now_ms);
/* How many attempts may start at `now_ms`, if `under_way` are here. *again_ms: when it may be more (INT64_MAX: not by
 * time). */
uint32_t rt_lane_brakes_room(const rt_lane_brakes *b, uint32_t under_way, int64_t now_ms, int64_t *again_ms);
void rt_lane_brakes_started(rt_lane_brakes *b, int64_t now_ms);
/* Others have all the places. */
bool rt_lane_brakes_starve(const rt_lane_brakes *b, uint32_t under_way);
/* The clock was set back: what is counted from the past starts anew. */
void rt_lane_brakes_set_back(rt_lane_brakes *b, int64_t now_ms);

/* One queue that has, or lately had, something to do. */
typedef struct rt_lane {
    rt_heap_node wake;          /* first member: waits for its queue's next due time */
    rt_id queue;
    struct rt_lane *turn_next;  /* next in the ring of its class, while in_turn */
    int64_t paused_until_ms;
    uint32_t in_flight, room, room_max;
    bool in_turn;
    bool backlog;   /* due jobs wait: fresh deliveries line up behind them */
    bool suspect;   /* the last attempt failed */
    bool known;     /* room_max, paused_until_ms and brakes are as stored */
    rt_lane_brakes *brakes; /* owned; NULL: nothing slows it down */
} rt_lane;

typedef struct rt_turns {
    rt_lane *first, *last;
    uint32_t count;
} rt_turns;

typedef struct rt_schedule {
    uint64_t self;     /* this node among those that share a store */
    rt_map lanes;      /* by queue */
    rt_heap waiting;   /* lanes by wake */
    rt_turns sound, suspect;
    uint32_t in_flight, in_flight_max, suspects_in_flight;
    uint64_t bytes, bytes_max;
    int64_t sound_start_ms;   /* of the last start of a sound queue */
    int64_t credit_at_ms;     /* when the trickle was last added */
    uint32_t credit;          /* starts that suspects may make, times RT_SUSPECT_SHARE */
} rt_schedule;

void rt_schedule_init(rt_schedule *s, uint32_t in_flight_max, uint64_t bytes_max);
void rt_schedule_deinit(rt_schedule *s);

/* The lane of `queue`, made if there is none. NULL: out of memory. */
rt_lane *rt_schedule_lane(rt_schedule *s, rt_id queue);
/* What is known of queue records may be out of date (a batch failed, another node wrote): they are read again. */
void rt_schedule_doubt(rt_schedule *s);
/* The queue has a job due at `due_ms`: wakes its lane no later than that. False: out of memory. */
bool rt_schedule_wake(rt_schedule *s, rt_id queue, int64_t due_ms);
/* Moves lanes whose time has come into their turn. */
void rt_schedule_advance(rt_schedule *s, int64_t now_ms);
/* The lane whose turn it is, taken out of its ring; NULL: none, or none may start now. Sound ones first. */
rt_lane *rt_schedule_next(rt_schedule *s, int64_t now_ms);
/* Puts a lane (back) into its turn, at the end; nothing if it is in it. */
void rt_schedule_turn(rt_schedule *s, rt_lane *lane);

/* Nothing more may start, whichever lane's turn it is: all places, or all memory for attempts, are taken. */
bool rt_schedule_is_full(const rt_schedule *s);
/* The clock was set back. */
void rt_schedule_set_back(rt_schedule *s, int64_t now_ms);
/* How many attempts the lane may start now, 0 included. */
uint32_t rt_schedule_room(rt_schedule *s, const rt_lane *lane, int64_t now_ms);
void rt_schedule_started(rt_schedule *s, rt_lane *lane, size_t bytes, int64_t now_ms);
/* An attempt is over. `undone`: it was never started (its batch failed), so it says nothing about the endpoint. */
typedef enum rt_lane_news { RT_LANE_WORKED, RT_LANE_FAILED, RT_LANE_UNDONE } rt_lane_news;
void rt_schedule_ended(rt_schedule *s, rt_lane *lane, size_t bytes, rt_lane_news news);

/* When the next lane wakes or a suspect's credit comes back; INT64_MAX: nothing waits. */
int64_t rt_schedule_next_ms(const rt_schedule *s, int64_t now_ms);

/* The brakes of a lane, made if it has none. NULL: out of memory. */
rt_lane_brakes *rt_schedule_brakes(rt_lane *lane);

/* Where a fresh delivery goes: READY, or SCHEDULED behind what its queue already has waiting. */
rt_job_state rt_schedule_place(const rt_schedule *s, rt_id queue, int64_t now_ms);

#endif
