/* backoff_json.h: a backoff as clients write it, {"initial_ms", "maximum_ms", "exponent", "jitter"}, and as it is shown.
 * Pure. */
#ifndef RT_FACE_COMMON_BACKOFF_JSON_H
#define RT_FACE_COMMON_BACKOFF_JSON_H
#include <jansson.h>

#include "engine/common/backoff.h"

/* NULL or null: none. RT_E_INVALID: err->msg is fit for the client. RT_E_NOMEM. */
RT_MUST_USE rt_code rt_backoff_from_json(const json_t *backoff, rt_backoff *out, rt_err *err);
json_t *rt_json_backoff(const rt_backoff *b); /* null without a descriptor; NULL: out of memory */

#endif
