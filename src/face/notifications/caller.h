/* caller.h: who asks, for which queue or topic, and the checks that come before every request's own. */
#ifndef RT_FACE_NOTIFICATIONS_CALLER_H
#define RT_FACE_NOTIFICATIONS_CALLER_H
#include "engine/messages/message_read.h"
#include "face/notifications/about.h"
#include "face/notifications/errors.h"

enum { RT_CLIENT_ID_LEN = 32 };

typedef struct rt_caller {
    rt_str project;
    rt_str queue;         /* the route's first placeholder, a topic's with its mark; empty where it has none */
    uint64_t client_hash; /* of the Client-ID's canonical form: the echo filter */
} rt_caller;

/* The checks in Zaqar's order: pre-signed URL, token, Content-Type, Accept, Client-ID, X-Project-ID, queue name.
 * False: it has replied. `with_queue`: the route's first placeholder is a queue or a topic. */
bool rt_caller_admit(rt_exchange *x, bool with_queue, rt_caller *out);

/* Its parts, for the pages that want no project and for tests. */
bool rt_accept_admits_json(rt_str accept);
/* Python's uuid.UUID(text): 32 hex digits; dashes anywhere, braces and "urn:uuid:" allowed. Lower case, no NUL. */
bool rt_client_id_parse(rt_str text, char out[RT_CLIENT_ID_LEN]);
/* Replies 406 and returns false when the client takes no JSON. */
bool rt_caller_takes_json(rt_exchange *x);

#endif
