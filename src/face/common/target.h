/* target.h: where attempts may go and what they carry, as clients write it: shared by all faces that push. Pure.
 *
 * Functions with a `why` say in it what is wrong (RT_E_INVALID), in `arena` and fit for the client, calling the field
 * `field`; RT_E_NOMEM. */
#ifndef RT_FACE_COMMON_TARGET_H
#define RT_FACE_COMMON_TARGET_H
#include <jansson.h>

#include "base/arena.h"
#include "port/executor.h"

enum { RT_TARGET_HEADERS_MAX = 64, RT_TARGET_HEADERS_BYTES_MAX = 16384 };

bool rt_target_has_control(rt_str text);
/* What could end a line or is read in two ways: controls, blanks, backslashes, quotes, angle brackets, non-ASCII. */
bool rt_target_has_odd_characters(rt_str uri);
/* The host of an http: or https: URL without brackets, user and port, lent from it. False: none of these, or not absolute,
 * or its port is no number from 1 to 65535. */
bool rt_target_host(rt_str url, rt_str *host);

/* An object of strings as header lines, "Name: value\n"… */
RT_MUST_USE rt_code rt_target_headers(const json_t *headers, const char *field, rt_arena *arena, rt_str *out, rt_str *why);
/* "whsec_" and base64 of 24 to 64 bytes, or a list of up to RT_SECRETS_MAX of them; NULL or null: all are empty. */
RT_MUST_USE rt_code rt_target_secrets(const json_t *secret, const char *field, rt_arena *arena, rt_str out[RT_SECRETS_MAX],
                                      rt_str *why);

#endif
