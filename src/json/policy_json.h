/* policy_json.h: delivery policies and work backoffs as they are written in JSON.
 *
 * A delivery policy is the object that Zaqar calls `_retry_policy`:
 *     retries_with_no_delay, minimum_delay_retries, maximum_delay_retries   integers, how many
 *     minimum_delay, maximum_delay                                          integers, seconds
 *     retry_backoff_function          "linear", "arithmetic", "geometric" or "exponential"
 *     ignore_subscription_override    bool
 * beyond the documents:
 *     backoff_retries 1..100, maximum_age (seconds, 0: no limit), attempt_timeout (seconds)
 *     jitter "none", "full", "equal" or "decorrelated"; respect_retry_after, follow_redirects   bools
 *     retry_on   a list of statuses and classes such as [408, "429", "3xx"], at most 16
 *
 * What Zaqar accepts is accepted and what it refuses is refused with its words, its oddities included: a
 * value of the wrong type is refused only when it is truthy, true counts as 1 where an integer is wanted
 * (5.0 does not), an explicit 0 is kept, and keys that are not known are let through. What makes Zaqar
 * answer 500 is refused here: null, "", [] and {} as minimum_delay or maximum_delay; elsewhere they mean
 * that the key was left out. Negative numbers are refused. The options beyond the documents are strict:
 * the right type, or null for left out. */
#ifndef RT_JSON_POLICY_JSON_H
#define RT_JSON_POLICY_JSON_H
#include <jansson.h>

#include "base/str.h"
#include "retryd/policy.h"

/* `json` is the policy: NULL (absent) or anything falsy ({}, null, 0, "", …) means the defaults. Borrows
 * `json`. RT_OK: *out passes rt_delivery_policy_check. RT_E_INVALID: *out untouched, err->msg is fit for
 * the client. */
RT_MUST_USE rt_code rt_policy_from_json(const json_t *json, rt_delivery_policy *out, rt_err *err);

/* The same from text: at most RT_POLICY_JSON_BYTES_MAX bytes (RT_E_TOO_LARGE), RT_JSON_DEPTH_MAX deep. The
 * text may also be a document that holds the policy, {"_retry_policy": {…}}, such as a queue's metadata or a
 * subscription's options. */
RT_MUST_USE rt_code rt_policy_from_text(rt_str text, rt_delivery_policy *out, rt_err *err);

/* {"initial_ms", "maximum_ms", "exponent"}: numbers, fractions allowed; what is left out or null counts as
 * 0, what is negative as the least (see rt_work_backoff). `json` null: *given is false, there is no
 * descriptor, and *out is untouched. RT_E_INVALID: neither is touched, err->msg names field and rule. A "jitter" beside
 * them is left to rt_work_jitter_from_json. */
RT_MUST_USE rt_code rt_work_backoff_from_json(const json_t *json, bool *given, rt_work_backoff *out,
                                              rt_err *err);
/* What is ours in a backoff: "jitter" "none", "full" or "equal"; RT_JITTER_NONE where there is none. */
RT_MUST_USE rt_code rt_work_jitter_from_json(const json_t *json, rt_jitter *out, rt_err *err);
/* Both. */
RT_MUST_USE rt_code rt_work_backoff_from_text(rt_str text, bool *given, rt_work_backoff *out, rt_jitter *jitter,
                                              rt_err *err);
/* The first key of a policy, or of the one in a document, that means nothing and was let through; "" if there is none.
 * `text` was accepted by rt_policy_from_text. Longer keys are cut. */
enum { RT_POLICY_KEY_BYTES = 64 };
void rt_policy_unknown_key(rt_str text, char out[RT_POLICY_KEY_BYTES]);

#endif
