/* pool.h: one plugin: its processes, and the runs that wait for one of them. The thread of plugins.h. */
#ifndef RT_EXECUTOR_PLUGIN_POOL_H
#define RT_EXECUTOR_PLUGIN_POOL_H
#include "executor/plugin/plugins.h"
#include "executor/plugin/process.h"

/* What all pools share. */
typedef struct rt_pools {
    rt_plugins_config cfg;
    int epoll_fd;
    rt_heap deadlines; /* of runs; all that there are */
    rt_heap timers;    /* of processes */
    size_t processes;  /* that have not ended */
    rt_process *ended; /* events at hand may still name them: freed by rt_pools_bury */
} rt_pools;

/* One attempt in our hands. */
typedef struct rt_run {
    rt_heap_node deadline;
    struct rt_run *next, *prev; /* while it waits */
    struct rt_pool *pool;
    rt_process *process; /* NULL: it waits */
    rt_attempt *attempt; /* owned */
    int64_t began_ms;    /* monotonic */
} rt_run;

typedef struct rt_pool {
    rt_pools *all;
    char *name, *path, *settings; /* owned; settings: a JSON object */
    struct stat file;             /* as it was last seen */
    rt_run *first, *last;         /* wait, in order */
    uint32_t waiting;
    rt_process *processes;
    uint32_t count;          /* of them */
    int64_t start_at_ms;     /* not before: the last starts failed */
    uint32_t start_delay_ms; /* 0: the last start succeeded */
    rt_reason problem;       /* why they failed, for those who come meanwhile */
    char problem_text[RT_EVENT_TEXT_MAX];
} rt_pool;

/* Returns an owned pool for the file `path`. NULL: out of memory. */
rt_pool *rt_pool_new(rt_pools *all, rt_str name, const char *path);
void rt_pool_free(
    rt_pool *pool); /* has no runs; a process that is still there is forgotten. NULL is a no-op */

/* Ends `attempt`, which it takes, before it came to anything. */
void rt_pools_refuse(rt_pools *all, rt_attempt *attempt, rt_reason reason, const char *why);

/* Takes `attempt` and gives it to a process, now or when one is free. `file` is the plugin's as it is now. */
void rt_pool_take(rt_pool *pool, rt_attempt *attempt, const struct stat *file, int64_t now_ms);

/* A run's time is over. */
void rt_run_expire(rt_run *run, int64_t now_ms);
/* A process's time is over. */
void rt_pool_timer(rt_process *p, int64_t now_ms);
/* Something happened to a process. */
void rt_pool_event(const rt_watch *watch, uint32_t events, int64_t now_ms);

/* Sends all processes away: in peace, or killed. */
void rt_pool_end(rt_pool *pool, bool kill, int64_t now_ms);
/* Lets go of a run without an outcome. */
void rt_run_drop(rt_run *run);
/* Frees what has ended; no event may be at hand. */
void rt_pools_bury(rt_pools *all);

#endif
