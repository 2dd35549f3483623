#include <curl/curl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "explain.h"
#include "options.h"

/* ---- without a server ---------------------------------------------------------------------------------- */

enum { EXPLAIN_ARGS_MAX = 16 };

/* Hands on what main took apart, so that options may stand anywhere. */
static int explain(const rt_cli *cli, int argc, char **argv, int (*run)(int argc, char **argv)) {
    const char *args[EXPLAIN_ARGS_MAX];
    int count = 0;
    if (argc > EXPLAIN_ARGS_MAX - 5) return 2;
    for (int i = 0; i < argc; i++) args[count++] = argv[i];
    if (cli->json) args[count++] = "--json";
    if (cli->previous_ms != NULL) {
        args[count++] = "--previous-ms";
        args[count++] = cli->previous_ms;
    }
    if (cli->count != NULL) {
        args[count++] = "--count";
        args[count++] = cli->count;
    }
    return run(count, (char **)(uintptr_t)args);
}

static int explain_policy(const rt_cli *cli, int argc, char **argv) {
    return explain(cli, argc, argv, rt_explain_policy);
}

static int explain_backoff(const rt_cli *cli, int argc, char **argv) {
    return explain(cli, argc, argv, rt_explain_backoff);
}

/* ---- commands ------------------------------------------------------------------------------------------ */

