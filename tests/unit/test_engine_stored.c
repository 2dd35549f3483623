/* Stored forms: what is written is read back; what was not written by us is refused. And the histograms. */
#include "engine_kit.h"

static int setup(void **state) {
    static rt_arena arena;
    arena = (rt_arena){0};
    *state = &arena;
    return 0;
}

static int teardown(void **state) {
    rt_arena_deinit(*state);
    return 0;
}

static rt_delivery_policy odd_policy(void) {
    rt_delivery_policy p = rt_delivery_policy_default();
    p.retries_with_no_delay = 1;
    p.minimum_delay_retries = 2;
    p.minimum_delay_s = 7;
    p.maximum_delay_s = 77;
    p.maximum_delay_retries = 4;
    p.backoff_retries = 9;
    p.maximum_age_s = 86400;
    p.attempt_timeout_s = 11;
    p.backoff_function = RT_BACKOFF_GEOMETRIC;
    p.jitter = RT_JITTER_EQUAL;
    p.ignore_subscription_override = true;
    p.respect_retry_after = true;
    p.follow_redirects = true;
    p.retry_on_count = 2;
    p.retry_on[0] = (rt_status_range){.low = 408, .high = 408};
    p.retry_on[1] = (rt_status_range){.low = 300, .high = 399};
    return p;
}

static void assert_policy(const rt_delivery_policy *got, const rt_delivery_policy *want) {
    assert_int_equal(got->retries_with_no_delay, want->retries_with_no_delay);
    assert_int_equal(got->minimum_delay_retries, want->minimum_delay_retries);
    assert_int_equal(got->minimum_delay_s, want->minimum_delay_s);
    assert_int_equal(got->maximum_delay_s, want->maximum_delay_s);
    assert_int_equal(got->maximum_delay_retries, want->maximum_delay_retries);
    assert_int_equal(got->backoff_retries, want->backoff_retries);
    assert_int_equal(got->maximum_age_s, want->maximum_age_s);
    assert_int_equal(got->attempt_timeout_s, want->attempt_timeout_s);
    assert_int_equal(got->backoff_function, want->backoff_function);
    assert_int_equal(got->jitter, want->jitter);
    assert_int_equal(got->ignore_subscription_override, want->ignore_subscription_override);
    assert_int_equal(got->respect_retry_after, want->respect_retry_after);
    assert_int_equal(got->follow_redirects, want->follow_redirects);
    assert_int_equal(got->retry_on_count, want->retry_on_count);
    for (int i = 0; i < want->retry_on_count; i++) {
        assert_int_equal(got->retry_on[i].low, want->retry_on[i].low);
        assert_int_equal(got->retry_on[i].high, want->retry_on[i].high);
    }
}

static void stored__metadata_comes_back_whole(void **state) {
    const rt_metadata m = {
        .id = 0xfedcba9876543210u, .jobs = 2, .max_post_bytes = 3, .default_ttl_s = 4, .default_delay_s = 5,
        .max_claim_count = 6, .dead_letter_ttl_s = 7, .dead_letter_queue = RT_STR("dlq"), .has_policy = true,
        .policy = odd_policy(), .json = RT_STR("{\"x\": [1]}"),
    };
    const rt_str value = rt_metadata_encode(*state, &m);
    rt_metadata got;
    assert_true(rt_metadata_decode(value, &got));
    assert_true(got.id == m.id);
    assert_int_equal(got.jobs, 2);
    assert_int_equal(got.max_post_bytes, 3);
    assert_int_equal(got.default_ttl_s, 4);
    assert_int_equal(got.default_delay_s, 5);
    assert_int_equal(got.max_claim_count, 6);
    assert_int_equal(got.dead_letter_ttl_s, 7);
    assert_true(rt_str_eq(got.dead_letter_queue, m.dead_letter_queue));
    assert_true(got.has_policy);
    assert_policy(&got.policy, &m.policy);
    assert_true(rt_str_eq(got.json, m.json));
    for (size_t len = 0; len < value.len; len++) {
        assert_false(rt_metadata_decode((rt_str){.ptr = value.ptr, .len = len}, &got));
    }
}

static void stored__subscription_comes_back_whole(void **state) {
    const rt_subscription s = {
        .id = 1, .queue = 2, .tenant = RT_STR("t"), .queue_name = RT_STR("q"), .uri = RT_STR("https://x/"),
        .ttl_s = 3, .created_ms = 4, .confirmed = true, .has_policy = true, .policy = odd_policy(),
        .headers = RT_STR("A: b\n"), .post_data = RT_STR("pd"), .secrets = {RT_STR("whsec_a"), RT_STR("b")},
        .subject = RT_STR("su"), .from = RT_STR("f@x"), .options_json = RT_STR("{\"o\": 1}"),
    };
    const rt_str value = rt_subscription_encode(*state, &s);
    rt_subscription got;
    assert_true(rt_subscription_decode(value, &got));
    assert_int_equal(got.id, 1);
    assert_int_equal(got.queue, 2);
    assert_true(rt_str_eq(got.tenant, s.tenant));
    assert_true(rt_str_eq(got.queue_name, s.queue_name));
    assert_true(rt_str_eq(got.uri, s.uri));
    assert_int_equal(got.ttl_s, 3);
    assert_int_equal(got.created_ms, 4);
    assert_true(got.confirmed);
    assert_policy(&got.policy, &s.policy);
    assert_true(rt_str_eq(got.headers, s.headers));
    assert_true(rt_str_eq(got.post_data, s.post_data));
    assert_true(rt_str_eq(got.secrets[0], s.secrets[0]));
    assert_true(rt_str_eq(got.secrets[1], s.secrets[1]));
    assert_true(rt_str_eq(got.subject, s.subject));
    assert_true(rt_str_eq(got.from, s.from));
    assert_true(rt_str_eq(got.options_json, s.options_json));
    for (size_t len = 0; len < value.len; len++) {
        assert_false(rt_subscription_decode((rt_str){.ptr = value.ptr, .len = len}, &got));
    }
}

