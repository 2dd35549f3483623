/* notifications.h: the face that speaks OpenStack Zaqar's v2 API. */
#ifndef RT_FACE_NOTIFICATIONS_NOTIFICATIONS_H
#define RT_FACE_NOTIFICATIONS_NOTIFICATIONS_H
#include "face/common/api.h"

/* Both live as long as the program; they use `api`, which must live as long. */
const rt_face *rt_face_notifications(rt_api *api); /* /v2 */
const rt_face *rt_face_root(rt_api *api);          /* "/", and what no other face answers for: list it last */

#endif
