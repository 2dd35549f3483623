/* fields.h: what faces take from a request's body, path and query, each with its rule, and how values are shown.
 *
 * Functions that return bool have replied with 400 when they return false: it names the field and the rule. Strings are
 * copies in the exchange's arena, since the body is released before a command is done. */
#ifndef RT_FACE_COMMON_FIELDS_H
#define RT_FACE_COMMON_FIELDS_H
#include <jansson.h>

#include "engine/common/backoff.h"
#include "http/exchange.h"

/* Whose things a request is about: X-Project-ID, or "default". */
rt_str rt_tenant_of(const rt_exchange *x);

/* Zeroed memory for a command in the exchange's arena; NULL: replied. */
#define RT_NEW(x, type) ((type *)rt_new_of((x), sizeof(type)))
void *rt_new_of(rt_exchange *x, size_t bytes);

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
/* {"initial_ms", "maximum_ms", "exponent", "jitter"} or null. */
bool rt_field_backoff(rt_exchange *x, const json_t *backoff, rt_backoff *out);
/* The same without a request. RT_E_INVALID: err->msg is fit for the client. RT_E_NOMEM. */
RT_MUST_USE rt_code rt_backoff_from_json(const json_t *backoff, rt_backoff *out, rt_err *err);
/* An id in the query. Absent: 0. */
bool rt_arg_id(rt_exchange *x, const char *name, rt_id *out);

/* ---- shown --------------------------------------------------------------------------------------------- */

json_t *rt_json_str(rt_str s);           /* what is not UTF-8 becomes U+FFFD */
json_t *rt_json_token(uint64_t token);
json_t *rt_json_backoff(const rt_backoff *b); /* null without a descriptor */
json_t *rt_json_value(rt_str json_text);      /* null for "" */

#endif
