/* query.h: query parameters as typed values, and building query strings. Blank values count as absent. */
#ifndef RT_FACE_COMMON_QUERY_H
#define RT_FACE_COMMON_QUERY_H
#include "http/exchange.h"

typedef enum rt_query { RT_QUERY_ABSENT, RT_QUERY_FOUND, RT_QUERY_INVALID } rt_query;

rt_query rt_query_str(const rt_exchange *x, const char *name, rt_str *out);
rt_query rt_query_int(const rt_exchange *x, const char *name, int64_t *out);
/* true True t yes y 1 on; false False f no n 0 off */
rt_query rt_query_bool(const rt_exchange *x, const char *name, bool *out);

/* All values of `name`, comma-separated or repeated; blank ones are left out. Returns how many there are, of which at most
 * `max` are in out[]. */
size_t rt_query_list(const rt_exchange *x, const char *name, rt_str out[], size_t max);

/* The words of rt_query_bool. */
bool rt_query_parse_bool(rt_str text, bool *out);

/* Adds `text` percent-encoded, all but letters, digits and "-._~". */
void rt_query_encode(rt_buf *out, rt_str text);

#endif
