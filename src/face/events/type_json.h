/* type_json.h: event types as they are written in JSON; docs/events.md has every member with its range and
 * default. Pure. */
#ifndef RT_FACE_EVENTS_TYPE_JSON_H
#define RT_FACE_EVENTS_TYPE_JSON_H
#include <jansson.h>

#include "engine/calls/call_type.h"

/* Reads an object. What is left out has its default; a circuit that is left out is on. Unknown members are
 * refused by name, but for those that rt_type_to_json adds (see rt_page_type_get). Strings of *out are
 * copies in `arena`; queue, changed_ms and json are left as they were. RT_E_INVALID: err->msg, fit for the
 * client, names member and rule. RT_E_NOMEM. */
RT_MUST_USE rt_code rt_type_from_json(const json_t *json, rt_arena *arena, rt_call_type *out, rt_err *err);

/* All settings, those by default too, in the same shape. NULL: out of memory. */
json_t *rt_type_to_json(const rt_call_type *t);

#endif
