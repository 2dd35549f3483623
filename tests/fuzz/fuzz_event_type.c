/* Whatever is read as an event type can be stored and is the same when it is read back; what it is shown as is an event
 * type again, and shown the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "face/events/type_json.h"
#include "json/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stored(rt_arena *arena, const rt_call_type *t) {
    rt_call_type read;
    const rt_str stored = rt_call_type_encode(arena, t);
    RT_ASSERT(stored.ptr != NULL);
    RT_ASSERT(rt_call_type_decode(stored, &read));
    const rt_str again = rt_call_type_encode(arena, &read);
    RT_ASSERT(rt_str_eq(stored, again));
}

static void check_shown(rt_arena *arena, const rt_call_type *t) {
    rt_err err = {0};
    rt_call_type read = {0};
    json_t *shown = rt_type_to_json(t);
    RT_ASSERT(shown != NULL);
    RT_ASSERT(rt_type_from_json(shown, arena, &read, &err) == RT_OK);
    json_t *again = rt_type_to_json(&read);
    RT_ASSERT(json_equal(shown, again));
    json_decref(again);
    json_decref(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rt_arena arena = {0};
    rt_err err = {0};
    rt_call_type type = {.json = RT_STR("{}")};
    json_t *json = NULL;
    const rt_str text = {.ptr = (const char *)data, .len = size};
    if (size > RT_CALL_TYPE_JSON_MAX || rt_json_parse(text, &json) != RT_JSON_FINE) return 0;
    const rt_code code = json_is_object(json) ? rt_type_from_json(json, &arena, &type, &err) : RT_E_INVALID;
    if (code == RT_OK) {
        RT_ASSERT(rt_circuit_settings_check(&type.circuit) == NULL);
        RT_ASSERT(rt_pace_settings_check(&type.pace) == NULL);
        RT_ASSERT(rt_delivery_policy_check(&type.delivery) == NULL);
        check_stored(&arena, &type);
        check_shown(&arena, &type);
    } else if (json_is_object(json)) {
        RT_ASSERT(code == RT_E_INVALID);
        RT_ASSERT(err.msg[0] != '\0');
    }
    json_decref(json);
    rt_arena_deinit(&arena);
    return 0;
}