/* The first words of the command line say what to do; longer matches stand first. */
static const struct {
    const char *noun, *verb; /* verb NULL: none */
    rt_cli_command *run;
    const char *usage, *help;
} COMMANDS[] = {
    {"status", NULL, rt_cli_status, "status", "all queues summed up"},
    {"queues", NULL, rt_cli_queues, "queues [--limit N] [--marker M]",
     "every queue of every kind, with counts"},
    {"queue", "pause", rt_cli_pause, "queue pause QUEUE [--seconds N]", "stop starting its jobs"},
    {"queue", "resume", rt_cli_resume, "queue resume QUEUE", "go on"},
    {"subscriptions", NULL, rt_cli_subscriptions, "subscriptions QUEUE [--limit N] [--marker M]",
     "who is told of its messages"},
    {"messages", NULL, rt_cli_messages, "messages QUEUE [--limit N] [--marker M]", "what is in it"},
    {"post", NULL, rt_cli_post, "post QUEUE JSON", "post one message"},
    {"job", "delete", rt_cli_job_delete, "job delete ID", "delete a job of any state"},
    {"job", NULL, rt_cli_job, "job ID", "one job and its attempts"},
    {"attempts", NULL, rt_cli_attempts, "attempts ID", "the attempts of a job"},
    {"event-types", "show", rt_cli_event_type_show, "event-types show TYPE", "its settings, and how its events fare"},
    {"event-types", "put", rt_cli_event_type_put, "event-types put TYPE JSON|-", "make or change one"},
    {"event-types", "delete", rt_cli_event_type_delete, "event-types delete TYPE [--force]",
     "delete one; --force: with events that wait"},
    {"event-types", NULL, rt_cli_event_types, "event-types [--limit N] [--marker M]", "types of failed calls"},
    {"events", "list", rt_cli_events_list, "events list TYPE [--reason R] [--limit N] [--marker M]",
     "those that have not ended"},
    {"events", "schedule", rt_cli_events_schedule,
     "events schedule TYPE BODY|- [--reason R] [--key K] [--order-key O] [--seconds N]", "hand over a failed call"},
    {"circuit", "open", rt_cli_circuit_open, "circuit open TYPE|QUEUE", "start nothing, until \"auto\""},
    {"circuit", "close", rt_cli_circuit_close, "circuit close TYPE|QUEUE", "start whatever fails, until \"auto\""},
    {"circuit", "auto", rt_cli_circuit_auto, "circuit auto TYPE|QUEUE", "by itself again"},
    {"dead", "list", rt_cli_dead_list, "dead list [FILTER] [--limit N] [--marker M]", "jobs that were given up"},
    {"dead", "show", rt_cli_job, "dead show ID", "one of them, with its attempts"},
    {"dead", "count", rt_cli_dead_count, "dead count [FILTER] [--by reason|retry_reason|failure|queue]", "how many"},
    {"dead", "sample", rt_cli_dead_sample, "dead sample [FILTER] [--limit N]", "some of them, by chance"},
    {"dead", "export", rt_cli_dead_export, "dead export [FILTER] [--limit N] [--marker M]",
     "all of them with their bodies, as NDJSON"},
    {"dead", "redrive", rt_cli_dead_redrive, "dead redrive ID | [FILTER] [--rate N] [--dry-run]",
     "try afresh: one, or all that match"},
    {"dead", "delete", rt_cli_dead_delete, "dead delete ID | FILTER [--dry-run]", "delete one, or all that match"},
    {"work", NULL, rt_cli_work, "work [--process P] [--entity E] [--limit N] [--marker M]",
     "what is worked on, and by whom"},
    {"sessions", NULL, rt_cli_sessions, "sessions [--limit N] [--marker M]", "the workers that are alive"},
    {"backoffs", "clear", rt_cli_backoffs_clear, "backoffs clear ENTITY PROCESS", "try again now"},
    {"backoffs", "list", rt_cli_backoffs, "backoffs list [--process P] [--entity E] [--limit N] [--marker M]",
     "what rests after a failure, until when, and why"},
    {"backoffs", NULL, rt_cli_backoffs, "backoffs [--process P] [--entity E] [--limit N] [--marker M]", "the same"},
    {"entity", NULL, rt_cli_entity, "entity ENTITY", "one entity: its value, and what is done with it"},
    {"history", NULL, rt_cli_history, "history ENTITY [--limit N] [--marker SEQ]",
     "all work on an entity, newest first"},
    {"orders", "show", rt_cli_order, "orders show ID", "one order and its task"},
    {"orders", "retries", rt_cli_order_retries, "orders retries ID", "the task of a PENDING order: when, how often"},
    {"orders", "wake", rt_cli_order_wake, "orders wake ID", "try its task again now"},
    {"orders", "delete", rt_cli_order_delete, "orders delete ID", "delete it, its task, and what it made"},
    {"orders", "list", rt_cli_orders, "orders list [--limit N] [--marker ID]", "orders, oldest first"},
    {"orders", NULL, rt_cli_orders, "orders [--limit N] [--marker ID]", "the same"},
    {"order-types", "put", rt_cli_order_type_put, "order-types put TYPE JSON", "who advances orders of a type"},
    {"order-types", "delete", rt_cli_order_type_delete, "order-types delete TYPE", "no more orders of it"},
    {"order-types", "list", rt_cli_order_types, "order-types list", "all types that the project can order"},
    {"order-types", NULL, rt_cli_order_types, "order-types", "the same"},
    {"locks", NULL, rt_cli_locks, "locks", "maintenance that one node does at a time"},
    {"migrate-store", NULL, rt_cli_migrate_store, "migrate-store FROM TO [--config FILE] [--set group.key=value] [--force]",
     "all of one store into another, empty one (no server may use them)"},
    {"watch", NULL, rt_cli_watch, "watch [--interval SECONDS] [--once]", "the busiest queues, live"},
    {"plugin", "check", rt_cli_plugin_check, "plugin check FILE",
     "does it load, and what is in it? (no server needed)"},
    {"policy", "show", rt_cli_policy_show, "policy show QUEUE [SUBSCRIPTION]",
     "the delivery policy that governs, and its schedule"},
    {"policy", "explain", explain_policy, "policy explain POLICY|-",
     "the schedule of a delivery policy (no server needed)"},
    {"backoff", "explain", explain_backoff, "backoff explain DESCRIPTOR|null|- [--previous-ms N] [--count K]",
     "the intervals of a work backoff (no server needed)"},
};
enum { COMMANDS_COUNT = sizeof COMMANDS / sizeof COMMANDS[0], USAGE_COLUMNS = 44 };

/* Whether what was typed begins as command i does: with its noun, and its verb if one was typed. */
static bool begins(int i, int count, char **words) {
    if (count > 0 && strcmp(words[0], COMMANDS[i].noun) != 0) return false;
    return count < 2 || COMMANDS[i].verb == NULL || strcmp(words[1], COMMANDS[i].verb) == 0;
}

static bool is_noun(const char *word) {
    for (int i = 0; i < COMMANDS_COUNT; i++) {
        if (strcmp(word, COMMANDS[i].noun) == 0) return true;
    }
    return false;
}

