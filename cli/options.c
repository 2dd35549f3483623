#include "options.h"

#include <stdint.h>
#include <string.h>

#include "base/str.h"

/* Where the value of an option goes; exactly one of the three. */
typedef struct option_spot {
    const char *name;
    const char **text;
    long *number;
    bool *flag;
    bool everywhere; /* every command takes it */
} option_spot;

static const char FILTER[] = "--queue --type --reason --failure --after --before --text";

static bool to_number(const char *text, long *out) {
    int64_t number;
    if (!rt_str_to_i64(rt_str_of(text), &number) || number < 0) return false;
    *out = number;
    return true;
}

/* Copies the spot of option `name` (not ended by NUL). False: there is none. */
static bool find_spot(rt_cli_line *line, rt_str name, option_spot *out) {
    rt_cli *cli = &line->cli;
    const option_spot SPOTS[] = {
        {"--url", &cli->url, NULL, NULL, true},         {"--project", &cli->project, NULL, NULL, true},
        {"--token", &cli->token, NULL, NULL, true},     {"--json", NULL, NULL, &cli->json, true},
        {"--help", NULL, NULL, &line->help, true},      {"--version", NULL, NULL, &line->version, true},
        {"--previous-ms", &cli->previous_ms, NULL, NULL, false},
        {"--count", &cli->count, NULL, NULL, false},    {"--queue", &cli->queue, NULL, NULL, false},
        {"--reason", &cli->reason, NULL, NULL, false},  {"--marker", &cli->marker, NULL, NULL, false},
        {"--process", &cli->process, NULL, NULL, false}, {"--entity", &cli->entity, NULL, NULL, false},
        {"--limit", NULL, &cli->limit, NULL, false},    {"--seconds", NULL, &cli->seconds, NULL, false},
        {"--rate", NULL, &cli->rate, NULL, false},      {"--interval", NULL, &cli->interval, NULL, false},
        {"--dry-run", NULL, NULL, &cli->dry_run, false}, {"--once", NULL, NULL, &cli->once, false},
        {"--force", NULL, NULL, &cli->force, false},    {"--type", &cli->type, NULL, NULL, false},
        {"--failure", &cli->failure, NULL, NULL, false}, {"--after", &cli->after, NULL, NULL, false},
        {"--before", &cli->before, NULL, NULL, false},  {"--text", &cli->text, NULL, NULL, false},
        {"--by", &cli->by, NULL, NULL, false},          {"--key", &cli->key, NULL, NULL, false},
        {"--order-key", &cli->order_key, NULL, NULL, false},
    };
    for (size_t s = 0; s < sizeof SPOTS / sizeof SPOTS[0]; s++) {
        if (!rt_str_eq(name, rt_str_of(SPOTS[s].name))) continue;
        *out = SPOTS[s];
        return true;
    }
    return false;
}

static bool complain(const char *before, const char *which, const char *behind) {
    (void)fprintf(stderr, "retryctl: %s%s%s\n", before, which, behind);
    return false;
}

/* Takes option argv[*i] and its value. False: said why. */
static bool take_option(rt_cli_line *line, int argc, char **argv, int *i) {
    const char *text = argv[*i];
    const char *equals = strchr(text, '=');
    const rt_str name = {.ptr = text, .len = equals == NULL ? strlen(text) : (size_t)(equals - text)};
    option_spot spot;
    if (!find_spot(line, name, &spot)) return complain("there is no option ", text, "; see retryctl --help");
    if (!spot.everywhere && line->given_count < RT_CLI_OPTIONS_MAX) line->given[line->given_count++] = spot.name;
    if (spot.flag != NULL) {
        if (equals != NULL) return complain("", spot.name, " takes no value");
        *spot.flag = true;
        return true;
    }
    if (equals == NULL && *i + 1 >= argc) return complain("", spot.name, " wants a value");
    const char *value = equals != NULL ? equals + 1 : argv[++*i];
    if (spot.text != NULL) *spot.text = value;
    else if (!to_number(value, spot.number)) {
        (void)fprintf(stderr, "retryctl: %s wants a whole number, not %s\n", spot.name, value);
        return false;
    }
    return true;
}

bool rt_cli_line_read(rt_cli_line *line, int argc, char **argv) {
    bool options = true;
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) options = false;
        else if (options && strcmp(argv[i], "-h") == 0) line->help = true;
        else if (!options || strncmp(argv[i], "--", 2) != 0) line->words[line->count++] = argv[i];
        else if (!take_option(line, argc, argv, &i)) return false;
    }
    return true;
}

/* Whether the option stands in the text as a word of its own: "--by" is not in "--byte". */
static bool names(const char *text, const char *option) {
    const size_t len = strlen(option);
    for (const char *at = strstr(text, option); at != NULL; at = strstr(at + len, option)) {
        if (strchr(" ]|", at[len]) != NULL) return true; // or the text ends there
    }
    return false;
}

const char *rt_cli_line_stray(const rt_cli_line *line, const char *usage) {
    const bool filters = strstr(usage, "FILTER") != NULL;
    for (int i = 0; i < line->given_count; i++) {
        if (!names(usage, line->given[i]) && !(filters && names(FILTER, line->given[i]))) return line->given[i];
    }
    return NULL;
}
