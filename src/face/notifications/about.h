/* about.h: what a request is about, by its path: queues, or topics, whose pages are those of queues under another path. */
#ifndef RT_FACE_NOTIFICATIONS_ABOUT_H
#define RT_FACE_NOTIFICATIONS_ABOUT_H
#include "http/exchange.h"

bool rt_about_topics(const rt_exchange *x);
/* "/v2/queues/q" or "/v2/topics/t": what hrefs begin with. Of a request that was admitted; lent from its path. */
rt_str rt_about_path(const rt_exchange *x);

#endif
