/* Any record of a Kafka topic under any rules: what is read as an event is within every bound, carries the record's bytes,
 * believes headers before the value, and is stored as a call that reads back the same. Otherwise there is a reason in words.
 *
 * The input: a byte of flags, then fields up to a 0x1f each: the topic's type, four JSON pointers, the record's key, its
 * headers ("name=value", up to a 0x1e each); what is left is the value. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "source/kafka/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* librdkafka lets nobody make a received message with headers, so its two accessors are the harness's own. */
static rt_str given_headers; /* of the message that is being read */

rd_kafka_resp_err_t rd_kafka_message_headers(const rd_kafka_message_t *message, rd_kafka_headers_t **out) {
    (void)message;
    *out = NULL;
    return given_headers.len > 0 ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__NOENT;
}

rd_kafka_resp_err_t rd_kafka_header_get_last(const rd_kafka_headers_t *headers, const char *name, const void **value,
                                             size_t *size) {
    (void)headers;
    rd_kafka_resp_err_t found = RD_KAFKA_RESP_ERR__NOENT;
    rt_str rest = given_headers;
    rt_str one;
    rt_str head;
    rt_str tail;
    for (bool more = true; more;) {
        more = rt_str_cut(rest, 0x1e, &one, &rest);
        const bool has_value = rt_str_cut(one, '=', &head, &tail);
        if (!rt_str_eq(head, rt_str_of(name))) continue;
        *value = has_value ? tail.ptr : NULL; // Kafka has headers without a value
        *size = has_value ? tail.len : 0;
        found = RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    return found;
}

static rt_str field(rt_str *rest) {
    rt_str head;
    rt_str tail;
    if (!rt_str_cut(*rest, 0x1f, &head, &tail)) tail = RT_STR_EMPTY;
    *rest = tail;
    return head;
}

/* What the configuration would not take is not given. */
static rt_str pointer(rt_str *rest) {
    rt_err err = {.msg = ""};
    const rt_str text = field(rest);
    if (rt_pointer_check("source.pointer", text, &err) == RT_OK) return text;
    RT_ASSERT(strstr(err.msg, "source.pointer") != NULL);
    return RT_STR_EMPTY;
}

static void check_text(rt_str text, size_t max) {
    RT_ASSERT(text.len <= max);
    RT_ASSERT(rt_utf8_is_valid(text));
    for (size_t i = 0; i < text.len; i++) RT_ASSERT((unsigned char)text.ptr[i] >= 0x20 && text.ptr[i] != 0x7f);
}

static void check_header(const rd_kafka_message_t *message, const char *name, rt_str read) {
    rt_str said;
    if (rt_reading_header(message, name, &said) && said.len > 0) RT_ASSERT(rt_str_eq(said, read));
}

static void check_stored(rt_arena *arena, const rt_call_item *item) {
    const rt_call call = {.tenant = RT_STR("p"), .type = item->type, .reason = item->reason, .order_key = item->order_key,
                          .content_type = item->content_type, .payload = item->payload};
    rt_call read;
    RT_ASSERT(rt_call_decode(rt_call_encode(arena, &call), &read));
    RT_ASSERT(rt_str_eq(read.payload, item->payload));
    RT_ASSERT(rt_str_eq(read.order_key, item->order_key));
}

static void check_item(const rd_kafka_message_t *message, rt_arena *arena, const rt_call_item *item) {
    RT_ASSERT(item->type.len > 0);
    check_text(item->type, RT_CALL_TYPE_NAME_MAX);
    check_text(item->key, RT_CALL_KEY_MAX);
    check_text(item->order_key, RT_CALL_ORDER_KEY_MAX);
    check_text(item->content_type, RT_CALL_CONTENT_TYPE_MAX);
    check_text(item->reason, RT_CALL_REASON_MAX);
    RT_ASSERT(rt_str_eq(item->payload, (rt_str){.ptr = message->payload, .len = message->len}));
    check_header(message, "rtd-type", item->type);
    check_header(message, "rtd-id", item->key);
    check_header(message, "content-type", item->content_type);
    if (message->key_len == 0) check_header(message, "rtd-key", item->order_key);
    check_stored(arena, item);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    rt_str rest = {.ptr = (const char *)data + 1, .len = size - 1};
    const rt_str type = field(&rest);
    rt_reading_rules rules = {.order_by_key = (data[0] & 1) != 0};
    rules.type = pointer(&rest);
    rules.reason = pointer(&rest);
    rules.key = pointer(&rest);
    rules.id = pointer(&rest);
    const rt_str key = field(&rest);
    given_headers = field(&rest);
    // A record's own bytes are never written to.
    const rd_kafka_message_t message = {
        .key = (void *)(uintptr_t)key.ptr, .key_len = key.len, .payload = (void *)(uintptr_t)rest.ptr, .len = rest.len};
    rt_arena arena = {0};
    rt_call_item item;
    bool nomem = false;
    const char *why = rt_reading_item(&rules, type, &message, &arena, &item, &nomem);
    RT_ASSERT(!nomem);
    if (why == NULL) check_item(&message, &arena, &item);
    else RT_ASSERT(why[0] != '\0');
    rt_arena_deinit(&arena);
    return 0;
}
