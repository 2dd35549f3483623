#include <stdio.h>
#include <unistd.h>

#include "client.h"
#include "commands.h"
#include "table.h"

enum { ROWS_MAX = 20 };

/* `clear`: over what was drawn before; only as much as the terminal has room for, since the busiest stand at the top. */
static void draw(json_t *queues, bool clear) {
    static const rt_column COLUMNS[] = {
        {"KIND", "kind", 0, false}, {"READY", "ready", 0, true},        {"SCHEDULED", "scheduled", 0, true},
        {"FREE", "free", 0, true},  {"LEASED", "leased", 0, true},      {"DEAD", "dead", 0, true},
        {"DONE", "done", 0, true},  {"NEXT DUE", "next_due", 0, false}, {"NAME", "name", 50, false},
    };
    enum { COUNT = sizeof COLUMNS / sizeof COLUMNS[0] };
    int columns, lines;
    rt_terminal_size(&columns, &lines);
    const int each = rt_table_lines(queues, COLUMNS, COUNT);
    while (clear && lines > 0 && json_array_size(queues) > 1 && ((int)json_array_size(queues) + 1) * each >= lines) {
        (void)json_array_remove(queues, json_array_size(queues) - 1);
    }
    if (clear) (void)fputs("\033[H\033[2J", stdout);
    rt_table_print(queues, COLUMNS, COUNT, "There are no queues yet.");
}

static json_int_t pending(const json_t *row) {
    static const char *const STATES[] = {"ready", "scheduled", "free", "leased", "dead"};
    json_int_t sum = 0;
    for (size_t i = 0; i < sizeof STATES / sizeof STATES[0]; i++)
        sum += json_integer_value(json_object_get(row, STATES[i]));
    return sum;
}

/* The ROWS_MAX rows with most to do, most first; `rows` is an array, the answer an owned one. */
static json_t *busiest(const json_t *rows) {
    json_t *top = json_array();
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        size_t at = json_array_size(top);
        while (at > 0 && pending(json_array_get(top, at - 1)) < pending(row)) at--;
        if (at >= ROWS_MAX) continue;
        (void)json_array_insert(top, at, row);
        if (json_array_size(top) > ROWS_MAX) (void)json_array_remove(top, ROWS_MAX);
    }
    return top;
}

int rt_cli_watch(const rt_cli *cli, int argc, char **argv) {
    (void)argv;
    if (argc != 0) return 2;
    const unsigned seconds = cli->interval > 0 ? (unsigned)cli->interval : 1;
    const bool clear = isatty(STDOUT_FILENO) && !cli->once;
    do {
        char why[256] = "";
        json_t *answer = rt_cli_try(cli, "GET", "/v1/queues?limit=1000", NULL, why);
        if (answer == NULL) {
            if (cli->once) {
                (void)fprintf(stderr, "retryctl: %s\n", why);
                return 1;
            }
            (void)printf("%s; trying again\n", why); // a restart of the server is what one watches for
        } else {
            json_t *top = busiest(json_object_get(answer, "queues"));
            if (cli->json) (void)rt_cli_print_json(cli, json_incref(top));
            else draw(top, clear);
            json_decref(top);
            json_decref(answer);
        }
        (void)fflush(stdout);
        if (!cli->once) (void)sleep(seconds);
    } while (!cli->once);
    return 0;
}
