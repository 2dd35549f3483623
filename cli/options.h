/* options.h: what begins with "--" on retryctl's command line; and which command knows which of it. */
#ifndef RT_CLI_OPTIONS_H
#define RT_CLI_OPTIONS_H
#include "client.h"

enum { RT_CLI_OPTIONS_MAX = 32 };

/* The command line, taken apart. */
typedef struct rt_cli_line {
    rt_cli cli;        /* in: the presets */
    char **words;      /* what is no option, in order; owned by the caller, as many places as arguments */
    int count;
    bool help, version;
    const char *given[RT_CLI_OPTIONS_MAX]; /* names of the options of single commands, as they came */
    int given_count;
} rt_cli_line;

/* Both "--name value" and "--name=value"; behind "--" all are words. False: said why on stderr. */
bool rt_cli_line_read(rt_cli_line *line, int argc, char **argv);

/* The first option that was given and that `usage` does not name, or NULL. The word FILTER in it stands for those that
 * choose dead letters. */
const char *rt_cli_line_stray(const rt_cli_line *line, const char *usage);

#endif
