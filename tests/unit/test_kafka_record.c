/* What an attempt looks like as a Kafka record, and what brokers' answers mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "executor/kafka/record.h"
#include "kafka/client.h"

static rt_str header(rd_kafka_headers_t *headers, const char *name) {
    const void *value;
    size_t size;
    if (rd_kafka_header_get_last(headers, name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR) return RT_STR("absent");
    return (rt_str){.ptr = value, .len = size};
}

static void record__carries_id_attempt_and_the_headers_of_its_type(void **state) {
    (void)state;
    const rt_attempt like = {
        .number = 3,
        .url = RT_STR("kafka:card.again"),
        .headers = RT_STR("rtd-type: card\nempty:\nrtd-reason:  api1-429 \n"),
        .message_id = RT_STR("abc"),
    };
    rt_attempt *a = rt_attempt_new(&like);
    assert_non_null(a);
    assert_string_equal(rt_record_topic(a), "card.again");
    rd_kafka_headers_t *headers = rt_record_headers(a);
    assert_non_null(headers);
    assert_true(rt_str_eq(header(headers, "rtd-id"), RT_STR("abc")));
    assert_true(rt_str_eq(header(headers, "rtd-attempt"), RT_STR("3")));
    assert_true(rt_str_eq(header(headers, "rtd-type"), RT_STR("card")));
    assert_true(rt_str_eq(header(headers, "rtd-reason"), RT_STR("api1-429")));
    assert_true(rt_str_eq(header(headers, "empty"), RT_STR_EMPTY));
    assert_true(rt_str_eq(header(headers, "content-type"), RT_STR("absent"))); // none was given
    rd_kafka_headers_destroy(headers);
    rt_attempt_free(a);
}

static void record__tells_what_a_retry_can_mend_from_what_it_cannot(void **state) {
    (void)state;
    static const struct {
        rd_kafka_resp_err_t error;
        rt_reason reason;
        uint16_t status;
    } ROWS[] = {
        {RD_KAFKA_RESP_ERR_NO_ERROR, RT_REASON_STATUS, 200},
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RT_REASON_STATUS, 413},
        {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, RT_REASON_STATUS, 400},
        {RD_KAFKA_RESP_ERR_INVALID_RECORD, RT_REASON_STATUS, 400},
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RT_REASON_TIMEOUT, 0},
        {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RT_REASON_CONNECT, 0},
        {RD_KAFKA_RESP_ERR__TRANSPORT, RT_REASON_CONNECT, 0},
        {RD_KAFKA_RESP_ERR__RESOLVE, RT_REASON_RESOLVE, 0},
        {RD_KAFKA_RESP_ERR__SSL, RT_REASON_TLS, 0},
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RT_REASON_BROKEN, 0},
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RT_REASON_BROKEN, 0},
        {RD_KAFKA_RESP_ERR__QUEUE_FULL, RT_REASON_BROKEN, 0},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        rt_outcome o = {0};
        rt_record_outcome(ROWS[i].error, NULL, &o);
        assert_int_equal(o.reason, ROWS[i].reason);
        assert_int_equal(o.status, ROWS[i].status);
        assert_true(o.text_len > 0);
        assert_int_equal(o.text_len, strlen(o.text));
    }
}

static void record__cuts_what_a_broker_says(void **state) {
    (void)state;
    char text[RT_EVENT_TEXT_MAX * 2];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    rt_outcome o = {0};
    rt_record_outcome(RD_KAFKA_RESP_ERR__FAIL, text, &o);
    assert_int_equal(o.text_len, RT_EVENT_TEXT_MAX - 1);
}

static rt_code conf(const char *properties, rt_err *err) {
    const rt_kafka k = {.brokers = "127.0.0.1:1", .properties = rt_str_of(properties)};
    const rt_kafka_property own[] = {{"acks", "all", false}, {"session.timeout.ms", "10000", true}};
    rd_kafka_conf_t *out;
    const rt_code code = rt_kafka_conf(&k, own, 2, &out, err);
    if (code == RT_OK) rd_kafka_conf_destroy(out);
    return code;
}

static void properties__are_librdkafkas_but_for_those_that_retryd_needs(void **state) {
    (void)state;
    rt_err err = {0};
    assert_int_equal(conf("", &err), RT_OK);
    assert_int_equal(conf("# why\n\n  security.protocol = ssl \r\nsession.timeout.ms=6000", &err), RT_OK);
    assert_int_equal(conf("security.protocol=ssl\nacks=1\n", &err), RT_E_INVALID);
    assert_string_equal(err.msg, "kafka.properties_file, line 2: \"acks\" is set by retryd and must not be here");
    assert_int_equal(conf("bootstrap.servers=x:1", &err), RT_E_INVALID);
    assert_int_equal(conf("no such thing=secret", &err), RT_E_INVALID);
    assert_null(strstr(err.msg, "secret"));
    assert_int_equal(conf("security.protocol=secret", &err), RT_E_INVALID);
    assert_null(strstr(err.msg, "secret"));
    assert_int_equal(conf("secret", &err), RT_E_INVALID);
    assert_null(strstr(err.msg, "secret"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record__carries_id_attempt_and_the_headers_of_its_type),
        cmocka_unit_test(record__tells_what_a_retry_can_mend_from_what_it_cannot),
        cmocka_unit_test(record__cuts_what_a_broker_says),
        cmocka_unit_test(properties__are_librdkafkas_but_for_those_that_retryd_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
