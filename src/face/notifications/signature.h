/* signature.h: the signature of pre-signed URLs, and the key that makes it. */
#ifndef RT_FACE_NOTIFICATIONS_SIGNATURE_H
#define RT_FACE_NOTIFICATIONS_SIGNATURE_H
#include "face/common/api.h"
#include "face/common/timestamp.h"

enum { RT_SIGNATURE_LEN = 64, RT_SIGNED_LIST_MAX = 16, RT_SIGNING_KEY_LEN = 64 };

typedef struct rt_signature {
    char s[RT_SIGNATURE_LEN + 1]; /* lower-case hex, NUL-terminated */
} rt_signature;

/* What a signature is for. Sorted, as they are signed. */
typedef struct rt_signed_url {
    rt_str paths[RT_SIGNED_LIST_MAX];
    size_t paths_count;
    rt_str methods[RT_SIGNED_LIST_MAX];
    size_t methods_count;
    rt_str project;
    rt_timestamp expires;
} rt_signed_url;

/* HMAC-SHA256 over paths, methods, project and expiry, as Zaqar's clients and servers compute it. Sorts the lists of `url`.
 * RT_E_NOMEM. */
RT_MUST_USE rt_code rt_signature_make(rt_str key, rt_signed_url *url, rt_signature *out);

/* Do the URL-* headers and X-Project-ID of this request carry a signature of ours, for this method and this path or one
 * above it, that has not run out? */
bool rt_signature_admits(const rt_exchange *x);

/* The server's signing key, kept in the store: read, or made and stored at the first start. Waits for the engine, so it must
 * be running; not for the engine's own thread. `out` is NUL-terminated hex. */
RT_MUST_USE rt_code rt_signing_key_load(const rt_api *api, char out[RT_SIGNING_KEY_LEN + 1], rt_err *err);

#endif