static void print_line(FILE *out, const char *usage, const char *help) {
    if (strlen(usage) <= USAGE_COLUMNS) (void)fprintf(out, "  %-*s %s\n", USAGE_COLUMNS, usage, help);
    else (void)fprintf(out, "  %s\n  %*s %s\n", usage, USAGE_COLUMNS, "", help);
}

/* The commands that begin with the words; all of them without any. */
static void print_commands(FILE *out, int count, char **words) {
    bool filters = false;
    for (int i = 0; i < COMMANDS_COUNT; i++) {
        if (!begins(i, count, words)) continue;
        print_line(out, COMMANDS[i].usage, COMMANDS[i].help);
        filters = filters || strstr(COMMANDS[i].usage, "FILTER") != NULL;
    }
    if (!filters) return;
    (void)fputs("\nFILTER: --queue Q or --type T, --reason R (of death, or of scheduling), --failure F (timeout, 503,\n"
                "5xx, …), --after and --before (a time, or 90s, 15m, 2h, 7d ago), --text T.\n",
                out);
}

static void print_help(FILE *out, int count, char **words) {
    (void)fputs("usage: retryctl [--url URL] [--project P] [--token T] [--json] COMMAND\n\n", out);
    print_commands(out, count, words);
    (void)fputs("\n--url: $RETRYD_URL, or http://127.0.0.1:8888. --project: $RETRYD_PROJECT, or \"default\".\n"
                "--token: $RETRYD_TOKEN. `retryctl COMMAND --help` says what one command takes.\n",
                out);
}

/* ---- dispatch ------------------------------------------------------------------------------------------ */

static int run_command(const rt_cli_line *line, int i) {
    const char *stray = rt_cli_line_stray(line, COMMANDS[i].usage);
    const int used = COMMANDS[i].verb == NULL ? 1 : 2;
    if (stray != NULL) (void)fprintf(stderr, "retryctl: this command takes no %s\n", stray);
    const int status = stray != NULL ? 2 : COMMANDS[i].run(&line->cli, line->count - used, line->words + used);
    if (status == 2) (void)fprintf(stderr, "usage: retryctl %s\n", COMMANDS[i].usage);
    return status;
}

static int run(const rt_cli_line *line) {
    char **words = line->words;
    for (int i = 0; i < COMMANDS_COUNT; i++) {
        if (begins(i, line->count, words) && (COMMANDS[i].verb == NULL || line->count > 1)) return run_command(line, i);
    }
    (void)fprintf(stderr, "retryctl: there is no command \"%s%s%s\"", words[0], line->count > 1 ? " " : "",
                  line->count > 1 ? words[1] : "");
    if (!is_noun(words[0])) (void)fputs("; see retryctl --help\n", stderr);
    else {
        (void)fputs("; there are\n", stderr);
        print_commands(stderr, 1, words);
    }
    return 2;
}

/* `retryctl --help`, `retryctl dead --help`, `retryctl help dead list`. */
static int help(const rt_cli_line *line) {
    const int behind = line->count > 0 && strcmp(line->words[0], "help") == 0;
    const int count = line->count - behind;
    char **words = line->words + behind;
    print_help(stdout, count > 0 && is_noun(words[0]) ? count : 0, words);
    return 0;
}

static int answer(const rt_cli_line *line) {
    if (line->version) {
        (void)puts("retryctl " RETRYD_VERSION);
        return 0;
    }
    if (line->help || (line->count > 0 && strcmp(line->words[0], "help") == 0)) return help(line);
    if (line->count == 0) {
        print_help(stderr, 0, NULL);
        return 2;
    }
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    const int status = run(line);
    curl_global_cleanup();
    return status;
}

static const char *env_or(const char *name, const char *preset) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : preset;
}

/* Its options are retryd's, and go there as they are; only help is asked for here. */
static bool goes_to_retryd(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "migrate-store") != 0) return false;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    rt_cli_line line = {.cli = {.url = env_or("RETRYD_URL", "http://127.0.0.1:8888"),
                                .project = env_or("RETRYD_PROJECT", "default"),
                                .token = env_or("RETRYD_TOKEN", NULL)}};
    if (goes_to_retryd(argc, argv)) return rt_cli_migrate_store(&line.cli, argc - 2, argv + 2);
    line.words = calloc((size_t)argc + 1, sizeof *line.words);
    if (line.words == NULL) return 1;
    const int status = rt_cli_line_read(&line, argc, argv) ? answer(&line) : 2;
    free(line.words);
    return status;
}
