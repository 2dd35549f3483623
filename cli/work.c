#include <stdio.h>

#include "commands.h"
#include "table.h"

enum { PATH_BYTES = 4096 };
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void set_page(char *path, const rt_cli *cli) {
    char number[32];
    (void)snprintf(number, sizeof number, "%ld", cli->limit);
    if (cli->limit > 0) rt_cli_arg(path, PATH_BYTES, "limit", number);
    rt_cli_arg(path, PATH_BYTES, "marker", cli->marker);
}

/* Prints what `path` answers as a table. */
static int list(const rt_cli *cli, const char *path, const rt_column columns[], size_t count,
                const char *none) {
    json_t *answer = rt_cli_call(cli, "GET", path, NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    rt_table_print(answer, columns, count, none);
    json_decref(answer);
    return 0;
}

int rt_cli_work(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"ENTITY", "entity", 48, false},    {"PROCESS", "process", 0, false},
        {"STARTED", "started", 0, false},   {"SESSION", "session", 0, false},
        {"DEADLINE", "deadline", 0, false}, {"AFTER S", "previous_interval_s", 0, true},
        {"WORK", "work", 0, false},
    };
    (void)argv;
    if (argc != 0) return 2;
    char path[PATH_BYTES] = "/v1/work";
    set_page(path, cli);
    rt_cli_arg(path, sizeof path, "process", cli->process);
    rt_cli_arg(path, sizeof path, "entity", cli->entity);
    return list(cli, path, COLUMNS, COUNT(COLUMNS), "Nothing is worked on.");
}

int rt_cli_sessions(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"SESSION", "session", 0, false},   {"COMPONENT", "component", 40, false},
        {"RUNTIME", "runtime", 40, false},  {"CREATED", "created", 0, false},
        {"DEADLINE", "deadline", 0, false}, {"EVERY S", "interval_s", 0, true},
    };
    (void)argv;
    if (argc != 0) return 2;
    char path[PATH_BYTES] = "/v1/sessions";
    set_page(path, cli);
    return list(cli, path, COLUMNS, COUNT(COLUMNS), "No worker has a session.");
}

int rt_cli_backoffs(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"ENTITY", "entity", 48, false},   {"PROCESS", "process", 0, false},  {"UNTIL", "until", 0, false},
        {"S", "last_interval_s", 0, true}, {"FAILURES", "failures", 0, true}, {"CAUSE", "cause", 60, false},
    };
    (void)argv;
    if (argc != 0) return 2;
    char path[PATH_BYTES] = "/v1/backoffs?active=1";
    set_page(path, cli);
    rt_cli_arg(path, sizeof path, "process", cli->process);
    rt_cli_arg(path, sizeof path, "entity", cli->entity);
    return list(cli, path, COLUMNS, COUNT(COLUMNS), "Nothing is in backoff.");
}

int rt_cli_backoffs_clear(const rt_cli *cli, int argc, char **argv) {
    if (argc != 2) return 2;
    char entity[PATH_BYTES / 2];
    char process[PATH_BYTES / 4];
    char path[PATH_BYTES];
    rt_cli_segment(entity, sizeof entity, argv[0]);
    rt_cli_segment(process, sizeof process, argv[1]);
    (void)snprintf(path, sizeof path, "/v1/backoffs/%s/%s", entity, process);
    json_t *answer = rt_cli_call(cli, "DELETE", path, NULL);
    if (answer == NULL) return 1;
    json_decref(answer);
    (void)printf("%s may be tried again on %s\n", argv[1], argv[0]);
    return 0;
}

static void entity_path(char *path, size_t size, const char *entity, const char *what) {
    char segment[PATH_BYTES / 2];
    rt_cli_segment(segment, sizeof segment, entity);
    (void)snprintf(path, size, "/v1/entities/%s%s", segment, what);
}

int rt_cli_history(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"SEQ", "seq", 0, true},          {"TIME", "time", 0, false},      {"PROCESS", "process", 0, false},
        {"EVENT", "event", 0, false},     {"TOOK MS", "took_ms", 0, true}, {"RESTS S", "interval_s", 0, true},
        {"SESSION", "session", 0, false}, {"CAUSE", "cause", 60, false},
    };
    if (argc != 1) return 2;
    char path[PATH_BYTES];
    char number[32];
    entity_path(path, sizeof path, argv[0], "/history");
    (void)snprintf(number, sizeof number, "%ld", cli->limit);
    if (cli->limit > 0) rt_cli_arg(path, sizeof path, "limit", number);
    rt_cli_arg(path, sizeof path, "before", cli->marker);
    return list(cli, path, COLUMNS, COUNT(COLUMNS), "Nobody has worked on it, as far as is known.");
}

int rt_cli_entity(const rt_cli *cli, int argc, char **argv) {
    if (argc != 1) return 2;
    char path[PATH_BYTES];
    entity_path(path, sizeof path, argv[0], "");
    json_t *answer = rt_cli_call(cli, "GET", path, NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    rt_fields_print(answer);
    json_decref(answer);
    return 0;
}
