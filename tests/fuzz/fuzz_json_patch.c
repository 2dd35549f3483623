/* Any bytes as a patch of a queue's metadata: it is refused in words, or the metadata stays an object that can be written
 * and read again. */
#include <stdint.h>
#include <string.h>

#include "json/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool reserved(const char *key) { return key[0] == '_'; }

static void apply(const rt_patch *patch, rt_arena *arena) {
    json_t *metadata, *again;
    RT_ASSERT(rt_json_parse(RT_STR("{\"a\": 1, \"b\": {\"c\": []}}"), &metadata) == RT_JSON_FINE);
    rt_str why = {0};
    const rt_code code = rt_patch_apply(patch, metadata, reserved, arena, &why);
    RT_ASSERT(code == RT_OK || (code == RT_E_ABSENT && why.len > 0));
    rt_buf written = {0};
    rt_json_write(&written, metadata);
    RT_ASSERT(!written.failed);
    RT_ASSERT(rt_json_parse(rt_buf_str(&written), &again) == RT_JSON_FINE);
    RT_ASSERT(json_equal(metadata, again));
    json_decref(metadata);
    json_decref(again);
    rt_buf_deinit(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *document;
    if (rt_json_parse((rt_str){.ptr = (const char *)data, .len = size}, &document) != RT_JSON_FINE) return 0;
    rt_arena arena = {0};
    rt_patch patch;
    rt_str why = {0};
    const rt_code code = rt_patch_parse(document, &arena, &patch, &why);
    RT_ASSERT(code == RT_OK || (code == RT_E_INVALID && why.len > 0));
    if (code == RT_OK) apply(&patch, &arena);
    rt_arena_deinit(&arena);
    json_decref(document);
    return 0;
}
