#include "explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "json/policy_json.h"
#include "table.h"

enum {
    EXIT_REFUSED = 1,
    EXIT_USAGE = 2,
    INTERVALS_MAX = 100000,
    INTERVALS_PRESET = 20,
    ROWS_HEAD = 40, // longer tables show their head and their tail
    ROWS_TAIL = 10,
    RANGES_A_LINE = 7
};
static const uint64_t PREVIOUS_MS_MAX = INT64_MAX / 1000000;

// ---- the command line ---------------------------------------------------------------------------

typedef struct request {
    const char *usage;
    bool is_backoff;
    bool help, json;
    const char *subject; // POLICY or DESCRIPTOR
    uint64_t previous_ms, count;
} request;

static const char POLICY_USAGE[] = "usage: retryctl policy explain [--json] POLICY|-\n";
static const char BACKOFF_USAGE[] =
    "usage: retryctl backoff explain [--json] DESCRIPTOR|null|- [--previous-ms N] [--count K]\n";

/* The usage is said by whoever takes the words apart. */
static int misused(const rt_explain_io *io, const char *what, const char *word) {
    (void)fprintf(io->err, "retryctl: %s%s\n", what, word);
    return EXIT_USAGE;
}

/* A whole number within [low, high]. */
static bool to_number(const char *text, uint64_t low, uint64_t high, uint64_t *out) {
    int64_t value;
    if (!rt_str_to_i64(rt_str_of(text), &value) || value < 0) return false;
    if ((uint64_t)value < low || (uint64_t)value > high) return false;
    *out = (uint64_t)value;
    return true;
}

/* "--name value" and "--name=value". True: argv[*i] is this option; *value NULL: its value is missing. */
static bool is_option(const char *name, int argc, char **argv, int *i, const char **value) {
    const size_t len = strlen(name);
    if (strncmp(argv[*i], name, len) != 0) return false;
    if (argv[*i][len] == '=') {
        *value = argv[*i] + len + 1;
        return true;
    }
    if (argv[*i][len] != '\0') return false;
    *value = *i + 1 < argc ? argv[++*i] : NULL;
    return true;
}

static int read_option(const rt_explain_io *io, request *r, int argc, char **argv, int *i) {
    const char *word = argv[*i], *value = NULL;
    if (strcmp(word, "--json") == 0) {
        r->json = true;
    } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        r->help = true;
    } else if (r->is_backoff && is_option("--previous-ms", argc, argv, i, &value)) {
        if (value == NULL || !to_number(value, 0, PREVIOUS_MS_MAX, &r->previous_ms)) {
            return misused(io, "--previous-ms wants a whole number of milliseconds", "");
        }
    } else if (r->is_backoff && is_option("--count", argc, argv, i, &value)) {
        if (value == NULL || !to_number(value, 1, INTERVALS_MAX, &r->count)) {
            return misused(io, "--count wants a number from 1 to 100000", "");
        }
    } else {
        return misused(io, "there is no option ", word);
    }
    return 0;
}

/* Options stand before or behind the subject; "--" ends them. */
static int read_request(const rt_explain_io *io, request *r, int argc, char **argv) {
    bool options = true;
    for (int i = 0; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            const int status = read_option(io, r, argc, argv, &i);
            if (status != 0) return status;
        } else if (r->subject == NULL) {
            r->subject = argv[i];
        } else {
            return misused(io, "one thing at a time; too much: ", argv[i]);
        }
    }
    if (r->subject == NULL && !r->help) return misused(io, "nothing to explain", "");
    return 0;
}

static int finish(const rt_explain_io *io) {
    if (fflush(io->out) == 0 && ferror(io->out) == 0) return 0;
    (void)fprintf(io->err, "retryctl: cannot write: %s\n", strerror(errno));
    return EXIT_REFUSED;
}

/* What is to be explained. One byte more than allowed is read, so that the parser can refuse it. False: nothing; *status
 * is the end. */
static bool take_request(const rt_explain_io *io, request *r, int argc, char **argv,
                         char buffer[RT_POLICY_JSON_BYTES_MAX + 1], rt_str *text, int *status) {
    *status = read_request(io, r, argc, argv);
    if (*status != 0) return false;
    if (r->help) {
        (void)fputs(r->usage, io->out);
        *status = finish(io);
        return false;
    }
    if (strcmp(r->subject, "-") != 0) {
        *text = rt_str_of(r->subject);
        return true;
    }
    *text = (rt_str){.ptr = buffer, .len = fread(buffer, 1, RT_POLICY_JSON_BYTES_MAX + 1, io->in)};
    if (ferror(io->in) == 0) return true;
    (void)fprintf(io->err, "retryctl: standard input: %s\n", strerror(errno));
    *status = EXIT_REFUSED;
    return false;
}

// ---- for people ---------------------------------------------------------------------------------

