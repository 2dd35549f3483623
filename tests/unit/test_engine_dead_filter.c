/* Which dead jobs: by what calls were scheduled with, what they failed of, when, and what is in them. */
#include "call_kit.h"

enum { DEAD = 4 };

/* A worker gives the call up with these words. */
static rt_id dead_call(kit *k, const char *type, const char *reason, const char *payload, const char *error) {
    rt_call_item item = {.payload = rt_str_of(payload), .reason = rt_str_of(reason), .order_key = RT_STR_EMPTY};
    assert_int_equal(call_schedule_item(k, type, &item), RT_OK);
    const rt_call_claim claim = call_claim(k, type, 1);
    assert_int_equal(claim.count, 1);
    rt_call_end end;
    rt_call_end_init(&end);
    end.tenant = RT_STR("p");
    end.id = item.id;
    end.token = claim.calls[0].token;
    end.verb = RT_CALL_FAIL;
    end.error = rt_str_of(error);
    end.give_up = true;
    assert_int_equal(kit_run(k, &end.cmd), RT_OK);
    return item.id;
}

/* A second apart, two of each type. */
static void fill(kit *k, rt_id ids[DEAD]) {
    static const struct {
        const char *type, *reason, *payload, *error;
    } ROWS[DEAD] = {{"a", "api1-429", "{\"card\": 1}", "busy"},
                    {"b", "api1-5xx", "{\"card\": 2}", "down"},
                    {"a", "api1-5xx", "a needle", "down"},
                    {"b", "", "", "no needle"}};
    assert_int_equal(call_put(k, "a", call_type_pull()), RT_OK);
    assert_int_equal(call_put(k, "b", call_type_pull()), RT_OK);
    for (int i = 0; i < DEAD; i++) {
        ids[i] = dead_call(k, ROWS[i].type, ROWS[i].reason, ROWS[i].payload, ROWS[i].error);
        k->now_ms += 1000;
    }
}

typedef struct seen {
    rt_id ids[DEAD];
    uint32_t count;
} seen;

static bool add_seen(void *ctx, const rt_job *job) {
    seen *s = ctx;
    s->ids[s->count++] = job->id;
    return s->count < DEAD;
}

static bool has(const seen *s, rt_id id) {
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->ids[i] == id) return true;
    }
    return false;
}

static void filter__each_part_must_hold(void **state) {
    kit *k = *state;
    rt_id ids[DEAD];
    fill(k, ids);
    const int64_t began_ms = KIT_START_MS;
    const struct {
        rt_dead_filter filter;
        unsigned want; /* a bit for each of ids */
    } ROWS[] = {
        {{.queue = 0}, 0xF},
        {{.queue = call_get(k, "a").queue}, 0x5},
        {{.told = RT_STR("api1-5xx")}, 0x6},
        {{.told = RT_STR("api1-5xx"), .queue = call_get(k, "b").queue}, 0x2},
        {{.told = RT_STR("api1")}, 0x0},
        {{.reason = RT_REASON_FAILED}, 0xF},
        {{.reason = RT_REASON_EXHAUSTED}, 0x0},
        {{.failure = RT_REASON_FAILED}, 0xF},
        {{.failure = RT_REASON_TIMEOUT}, 0x0},
        {{.status_low = 500, .status_high = 599}, 0x0},
        {{.text = RT_STR("needle")}, 0xC},
        {{.text = RT_STR("card")}, 0x3},
        {{.text = RT_STR("api1")}, 0x0}, // of its payload, not of what is known of it
        {{.after_ms = began_ms + 1000}, 0xE},
        {{.before_ms = began_ms + 1000}, 0x1},
        {{.after_ms = began_ms + 1000, .before_ms = began_ms + 3000, .text = RT_STR("down")}, 0x6},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        seen s = {.count = 0};
        rt_dead_place place = {0};
        bool more;
        assert_int_equal(rt_read_dead(kit_view(k), &ROWS[i].filter, &place, 100, add_seen, &s, &more), RT_OK);
        for (int j = 0; j < DEAD; j++) {
            const bool wanted = (ROWS[i].want >> j & 1) != 0;
            if (has(&s, ids[j]) != wanted) fail_msg("row %zu, job %d", i, j);
        }
    }
}

static void filter__holds_for_many_too(void **state) {
    kit *k = *state;
    rt_id ids[DEAD];
    fill(k, ids);
    rt_dead_many c;
    rt_dead_many_init(&c);
    c.filter = (rt_dead_filter){.told = RT_STR("api1-5xx"), .text = RT_STR("needle")};
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    (void)kit_run_cursors(k);
    for (int i = 0; i < DEAD; i++) assert_int_equal(kit_job(k, ids[i]).state == RT_JOB_DEAD, i != 2);
    assert_int_equal(call_claim(k, "a", 20).calls[0].job.id, ids[2]);
    rt_dead_many_init(&c);
    c.filter = (rt_dead_filter){.before_ms = KIT_START_MS + 2000};
    c.remove = true;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    (void)kit_run_cursors(k);
    for (int i = 0; i < DEAD; i++) assert_int_equal(kit_job(k, ids[i]).state == RT_JOB_DONE, i < 2);
}

static void filter__a_page_says_where_it_stopped(void **state) {
    kit *k = *state;
    rt_id ids[DEAD];
    fill(k, ids);
    seen s = {.count = 0};
    rt_dead_place place = {0};
    bool more = true;
    const rt_dead_filter needle = {.text = RT_STR("no needle")};
    int pages = 0;
    for (; more; pages++) // one job a page, of which three match nothing
        assert_int_equal(rt_read_dead(kit_view(k), &needle, &place, 1, add_seen, &s, &more), RT_OK);
    assert_in_range(pages, DEAD, DEAD + 1);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.ids[0], ids[3]);
}

static void filter__messages_and_their_deliveries_have_bodies_as_well(void **state) {
    kit *k = *state;
    rt_job jobs[1];
    (void)kit_subscribe(k, "q", "http://a/");
    assert_int_equal(kit_deliveries(k, kit_post(k, "q", "\"needle\""), jobs, 1), 1);
    kit_kill(k, jobs[0].id, RT_REASON_EXHAUSTED);
    const struct {
        rt_dead_filter filter;
        uint32_t want;
    } ROWS[] = {{{.text = RT_STR("needle")}, 1}, {{.text = RT_STR("thread")}, 0}, {{.told = RT_STR("needle")}, 0}};
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        seen s = {.count = 0};
        rt_dead_place place = {0};
        bool more;
        assert_int_equal(rt_read_dead(kit_view(k), &ROWS[i].filter, &place, 100, add_seen, &s, &more), RT_OK);
        assert_int_equal(s.count, ROWS[i].want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(filter__each_part_must_hold),
        KIT_BOTH(filter__holds_for_many_too),
        KIT_BOTH(filter__a_page_says_where_it_stopped),
        KIT_BOTH(filter__messages_and_their_deliveries_have_bodies_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
