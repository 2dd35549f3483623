/* Whatever is read as a batch of events is within every bound, is stored as a call that reads back the same, and can be
 * shown; what is base64 in a body is the same when it is shown as bytes. */
#include <stddef.h>
#include <stdint.h>

#include "face/common/payload.h"
#include "face/events/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stored(rt_arena *arena, const rt_call_item *item) {
    const rt_call call = {.tenant = RT_STR("p"), .type = RT_STR("t"), .reason = item->reason,
                          .order_key = item->order_key, .content_type = item->content_type, .payload = item->payload};
    rt_call read;
    RT_ASSERT(rt_call_decode(rt_call_encode(arena, &call), &read));
    RT_ASSERT(rt_str_eq(read.payload, item->payload));
    RT_ASSERT(rt_str_eq(read.reason, item->reason));
    RT_ASSERT(rt_str_eq(read.order_key, item->order_key));
    RT_ASSERT(rt_str_eq(read.content_type, item->content_type));
}

static void check_shown(rt_arena *arena, const rt_call_item *item) {
    json_t *object = json_object();
    RT_ASSERT(rt_payload_show(object, item->content_type, item->payload));
    RT_ASSERT(json_object_size(object) == 1);
    const json_t *base64 = json_object_get(object, "body_base64");
    if (base64 != NULL)
        RT_ASSERT(rt_str_eq(rt_payload_from_base64(arena, rt_str_of(json_string_value(base64))), item->payload));
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rt_arena arena = {0};
    rt_err err = {0};
    rt_call_item *items = NULL;
    uint32_t count = 0;
    const rt_str text = {.ptr = (const char *)data, .len = size};
    const rt_code code = rt_event_batch_read(text, size % 2 == 0, &arena, &items, &count, &err);
    if (code == RT_OK) {
        RT_ASSERT(count >= 1);
        RT_ASSERT(count <= RT_CALLS_PER_REQUEST_MAX);
        for (uint32_t i = 0; i < count; i++) {
            RT_ASSERT(rt_event_item_check(&items[i], &err) == RT_OK);
            RT_ASSERT(items[i].delay_ms >= 0);
            check_stored(&arena, &items[i]);
            check_shown(&arena, &items[i]);
        }
    } else {
        RT_ASSERT(err.msg[0] != '\0');
    }
    rt_arena_deinit(&arena);
    return 0;
}
