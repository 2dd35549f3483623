#include "migrate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "os/clock.h"
#include "serve_store.h"
#include "store/copy/copy.h"

enum { BAR = 32, REDRAW_MS = 100, LINE_PERCENT = 10 };

/* ---- how far it is ------------------------------------------------------------------------------------- */

typedef struct progress {
    bool tty;
    bool begun;
    rt_copy_step step;
    int64_t drawn_ms;
    uint64_t said_percent;
} progress;

static const char *const STEPS[] = {
    [RT_COPY_COUNTING] = "counting", [RT_COPY_COPYING] = "copying", [RT_COPY_CHECKING] = "checking"};

static uint64_t percent_of(uint64_t done, uint64_t total) {
    if (total == 0) return 100;
    return done >= total ? 100 : (uint64_t)((double)done * 100 / (double)total);
}

static void draw(progress *p, uint64_t done, uint64_t total, bool whole) {
    const int64_t now_ms = rt_mono_ms();
    if (!whole && now_ms - p->drawn_ms < REDRAW_MS) return;
    p->drawn_ms = now_ms;
    if (p->step == RT_COPY_COUNTING) {
        (void)fprintf(stderr, "\r\033[Kcounting  %" PRIu64 " records", done);
        return;
    }
    const uint64_t percent = percent_of(done, total);
    char bar[BAR + 1];
    for (uint64_t i = 0; i < BAR; i++) bar[i] = i * 100 < percent * BAR ? '#' : '.';
    bar[BAR] = '\0';
    (void)fprintf(stderr, "\r\033[K%-9s [%s] %3" PRIu64 " %%  %" PRIu64 " of %" PRIu64 " records", STEPS[p->step], bar,
                  percent, done, total);
}

static void say_line(progress *p, uint64_t done, uint64_t total, bool first) {
    if (p->step == RT_COPY_COUNTING) {
        if (first) (void)fputs("retryd: counting\n", stderr);
        return;
    }
    const uint64_t percent = percent_of(done, total);
    if (!first && percent < p->said_percent + LINE_PERCENT) return;
    p->said_percent = percent - percent % LINE_PERCENT;
    (void)fprintf(stderr, "retryd: %s, %" PRIu64 " %%, %" PRIu64 " of %" PRIu64 " records\n", STEPS[p->step], percent, done,
                  total);
}

static void tell(void *ctx, rt_copy_step step, uint64_t done, uint64_t total) {
    progress *p = ctx;
    const bool first = !p->begun || step != p->step;
    if (first && p->begun && p->tty) (void)fputc('\n', stderr);
    p->begun = true;
    p->step = step;
    if (p->tty) draw(p, done, total, first || done == total);
    else say_line(p, done, total, first);
}

/* ---- what was moved ------------------------------------------------------------------------------------ */

static void print_json(const rt_census *c, const char *digest) {
    (void)printf("{\"records\":%" PRIu64 ",\"sha256\":\"%s\"", c->records, digest);
    for (int i = 0; i < RT_WALK_END; i++) {
        if (i != RT_WALK_JOBS) (void)printf(",\"%s\":%" PRIu64, rt_walk_part_name((rt_walk_part)i), c->parts[i]);
    }
    (void)fputs(",\"jobs\":{", stdout);
    for (int i = RT_JOB_NONE + 1; i < RT_JOB_STATE_COUNT; i++)
        (void)printf("%s\"%s\":%" PRIu64, i > 1 ? "," : "", rt_job_state_name((rt_job_state)i), c->jobs[i]);
    (void)fputs("}}\n", stdout);
}

static void print_table(const rt_census *c, const char *digest) {
    for (int i = 0; i < RT_WALK_END; i++) {
        (void)printf("%-12s %12" PRIu64 "\n", rt_walk_part_name((rt_walk_part)i), c->parts[i]);
        for (int j = RT_JOB_NONE + 1; i == RT_WALK_JOBS && j < RT_JOB_STATE_COUNT; j++)
            (void)printf("  %-10s %12" PRIu64 "\n", rt_job_state_name((rt_job_state)j), c->jobs[j]);
    }
    (void)printf("The same on both sides, SHA-256 %s\n", digest);
}

static void print_census(const rt_census *c, bool json) {
    char digest[2 * RT_CENSUS_DIGEST_BYTES + 1] = {0};
    rt_hex_write(digest, c->digest, sizeof c->digest);
    if (json) print_json(c, digest);
    else print_table(c, digest);
}

/* ---- moving -------------------------------------------------------------------------------------------- */

int rt_migrate(const rt_migrate_options *o) {
    rt_err err = {.code = RT_OK};
    rt_store *from = NULL;
    rt_store *to = NULL;
    rt_census census;
    progress p = {.tty = isatty(STDERR_FILENO) == 1};
    const char *where = "the source: ";
    if (strcmp(o->from, o->to) == 0) {
        (void)fputs("retryd: FROM and TO are the same store\n", stderr);
        return 2;
    }
    const rt_str kafka = RT_STR("kafka://");
    if (rt_str_starts(rt_str_of(o->from), kafka) && rt_str_starts(rt_str_of(o->to), kafka)) {
        (void)fputs("retryd: from Kafka to Kafka goes over another store: kafka.copy is one folder\n", stderr);
        return 2;
    }
    rt_code code = rt_serve_store_claim(o->config, o->from, o->force, &from, &err);
    if (code == RT_OK) {
        where = "the target: ";
        code = rt_serve_store_claim(o->config, o->to, o->force, &to, &err);
    }
    if (code == RT_OK) {
        where = "";
        code = rt_copy_store(from, to, tell, &p, &census, &err);
        if (p.tty) (void)fputc('\n', stderr);
    }
    rt_store_close(from);
    rt_store_close(to);
    if (code == RT_OK) print_census(&census, o->json);
    else (void)fprintf(stderr, "retryd: %s%s\n", where, err.msg);
    return code == RT_OK ? 0 : code == RT_E_INVALID || code == RT_E_CORRUPT ? 2 : 1;
}
