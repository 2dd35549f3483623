/* uuid.h: an id as a UUID, for clients that take nothing else. Pure.
 *
 * UUIDv8 (RFC 9562, 5.8), made of the store's tag and the id, and read back into them:
 *     tttttttt-hhhh-8ccc-vccc-ssssssssssss
 * t: the tag; h, s: home and sequence of the id; c: check digits, so that a UUID that was made up names nothing. */
#ifndef RT_BASE_UUID_H
#define RT_BASE_UUID_H
#include "base/id.h"

enum { RT_UUID_TEXT_LEN = 36 };
typedef struct rt_uuid_text {
    char s[RT_UUID_TEXT_LEN + 1]; /* NUL-terminated, lower case */
} rt_uuid_text;

rt_uuid_text rt_uuid_format(uint32_t store_tag, rt_id id);
/* Either case, as the RFC wants it. False: no UUID, or not one that rt_uuid_format makes with this tag; id 0. */
bool rt_uuid_parse(uint32_t store_tag, rt_str text, rt_id *out);

#endif
