/* client.h: what clients keep of their own, and the requests that they send. Shared by client*.c only. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H
#include "engine/messages/claim.h"
#include "engine/messages/message.h"
#include "engine/messages/subscription.h"
#include "engine/queues/dead.h"
#include "engine/messages/message_queue.h"
#include "engine/queues/queue.h"
#include "world.h"

typedef struct request request;
struct request {
    union {
        rt_command cmd; /* first in each of them */
        rt_post post;
        rt_message_delete message_delete;
        rt_messages_delete messages_delete;
        rt_pop pop;
        rt_claim_create claim;
        rt_claim_renew renew;
        rt_claim_release release;
        rt_subscription_create subscribe;
        rt_subscription_patch patch;
        rt_subscription_confirm confirm;
        rt_subscription_delete unsubscribe;
        rt_queue_create create;
        rt_queue_replace replace;
        rt_queue_delete remove;
        rt_queue_purge purge;
        rt_queue_pause pause;
        rt_dead_redrive redrive;
        rt_job_delete job_delete;
        rt_dead_many many;
    } as;
    world *world;
    void (*answered)(request *r, promise p);
    rt_arena arena; /* for all that the command points to, and for its results */
    uint32_t node;
    uint64_t life;
    uint32_t number; /* of the post, subscriber or wipe that it is about */
    uint32_t queue;
    instant sent;
};

typedef struct claim {
    rt_id id;
    uint32_t queue;
    rt_id messages[RT_LEASE_JOBS_MAX];
    uint32_t count;
    bool release_asked;
} claim;
enum { CLAIMS_MAX = 64 };

struct client {
    claim claims[CLAIMS_MAX];    /* the last ones */
    uint32_t claims_count;       /* ever */
    uint32_t waiting[NODES_MAX]; /* requests without an answer, by node */
};

extern const rt_str CLIENT_TENANT;
rt_str client_queue_name(uint32_t queue);
/* A request to a node that is up; NULL: there is none. */
request *client_request(world *w);
void client_drop(request *r); /* of one that was not sent */
/* Hands it over. `init` has been called on its command. */
void client_send(request *r, void (*answered)(request *r, promise p));
void client_answered_nothing(request *r, promise p);
/* A policy that the rules allow. */
rt_delivery_policy client_policy(world *w);
/* The claim with this id that clients know of; NULL: none. */
claim *client_claim(world *w, rt_id id);
/* A queue's metadata as it is on the disk; false: there is no such queue. In the request's arena. */
bool client_metadata(request *r, uint32_t queue, rt_metadata *out, uint64_t *version);

/* Each sends one request of its kind, or nothing when there is nothing to ask for. */
void client_post(world *w);
void client_take(world *w);   /* claim */
void client_hold(world *w);   /* renew or release a claim */
void client_delete(world *w); /* one message or several */
void client_pop(world *w);
void client_subscribe(world *w);
void client_change_subscription(world *w);
void client_unsubscribe(world *w);
void client_change_queue(world *w); /* create, new metadata */
void client_wipe(world *w);         /* delete or purge a queue */
void client_pause(world *w);
void client_read(world *w); /* looks at a view, at once */
void client_bury(world *w); /* redrive or delete dead jobs */

#endif
