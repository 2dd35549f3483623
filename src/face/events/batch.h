/* batch.h: many events in one body, as JSON. Pure. */
#ifndef RT_FACE_EVENTS_BATCH_H
#define RT_FACE_EVENTS_BATCH_H
#include "engine/calls/call.h"

enum { RT_EVENT_DELAY_S_MAX = 365 * 24 * 3600 };

/* Reads {"events": [{"type", "body" | "body_base64", "content_type", "idempotency_key", "reason", "order_key",
 * "deliver_after"}]}; with `mixed` each must name its type. *items, in `arena`, lend from `text`. RT_E_INVALID,
 * RT_E_TOO_LARGE: err->msg is fit for the client. RT_E_NOMEM. */
RT_MUST_USE rt_code rt_event_batch_read(rt_str text, bool mixed, rt_arena *arena, rt_call_item **items,
                                        uint32_t *count, rt_err *err);

/* Is `text` at most `max` bytes of UTF-8 without control characters? RT_E_INVALID: err->msg names `what`. */
RT_MUST_USE rt_code rt_event_text_check(const char *what, rt_str text, size_t max, rt_err *err);
/* All texts of an event. */
RT_MUST_USE rt_code rt_event_item_check(const rt_call_item *item, rt_err *err);

#endif
