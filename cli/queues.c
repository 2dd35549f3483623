#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "table.h"

enum { PATH_BYTES = 4096 };
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

bool rt_cli_print_json(const rt_cli *cli, json_t *answer) {
    if (!cli->json) return false;
    (void)json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    (void)putchar('\n');
    json_decref(answer);
    return true;
}

static void set_limit(char *path, const rt_cli *cli) {
    char number[32];
    (void)snprintf(number, sizeof number, "%ld", cli->limit);
    if (cli->limit > 0) rt_cli_arg(path, PATH_BYTES, "limit", number);
    rt_cli_arg(path, PATH_BYTES, "marker", cli->marker);
}

int rt_cli_queues(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"ID", "id", 0, false},
        {"KIND", "kind", 0, false},
        {"READY", "ready", 0, true},
        {"SCHEDULED", "scheduled", 0, true},
        {"FREE", "free", 0, true},
        {"LEASED", "leased", 0, true},
        {"DEAD", "dead", 0, true},
        {"DONE", "done", 0, true},
        {"NEXT DUE", "next_due", 0, false},
        {"PAUSED", "paused", 0, false},
        {"NAME", "name", 60, false},
    };
    (void)argv;
    if (argc != 0) return 2;
    char path[PATH_BYTES] = "/v1/queues";
    set_limit(path, cli);
    json_t *answer = rt_cli_call(cli, "GET", path, NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    rt_table_print(json_object_get(answer, "queues"), COLUMNS, COUNT(COLUMNS), "There are no queues yet.");
    const char *next = json_string_value(json_object_get(answer, "next"));
    if (next != NULL) (void)printf("more: --marker %s\n", next);
    json_decref(answer);
    return 0;
}

static int post_to_queue(const rt_cli *cli, const char *id, const char *verb, json_t *body) {
    char segment[PATH_BYTES / 2];
    char path[PATH_BYTES];
    rt_cli_segment(segment, sizeof segment, id);
    (void)snprintf(path, sizeof path, "/v1/queues/%s/%s", segment, verb);
    json_t *answer = rt_cli_call(cli, "POST", path, body);
    json_decref(body);
    if (answer == NULL) return 1;
    if (!rt_cli_print_json(cli, answer)) {
        (void)printf("%s %sd\n", id, verb);
        json_decref(answer);
    }
    return 0;
}

int rt_cli_pause(const rt_cli *cli, int argc, char **argv) {
    if (argc != 1) return 2;
    return post_to_queue(cli, argv[0], "pause",
                         cli->seconds > 0 ? json_pack("{s:I}", "seconds", (json_int_t)cli->seconds) : NULL);
}

int rt_cli_resume(const rt_cli *cli, int argc, char **argv) {
    return argc == 1 ? post_to_queue(cli, argv[0], "resume", NULL) : 2;
}

static json_t *zaqar(const rt_cli *cli, const char *method, const char *queue, const char *what,
                     const json_t *body) {
    char segment[PATH_BYTES / 2];
    char path[PATH_BYTES];
    rt_cli_segment(segment, sizeof segment, queue);
    (void)snprintf(path, sizeof path, "/v2/queues/%s/%s", segment, what);
    if (body == NULL) set_limit(path, cli);
    return rt_cli_call(cli, method, path, body);
}

/* A queue that is not there looks like an empty one, so it is said in which project was looked. */
static void print_of_queue(const rt_cli *cli, const json_t *rows, const rt_column columns[], size_t count,
                           const char *none) {
    char text[PATH_BYTES];
    (void)snprintf(text, sizeof text, "%s this queue of project \"%s\" (--project, $RETRYD_PROJECT).", none, cli->project);
    rt_table_print(rows, columns, count, text);
}

int rt_cli_subscriptions(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"ID", "id", 0, false},  {"CONFIRMED", "confirmed", 0, false},    {"AGE", "age", 0, true},
        {"TTL", "ttl", 0, true}, {"SUBSCRIBER", "subscriber", 80, false},
    };
    if (argc != 1) return 2;
    json_t *answer = zaqar(cli, "GET", argv[0], "subscriptions", NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    print_of_queue(cli, json_object_get(answer, "subscriptions"), COLUMNS, COUNT(COLUMNS), "Nobody has subscribed to");
    json_decref(answer);
    return 0;
}

int rt_cli_messages(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"ID", "id", 0, false},
        {"AGE", "age", 0, true},
        {"TTL", "ttl", 0, true},
        {"BODY", "body", 80, false},
    };
    if (argc != 1) return 2;
    json_t *answer =
        zaqar(cli, "GET", argv[0], "messages?echo=true&include_claimed=true&include_delayed=true", NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    print_of_queue(cli, json_object_get(answer, "messages"), COLUMNS, COUNT(COLUMNS), "There is nothing in");
    json_decref(answer);
    return 0;
}

int rt_cli_post(const rt_cli *cli, int argc, char **argv) {
    if (argc != 2) return 2;
    json_error_t why;
    json_t *body = json_loads(argv[1], JSON_DECODE_ANY, &why);
    if (body == NULL) {
        (void)fprintf(stderr, "retryctl: the message is not JSON: %s at column %d\n", why.text, why.column);
        return 2;
    }
    json_t *post = json_pack("{s:[{s:o}]}", "messages", "body", body);
    json_t *answer = zaqar(cli, "POST", argv[0], "messages", post);
    json_decref(post);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    (void)puts(json_string_value(json_array_get(json_object_get(answer, "resources"), 0)));
    json_decref(answer);
    return 0;
}

/* All queues summed up: what is there, and what needs somebody. */
int rt_cli_status(const rt_cli *cli, int argc, char **argv) {
    static const char *const STATES[] = {"ready", "scheduled", "free", "leased", "dead", "done"};
    json_int_t sums[COUNT(STATES)] = {0};
    size_t queues = 0;
    char path[PATH_BYTES] = "/v1/queues?limit=1000";
    (void)argv;
    if (argc != 0) return 2;
    for (;;) {
        json_t *answer = rt_cli_call(cli, "GET", path, NULL);
        if (answer == NULL) return 1;
        size_t i;
        json_t *row;
        json_array_foreach(json_object_get(answer, "queues"), i, row) {
            queues++;
            for (size_t s = 0; s < COUNT(STATES); s++)
                sums[s] += json_integer_value(json_object_get(row, STATES[s]));
        }
        const char *next = json_string_value(json_object_get(answer, "next"));
        (void)snprintf(path, sizeof path, "/v1/queues?limit=1000");
        rt_cli_arg(path, sizeof path, "marker", next);
        json_decref(answer);
        if (next == NULL) break;
    }
    json_t *all = json_pack("{s:I}", "queues", (json_int_t)queues);
    for (size_t s = 0; s < COUNT(STATES); s++)
        (void)json_object_set_new(all, STATES[s], json_integer(sums[s]));
    if (rt_cli_print_json(cli, all)) return 0;
    rt_fields_print(all);
    json_decref(all);
    return 0;
}
