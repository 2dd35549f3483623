/* process.h: one child of the server as its supervisor sees it: how it is started, what goes to and fro, how
 * it ends. One thread, which must be the one that started it for as long as it lives: the kernel ends
 * children with the thread that made them. */
#ifndef RT_EXECUTOR_PLUGIN_PROCESS_H
#define RT_EXECUTOR_PLUGIN_PROCESS_H
#include <sys/stat.h>
#include <sys/types.h>

#include "base/heap.h"
#include "executor/plugin/frame.h"
#include "executor/plugin/lines.h"
#include "port/executor.h"

typedef enum rt_process_state {
    RT_PROCESS_STARTING, /* loads the plugin */
    RT_PROCESS_IDLE,
    RT_PROCESS_BUSY,   /* has a run */
    RT_PROCESS_LEAVING /* was told to go, or killed; its end is still to come */
} rt_process_state;

/* What epoll hands back: which descriptor of which process. */
typedef enum rt_watched { RT_WATCH_SOCKET, RT_WATCH_PRINTED, RT_WATCH_END, RT_WATCH_COUNT } rt_watched;
typedef struct rt_watch {
    struct rt_process *process;
    rt_watched what;
} rt_watch;

typedef struct rt_process {
    rt_heap_node timer;      /* STARTING, LEAVING: killed then; IDLE: sent away */
    struct rt_process *next; /* among those of its pool */
    struct rt_pool *pool;    /* the owner's */
    struct rt_run *run;      /* BUSY: the owner's */
    uint32_t answer_max;     /* BUSY: of that run */
    const char *remark;      /* why its timer kills it; NULL: no reason yet */
    bool timer_killed;
    rt_process_state state;
    pid_t pid;
    int fd, printed_fd, end_fd; /* socket; what it prints; readable once it has ended. -1: closed */
    int epoll_fd;
    rt_watch watches[RT_WATCH_COUNT];
    rt_buf out; /* still to be sent, from `sent` on */
    size_t sent;
    bool sending; /* waits for room in the socket */
    rt_frame in;
    rt_lines lines;
    struct stat file; /* of the plugin, when it was started */
} rt_process;

/* Starts `/proc/self/exe plugin-host NAME FILE` and puts its descriptors into `epoll_fd`; its first frame are
 * `settings`, a JSON object. RT_OK: returns owned *out, STARTING. */
RT_MUST_USE rt_code rt_process_start(const char *name, const char *file, const struct stat *like,
                                     rt_str settings, int epoll_fd, rt_process **out, rt_err *err);

/* Queues a run and sends what the socket takes. False: out of memory. */
RT_MUST_USE bool rt_process_send_run(rt_process *p, uint32_t answer_max, rt_str run);
/* Goes on sending when the socket has room. False: the child has hung up. */
bool rt_process_send(rt_process *p);

/* Hangs up: a child that is idle ends itself, one that is busy is told that it should. */
void rt_process_hang_up(rt_process *p);
/* At once, with all that it has started. */
void rt_process_kill(rt_process *p);

/* Hands on what it has printed, bounded. */
void rt_process_take_printed(rt_process *p, int64_t now_ms, rt_each_line *each, void *ctx);

/* Has it ended? Then `words` is how: "killed by signal 11 (Segmentation fault)", "exited with status 3". */
bool rt_process_ended(rt_process *p, char *words, size_t cap);

/* Kills and reaps what has not ended, and frees. NULL is a no-op. */
void rt_process_free(rt_process *p);

#endif
