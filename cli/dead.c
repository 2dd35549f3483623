#include <stdio.h>

#include "commands.h"
#include "table.h"

enum { PATH_BYTES = 8192 };
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- which ----------------------------------------------------------------------------------------- */

typedef struct word {
    const char *name, *value;
} word;
enum { FILTERS = 5, WORDS = FILTERS + 2 };

/* The words of a filter, then what stands beside it. */
static void words_of(const rt_cli *cli, word out[WORDS]) {
    const word words[WORDS] = {{"reason", cli->reason}, {"failure", cli->failure}, {"after", cli->after},
                               {"before", cli->before}, {"text", cli->text},       {"queue", cli->queue},
                               {"type", cli->type}};
    for (size_t i = 0; i < WORDS; i++) out[i] = words[i];
}

static void set_query(char *path, const rt_cli *cli, const char *marker) {
    word words[WORDS];
    char number[32];
    words_of(cli, words);
    for (size_t i = 0; i < WORDS; i++) rt_cli_arg(path, PATH_BYTES, words[i].name, words[i].value);
    rt_cli_arg(path, PATH_BYTES, "marker", marker);
    (void)snprintf(number, sizeof number, "%ld", cli->limit);
    if (cli->limit > 0) rt_cli_arg(path, PATH_BYTES, "limit", number);
}

/* ---- looking --------------------------------------------------------------------------------------- */

static void print_dead(const json_t *rows) {
    static const rt_column COLUMNS[] = {
        {"ID", "id", 0, false},
        {"REASON", "reason", 0, false},
        {"ATTEMPTS", "attempts", 0, true},
        {"DIED", "died", 0, false},
        {"RETRY REASON", "retry_reason", 24, false},
        {"BYTES", "body_bytes", 0, true},
        {"QUEUE", "queue", 80, false},
    };
    rt_table_print(rows, COLUMNS, COUNT(COLUMNS), "Nothing was given up.");
}

int rt_cli_dead_list(const rt_cli *cli, int argc, char **argv) {
    char path[PATH_BYTES] = "/v1/dead";
    (void)argv;
    if (argc != 0) return 2;
    set_query(path, cli, cli->marker);
    json_t *answer = rt_cli_call(cli, "GET", path, NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    print_dead(json_object_get(answer, "dead"));
    const char *next = json_string_value(json_object_get(answer, "next"));
    if (next != NULL) (void)printf("more: --marker %s\n", next);
    json_decref(answer);
    return 0;
}

int rt_cli_dead_sample(const rt_cli *cli, int argc, char **argv) {
    char path[PATH_BYTES] = "/v1/dead/sample";
    (void)argv;
    if (argc != 0) return 2;
    set_query(path, cli, NULL);
    json_t *answer = rt_cli_call(cli, "GET", path, NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    print_dead(json_object_get(answer, "dead"));
    (void)printf("of %lld%s\n", (long long)json_integer_value(json_object_get(answer, "count")),
                 json_is_true(json_object_get(answer, "counted_all")) ? "" : " or more");
    json_decref(answer);
    return 0;
}

int rt_cli_dead_count(const rt_cli *cli, int argc, char **argv) {
    char path[PATH_BYTES] = "/v1/dead/count";
    (void)argv;
    if (argc != 0) return 2;
    set_query(path, cli, NULL);
    rt_cli_arg(path, sizeof path, "by", cli->by);
    json_t *answer = rt_cli_call(cli, "GET", path, NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    const char *name;
    json_t *number;
    json_object_foreach(json_object_get(answer, "by"), name, number)(void)
        printf("%10lld  %s\n", (long long)json_integer_value(number), name[0] == '\0' ? "-" : name);
    (void)printf("%10lld%s\n", (long long)json_integer_value(json_object_get(answer, "count")),
                 json_is_true(json_object_get(answer, "counted_all")) ? "" : " or more");
    json_decref(answer);
    return 0;
}

/* All of them, a page after the other. */
int rt_cli_dead_export(const rt_cli *cli, int argc, char **argv) {
    char marker[RT_CLI_MARKER_BYTES];
    (void)argv;
    if (argc != 0) return 2;
    (void)snprintf(marker, sizeof marker, "%s", cli->marker == NULL ? "" : cli->marker);
    do {
        char path[PATH_BYTES] = "/v1/dead/export";
        set_query(path, cli, marker[0] == '\0' ? NULL : marker);
        if (!rt_cli_lines(cli, path, stdout, marker)) return 1;
    } while (marker[0] != '\0' && cli->limit == 0);
    if (fflush(stdout) == 0) return 0;
    (void)fputs("retryctl: the output could not be written\n", stderr);
    return 1;
}

/* ---- doing ----------------------------------------------------------------------------------------- */

/* Those that the options name, or all of them. */
static int many(const rt_cli *cli, const char *path, const char *verb) {
    word words[WORDS];
    json_t *body = json_object();
    json_t *filter = json_object();
    words_of(cli, words);
    for (size_t i = 0; i < WORDS; i++) {
        if (words[i].value == NULL) continue;
        (void)json_object_set_new(i < FILTERS ? filter : body, words[i].name, json_string(words[i].value));
    }
    (void)json_object_set_new(body, "filter", filter);
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
    word words[WORDS];
    bool named = false;
    words_of(cli, words);
    for (size_t i = 0; i < WORDS; i++) named = named || words[i].value != NULL;
    // Without a name it would be everything: that must be asked for.
    if (argc != 0 || !named) return 2;
    return many(cli, "/v1/dead/delete", "deleted");
}
