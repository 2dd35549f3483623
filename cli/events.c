#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "table.h"

enum { PATH_BYTES = 4096 };
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static json_t *type_call(const rt_cli *cli, const char *method, const char *type, const char *what,
                         const json_t *body) {
    char segment[PATH_BYTES / 2];
    char path[PATH_BYTES];
    rt_cli_segment(segment, sizeof segment, type);
    (void)snprintf(path, sizeof path, "/v1/event-types/%s%s", segment, what);
    return rt_cli_call(cli, method, path, body);
}

/* ---- types ----------------------------------------------------------------------------------------- */

/* What a target is, in one word. */
static json_t *target_word(const json_t *target) {
    static const char *const MEMBERS[] = {"url", "plugin", "kafka_topic"};
    for (size_t i = 0; i < COUNT(MEMBERS); i++) {
        const char *value = json_string_value(json_object_get(target, MEMBERS[i]));
        if (value != NULL) return i == 0 ? json_string(value) : json_sprintf("%s:%s", MEMBERS[i], value);
    }
    return json_string("pull");
}

int rt_cli_event_types(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"TYPE", "type", 0, false},       {"VERSION", "version", 0, true}, {"QUEUE", "queue", 0, false},
        {"CHANGED", "changed", 0, false}, {"TARGET", "where", 70, false},
    };
    char path[PATH_BYTES] = "/v1/event-types";
    char number[32];
    (void)argv;
    if (argc != 0) return 2;
    (void)snprintf(number, sizeof number, "%ld", cli->limit);
    if (cli->limit > 0) rt_cli_arg(path, sizeof path, "limit", number);
    rt_cli_arg(path, sizeof path, "marker", cli->marker);
    json_t *answer = rt_cli_call(cli, "GET", path, NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    size_t i;
    json_t *row;
    json_t *rows = json_object_get(answer, "event_types");
    json_array_foreach(rows, i, row)(void)
        json_object_set_new(row, "where", target_word(json_object_get(row, "target")));
    rt_table_print(rows, COLUMNS, COUNT(COLUMNS), "There are no event types yet.");
    const char *next = json_string_value(json_object_get(answer, "next"));
    if (next != NULL) (void)printf("more: --marker %s\n", next);
    json_decref(answer);
    return 0;
}

int rt_cli_event_type_show(const rt_cli *cli, int argc, char **argv) {
    if (argc != 1) return 2;
    json_t *answer = type_call(cli, "GET", argv[0], "", NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    answer = rt_fields_spread(rt_fields_spread(answer)); // state.circuit.state
    rt_fields_print(answer);
    json_decref(answer);
    return 0;
}

/* JSON in an argument, or on standard input ("-"). NULL: said why. */
static json_t *read_json(const char *text) {
    json_error_t why;
    json_t *json = strcmp(text, "-") == 0 ? json_loadf(stdin, JSON_DECODE_ANY, &why)
                                          : json_loads(text, JSON_DECODE_ANY, &why);
    if (json == NULL)
        (void)fprintf(stderr, "retryctl: this is not JSON: %s at column %d\n", why.text, why.column);
    return json;
}

int rt_cli_event_type_put(const rt_cli *cli, int argc, char **argv) {
    json_t *body = argc == 2 ? read_json(argv[1]) : NULL;
    if (body == NULL) return 2;
    json_t *answer = type_call(cli, "PUT", argv[0], "", body);
    json_decref(body);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    (void)printf("%s has version %lld\n", argv[0],
                 (long long)json_integer_value(json_object_get(answer, "version")));
    json_decref(answer);
    return 0;
}

int rt_cli_event_type_delete(const rt_cli *cli, int argc, char **argv) {
    if (argc != 1) return 2;
    json_t *answer = type_call(cli, "DELETE", argv[0], cli->force ? "?force=1" : "", NULL);
    if (answer == NULL) return 1;
    json_decref(answer);
    (void)printf("%s deleted\n", argv[0]);
    return 0;
}

/* ---- events ------------------------------------------------------------------------------------------ */

int rt_cli_events_list(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"ID", "id", 0, false},
        {"STATE", "state", 0, false},
        {"ATTEMPTS", "attempts", 0, true},
        {"NEXT ATTEMPT", "next_attempt", 0, false},
        {"IN LINE", "in_line", 0, false},
        {"REASON", "retry_reason", 32, false},
        {"ORDER KEY", "order_key", 32, false},
    };
    char segment[PATH_BYTES / 2];
    char path[PATH_BYTES];
    char number[32];
    if (argc != 1) return 2;
    rt_cli_segment(segment, sizeof segment, argv[0]);
    (void)snprintf(path, sizeof path, "/v1/events/%s", segment);
    (void)snprintf(number, sizeof number, "%ld", cli->limit);
    if (cli->limit > 0) rt_cli_arg(path, sizeof path, "limit", number);
    rt_cli_arg(path, sizeof path, "marker", cli->marker);
    rt_cli_arg(path, sizeof path, "reason", cli->reason);
    json_t *answer = rt_cli_call(cli, "GET", path, NULL);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    rt_table_print(json_object_get(answer, "events"), COLUMNS, COUNT(COLUMNS), "Nothing waits.");
    const char *next = json_string_value(json_object_get(answer, "next"));
    if (next != NULL) (void)printf("more: --marker %s\n", next);
    json_decref(answer);
    return 0;
}

