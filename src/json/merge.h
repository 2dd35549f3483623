/* merge.h: JSON merge patches (RFC 7396). */
#ifndef RT_JSON_MERGE_H
#define RT_JSON_MERGE_H
#include <jansson.h>

#include "json/scan.h"

/* `target` with `patch` applied: what is null in it goes, objects are merged, all else is replaced.
 * Returns a reference of the caller's, to `target` itself if both are objects (changed in place). NULL:
 * out of memory, or deeper than RT_JSON_DEPTH_MAX; `target` may then be half patched. */
json_t *rt_json_merge(json_t *target, const json_t *patch);

#endif
