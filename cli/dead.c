#include <stdio.h>

#include "commands.h"
#include "table.h"

enum { PATH_BYTES = 4096 };

int rt_cli_dead_list(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"ID", "id", 0, false},         {"REASON", "reason", 0, false},   {"ATTEMPTS", "attempts", 0, true},
        {"POSTED", "posted", 0, false}, {"BYTES", "body_bytes", 0, true}, {"QUEUE", "queue", 80, false},
    };
    char path[PATH_BYTES] = "/v1/dead";
    char number[32];
    (void)argv;
    if (argc != 0) return 2;
    (void)snprintf(number, sizeof number, "%ld", cli->limit);
    rt_cli_arg(path, sizeof path, "queue", cli->queue);
    rt_cli_arg(path, sizeof path, "reason", cli->reason);
    rt_cli_arg(path, sizeof path, "marker", cli->marker);
    if (cli->limit > 0) rt_cli_arg(path, sizeof path, "limit", number);
    json_t *answer = rt_cli_call(cli, "GET", path, NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    rt_table_print(json_object_get(answer, "dead"), COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0],
                   "Nothing was given up.");
    const char *next = json_string_value(json_object_get(answer, "next"));
    if (next != NULL) (void)printf("more: --marker %s\n", next);
    json_decref(answer);
    return 0;
}

/* Those that --queue and --reason name, or all of them. */
static int many(const rt_cli *cli, const char *path, const char *verb) {
    json_t *body = json_object();
    if (cli->queue != NULL) (void)json_object_set_new(body, "queue", json_string(cli->queue));
    if (cli->reason != NULL)
        (void)json_object_set_new(body, "filter", json_pack("{s:s}", "reason", cli->reason));
    if (cli->rate > 0) (void)json_object_set_new(body, "rate", json_integer(cli->rate));
    if (cli->dry_run) (void)json_object_set_new(body, "dry_run", json_true());
    json_t *answer = rt_cli_call(cli, "POST", path, body);
    json_decref(body);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    if (cli->dry_run) {
        (void)printf("%lld%s would be %s\n", (long long)json_integer_value(json_object_get(answer, "count")),
                     json_is_true(json_object_get(answer, "counted_all")) ? "" : " or more", verb);
    } else {
        (void)printf("started: they are being %s; see retryctl watch\n", verb);
    }
    json_decref(answer);
    return 0;
}

static int one(const rt_cli *cli, const char *method, const char *id, const char *what, const char *verb) {
    char segment[PATH_BYTES / 2];
    char path[PATH_BYTES];
    rt_cli_segment(segment, sizeof segment, id);
    (void)snprintf(path, sizeof path, "/v1/dead/%s%s", segment, what);
    json_t *answer = rt_cli_call(cli, method, path, NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    (void)printf("%s %s\n", id, verb);
    json_decref(answer);
    return 0;
}

int rt_cli_dead_redrive(const rt_cli *cli, int argc, char **argv) {
    if (argc > 1) return 2;
    return argc == 1 ? one(cli, "POST", argv[0], "/redrive", "redriven")
                     : many(cli, "/v1/dead/redrive", "redriven");
}

int rt_cli_dead_delete(const rt_cli *cli, int argc, char **argv) {
    if (argc == 1) return one(cli, "DELETE", argv[0], "", "deleted");
    // Without a name it would be everything: that must be asked for.
    if (argc != 0 || (cli->queue == NULL && cli->reason == NULL)) return 2;
    return many(cli, "/v1/dead/delete", "deleted");
}