static void set_text(json_t *event, const char *name, const char *value) {
    if (value != NULL) (void)json_object_set_new(event, name, json_string(value));
}

/* What is JSON is sent as JSON, anything else as text. */
int rt_cli_events_schedule(const rt_cli *cli, int argc, char **argv) {
    if (argc != 2) return 2;
    json_t *value = strcmp(argv[1], "-") == 0 ? read_json("-") : json_loads(argv[1], JSON_DECODE_ANY, NULL);
    if (value == NULL && strcmp(argv[1], "-") == 0) return 2;
    json_t *event =
        json_pack("{s:s, s:o}", "type", argv[0], "body", value != NULL ? value : json_string(argv[1]));
    set_text(event, "reason", cli->reason);
    set_text(event, "idempotency_key", cli->key);
    set_text(event, "order_key", cli->order_key);
    if (cli->seconds > 0) (void)json_object_set_new(event, "deliver_after", json_integer(cli->seconds));
    json_t *body = json_pack("{s:[o]}", "events", event);
    json_t *answer = rt_cli_call(cli, "POST", "/v1/events", body);
    json_decref(body);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    const char *id = json_string_value(json_array_get(json_object_get(answer, "ids"), 0));
    (void)printf("%s\n", id == NULL ? "?" : id);
    json_decref(answer);
    return 0;
}

/* ---- circuits -------------------------------------------------------------------------------------- */

static int force(const rt_cli *cli, int argc, char **argv, const char *state) {
    if (argc != 1) return 2;
    char segment[PATH_BYTES / 2];
    char path[PATH_BYTES];
    rt_cli_segment(segment, sizeof segment, argv[0]);
    (void)snprintf(path, sizeof path, "/v1/queues/%s/circuit", segment);
    json_t *body = json_pack("{s:s}", "state", state);
    json_t *answer = rt_cli_call(cli, "POST", path, body);
    json_decref(body);
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    const json_t *circuit = json_object_get(answer, "circuit");
    const char *now = json_string_value(json_object_get(circuit, "state"));
    (void)printf("%s is %s%s\n", argv[0], now == NULL ? "?" : now,
                 json_is_true(json_object_get(circuit, "forced")) ? ", until retryctl circuit auto" : "");
    json_decref(answer);
    return 0;
}

int rt_cli_circuit_open(const rt_cli *cli, int argc, char **argv) { return force(cli, argc, argv, "open"); }
int rt_cli_circuit_close(const rt_cli *cli, int argc, char **argv) {
    return force(cli, argc, argv, "closed");
}
int rt_cli_circuit_auto(const rt_cli *cli, int argc, char **argv) { return force(cli, argc, argv, "auto"); }
