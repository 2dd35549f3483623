/* tree.h: JSON off the hot path: trees of jansson, and writing JSON the way Python's json.dumps does. */
#ifndef RT_JSON_TREE_H
#define RT_JSON_TREE_H
#include <jansson.h>

#include "json/scan.h"

/* Parses an object or array within the rules of scan.h (a scalar or a number beyond double is MALFORMED, \u0000 in a key
 * too). RT_JSON_FINE: returns an owned *out, for json_decref. */
rt_json_fault rt_json_parse(rt_str text, json_t **out);

/* Adds `json` with ", " and ": " between things, keys in order of insertion, UTF-8 as it is, reals as short as they can be
 * read back exactly. At most RT_JSON_DEPTH_MAX deep: deeper ones set out->failed. */
void rt_json_write(rt_buf *out, const json_t *json);

/* Adds a string with its quotes. What is not UTF-8 becomes U+FFFD. */
void rt_json_write_str(rt_buf *out, rt_str s);

/* For readers of what clients say: hands them `text` as *why. RT_E_INVALID, or RT_E_NOMEM where its ptr is NULL. */
rt_code rt_json_refuse(rt_str *why, rt_str text);

/* Python's bool(value): false for NULL (absent), null, false, 0, 0.0, "", [] and {}. */
bool rt_json_is_truthy(const json_t *value);

#endif
