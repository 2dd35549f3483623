#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "table.h"

enum { PATH_BYTES = 4096, ORDERS_SHOWN = 100 };
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* "/v1/NOUN/ID/WHAT" with the answer to `method`. */
static json_t *call(const rt_cli *cli, const char *method, const char *noun, const char *id, const char *what,
                    const json_t *body) {
    char segment[PATH_BYTES / 2];
    char path[PATH_BYTES];
    rt_cli_segment(segment, sizeof segment, id);
    (void)snprintf(path, sizeof path, "/v1/%s/%s%s", noun, segment, what);
    return rt_cli_call(cli, method, path, body);
}

/* Does it, and says so: "ID SAID". */
static int change(const rt_cli *cli, const char *method, const char *noun, const char *id, const char *what,
                  const char *said) {
    json_t *answer = call(cli, method, noun, id, what, NULL);
    if (answer == NULL) return 1;
    json_decref(answer);
    (void)printf("%s %s\n", id, said);
    return 0;
}

static int show_array(const rt_cli *cli, json_t *answer, const rt_column columns[], size_t count,
                      const char *none) {
    if (answer == NULL) return 1;
    if (rt_cli_print_json(cli, answer)) return 0;
    rt_table_print(answer, columns, count, none);
    json_decref(answer);
    return 0;
}

/* ---- orders -------------------------------------------------------------------------------------------- */

/* What follows the last slash of its reference. */
static void add_id(json_t *order) {
    const char *ref = json_string_value(json_object_get(order, "order_ref"));
    const char *slash = ref == NULL ? NULL : strrchr(ref, '/');
    if (slash != NULL) (void)json_object_set_new(order, "id", json_string(slash + 1));
}

int rt_cli_orders(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"ORDER", "id", 0, false},
        {"TYPE", "type", 0, false},
        {"STATUS", "status", 0, false},
        {"SUB STATUS", "sub_status", 0, false},
        {"CREATED", "created", 0, false},
        {"UPDATED", "updated", 0, false},
        {"CODE", "error_status_code", 0, true},
        {"REASON", "error_reason", 60, false},
    };
    (void)argv;
    if (argc != 0) return 2;
    char path[PATH_BYTES] = "/v1/orders";
    char number[32];
    (void)snprintf(number, sizeof number, "%ld", cli->limit > 0 ? cli->limit : (long)ORDERS_SHOWN);
    rt_cli_arg(path, sizeof path, "limit", number);
    rt_cli_arg(path, sizeof path, "marker", cli->marker);
    json_t *answer = rt_cli_call(cli, "GET", path, NULL);
    if (answer == NULL) return 1;
    json_t *orders = json_object_get(answer, "orders");
    size_t i;
    json_t *order;
    json_array_foreach(orders, i, order) add_id(order);
    if (rt_cli_print_json(cli, answer)) return 0;
    rt_table_print(orders, COLUMNS, COUNT(COLUMNS), "There are no orders.");
    const json_t *last = json_array_get(orders, json_array_size(orders) - 1);
    if (json_object_get(answer, "next") != NULL)
        (void)printf("more: --marker %s\n", json_string_value(json_object_get(last, "id")));
    json_decref(answer);
    return 0;
}

static int show_retries(const rt_cli *cli, const char *id) {
    static const rt_column COLUMNS[] = {
        {"TASK", "retry_task", 40, false}, {"AT", "retry_at", 0, false},
        {"STATE", "state", 0, false},      {"RETRIES", "retry_count", 0, true},
        {"RUNS", "attempts", 0, true},     {"FAILED", "failures", 0, true},
        {"ARGS", "retry_args", 40, false}, {"KWARGS", "retry_kwargs", 40, false},
        {"JOB", "id", 0, false},
    };
    return show_array(cli, call(cli, "GET", "orders", id, "/retries", NULL), COLUMNS, COUNT(COLUMNS),
                      "It has no task.");
}

int rt_cli_order_retries(const rt_cli *cli, int argc, char **argv) {
    return argc == 1 ? show_retries(cli, argv[0]) : 2;
}

int rt_cli_order(const rt_cli *cli, int argc, char **argv) {
    if (argc != 1) return 2;
    json_t *order = call(cli, "GET", "orders", argv[0], "", NULL);
    if (order == NULL) return 1;
    if (rt_cli_print_json(cli, order)) return 0;
    rt_fields_print(order);
    json_decref(order);
    (void)putchar('\n');
    return show_retries(cli, argv[0]);
}

int rt_cli_order_wake(const rt_cli *cli, int argc, char **argv) {
    return argc == 1 ? change(cli, "POST", "orders", argv[0], "/retry-now", "is tried again now") : 2;
}

int rt_cli_order_delete(const rt_cli *cli, int argc, char **argv) {
    return argc == 1 ? change(cli, "DELETE", "orders", argv[0], "", "deleted") : 2;
}

/* ---- types of orders ----------------------------------------------------------------------------------- */

int rt_cli_order_types(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"TYPE", "type", 0, false},
        {"PROJECT", "project", 0, false},
        {"TARGET", "target", 60, false},
        {"FIRST TASK", "first_task", 40, false},
        {"RUN S", "run_limit_s", 0, true},
        {"ANSWER S", "answer_limit_s", 0, true},
        {"ATTEMPTS", "max_attempts", 0, true},
        {"AT ONCE", "concurrency", 0, true},
        {"BACKOFF", "backoff", 40, false},
    };
    (void)argv;
    if (argc != 0) return 2;
    return show_array(cli, rt_cli_call(cli, "GET", "/v1/order-types", NULL), COLUMNS, COUNT(COLUMNS),
                      "There are no order types.");
}

int rt_cli_order_type_put(const rt_cli *cli, int argc, char **argv) {
    if (argc != 2) return 2;
    json_error_t why;
    json_t *body = json_loads(argv[1], JSON_REJECT_DUPLICATES, &why);
    if (body == NULL) {
        (void)fprintf(stderr, "retryctl: the type is not JSON: %s\n", why.text);
        return 2;
    }
    json_t *type = call(cli, "PUT", "order-types", argv[0], "", body);
    json_decref(body);
    if (type == NULL) return 1;
    if (rt_cli_print_json(cli, type)) return 0;
    rt_fields_print(type);
    json_decref(type);
    return 0;
}

int rt_cli_order_type_delete(const rt_cli *cli, int argc, char **argv) {
    return argc == 1 ? change(cli, "DELETE", "order-types", argv[0], "", "deleted") : 2;
}

/* ---- locks --------------------------------------------------------------------------------------------- */

int rt_cli_locks(const rt_cli *cli, int argc, char **argv) {
    static const rt_column COLUMNS[] = {
        {"LOCK", "name", 0, false},   {"HOLDER", "holder", 60, false},  {"TOKEN", "token", 0, true},
        {"TAKEN", "taken", 0, false}, {"RENEWED", "renewed", 0, false},
    };
    (void)argv;
    if (argc != 0) return 2;
    return show_array(cli, rt_cli_call(cli, "GET", "/v1/locks", NULL), COLUMNS, COUNT(COLUMNS),
                      "No lock is held.");
}
