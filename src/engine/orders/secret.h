/* secret.h: what orders made and retryd keeps: a secret, or a container that names several. */
#ifndef RT_ENGINE_ORDERS_SECRET_H
#define RT_ENGINE_ORDERS_SECRET_H
#include "engine/orders/order.h"

/* A container has members (it may be empty) and no content type; a secret has a payload and no members. */
typedef struct rt_secret {
    rt_id id, order;
    int64_t created_ms;
    rt_str name, content_type, payload;
    uint32_t members_count;
    struct { rt_str role; rt_id secret; } members[RT_RUN_SECRETS_MAX];
} rt_secret;

rt_str rt_secret_encode(rt_arena *arena, const rt_secret *s); /* ptr NULL: out of memory */
bool rt_secret_decode(rt_str value, rt_secret *out);          /* lends; false: corrupt */

/* For decisions: keeps what a run made and names it in the order. */
rt_code rt_secrets_keep(rt_tx *tx, rt_str tenant, rt_order *o, const rt_run_answer *answer);
/* Removes what the order made. */
rt_code rt_secrets_drop(rt_tx *tx, rt_str tenant, const rt_order *o);

#endif
