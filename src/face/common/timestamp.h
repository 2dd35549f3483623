/* timestamp.h: instants as ISO 8601 text, in UTC. */
#ifndef RT_FACE_COMMON_TIMESTAMP_H
#define RT_FACE_COMMON_TIMESTAMP_H
#include "base/str.h"

enum { RT_TIMESTAMP_LEN = 19 };
typedef struct rt_timestamp {
    char s[RT_TIMESTAMP_LEN + 1]; /* NUL-terminated */
} rt_timestamp;

#define RT_TIMESTAMP_S_MAX INT64_C(253402300799) /* 9999-12-31T23:59:59 */

/* "2026-11-21T10:26:49"; `unix_s` is brought within 1970 and RT_TIMESTAMP_S_MAX. */
rt_timestamp rt_timestamp_format(int64_t unix_s);

/* "YYYY-MM-DD", with "Thh:mm" or "Thh:mm:ss[.fraction]" and then "Z" or "+hh[[:]mm]" behind it; a blank may stand for the
 * T. Without a zone it is UTC. Fractions are cut off. False: no such instant, or before 1970. */
bool rt_timestamp_parse(rt_str text, int64_t *unix_s);

#endif
