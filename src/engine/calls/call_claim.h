/* call_claim.h: workers fetch calls: claim with a wait, then finish, fail, release or extend, each fenced by its
 * token. A lease that runs out counts as a failed attempt and follows the policy, so a call that kills its
 * workers dies in the end. */
#ifndef RT_ENGINE_CALLS_CALL_CLAIM_H
#define RT_ENGINE_CALLS_CALL_CLAIM_H
#include "engine/calls/call.h"
#include "engine/common/waiting.h"

typedef struct rt_claimed_call {
    rt_job job;
    rt_call call;      /* strings in the claim's arena */
    uint64_t token;
    int64_t until_ms;
} rt_claimed_call;

/* Takes up to `limit` calls that may be tried now, oldest first; circuit, pace, rate and concurrency of the type hold for
 * workers too. count 0: nothing. RT_E_ABSENT: no such type; RT_E_INVALID: its calls are pushed. */
typedef struct rt_call_claim {
    rt_command cmd;
    rt_str tenant, type;
    rt_str worker;       /* its name, kept in the history; may be empty */
    uint32_t limit;      /* 1..RT_LEASE_JOBS_MAX */
    uint32_t lease_s;    /* 1..RT_CALL_LEASE_S_MAX */
    int64_t wait_until_ms; /* 0: not at all */
    rt_arena *arena;     /* the caller's */
    rt_claimed_call calls[RT_LEASE_JOBS_MAX]; /* out */
    uint32_t count;      /* out */
    rt_wait wait;        /* the engine's */
    uint64_t topics[1];
} rt_call_claim;
void rt_call_claim_init(rt_call_claim *c);
/* Makes of a claim that is done a command that releases what it got: whoever asked is gone. */
void rt_call_claim_give_back(rt_call_claim *c);

typedef enum rt_call_verb { RT_CALL_FINISH, RT_CALL_FAIL, RT_CALL_RELEASE, RT_CALL_EXTEND } rt_call_verb;
/* RT_E_ABSENT: no such call; RT_E_FENCED: the token does not hold it (any more). A repeated finish, fail or release of
 * the same holder gets the same answer. FAIL: `error` goes into the history; `give_up`: no further attempt, to the
 * dead letters; retry_after_ms >= 0: not before, as Retry-After. RELEASE: free again, and no attempt was made. */
typedef struct rt_call_end {
    rt_command cmd;
    rt_str tenant;
    rt_id id;
    uint64_t token;
    rt_call_verb verb;
    uint32_t lease_s;       /* EXTEND */
    rt_str error;           /* FAIL */
    bool give_up;           /* FAIL */
    int64_t retry_after_ms; /* FAIL; -1: none */
    int64_t until_ms;       /* out, EXTEND: the lease's new end; FAIL: when it is tried again, 0: it is dead */
} rt_call_end;
void rt_call_end_init(rt_call_end *c);

enum { RT_CALL_ENDS_MAX = 100 };
/* Many of them in one change. Each has its own verdict in its cmd.code: RT_OK, RT_E_ABSENT or RT_E_FENCED; those that are
 * refused change nothing, and the others do not mind. The command's own code is RT_OK, or why none of them counts. Who comes
 * twice with the same token gets the same verdict twice. */
typedef struct rt_call_ends {
    rt_command cmd;
    rt_call_end *ends; /* as after rt_call_end_init; the caller's */
    uint32_t count;    /* 1..RT_CALL_ENDS_MAX */
} rt_call_ends;
void rt_call_ends_init(rt_call_ends *c);

/* For decisions: the lease of a call ran out, so an attempt was lost, and it is removed. *left: this change has moved the
 * call's line already: nothing was done, the next change goes on with it. */
rt_code rt_call_lease_end(rt_tx *tx, const rt_job *job, const rt_lease *lease, bool *left);

#endif
