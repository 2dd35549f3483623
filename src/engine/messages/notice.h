/* notice.h: what a subscriber is sent for one message. Pure text: the message's body goes in as it came, unparsed. */
#ifndef RT_ENGINE_MESSAGES_NOTICE_H
#define RT_ENGINE_MESSAGES_NOTICE_H
#include "engine/messages/subscription.h"

/* Adds to `out`, as Zaqar writes it,
 *     {"ttl": 300, "body": BODY, "Message_Type": "Notification", "queue_name": "q"}
 * with `"delay": N` behind the body where the message was delayed. A webhook's post_data, if it has one, is sent instead,
 * with each "$zaqar_message$" (its double quotes included) replaced by that object.
 * `body` is valid JSON text. Out of memory: out->failed. */
void rt_notice_write(rt_buf *out, const rt_job *delivery, rt_str body, const rt_subscription *s);

#endif
