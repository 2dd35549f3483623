/* Stored documents: whatever decodes is encoded to the same bytes again, and nothing is read beyond the end. */
#include <stddef.h>
#include <stdint.h>

#include "engine/calls/call.h"
#include "engine/common/cursor.h"
#include "engine/messages/metadata.h"
#include "engine/messages/subscription.h"
#include "engine/orders/lock.h"
#include "engine/orders/order_count.h"
#include "engine/orders/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void of_orders(rt_arena *arena, rt_str value) {
    rt_order_type type;
    if (rt_order_type_decode(value, &type)) RT_ASSERT(rt_str_eq(rt_order_type_encode(arena, &type), value));
    rt_order order;
    if (rt_order_decode(value, &order)) RT_ASSERT(rt_str_eq(rt_order_encode(arena, &order), value));
    rt_secret secret;
    if (rt_secret_decode(value, &secret)) RT_ASSERT(rt_str_eq(rt_secret_encode(arena, &secret), value));
    int64_t count;
    if (rt_order_count_decode(value, &count)) RT_ASSERT(rt_str_eq(rt_order_count_encode(arena, count), value));
    rt_lock lock;
    if (rt_lock_decode(value, &lock)) RT_ASSERT(rt_str_eq(rt_lock_encode(arena, &lock), value));
}

static void of_calls(rt_arena *arena, rt_str value) {
    rt_call_type type;
    if (rt_call_type_decode(value, &type)) RT_ASSERT(rt_str_eq(rt_call_type_encode(arena, &type), value));
    rt_call call;
    if (rt_call_decode(value, &call)) RT_ASSERT(rt_str_eq(rt_call_encode(arena, &call), value));
}

/* The encoding is canonical: a value that decodes is the one that its meaning encodes to. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const rt_str value = {.ptr = (const char *)data, .len = size};
    rt_arena arena = {0};
    rt_metadata metadata;
    if (rt_metadata_decode(value, &metadata)) {
        RT_ASSERT(rt_str_eq(rt_metadata_encode(&arena, &metadata), value));
    }
    rt_subscription subscription;
    if (rt_subscription_decode(value, &subscription)) {
        RT_ASSERT(rt_str_eq(rt_subscription_encode(&arena, &subscription), value));
    }
    rt_cursor cursor;
    if (rt_cursor_decode(value, &cursor)) { // one of an older version is shorter, and is written as it is now
        const rt_str now = rt_cursor_encode(&arena, &cursor);
        RT_ASSERT(now.len > value.len || rt_str_eq(now, value));
        RT_ASSERT(rt_cursor_decode(now, &cursor) && rt_str_eq(rt_cursor_encode(&arena, &cursor), now));
    }
    of_orders(&arena, value);
    of_calls(&arena, value);
    rt_arena_deinit(&arena);
    return 0;
}
