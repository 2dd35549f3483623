/* signature.h: the webhook-signature header of Standard Webhooks, symmetric scheme "v1".
 * Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
#ifndef RT_EXECUTOR_WEBHOOK_SIGNATURE_H
#define RT_EXECUTOR_WEBHOOK_SIGNATURE_H
#include "base/str.h"

/* Signs, and keeps a bounded number of keys ready, since setting one up costs more than a small body. One
 * thread. */
typedef struct rt_signer rt_signer;

/* Returns an owned signer; free with rt_signer_close. */
RT_MUST_USE rt_code rt_signer_open(rt_signer **out, rt_err *err);
void rt_signer_close(rt_signer *signer); /* NULL is a no-op */

/* Adds "v1," and the base64 of HMAC-SHA256 over "ID.TIMESTAMP.BODY" to `out`. `secret` is base64 behind
 * "whsec_" (the prefix may be missing). False: it is not, or memory ran out; `out` is unchanged. */
RT_MUST_USE bool rt_signer_add(rt_signer *signer, rt_str secret, rt_str id, rt_str timestamp, rt_str body,
                               rt_buf *out);

#endif
