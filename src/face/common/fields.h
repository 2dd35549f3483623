/* fields.h: what faces take from a request's body, path and query, each with its rule.
 *
 * Functions that return bool have replied with 400 when they return false: it names the field and the rule. Strings are
 * copies in the exchange's arena, since the body is released before a command is done. */
#ifndef RT_FACE_COMMON_FIELDS_H
#define RT_FACE_COMMON_FIELDS_H
#include <jansson.h>

#include "engine/common/backoff.h"
#include "face/common/api.h"

/* Zeroed memory for a command in the exchange's arena; NULL: replied. */
#define RT_NEW(x, type) ((type *)rt_new_of((x), sizeof(type)))
void *rt_new_of(rt_exchange *x, size_t bytes);

/* ---- a body -------------------------------------------------------------------------------------------- */

/* The body as a JSON object; an empty body is an empty object. NULL: replied with 400. The caller releases it. */
json_t *rt_body_json(rt_exchange *x);

/* What a member of a body may be. */
typedef struct rt_member {
    const char *name;
    json_type type; /* JSON_TRUE: either boolean */
    const char *wanted; /* "a string", … for the error */
} rt_member;
/* Is each member of `object` (NULL: it has none) one of these, and of its type? Null is as if it were not there: such ones
 * are taken out. */
bool rt_members_are_right(rt_exchange *x, json_t *object, const rt_member *members, size_t count);
/* Is each member of `object` one of these? For bodies whose fields are read one by one, see below. */
bool rt_members_are_known(rt_exchange *x, json_t *object, const char *const names[], size_t count);
#define RT_MEMBERS_ARE_KNOWN(x, object, ...) \
    rt_members_are_known((x), (object), (const char *const[]){__VA_ARGS__}, \
                         sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *))

typedef enum rt_need { RT_OPTIONAL, RT_REQUIRED } rt_need;
bool rt_field_is_left_out(const json_t *field); /* absent or null */
rt_str rt_field_str(const json_t *string); /* lent; empty (ptr NULL) if it is no string */
bool rt_field_copy(rt_exchange *x, const json_t *string, rt_str *out);
/* Left out: empty. */
bool rt_field_text(rt_exchange *x, const json_t *body, const char *name, rt_need need, size_t max,
                   rt_str *out);
/* 1 to 64 letters, digits, '_', '-' or '.'. */
bool rt_field_word(rt_exchange *x, const json_t *body, const char *name, rt_need need, rt_str *out);
bool rt_field_int(rt_exchange *x, const json_t *body, const char *name, int64_t low, int64_t high,
                  int64_t preset, int64_t *out);
bool rt_field_bool(rt_exchange *x, const json_t *body, const char *name, bool *out);
/* As backoff_json.h has it, or null. */
bool rt_field_backoff(rt_exchange *x, const json_t *backoff, rt_backoff *out);

/* ---- path and query ------------------------------------------------------------------------------------ */

/* The i-th path parameter as an id. False: replied with 404 for `what`. */
bool rt_param_id(rt_exchange *x, size_t i, const char *what, rt_id *out);
/* A whole number from the query in [low, high], or `preset` if absent. */
bool rt_arg_int(rt_exchange *x, const char *name, int64_t low, int64_t high, int64_t preset, int64_t *out);
/* An id in the query. Absent: 0. */
bool rt_arg_id(rt_exchange *x, const char *name, rt_id *out);

#endif
