#include "face/notifications/notifications.h"

#include "face/notifications/claims.h"
#include "face/notifications/errors.h"
#include "face/notifications/home.h"
#include "face/notifications/messages.h"
#include "face/notifications/queues.h"
#include "face/notifications/share.h"
#include "face/notifications/subscriptions.h"

/* What queues and topics have in common. Within a path in the order of the alphabet: Zaqar's Allow headers have it. */
#define COLLECTION(root) \
    {"GET", root, rt_queues_list, RT_ON_READER}, \
    {"DELETE", root "/{queue}", rt_queues_delete, 0}, \
    {"GET", root "/{queue}", rt_queues_get, 0}, \
    {"PATCH", root "/{queue}", rt_queues_patch, 0}, \
    {"PUT", root "/{queue}", rt_queues_put, 0}, \
    {"GET", root "/{queue}/stats", rt_queues_stats, RT_ON_READER}, \
    {"POST", root "/{queue}/purge", rt_queues_purge, 0}, \
    {"DELETE", root "/{queue}/messages", rt_messages_delete_or_pop, 0}, \
    {"GET", root "/{queue}/messages", rt_messages_list, RT_ON_READER}, \
    {"POST", root "/{queue}/messages", rt_messages_post, 0}, \
    {"DELETE", root "/{queue}/messages/{message}", rt_messages_delete_one, 0}, \
    {"GET", root "/{queue}/messages/{message}", rt_messages_get, 0}, \
    {"GET", root "/{queue}/subscriptions", rt_subscriptions_list, RT_ON_READER}, \
    {"POST", root "/{queue}/subscriptions", rt_subscriptions_post, 0}, \
    {"DELETE", root "/{queue}/subscriptions/{subscription}", rt_subscriptions_delete, 0}, \
    {"GET", root "/{queue}/subscriptions/{subscription}", rt_subscriptions_get, 0}, \
    {"PATCH", root "/{queue}/subscriptions/{subscription}", rt_subscriptions_patch, 0}, \
    {"PUT", root "/{queue}/subscriptions/{subscription}/confirm", rt_subscriptions_confirm, 0}

static const rt_route ROUTES[] = {
    {"GET", "/v2", rt_home_v2, 0},
    {"GET", "/v2/ping", rt_home_ping, 0},
    {"HEAD", "/v2/ping", rt_home_ping, 0},
    {"GET", "/v2/health", rt_home_health, 0},

    COLLECTION("/v2/queues"),
    {"POST", "/v2/queues/{queue}/share", rt_share_post, 0},
    {"POST", "/v2/queues/{queue}/claims", rt_claims_post, 0},
    {"DELETE", "/v2/queues/{queue}/claims/{claim}", rt_claims_delete, 0},
    {"GET", "/v2/queues/{queue}/claims/{claim}", rt_claims_get, 0},
    {"PATCH", "/v2/queues/{queue}/claims/{claim}", rt_claims_patch, 0},

    COLLECTION("/v2/topics"),
};

static const rt_route ROOT_ROUTES[] = {{"GET", "/", rt_home_versions, 0}};

const rt_face *rt_face_notifications(rt_api *api) {
    static rt_face face = {
        .prefix = "/v2",
        .routes = ROUTES,
        .routes_count = sizeof ROUTES / sizeof *ROUTES,
        .not_found = rt_zaqar_no_such_page,
        .not_allowed = rt_zaqar_not_allowed,
        .refuse = rt_zaqar_refuse_early,
    };
    face.app = api;
    return &face;
}

const rt_face *rt_face_root(rt_api *api) {
    static rt_face face = {
        .prefix = "",
        .routes = ROOT_ROUTES,
        .routes_count = sizeof ROOT_ROUTES / sizeof *ROOT_ROUTES,
        .not_found = rt_zaqar_no_such_page,
        .not_allowed = rt_zaqar_not_allowed,
        .refuse = rt_zaqar_refuse_early,
    };
    face.app = api;
    return &face;
}
