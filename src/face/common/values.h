/* values.h: single values as JSON, the same on every page. NULL where memory runs out. */
#ifndef RT_FACE_COMMON_VALUES_H
#define RT_FACE_COMMON_VALUES_H
#include <jansson.h>

#include "face/common/api.h"

json_t *rt_json_str(rt_str s); /* what is not UTF-8 becomes U+FFFD */
json_t *rt_json_token(uint64_t token);
json_t *rt_json_time(int64_t ms); /* RFC 3339 in UTC with milliseconds; null for 0 or "never" */
json_t *rt_json_id(const rt_exchange *x, rt_id id); /* null for 0 */
json_t *rt_json_value(rt_str json_text); /* null for "" */

#endif
