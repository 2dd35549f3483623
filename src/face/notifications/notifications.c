#include "face/notifications/notifications.h"

#include "face/notifications/claims.h"
#include "face/notifications/errors.h"
#include "face/notifications/home.h"
#include "face/notifications/messages.h"
#include "face/notifications/queues.h"
#include "face/notifications/share.h"
#include "face/notifications/subscriptions.h"

#define QUEUE "/v2/queues/{queue}"
static const rt_route ROUTES[] = {
    {"GET", "/v2", rt_home_v2, 0},
    {"GET", "/v2/ping", rt_home_ping, 0},
    {"HEAD", "/v2/ping", rt_home_ping, 0},
    {"GET", "/v2/health", rt_home_health, 0},

    {"GET", "/v2/queues", rt_queues_list, RT_ON_READER},
    {"GET", QUEUE, rt_queues_get, 0},
    {"PUT", QUEUE, rt_queues_put, 0},
    {"PATCH", QUEUE, rt_queues_patch, 0},
    {"DELETE", QUEUE, rt_queues_delete, 0},
    {"GET", QUEUE "/stats", rt_queues_stats, RT_ON_READER},
    {"POST", QUEUE "/purge", rt_queues_purge, 0},
    {"POST", QUEUE "/share", rt_share_post, 0},

    {"GET", QUEUE "/messages", rt_messages_list, RT_ON_READER},
    {"POST", QUEUE "/messages", rt_messages_post, 0},
    {"DELETE", QUEUE "/messages", rt_messages_delete_or_pop, 0},
    {"GET", QUEUE "/messages/{message}", rt_messages_get, 0},
    {"DELETE", QUEUE "/messages/{message}", rt_messages_delete_one, 0},

    {"POST", QUEUE "/claims", rt_claims_post, 0},
    {"GET", QUEUE "/claims/{claim}", rt_claims_get, 0},
    {"PATCH", QUEUE "/claims/{claim}", rt_claims_patch, 0},
    {"DELETE", QUEUE "/claims/{claim}", rt_claims_delete, 0},

    {"GET", QUEUE "/subscriptions", rt_subscriptions_list, RT_ON_READER},
    {"POST", QUEUE "/subscriptions", rt_subscriptions_post, 0},
    {"GET", QUEUE "/subscriptions/{subscription}", rt_subscriptions_get, 0},
    {"PATCH", QUEUE "/subscriptions/{subscription}", rt_subscriptions_patch, 0},
    {"DELETE", QUEUE "/subscriptions/{subscription}", rt_subscriptions_delete, 0},
    {"PUT", QUEUE "/subscriptions/{subscription}/confirm", rt_subscriptions_confirm, 0},
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
