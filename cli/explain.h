/* explain.h: what a policy will do, before it does it. Needs no server.
 *
 *     retryctl policy explain [--json] POLICY
 *     retryctl backoff explain [--json] DESCRIPTOR|null [--previous-ms N] [--count K]
 *
 * POLICY: a delivery policy as JSON, a document with a `_retry_policy`, or "-" for standard input.
 * DESCRIPTOR likewise, see json/policy_json.h. `argv` begins behind the two words. Returns the exit
 * status: 0; 1: output failed; 2: usage or input. */
#ifndef RT_CLI_EXPLAIN_H
#define RT_CLI_EXPLAIN_H
#include <stdbool.h>
#include <stdio.h>

int rt_explain_policy(int argc, char **argv);
int rt_explain_backoff(int argc, char **argv);

/* The same with other streams than those of the process. */
typedef struct rt_explain_io {
    FILE *in, *out, *err;
    bool colour;
} rt_explain_io;

int rt_explain_policy_on(const rt_explain_io *io, int argc, char **argv);
int rt_explain_backoff_on(const rt_explain_io *io, int argc, char **argv);

#endif
