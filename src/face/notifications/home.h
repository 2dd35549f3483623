/* home.h: discovery and the pages for those who watch the server. */
#ifndef RT_FACE_NOTIFICATIONS_HOME_H
#define RT_FACE_NOTIFICATIONS_HOME_H
#include "face/common/api.h"

void rt_home_versions(rt_exchange *x); /* GET / */
void rt_home_v2(rt_exchange *x);       /* GET /v2 */
void rt_home_ping(rt_exchange *x);     /* GET, HEAD /v2/ping */
void rt_home_health(rt_exchange *x);   /* GET /v2/health */

#endif
