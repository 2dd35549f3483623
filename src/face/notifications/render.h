/* render.h: what replies are made of, and taking JSON documents from requests. */
#ifndef RT_FACE_NOTIFICATIONS_RENDER_H
#define RT_FACE_NOTIFICATIONS_RENDER_H
#include <jansson.h>

#include "engine/messages/message.h"
#include "face/notifications/errors.h"
#include "face/notifications/limits.h"

/* ---- replies ------------------------------------------------------------------------------------------- */

/* The header, in lower case as Zaqar's own server sends it: its functional tests compare names as they stand. */
#define RT_LOCATION "location"

void rt_render_no_content(rt_exchange *x);           /* 204 */
void rt_render_json(rt_exchange *x, rt_buf *body);   /* 200; takes the buffer */

/* Where the messages of a request's queue are, and how ids look. */
typedef struct rt_message_place {
    uint32_t tag;
    rt_str path; /* rt_about_path */
    int64_t now_ms;
} rt_message_place;
rt_message_place rt_message_place_of(const rt_exchange *x);

/* {"id", "href", "ttl", "age", "body"}; the href names `claim` unless that is 0. */
void rt_render_message(rt_buf *out, const rt_message_place *place, const rt_message *m, rt_id claim);

/* Seconds since a message's time to live began. */
int64_t rt_message_age_s(const rt_job *job, int64_t now_ms);

/* As Python shows a str: 'a', or "a" where it has an apostrophe. */
void rt_render_python_str(rt_buf *out, rt_str s);

/* ---- the link to the next page ------------------------------------------------------------------------- */

/* Builds "?a=b&c=d" step by step: an all-zero one is empty. */
typedef struct rt_link {
    rt_buf query;
} rt_link;
void rt_link_str(rt_link *l, rt_str name, rt_str value);
void rt_link_int(rt_link *l, rt_str name, int64_t value);
void rt_link_bool(rt_link *l, rt_str name, bool value);
/* Writes `"links": […]`, empty if `there` is false, and frees the link. */
void rt_link_write(rt_buf *out, rt_link *l, rt_str path, bool there);

/* ---- requests ------------------------------------------------------------------------------------------ */

/* Query parameters; blank counts as absent and leaves *out. False: replied 400. */
bool rt_take_int(rt_exchange *x, const char *name, int64_t *out, bool *given);
bool rt_take_bool(rt_exchange *x, const char *name, bool *out, bool *given);

/* Is it a `limit` that a client may name, where a page has at most `max`? And what counts if it names none. */
static inline bool rt_is_page_size(int64_t limit, uint64_t max) { return limit >= 1 && (uint64_t)limit <= max; }
static inline int64_t rt_page_default(uint64_t max) {
    return max < RT_PAGE_DEFAULT ? (int64_t)max : RT_PAGE_DEFAULT;
}

/* A field of a body, as Zaqar's int() takes it: an integer or a bool. Absent leaves *out. False: replied 400. */
bool rt_take_int_field(rt_exchange *x, const rt_json_slice *s, const char *name, int64_t *out);

/* The body as an owned tree of the type that is wanted (for json_decref). False: replied 400. A body that is not there at
 * all is refused too. */
bool rt_take_document(rt_exchange *x, json_type type, json_t **out);

/* A view for this request. False: return; it is replied with 503, or called again (rt_exchange_moves). */
bool rt_take_view(rt_exchange *x, const char *what, rt_view **out);

#endif
