/* serve.h: a whole server: store, engine, executor, faces and HTTP, wired together, from start to drain. */
#ifndef RT_SERVE_H
#define RT_SERVE_H
#include "config.h"

typedef struct rt_serve_options {
    const rt_config *config;
    const char *store; /* "lmdb:DIR" */
    bool insecure;     /* listen on other than loopback addresses without tokens */
} rt_serve_options;

/* Serves until SIGTERM or SIGINT, then drains; a second signal ends the process at once. Says on stderr when
 * it is ready, and what went wrong. Returns the exit status: 0, 1: something failed, 2: the options are
 * wrong. */
int rt_serve(const rt_serve_options *options);

/* Would it start with these settings? Reads the files that they name, and opens and reaches nothing; `store` does not count.
 * Says on stderr what it would say. Returns the exit status, as above. */
int rt_serve_check(const rt_serve_options *options);

#endif
