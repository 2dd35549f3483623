/* payload.h: the body of an event, which may be anything, within JSON. */
#ifndef RT_FACE_COMMON_PAYLOAD_H
#define RT_FACE_COMMON_PAYLOAD_H
#include <jansson.h>

#include "base/arena.h"

/* Undoes base64 (RFC 4648, section 4) in `arena`. ptr NULL: it is none, or out of memory. */
rt_str rt_payload_from_base64(rt_arena *arena, rt_str text);

/* Adds it to `object`: as "body" what is JSON by its content type ("": JSON) and by its look, as "body"
 * too, a string, what is text by its content type, otherwise as "body_base64". False: out of memory. */
bool rt_payload_show(json_t *object, rt_str content_type, rt_str payload);
/* Writes the same member, JSON as the text that it came in: what workers fetch need not be taken apart for it. Without
 * memory out->failed is set. */
void rt_payload_write(rt_buf *out, rt_str content_type, rt_str payload);

#endif
