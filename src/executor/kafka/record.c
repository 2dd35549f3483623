#include "executor/kafka/record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { HEADERS_GUESS = 8 };

const char *rt_record_topic(const rt_attempt *attempt) {
    const rt_str scheme = RT_STR("kafka:");
    RT_ASSERT(rt_str_starts(attempt->url, scheme));
    return attempt->url.ptr + scheme.len;
}

static bool add(rd_kafka_headers_t *headers, rt_str name, rt_str value) {
    return rd_kafka_header_add(headers, name.ptr, (ssize_t)name.len, value.ptr, (ssize_t)value.len) == 0;
}

static bool add_own(rd_kafka_headers_t *headers, const rt_attempt *a) {
    char number[16];
    (void)snprintf(number, sizeof number, "%" PRIu32, a->number);
    return add(headers, RT_STR("rtd-id"), a->message_id) &&
           add(headers, RT_STR("rtd-attempt"), rt_str_of(number)) &&
           (a->content_type.len == 0 || add(headers, RT_STR("content-type"), a->content_type));
}

rd_kafka_headers_t *rt_record_headers(const rt_attempt *attempt) {
    rd_kafka_headers_t *headers = rd_kafka_headers_new(HEADERS_GUESS);
    if (headers == NULL) return NULL;
    bool fine = add_own(headers, attempt);
    rt_str rest = attempt->headers, line, name, value;
    while (fine && rest.len > 0) {
        (void)rt_str_cut(rest, '\n', &line, &rest);
        if (rt_str_cut(line, ':', &name, &value)) fine = add(headers, rt_str_trim(name), rt_str_trim(value));
    }
    if (fine) return headers;
    rd_kafka_headers_destroy(headers);
    return NULL;
}

void rt_record_say(rt_outcome *out, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const int len = vsnprintf(out->text, sizeof out->text, fmt, args);
    va_end(args);
    const int most = (int)sizeof out->text - 1;
    out->text_len = (uint16_t)(len < 0 ? 0 : len < most ? len : most);
}

static void judge(rd_kafka_resp_err_t error, rt_outcome *out) {
    out->reason = RT_REASON_BROKEN;
    out->status = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum" // librdkafka's list is long and grows
    switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR: out->status = 200; break;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE: out->status = 413; break;
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR__INVALID_ARG: out->status = 400; break;
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT: out->reason = RT_REASON_TIMEOUT; break;
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN: out->reason = RT_REASON_CONNECT; break;
    case RD_KAFKA_RESP_ERR__RESOLVE: out->reason = RT_REASON_RESOLVE; break;
    case RD_KAFKA_RESP_ERR__SSL:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION: out->reason = RT_REASON_TLS; break;
    default: break;
    }
#pragma GCC diagnostic pop
    if (out->status != 0) out->reason = RT_REASON_STATUS;
}

void rt_record_outcome(rd_kafka_resp_err_t error, const char *detail, rt_outcome *out) {
    judge(error, out);
    rt_record_say(out, "%s", detail != NULL ? detail : rd_kafka_err2str(error));
}
