/* options.h: a subscription's options: free JSON with some keys that mean something.
 *
 *   _retry_policy               as json/policy_json.h has it
 *   post_data, _post_data       a text (or an object, taken as its JSON) with "$zaqar_message$" where the message goes
 *   post_headers, _post_headers an object of texts: header lines of each webhook
 *   secret                      "whsec_" and base64 of 24 to 64 bytes, or a list of up to two of them: signs webhooks
 *   subject, from               of mails */
#ifndef RT_FACE_NOTIFICATIONS_OPTIONS_H
#define RT_FACE_NOTIFICATIONS_OPTIONS_H
#include <jansson.h>

#include "engine/messages/subscription.h"

enum {
    RT_OPTIONS_BYTES_MAX = 65536,
    RT_MAIL_FIELD_MAX = 512
};

/* Fills policy, headers, post_data, secrets, subject, from and options_json of *out, in `arena`. `json` NULL: none given.
 * RT_E_INVALID: *why is fit for the client, in the arena. RT_E_NOMEM. */
RT_MUST_USE rt_code rt_options_from_json(const json_t *json, rt_arena *arena, rt_subscription *out, rt_str *why);

#endif