static void stored__cursor_comes_back_whole(void **state) {
    const rt_cursor c = {
        .id = 1, .kind = RT_CURSOR_DEAD, .queue = 2, .after = 3, .last = 4, .from = 5, .after_queue = 6,
        .reason = RT_REASON_UNSUBSCRIBED, .keep_dead = true, .confirmed_only = true, .remove = true,
        .filter = {.queue = 7, .owner = 8, .reason = RT_REASON_REJECTED, .failure = RT_REASON_TIMEOUT, .status_low = 500,
                   .status_high = 599, .after_ms = 11, .before_ms = 12, .told = RT_STR("r"), .text = RT_STR("t")},
        .rate = 9, .next_ms = 10,
    };
    const rt_str value = rt_cursor_encode(*state, &c);
    rt_cursor got = {.id = 0};
    assert_true(rt_cursor_decode(value, &got));
    assert_int_equal(got.id, 1);
    assert_int_equal(got.kind, RT_CURSOR_DEAD);
    assert_int_equal(got.queue, 2);
    assert_int_equal(got.after, 3);
    assert_int_equal(got.last, 4);
    assert_int_equal(got.from, 5);
    assert_int_equal(got.after_queue, 6);
    assert_int_equal(got.reason, RT_REASON_UNSUBSCRIBED);
    assert_true(got.keep_dead && got.confirmed_only && got.remove);
    assert_int_equal(got.filter.queue, 7);
    assert_int_equal(got.filter.owner, 8);
    assert_int_equal(got.filter.reason, RT_REASON_REJECTED);
    assert_int_equal(got.filter.failure, RT_REASON_TIMEOUT);
    assert_int_equal(got.filter.status_low, 500);
    assert_int_equal(got.filter.status_high, 599);
    assert_int_equal(got.filter.after_ms, 11);
    assert_int_equal(got.filter.before_ms, 12);
    assert_true(rt_str_eq(got.filter.told, RT_STR("r")));
    assert_true(rt_str_eq(got.filter.text, RT_STR("t")));
    assert_int_equal(got.rate, 9);
    assert_int_equal(got.next_ms, 10);
}

/* Every byte changed in every way is either refused or means something that is written the same way again. */
static void stored__damaged_values_are_refused_or_harmless(void **state) {
    const rt_metadata m = {.id = 1, .has_policy = true, .policy = odd_policy(), .json = RT_STR("{}")};
    char original[512], bytes[512];
    const rt_str encoded = rt_metadata_encode(*state, &m);
    assert_true(encoded.len <= sizeof bytes);
    memcpy(original, encoded.ptr, encoded.len);
    const rt_str good = {.ptr = original, .len = encoded.len};
    for (size_t at = 0; at < good.len; at++) {
        for (unsigned v = 0; v < 256; v++) {
            memcpy(bytes, good.ptr, good.len);
            bytes[at] = (char)(unsigned char)v;
            const rt_str damaged = {.ptr = bytes, .len = good.len};
            rt_metadata got;
            if (!rt_metadata_decode(damaged, &got)) continue;
            assert_true(rt_str_eq(rt_metadata_encode(*state, &got), damaged));
            rt_arena_clear(*state);
        }
    }
}

static void stored__names_order_and_split(void **state) {
    const rt_str name = rt_name(*state, RT_STR("tenant"), RT_STR("queue"));
    assert_int_equal(name.len, 12);
    assert_memory_equal(name.ptr, "tenant\0queue", 12);
    assert_true(rt_str_eq(rt_name_tenant(name), RT_STR("tenant")));
    assert_true(rt_str_eq(rt_name_rest(name), RT_STR("queue")));
    const rt_str low = rt_subscription_name(*state, 1, 255);
    const rt_str high = rt_subscription_name(*state, 1, 256);
    assert_true(rt_str_cmp(low, high) < 0);
    assert_int_equal(low.len, RT_SUBSCRIPTION_NAME_LEN);
}

static void metrics__values_fall_into_the_first_bucket_that_holds_them(void **state) {
    (void)state;
    static rt_metrics m;
    rt_metrics_init(&m);
    const struct {
        double value;
        int bucket;
    } rows[] = {{0, 0}, {0.0005, 0}, {0.0006, 1}, {0.001, 1}, {60, 14}, {60.1, 15}, {-1, 0}, {1e30, 15}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint64_t before = atomic_load(&m.commit_s.buckets[rows[i].bucket]);
        rt_histogram_add(&m.commit_s, rows[i].value);
        assert_int_equal(atomic_load(&m.commit_s.buckets[rows[i].bucket]), before + 1);
    }
    rt_histogram_add(&m.commit_size, 3);
    assert_int_equal(atomic_load(&m.commit_size.buckets[2]), 1);
    assert_int_equal(atomic_load(&m.commit_size.sum_micro), 3000000);
    for (int i = 1; i < RT_HISTOGRAM_BUCKETS - 1; i++) {
        assert_true(RT_BOUNDS_SECONDS[i] > RT_BOUNDS_SECONDS[i - 1]);
        assert_true(RT_BOUNDS_COUNT[i] > RT_BOUNDS_COUNT[i - 1]);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(stored__metadata_comes_back_whole),
        TEST(stored__subscription_comes_back_whole),
        TEST(stored__cursor_comes_back_whole),
        TEST(stored__damaged_values_are_refused_or_harmless),
        TEST(stored__names_order_and_split),
        TEST(metrics__values_fall_into_the_first_bucket_that_holds_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
