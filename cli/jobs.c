#include <stdio.h>

#include "commands.h"
#include "table.h"

enum { PATH_BYTES = 1024 };

static json_t *job_call(const rt_cli *cli, const char *method, const char *id, const char *what) {
    char segment[PATH_BYTES / 2];
    char path[PATH_BYTES];
    rt_cli_segment(segment, sizeof segment, id);
    (void)snprintf(path, sizeof path, "/v1/jobs/%s%s", segment, what);
    return rt_cli_call(cli, method, path, NULL);
}

static void print_attempts(const json_t *attempts) {
    static const rt_column COLUMNS[] = {
        {"TIME", "time", 0, false},          {"EVENT", "event", 0, false},   {"ATTEMPT", "attempt", 0, true},
        {"STATUS", "status", 0, true},       {"REASON", "reason", 0, false}, {"TOOK MS", "took_ms", 0, true},
        {"NEXT IN MS", "delay_ms", 0, true}, {"TEXT", "text", 60, false},
    };
    rt_table_print(attempts, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0], "No attempts yet.");
}

int rt_cli_attempts(const rt_cli *cli, int argc, char **argv) {
    if (argc != 1) return 2;
    json_t *answer = job_call(cli, "GET", argv[0], "/attempts");
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    print_attempts(json_object_get(answer, "attempts"));
    json_decref(answer);
    return 0;
}

int rt_cli_job(const rt_cli *cli, int argc, char **argv) {
    if (argc != 1) return 2;
    json_t *job = job_call(cli, "GET", argv[0], "");
    if (job == NULL) return 1;
    if (rt_cli_print_json(cli, job)) return 0;
    rt_fields_print(job);
    json_decref(job);
    json_t *answer = job_call(cli, "GET", argv[0], "/attempts");
    if (answer == NULL) return 1;
    (void)putchar('\n');
    print_attempts(json_object_get(answer, "attempts"));
    json_decref(answer);
    return 0;
}

int rt_cli_job_delete(const rt_cli *cli, int argc, char **argv) {
    if (argc != 1) return 2;
    json_t *answer = job_call(cli, "DELETE", argv[0], "");
    if (answer == NULL) return 1;
    json_decref(answer);
    (void)printf("%s deleted\n", argv[0]);
    return 0;
}