typedef struct duration_text {
    char s[64];
} duration_text;

/* "1 d 2 h 3 min 4.500 s": exact, without the units that are zero. */
static duration_text duration_of(uint64_t ms) {
    static const struct {
        uint64_t ms;
        const char *unit;
    } UNITS[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}};
    duration_text text = {.s = ""};
    size_t len = 0;
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
        if (ms < UNITS[i].ms) continue;
        len += (size_t)snprintf(text.s + len, sizeof text.s - len, "%" PRIu64 " %s ", ms / UNITS[i].ms,
                                UNITS[i].unit);
        ms %= UNITS[i].ms;
    }
    if (len > 0 && ms == 0) {
        text.s[len - 1] = '\0';
    } else if (len == 0 && ms > 0 && ms < 1000) {
        (void)snprintf(text.s, sizeof text.s, "%" PRIu64 " ms", ms);
    } else if (ms % 1000 == 0) {
        (void)snprintf(text.s + len, sizeof text.s - len, "%" PRIu64 " s", ms / 1000);
    } else {
        (void)snprintf(text.s + len, sizeof text.s - len, "%" PRIu64 ".%03" PRIu64 " s", ms / 1000,
                       ms % 1000);
    }
    return text;
}

/* The largest unit of a duration, rounded down: fits a chart's label. */
static duration_text rough_duration_of(uint64_t ms) {
    duration_text text = duration_of(ms);
    char *blank = strchr(text.s, ' ');
    if (blank != NULL) blank = strchr(blank + 1, ' ');
    if (blank != NULL) *blank = '\0';
    return text;
}

/* The waits between attempts. */
typedef struct schedule {
    uint64_t *delays_ms; // owned
    uint8_t *phases;     // owned; NULL: there are none
    size_t count;
    uint64_t total_ms;
} schedule;

static bool schedule_init(schedule *s, size_t count, bool phases) {
    *s = (schedule){.count = count};
    s->delays_ms = calloc(count, sizeof *s->delays_ms);
    if (phases) s->phases = calloc(count, sizeof *s->phases);
    return s->delays_ms != NULL && (!phases || s->phases != NULL);
}

static void schedule_deinit(schedule *s) {
    free(s->delays_ms);
    free(s->phases);
    *s = (schedule){0};
}

static bool is_shown(const schedule *s, size_t i) {
    return s->count <= ROWS_HEAD + ROWS_TAIL || i < ROWS_HEAD || i >= s->count - ROWS_TAIL;
}

static void print_row(const rt_explain_io *io, const schedule *s, size_t i, int width, uint64_t since_ms) {
    (void)fprintf(io->out, "  %7zu  ", i + 1);
    if (s->phases != NULL) {
        (void)fprintf(io->out, "%s%-12s%s  ", io->colour ? rt_chart_colour(s->phases[i]) : "",
                      rt_phase_name((rt_phase)s->phases[i]), io->colour ? rt_chart_colour_end() : "");
    }
    (void)fprintf(io->out, "%*s  %s\n", width, duration_of(s->delays_ms[i]).s, duration_of(since_ms).s);
}

static void print_table(const rt_explain_io *io, const schedule *s, const char *what, const char *since) {
    int width = (int)strlen("delay");
    for (size_t i = 0; i < s->count; i++) {
        const int needed = is_shown(s, i) ? (int)strlen(duration_of(s->delays_ms[i]).s) : 0;
        if (needed > width) width = needed;
    }
    (void)fprintf(io->out, "  %7s  %s%*s  %s\n", what, s->phases != NULL ? "phase         " : "", width,
                  "delay", since);
    uint64_t since_ms = 0;
    for (size_t i = 0; i < s->count; i++) {
        since_ms += s->delays_ms[i];
        if (is_shown(s, i)) {
            print_row(io, s, i, width, since_ms);
        } else if (i == ROWS_HEAD) {
            (void)fprintf(io->out, "        …  (%zu more)\n", s->count - ROWS_HEAD - ROWS_TAIL);
        }
    }
}

_Static_assert((int)RT_PHASE_COUNT <= (int)RT_CHART_GROUPS_MAX, "each phase has a colour");

static void print_chart(const rt_explain_io *io, const schedule *s) {
    const char *names[RT_PHASE_COUNT];
    for (int i = 0; i < RT_PHASE_COUNT; i++) names[i] = rt_phase_name((rt_phase)i);
    uint64_t largest_ms = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->delays_ms[i] > largest_ms) largest_ms = s->delays_ms[i];
    }
    const duration_text top = rough_duration_of(largest_ms);
    const rt_chart chart = {
        .values = s->delays_ms,
        .groups = s->phases,
        .count = s->count,
        .top_label = top.s,
        .group_names = s->phases != NULL ? names : NULL,
        .colour = io->colour,
    };
    (void)fputc('\n', io->out);
    rt_chart_print(io->out, &chart);
}

