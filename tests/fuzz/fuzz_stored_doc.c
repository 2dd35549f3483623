/* Stored documents: whatever decodes is encoded to the same bytes again, and nothing is read beyond the end. */
#include <stddef.h>
#include <stdint.h>

#include "engine/cursor.h"
#include "engine/messages/metadata.h"
#include "engine/messages/subscription.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    if (rt_cursor_decode(value, &cursor)) {
        RT_ASSERT(rt_str_eq(rt_cursor_encode(&arena, &cursor), value));
    }
    rt_arena_deinit(&arena);
    return 0;
}
