#include "face/common/values.h"

#include <inttypes.h>

#include "face/common/timestamp.h"
#include "json/tree.h"

json_t *rt_json_str(rt_str s) {
    json_t *json = json_stringn(s.len > 0 ? s.ptr : "", s.len);
    if (json != NULL) return json;
    rt_buf text = {0};
    rt_json_write_str(&text, s); // repairs what is not UTF-8
    if (!text.failed) json = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    rt_buf_deinit(&text);
    return json;
}

json_t *rt_json_token(uint64_t token) { return json_sprintf("%016" PRIx64, token); }

json_t *rt_json_time(int64_t ms) {
    if (ms <= 0 || ms == INT64_MAX) return json_null();
    return json_sprintf("%s.%03dZ", rt_timestamp_format(ms / 1000).s, (int)(ms % 1000));
}

json_t *rt_json_id(const rt_exchange *x, rt_id id) {
    if (id == 0) return json_null();
    return json_string(rt_id_format(rt_engine_tag(rt_api_of(x)->engine), id).s);
}

json_t *rt_json_value(rt_str text) {
    json_t *value =
        text.len == 0 ? NULL : json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    return value == NULL ? json_null() : value;
}
