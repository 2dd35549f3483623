/* load.h: what is asked of a server, one request after the other on each connection. A protocol says how a
 * round is made: the request of each step, and what its answer means. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H
#include "common.h"

enum { IN_MAX = 64 * 1024, REQUEST_MAX = 4096, STEPS_MAX = 3, ID_MAX = 64 };

typedef struct conn {
    int fd;
    unsigned number, step;
    const char *out; /* what is still to be sent */
    size_t out_len;
    uint64_t began_us; /* this round */
    size_t in_len;
    uint64_t held;          /* what the round is about, counted when it ends */
    char name[ID_MAX];      /* the protocol's: who this connection is */
    char line[REQUEST_MAX]; /* a request made of an answer */
    char in[IN_MAX];
} conn;

typedef enum next {
    NEXT_STEP,
    NEXT_AGAIN, /* nothing was there: ask the same again */
    NEXT_OVER,  /* nothing was there, and nothing will come: the connection has done enough */
    NEXT_WRONG  /* an error: a new round */
} next;

typedef struct load load;
typedef struct protocol {
    const char *name;
    unsigned first, last; /* steps of a round */
    /* Length of the answer at the start of in[len], 0 if more must come; its body begins at *body. */
    size_t (*message)(const char *in, size_t len, size_t *body);
    void (*prepare)(load *l);        /* fixed requests; NULL: none */
    void (*begin)(load *l, conn *c); /* a round; NULL: nothing to do */
    /* The whole answer, NUL-terminated. Writes c->line if the next step asks that. */
    next (*answered)(load *l, conn *c, const char *in, const char *body);
} protocol;
extern const protocol zaqar_post, zaqar_cycle, zaqar_take, zaqar_bare, beanstalk, work_cycle, work_fail,
    work_fill, calls_post, calls_cycle, calls_backlog, calls_process;

struct load {
    const protocol *protocol;
    const char *what; /* the protocol's argument: a queue, a type, a file */
    size_t bytes, per_request;
    uint64_t enough; /* rounds that are begun; 0: no end */
    uint64_t begun;
    char *request[STEPS_MAX]; /* NULL: c->line */
    size_t request_len[STEPS_MAX];
    bool counting;
    uint64_t done, errors, empty;
    spread took;
};

/* A request of the form "METHOD PATH" with the project's header and a body; dies if it does not fit. Returns its length. */
size_t http_request(char *out, size_t room, const char *method_and_path, const char *body);
/* The same in memory of its own, for a step. */
void http_prepare(load *l, unsigned step, const char *method_and_path, const char *body);
/* The string value of the first "name" in `json`, of at most ID_MAX - 1 bytes. False: there is none. */
bool json_string(const char *json, const char *name, char out[ID_MAX]);
bool is_status(const char *in, const char *status); /* "20": any that begins so */

#endif
