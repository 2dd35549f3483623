/* order_body.h: the body of a new order as Barbican takes and refuses it. Pure. */
#ifndef RT_FACE_ORDERS_ORDER_BODY_H
#define RT_FACE_ORDERS_ORDER_BODY_H
#include <jansson.h>

#include "base/str.h"

enum { RT_ORDER_TEXT_MAX = 255 /* characters of a name, algorithm, … in meta */, RT_ORDER_BITS_MAX = 32767 };

/* Takes the blanks off both ends of all strings in it; at most RT_JSON_DEPTH_MAX deep. False: out of memory. */
RT_MUST_USE bool rt_order_body_strip(json_t *body);

/* "type" must be a word and "meta" an object; what else there is does not count. Orders of the types "key" and "asymmetric"
 * must say an algorithm (any: which ones are known is found out later) and a bit_length that is a multiple of 8.
 * RT_E_INVALID: err->msg names the field and the rule. */
RT_MUST_USE rt_code rt_order_body_check(const json_t *body, int64_t now_ms, rt_err *err);

#endif
