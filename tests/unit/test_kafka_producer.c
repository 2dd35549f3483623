/* The producer against librdkafka's mock cluster: every attempt ends in one outcome, whatever brokers do. */
#include <librdkafka/rdkafka.h>

#include <librdkafka/rdkafka_mock.h> /* after the other */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "executor/kafka/producer.h"

enum { JOBS_MAX = 64, PRODUCE = 0 /* ApiKey of the protocol */ };

typedef struct rig {
    rd_kafka_t *rk; /* bears the mock cluster */
    rd_kafka_mock_cluster_t *cluster;
    rt_producer *producer;
    pthread_mutex_t lock;
    pthread_cond_t news;
    uint32_t told[JOBS_MAX + 1];
    rt_outcome last[JOBS_MAX + 1];
} rig;

static void on_outcome(void *ctx, const rt_outcome *o) {
    rig *r = ctx;
    pthread_mutex_lock(&r->lock);
    assert_in_range(o->job, 1, JOBS_MAX);
    r->told[o->job]++;
    r->last[o->job] = *o;
    pthread_cond_broadcast(&r->news);
    pthread_mutex_unlock(&r->lock);
}

static int setup(void **state) {
    rig *r = test_calloc(1, sizeof *r);
    char why[200];
    r->rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
    if (r->rk == NULL) return 1;
    r->cluster = rd_kafka_mock_cluster_new(r->rk, 1);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->news, NULL);
    const rt_producer_config cfg = {
        .kafka = {.brokers = rd_kafka_mock_cluster_bootstraps(r->cluster), .properties = RT_STR("linger.ms=0")},
        .outcome = on_outcome,
        .ctx = r,
        .attempts_max = JOBS_MAX,
        .bytes_max = 1 << 20,
        .drain_ms = 5000,
    };
    rt_err err;
    *state = r;
    return rt_producer_open(&cfg, &r->producer, &err) == RT_OK ? 0 : 1;
}

static int teardown(void **state) {
    rig *r = *state;
    rt_producer_close(r->producer);
    rd_kafka_mock_cluster_destroy(r->cluster);
    rd_kafka_destroy(r->rk);
    pthread_cond_destroy(&r->news);
    pthread_mutex_destroy(&r->lock);
    test_free(r);
    return 0;
}

static void start(rig *r, rt_id job, uint32_t timeout_ms, rt_str body) {
    const rt_attempt like = {.job = job, .token = job + 1000, .number = 1, .timeout_ms = timeout_ms,
                             .url = RT_STR("kafka:again"), .key = RT_STR("key"), .message_id = RT_STR("id"), .body = body};
    const rt_executor executor = rt_producer_executor(r->producer);
    rt_attempt *attempt = rt_attempt_new(&like);
    assert_non_null(attempt);
    executor.start(executor.ctx, attempt);
}

static rt_outcome await(rig *r, rt_id job) {
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 30;
    pthread_mutex_lock(&r->lock);
    int late = 0;
    while (r->told[job] == 0 && late == 0) late = pthread_cond_timedwait(&r->news, &r->lock, &end);
    const rt_outcome o = r->last[job];
    pthread_mutex_unlock(&r->lock);
    assert_int_equal(late, 0);
    assert_int_equal(o.token, job + 1000);
    return o;
}

static void producer__says_where_an_acknowledged_record_is(void **state) {
    rig *r = *state;
    for (rt_id job = 1; job <= JOBS_MAX; job++) start(r, job, 20000, RT_STR("body"));
    for (rt_id job = 1; job <= JOBS_MAX; job++) {
        const rt_outcome o = await(r, job);
        assert_int_equal(o.reason, RT_REASON_STATUS);
        assert_int_equal(o.status, 200);
        assert_non_null(strstr(o.text, "offset"));
    }
    for (rt_id job = 1; job <= JOBS_MAX; job++) assert_int_equal(r->told[job], 1);
}

static void producer__passes_on_what_a_broker_refuses(void **state) {
    rig *r = *state;
    rd_kafka_mock_push_request_errors(r->cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    start(r, 1, 20000, RT_STR("body"));
    const rt_outcome o = await(r, 1);
    assert_int_equal(o.reason, RT_REASON_STATUS);
    assert_int_equal(o.status, 413);
}

static void producer__ends_attempts_in_time_when_no_broker_answers(void **state) {
    rig *r = *state;
    start(r, 1, 20000, RT_STR("so that it knows its broker"));
    (void)await(r, 1);
    rd_kafka_mock_broker_set_down(r->cluster, 1);
    start(r, 2, 700, RT_STR("body"));
    const rt_outcome o = await(r, 2);
    assert_true(o.reason == RT_REASON_CONNECT || o.reason == RT_REASON_TIMEOUT);
    assert_in_range(o.took_ms, 700, 1700);
    rd_kafka_mock_broker_set_up(r->cluster, 1);
    start(r, 3, 20000, RT_STR("body"));
    assert_int_equal(await(r, 3).status, 200);
}

static void producer__says_timeout_of_a_broker_that_is_slow(void **state) {
    rig *r = *state;
    start(r, 1, 20000, RT_STR("so that it knows its broker"));
    (void)await(r, 1);
    rd_kafka_mock_broker_set_rtt(r->cluster, 1, 2000);
    start(r, 2, 300, RT_STR("body"));
    const rt_outcome o = await(r, 2);
    assert_int_equal(o.reason, RT_REASON_TIMEOUT);
    rd_kafka_mock_broker_set_rtt(r->cluster, 1, 0);
}

static void producer__turns_away_what_does_not_fit_its_memory(void **state) {
    rig *r = *state;
    static char large[900 * 1024];
    const rt_str body = {.ptr = large, .len = sizeof large};
    rd_kafka_mock_broker_set_down(r->cluster, 1);
    start(r, 1, 2000, body);
    start(r, 2, 2000, body);
    start(r, 3, 2000, body);
    int full = 0;
    for (rt_id job = 1; job <= 3; job++) full += await(r, job).reason == RT_REASON_BROKEN ? 1 : 0;
    assert_true(full >= 1);
}

static void producer__closes_with_attempts_under_way(void **state) {
    rig *r = *state;
    rd_kafka_mock_broker_set_down(r->cluster, 1);
    for (rt_id job = 1; job <= 8; job++) start(r, job, 300, RT_STR("body"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(producer__says_where_an_acknowledged_record_is, setup, teardown),
        cmocka_unit_test_setup_teardown(producer__passes_on_what_a_broker_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(producer__ends_attempts_in_time_when_no_broker_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(producer__says_timeout_of_a_broker_that_is_slow, setup, teardown),
        cmocka_unit_test_setup_teardown(producer__turns_away_what_does_not_fit_its_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(producer__closes_with_attempts_under_way, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
