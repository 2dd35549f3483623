/* webhook_rig.h: a running executor for tests, with its outcomes gathered. */
#ifndef TEST_WEBHOOK_RIG_H
#define TEST_WEBHOOK_RIG_H
#include <pthread.h>

#include "executor/webhook/webhook.h"

enum { RIG_OUTCOMES_MAX = 4096 };

typedef struct rig {
    rt_webhook *webhook;
    rt_executor executor;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t more;
    uint32_t count;
    rt_outcome outcomes[RIG_OUTCOMES_MAX];
} rig;

/* `cfg` needs neither callbacks nor limits; `allow` is the setting. */
rig *rig_open(rt_webhook_config cfg, const char *allow);
/* An attempt with an id, a body and a timeout of 5 s; change what matters. */
rt_attempt rig_attempt(const char *url);
void rig_start(rig *r, const rt_attempt *like);
/* Waits until `count` outcomes have come in all; fails the test after 20 s. */
void rig_wait(rig *r, uint32_t count);
/* Starts one and returns its outcome. */
rt_outcome rig_try(rig *r, const rt_attempt *like);
rt_outcome rig_get(rig *r, const char *url);
void rig_close(rig *r);

#endif