// ---- policy explain -----------------------------------------------------------------------------

static bool schedule_of_policy(const rt_delivery_policy *p, schedule *s) {
    if (!schedule_init(s, rt_delivery_policy_retries(p), true)) return false;
    for (size_t i = 0; i < s->count; i++) {
        rt_phase phase = RT_PHASE_IMMEDIATE;
        const bool there = rt_delivery_policy_delay(p, (uint32_t)i + 1, &s->delays_ms[i], &phase);
        RT_ASSERT(there);
        s->phases[i] = (uint8_t)phase;
        s->total_ms += s->delays_ms[i];
    }
    return true;
}

static void print_policy_json(FILE *out, const schedule *s) {
    (void)fputs("{\"delays_ms\":[", out);
    for (size_t i = 0; i < s->count; i++) (void)fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", s->delays_ms[i]);
    (void)fputs("],\"phases\":[", out);
    for (size_t i = 0; i < s->count; i++) {
        (void)fprintf(out, "%s\"%s\"", i > 0 ? "," : "", rt_phase_name((rt_phase)s->phases[i]));
    }
    (void)fputs("]}\n", out);
}

/* The retry that the age limit forestalls, or 0. */
static size_t first_too_old(const rt_delivery_policy *p, const schedule *s) {
    if (p->maximum_age_s == 0) return 0;
    uint64_t since_ms = 0;
    for (size_t i = 0; i < s->count; i++) {
        since_ms += s->delays_ms[i];
        if (since_ms >= (uint64_t)p->maximum_age_s * 1000) return i + 1;
    }
    return 0;
}

static void print_retried(FILE *out, const rt_delivery_policy *p) {
    (void)fputs("  retried  timeouts, connection errors, statuses 500-599 and unknown ones", out);
    for (size_t i = 0; i < p->retry_on_count; i++) {
        const rt_status_range *range = &p->retry_on[i];
        (void)fprintf(out, "%s%u", i % RANGES_A_LINE == 0 ? ",\n           " : ", ", range->low);
        if (range->high > range->low) (void)fprintf(out, "-%u", range->high);
    }
    (void)fputc('\n', out);
}

static void print_backoff_phase(FILE *out, const rt_delivery_policy *p) {
    const uint32_t num = rt_delivery_policy_backoff_retries(p);
    const duration_text from = duration_of((uint64_t)p->minimum_delay_s * 1000);
    const duration_text to = duration_of((uint64_t)p->maximum_delay_s * 1000);
    (void)fprintf(out, "  backoff  %s, ", rt_backoff_function_name(p->backoff_function));
    if (num == 1) (void)fprintf(out, "1 retry after %s\n", from.s);
    else (void)fprintf(out, "%" PRIu32 " retries, %s to %s\n", num, from.s, to.s);
}

static void print_policy_summary(FILE *out, const rt_delivery_policy *p, const schedule *s) {
    static const char *const JITTER[RT_JITTER_COUNT] = {
        [RT_JITTER_NONE] = "none",
        [RT_JITTER_FULL] = "full: waits are drawn between 0 and the delay",
        [RT_JITTER_EQUAL] = "equal: waits are drawn between half the delay and the delay",
        [RT_JITTER_DECORRELATED] =
            "decorrelated: waits are drawn between the minimum and 3 x the last",
    };
    (void)fprintf(out, "%zu %s within %s, then the job is dead.\n\n", s->count,
                  s->count == 1 ? "retry" : "retries", duration_of(s->total_ms).s);
    print_backoff_phase(out, p);
    (void)fprintf(out, "  jitter   %s\n", JITTER[p->jitter]);
    (void)fprintf(out, "  attempt  at most %s, which comes on top; redirects are %s\n",
                  duration_of((uint64_t)p->attempt_timeout_s * 1000).s,
                  p->follow_redirects ? "followed" : "not followed");
    print_retried(out, p);
    if (p->respect_retry_after) {
        (void)fprintf(out, "  waits    at least as long as Retry-After says, up to %s\n",
                      duration_of((uint64_t)p->maximum_delay_s * 1000).s);
    }
    if (p->maximum_age_s > 0) {
        const size_t late = first_too_old(p, s);
        (void)fprintf(out, "  expires  %s after the post",
                      duration_of((uint64_t)p->maximum_age_s * 1000).s);
        if (late > 0) (void)fprintf(out, ", so that retry %zu is not made", late);
        (void)fputc('\n', out);
    }
    (void)fputc('\n', out);
}

static int refuse(const rt_explain_io *io, const rt_err *err) {
    (void)fprintf(io->err, "retryctl: %s\n", err->msg);
    return err->code == RT_E_NOMEM ? EXIT_REFUSED : EXIT_USAGE;
}

