/* renew.h: leases in the store of attempts that are still under way, written anew before they end. Many in one change. */
#ifndef RT_ENGINE_COMMON_RENEW_H
#define RT_ENGINE_COMMON_RENEW_H
#include "engine/common/command.h"

enum {
    RT_LEASE_MS = 8000,       /* a lease runs this long: so soon is a job of a node that died free again … */
    RT_LEASE_RENEW_MS = 4000, /* … and is renewed this long before its end */
    RT_RENEW_MAX = 64
};

typedef struct rt_renewal {
    rt_command cmd;
    uint32_t count;
    struct {
        rt_id job;
        uint64_t token;
        int64_t until_ms; /* the attempt is over by then */
        int64_t lease_until_ms; /* out; 0: the lease is lost */
    } of[RT_RENEW_MAX];
} rt_renewal;
void rt_renewal_init(rt_renewal *r);

/* The end of a lease that is written now, for an attempt that is over at `until_ms`. */
int64_t rt_lease_until_ms(int64_t now_ms, int64_t until_ms);

#endif
