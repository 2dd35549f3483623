/* client.h: one request to a retryd server, answered as JSON. */
#ifndef RT_CLI_CLIENT_H
#define RT_CLI_CLIENT_H
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct rt_cli {
    const char *url;      /* of the server, without a slash at the end */
    const char *project;  /* X-Project-ID */
    const char *token;    /* NULL: none */
    bool json;            /* print what the server said */
    /* options of single commands; NULL or 0: not given */
    const char *queue, *reason, *process, *entity, *marker, *previous_ms, *count;
    const char *type, *failure, *after, *before, *text, *by, *key, *order_key;
    long limit, seconds, rate, interval;
    bool dry_run, once, force;
} rt_cli;

/* Sends `body` (NULL: none; borrowed) and returns the answer, owned: JSON, or null for an empty answer.
 * NULL: it failed, and why was printed on stderr. */
json_t *rt_cli_call(const rt_cli *cli, const char *method, const char *path, const json_t *body);
/* The same without a word on stderr; *why (at least 256 bytes) says what went wrong. */
json_t *rt_cli_try(const rt_cli *cli, const char *method, const char *path, const json_t *body, char *why);
enum { RT_CLI_MARKER_BYTES = 128 };
/* Writes one page of an NDJSON listing to `out`; `next` is the marker of the next one, empty: there is
 * none. False: it failed, and why was printed on stderr. */
bool rt_cli_lines(const rt_cli *cli, const char *path, FILE *out, char next[RT_CLI_MARKER_BYTES]);
/* "name=value" percent-encoded and added to a path with "?" or "&"; nothing if value is NULL. */
void rt_cli_arg(char *path, size_t size, const char *name, const char *value);
/* Percent-encodes one path segment. */
void rt_cli_segment(char *out, size_t size, const char *segment);

#endif
