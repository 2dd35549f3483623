/* share.h: pre-signed URLs: made by POST …/share, used by headers instead of a token. */
#ifndef RT_FACE_NOTIFICATIONS_SHARE_H
#define RT_FACE_NOTIFICATIONS_SHARE_H
#include "face/common/api.h"

void rt_share_post(rt_exchange *x);

/* Do the URL-* headers and X-Project-ID of this request carry a signature of ours, for this method and this path or one
 * above it, that has not run out? */
bool rt_share_verify(const rt_exchange *x);

#endif