static int out_of_memory(const rt_explain_io *io) {
    (void)fputs("retryctl: out of memory\n", io->err);
    return EXIT_REFUSED;
}

int rt_explain_policy_on(const rt_explain_io *io, int argc, char **argv) {
    request r = {.usage = POLICY_USAGE};
    char buffer[RT_POLICY_JSON_BYTES_MAX + 1];
    rt_str text;
    int status;
    if (!take_request(io, &r, argc, argv, buffer, &text, &status)) return status;
    rt_delivery_policy p;
    rt_err err;
    if (rt_policy_from_text(text, &p, &err) != RT_OK) return refuse(io, &err);
    char stray[RT_POLICY_KEY_BYTES];
    rt_policy_unknown_key(text, stray);
    if (stray[0] != '\0') (void)fprintf(io->err, "retryctl: \"%s\" is no key of a policy and means nothing\n", stray);

    schedule s;
    if (!schedule_of_policy(&p, &s)) {
        schedule_deinit(&s);
        return out_of_memory(io);
    }
    if (r.json) {
        print_policy_json(io->out, &s);
    } else {
        print_policy_summary(io->out, &p, &s);
        print_table(io, &s, "retry", "since the first attempt");
        print_chart(io, &s);
    }
    schedule_deinit(&s);
    return finish(io);
}

// ---- backoff explain ----------------------------------------------------------------------------

static bool schedule_of_backoff(const rt_work_backoff *b, uint64_t previous_ms, size_t count, schedule *s) {
    if (!schedule_init(s, count, false)) return false;
    uint64_t interval_s = 0;
    for (size_t i = 0; i < count; i++) {
        interval_s = i == 0 ? rt_work_backoff_next_after_ns(b, previous_ms * 1000000)
                            : rt_work_backoff_next_s(b, interval_s);
        s->delays_ms[i] = interval_s * 1000;
        s->total_ms += s->delays_ms[i];
    }
    return true;
}

static void print_backoff_json(FILE *out, const schedule *s) {
    (void)fputs("{\"intervals_s\":[", out);
    for (size_t i = 0; i < s->count; i++)
        (void)fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", s->delays_ms[i] / 1000);
    (void)fputs("]}\n", out);
}

static void print_backoff_summary(FILE *out, const rt_work_backoff *b, rt_jitter jitter, uint64_t previous_ms) {
    if (b == NULL) {
        (void)fputs("No descriptor: as long as the last time, at least 1 s.\n\n", out);
        return;
    }
    const bool constant = b->exponent == 0 || b->exponent == 1;
    if (constant) (void)fputs("Constant", out);
    else (void)fprintf(out, "Each interval is %g times the last", b->exponent < 1 ? 1 : b->exponent);
    (void)fputs(", in whole seconds.\n", out);
    if (jitter != RT_JITTER_NONE) {
        (void)fprintf(out, "Rests are drawn between %s and the interval.\n",
                      jitter == RT_JITTER_FULL ? "one second" : "half of the interval");
    }
    if (previous_ms > 0) (void)fprintf(out, "The interval before was %s.\n", duration_of(previous_ms).s);
    (void)fputc('\n', out);
}

int rt_explain_backoff_on(const rt_explain_io *io, int argc, char **argv) {
    request r = {.usage = BACKOFF_USAGE, .is_backoff = true, .count = INTERVALS_PRESET};
    char buffer[RT_POLICY_JSON_BYTES_MAX + 1];
    rt_str text;
    int status;
    if (!take_request(io, &r, argc, argv, buffer, &text, &status)) return status;
    rt_work_backoff descriptor;
    rt_jitter jitter;
    bool given;
    rt_err err;
    if (rt_work_backoff_from_text(text, &given, &descriptor, &jitter, &err) != RT_OK) return refuse(io, &err);
    const rt_work_backoff *b = given ? &descriptor : NULL;

    schedule s;
    if (!schedule_of_backoff(b, r.previous_ms, r.count, &s)) {
        schedule_deinit(&s);
        return out_of_memory(io);
    }
    if (r.json) {
        print_backoff_json(io->out, &s);
    } else {
        print_backoff_summary(io->out, b, jitter, r.previous_ms);
        print_table(io, &s, "failure", "since the first failure");
        print_chart(io, &s);
    }
    schedule_deinit(&s);
    return finish(io);
}

// ---- with the process's streams -----------------------------------------------------------------

int rt_explain_policy(int argc, char **argv) {
    const rt_explain_io io = {.in = stdin, .out = stdout, .err = stderr, .colour = rt_colour()};
    return rt_explain_policy_on(&io, argc, argv);
}

int rt_explain_backoff(int argc, char **argv) {
    const rt_explain_io io = {.in = stdin, .out = stdout, .err = stderr, .colour = rt_colour()};
    return rt_explain_backoff_on(&io, argc, argv);
}
