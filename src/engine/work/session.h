/* session.h: a worker's life as the server sees it: a document that ends at its deadline unless a
 * heartbeat comes before.
 *
 * A session is alive while its deadline lies in the future; once over it never lives again, and nothing
 * that it asks for is done. Its work is free again when its end has been noticed, which is at once when
 * somebody names it, and otherwise with the next sweep. */
#ifndef RT_ENGINE_WORK_SESSION_H
#define RT_ENGINE_WORK_SESSION_H
#include "engine/common/name.h"

enum {
    RT_SESSION_INTERVAL_S = 5, /* if a client does not say */
    RT_SESSION_INTERVAL_MAX_S = 3600,
    RT_SESSION_TEXT_MAX = 256, /* component, runtime */
    RT_SESSION_END_SLICE = 64  /* works that one change releases */
};

typedef struct rt_session {
    rt_id id;
    int64_t created_ms;
    uint32_t interval_s;
    bool closed; /* by its owner; work that is left is canceled, not expired */
    rt_str component, runtime;
} rt_session;

rt_str rt_session_encode(rt_arena *arena, const rt_session *s); /* ptr NULL: out of memory */
bool rt_session_decode(rt_str value, rt_session *out);          /* lends strings; false: corrupt */

typedef struct rt_session_create {
    rt_command cmd;
    rt_str tenant, component, runtime;
    uint32_t interval_s;
    rt_id id;            /* out */
    int64_t deadline_ms; /* out */
} rt_session_create;
void rt_session_create_init(rt_session_create *c);

/* RT_E_FENCED: dead or unknown. Its deadline never moves back. */
typedef struct rt_session_beat {
    rt_command cmd;
    rt_str tenant;
    rt_id id;
    int64_t deadline_ms; /* out */
} rt_session_beat;
void rt_session_beat_init(rt_session_beat *c);

/* Ends it and releases its work as canceled. RT_OK also if it is dead or unknown. */
typedef struct rt_session_close {
    rt_command cmd;
    rt_str tenant;
    rt_id id;
} rt_session_close;
void rt_session_close_init(rt_session_close *c);

/* ---- for decisions ------------------------------------------------------------------------------------- */

/* RT_E_FENCED, with words: it is dead or unknown. Guards that it is alive. *deadline_ms may be NULL. */
rt_code rt_session_alive(rt_tx *tx, rt_str tenant, rt_id id, int64_t *deadline_ms);
/* Is it dead? Not guarded. */
rt_code rt_session_is_dead(rt_tx *tx, rt_str tenant, rt_id id, bool *dead);
/* The deadline of `doc` has passed: releases up to RT_SESSION_END_SLICE of its works; the document goes
 * with the last. *left: there is more to release, by another change. */
rt_code rt_session_end(rt_tx *tx, const rt_doc *doc, bool *left);

#endif
