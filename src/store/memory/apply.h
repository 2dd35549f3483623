/* apply.h: a change against an image: compare everything, then write everything. */
#ifndef RT_STORE_MEMORY_APPLY_H
#define RT_STORE_MEMORY_APPLY_H
#include "store/memory/image.h"

/* Writes `change` to `image`, a copy of `before` that nobody else looks at; records are copied into
 * `records`. Not RT_OK: refused as rt_store_apply says, or RT_E_NOMEM; `image` may then be half-written. */
RT_MUST_USE rt_code rt_image_apply(const rt_image *before, rt_image *image, rt_arena *records,
                                   const rt_change *change, rt_err *err);

/* Drops history beyond its bounds and the done jobs whose last event goes, at most `ops_max` records.
 * RT_E_AGAIN: there is more to do. */
RT_MUST_USE rt_code rt_image_tidy(rt_image *image, const rt_retention *bounds, int64_t now_ms,
                                  uint32_t ops_max);

#endif
