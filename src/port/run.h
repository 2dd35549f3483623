/* run.h: what a plugin or an HTTP worker answers when it was asked to run a task of an order. The engine decides by it; how
 * it is written on the wire (JSON) is known to the reader that the engine is given. */
#ifndef RT_PORT_RUN_H
#define RT_PORT_RUN_H
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

enum {
    RT_RUN_STATE_MAX = 64 * 1024,  /* bytes of a plugin's private state */
    RT_RUN_ARGS_MAX = 64 * 1024,   /* bytes of args and of kwargs, as JSON */
    RT_RUN_TASK_MAX = 128,         /* bytes of a task's name */
    RT_RUN_SECRET_MAX = 64 * 1024, /* bytes of one secret */
    RT_RUN_SECRETS_MAX = 3,
    RT_RUN_NAME_MAX = 255,         /* bytes of a secret's role, name and content type, and of a container's name */
    RT_RUN_REF_MAX = 2048,         /* bytes of a reference to what another service keeps */
    RT_RUN_ANSWER_MAX = 512 * 1024 /* bytes of a whole answer */
};

#define RT_RUN_AFTER_MAX_MS INT64_C(315360000000) /* ten years; a later time is taken as this */

typedef enum rt_run_action {
    RT_RUN_DONE,       /* the order is ACTIVE */
    RT_RUN_FAILED,     /* the order is in ERROR: code and reason */
    RT_RUN_RETRY,      /* task with args after after_ms; 0 means now */
    RT_RUN_UNAVAILABLE /* the same again; after_ms, or as the order type's backoff says */
} rt_run_action;

/* What a run made. `role`: "secret" for a single one, or its name in a container ("private_key", "public_key", …). */
typedef struct rt_run_secret {
    rt_str role, name, payload, content_type;
} rt_run_secret;

typedef struct rt_run_answer {
    rt_run_action action;
    int64_t after_ms;          /* RETRY, UNAVAILABLE; -1: not said */
    bool has_task, has_args, has_kwargs, has_state, has_progress; /* false: as it was */
    rt_str task, args, kwargs; /* args: a JSON array, kwargs: a JSON object, as text */
    rt_str state;
    rt_str sub_status, message;/* progress */
    rt_str code, reason;       /* FAILED; code e.g. "400" */
    rt_str secret_ref, container_ref; /* DONE: of another service; empty: none */
    rt_str container_name;
    bool container;            /* the secrets belong into one */
    rt_run_secret secrets[RT_RUN_SECRETS_MAX];
    uint32_t secrets_count;
} rt_run_answer;

/* Reads an answer; strings are in the arena. RT_E_INVALID: nobody understands it, `err` says why; RT_E_NOMEM. Pure. */
typedef rt_code rt_run_read_fn(rt_str text, rt_arena *arena, rt_run_answer *out, rt_err *err);

#endif
