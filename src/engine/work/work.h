/* work.h: a session works on one (entity, process) at a time: claim, then finish, fail or cancel; and the
 * backoff between.
 *
 * Work is held by its session and fenced by its token. A backoff is there only while the last outcome was
 * a failure: made or grown by fail, left alone by cancel and by the end of a session, removed by finish,
 * all in the change that ends the work. How work ended is kept for RT_WORK_END_KEPT_MS, so that a request
 * whose answer was lost gets the same answer again. */
#ifndef RT_ENGINE_WORK_WORK_H
#define RT_ENGINE_WORK_WORK_H
#include "engine/common/waiting.h"
#include "engine/work/entity.h"
#include "engine/work/history.h"
#include "engine/work/process.h"
#include "engine/work/session.h"

enum {
    RT_CLAIM_CANDIDATES_MAX = RT_WAIT_TOPICS_MAX,
    RT_CLAIM_LOOKS_MAX = 4096, /* free entities that a claim by kind looks at: others may exclude them */
    RT_CLAIM_KEY_MAX = 64,
    RT_WORK_END_KEPT_MS = 3600 * 1000
};

typedef struct rt_work {
    rt_id id, session;
    uint64_t token;
    rt_str entity, process;
    int64_t started_ms;
    uint64_t previous_s; /* interval of the backoff before it; 0: none */
    /* Of work that has ended. */
    rt_event_type end; /* FINISHED, FAILED, CANCELED or EXPIRED; NONE: it goes on */
    int64_t ended_ms;
    int64_t until_ms;    /* FAILED: rests until */
    uint64_t interval_s; /* FAILED */
} rt_work;

/* Why a command got RT_E_FENCED. */
typedef enum rt_work_refusal {
    RT_WORK_DEAD,     /* the session is dead or unknown */
    RT_WORK_NOT_HELD, /* the token does not hold this work (any more) */
    RT_WORK_BUSY      /* strict claim: the candidate is worked on or rests */
} rt_work_refusal;

/* A claim by kind takes what became free first; one by candidates the first of them that is free, which
 * need not be known before. count 0: nothing to do. RT_E_ABSENT: the process is not registered.
 * RT_E_FENCED: see `refusal`. */
typedef struct rt_work_claim {
    rt_command cmd;
    rt_str tenant, process, kind;
    rt_id session;
    const rt_str *candidates; /* NULL: by kind */
    uint32_t candidates_count;
    bool ignore_backoff, strict; /* strict: the first candidate or none */
    rt_str key; /* a repeated claim of this session with the same key gets the same answer; empty: none */
    int64_t wait_until_ms;   /* 0: not at all */
    rt_arena *arena;         /* the caller's, for what is found */
    rt_work work;            /* out, if found */
    rt_str value;            /* out: of the entity */
    bool found;              /* out */
    rt_work_refusal refusal; /* out, with RT_E_FENCED */
    rt_wait wait;            /* the engine's */
    uint64_t topics[RT_CLAIM_CANDIDATES_MAX];
} rt_work_claim;
void rt_work_claim_init(rt_work_claim *c);

/* Finish, fail or cancel. Repeated by the same holder: the same answer, and nothing changes. A cancel of
 * work that is over in whatever way is fine. RT_E_FENCED: see `refusal`. RT_E_INVALID: the patch does not
 * fit. */
typedef struct rt_work_end {
    rt_command cmd;
    rt_str tenant;
    rt_id id, session;
    uint64_t token;
    rt_event_type verb; /* FINISHED, FAILED or CANCELED */
    rt_str cause;       /* FAILED; CANCELED: may be empty */
    bool own_backoff;   /* FAILED: `backoff` counts, not the process's */
    rt_backoff backoff;
    /* FINISHED: the entity's value as it becomes, from what it is; pure, in the arena. NULL: it stays. */
    rt_code (*patch)(void *ctx, rt_arena *arena, rt_str value, rt_str *out, rt_err *err);
    void *patch_ctx;
    /* FINISHED: wanted from now on, besides those that are; its own process too, if it is among them. */
    const rt_str *processes;
    uint32_t processes_count;
    rt_arena *arena; /* the caller's */
    rt_work work;    /* out: as it ended */
    rt_work_refusal refusal;
} rt_work_end;
void rt_work_end_init(rt_work_end *c);

/* ---- backoffs ------------------------------------------------------------------------------------------ */

typedef struct rt_rest {
    int64_t until_ms, failed_ms;
    uint64_t interval_s; /* the last one, without jitter */
    uint32_t failures;   /* since it last finished */
    rt_str cause;
} rt_rest;

/* "Retry now". RT_OK also if there is none. */
typedef struct rt_backoff_clear {
    rt_command cmd;
    rt_str tenant, entity, process;
} rt_backoff_clear;
void rt_backoff_clear_init(rt_backoff_clear *c);

/* ---- stored forms; encode: ptr NULL: out of memory; decode lends strings; false: corrupt --------------- */
rt_str rt_work_encode(rt_arena *arena, const rt_work *w);
bool rt_work_decode(rt_str value, rt_work *out);
rt_str rt_rest_encode(rt_arena *arena, const rt_rest *r);
bool rt_rest_decode(rt_str value, rt_rest *out);

/* ---- for decisions ------------------------------------------------------------------------------------- */

/* `doc` is work of a session that is over: ends it. *released false: not in this change, ask again in the
 * next. */
rt_code rt_work_release(rt_tx *tx, rt_str tenant, const rt_doc *doc, rt_event_type how, rt_str cause,
                        bool *released);
/* Ends the work on `slot` if its session is dead; the entity is the caller's to save. */
rt_code rt_work_drop_dead(rt_tx *tx, rt_entity *e, rt_slot *slot);
/* Removes the backoff of `slot`, if any. */
rt_code rt_backoff_remove(rt_tx *tx, rt_entity *e, rt_slot *slot);

#endif
