/* retryd/plugin.h: what a plugin is to retryd: a shared object that advances orders of a type.
 *
 *     #include <retryd/plugin.h>
 *
 *     static void run(struct retryd_ctx *ctx, const struct retryd_task *task, const struct retryd_order *order,
 *                     struct retryd_reply *reply) {
 *         retryd_reply_done(reply);
 *     }
 *     static const struct retryd_plugin plugin = {
 *         .abi = RETRYD_PLUGIN_ABI, .size = sizeof plugin, .name = "hello", .run = run};
 *     RETRYD_PLUGIN(plugin)
 *
 *     cc -shared -fPIC -o hello.so hello.c
 *
 * Put hello.so into the directory of plugins (setting plugins.directory) and let an order type have the
 * target {"plugin": "hello"}. See docs/plugins.md and examples/plugin.
 *
 * What a plugin may rely on
 *   - Nothing is linked: all calls go through tables that retryd hands over, by the inline functions below.
 *     C++ works too.
 *   - It runs in a process of its own kind, apart from the server; several processes may run the same plugin.
 *     In one process there is one call at a time, always on the same thread: statics need no locks, and no
 *     other process sees them. Keep nothing there that must last: the state of an order (retryd_reply_state)
 *     is the place for that.
 *   - A call that crashes, exits, or takes longer than its deadline costs an attempt: its process is killed,
 *     with all that it has started, and the task is run again. So a task must bear being run twice; `token`
 *     tells the runs apart.
 *   - Standard output and standard error go to the log of the server, line by line (bounded).
 *
 * Memory: nothing that one side has allocated is freed by the other. What retryd hands over is lent for the
 * call, and what the setters are given is copied. Strings end in NUL and are UTF-8.
 *
 * Versions: RETRYD_PLUGIN_ABI changes only when what stands here changes its meaning. Fields and functions
 * are only ever added at the end of a struct, and each struct says its size: retryd reads what lies within a
 * plugin's `size`, and a plugin that uses something added later compares the `size` of what it was handed. */
#ifndef RETRYD_PLUGIN_H
#define RETRYD_PLUGIN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RETRYD_PLUGIN_ABI 1u

enum {
    RETRYD_STATE_MAX = 64 * 1024,  /* bytes of an order's state */
    RETRYD_ARGS_MAX = 64 * 1024,   /* bytes of args and of kwargs, as JSON */
    RETRYD_TASK_MAX = 128,         /* bytes of a task's name */
    RETRYD_SECRET_MAX = 64 * 1024, /* bytes of one secret */
    RETRYD_SECRETS_MAX = 3,        /* of one reply */
    RETRYD_LOG_LINE_MAX = 512      /* bytes; longer lines are cut */
};

/* ---- what a call is handed ----------------------------------------------------------------------------- */

/* The order as it is now. */
struct retryd_order {
    uint32_t size; /* of this struct */
    const char *id;
    const char *type;
    const char *meta;  /* JSON object: what the client ordered */
    const char *state; /* as the last reply left it; NULL: none yet */
};

/* What is to be done. The first task of an order is the one that its type names ("create_order" unless it
 * says otherwise); the others are those that the plugin asked for. */
struct retryd_task {
    uint32_t size;
    const char *name;
    const char *args;   /* JSON array */
    const char *kwargs; /* JSON object */
};

/* About the call itself. */
struct retryd_ctx {
    uint32_t size;
    uint32_t attempt;    /* 1: this task's first */
    const char *token;   /* of this attempt alone: for services that can refuse who comes late */
    int64_t deadline_ms; /* Unix time; the process is killed then */
    void *data;          /* the plugin's own: NULL at first; what is set stays while the process lives */
    const struct retryd_calls *calls; /* see the functions below */
};

/* What a run has to say; retryd's own. */
struct retryd_reply {
    const struct retryd_calls *calls;
};

/* Something that a run made and retryd keeps. */
struct retryd_secret {
    uint32_t size;            /* of this struct */
    const char *name;         /* NULL: none */
    const char *content_type; /* "application/octet-stream", … */
    const void *payload;
    size_t payload_len; /* at most RETRYD_SECRET_MAX */
};

/* ---- the plugin ---------------------------------------------------------------------------------------- */

struct retryd_plugin {
    uint32_t abi;     /* RETRYD_PLUGIN_ABI */
    uint32_t size;    /* sizeof(struct retryd_plugin) */
    const char *name; /* for people */

    /* Called once in a new process, before anything else. Returns NULL, or why it cannot work, in words.
     * `ctx` has no attempt, token or deadline; settings can be read (retryd_setting). May be NULL. */
    const char *(*init)(struct retryd_ctx *ctx);

    /* Called once before the process ends in peace. May be NULL. */
    void (*shutdown)(struct retryd_ctx *ctx);

    /* Looks at an order before each run of it. Refuses it with retryd_reply_failed, as a run would; without a
     * reply the order is fine. Must be quick and without effects. May be NULL. */
    void (*validate)(struct retryd_ctx *ctx, const struct retryd_order *order, struct retryd_reply *reply);

    /* Does the task, and says with one of retryd_reply_done, _failed, _retry, _unavailable what came of it;
     * if with several, the last one counts. To return without a reply is the same as "unavailable". */
    void (*run)(struct retryd_ctx *ctx, const struct retryd_task *task, const struct retryd_order *order,
                struct retryd_reply *reply);

    /* An order that was not finished has been deleted: called for types that ask for it. Its reply does not
     * count, but "unavailable" has it called again. May be NULL. */
    void (*cancel)(struct retryd_ctx *ctx, const struct retryd_order *order, struct retryd_reply *reply);
};

#if defined(__GNUC__)
#define RETRYD_EXPORT __attribute__((visibility("default")))
#else
#define RETRYD_EXPORT
#endif

/* The one symbol of a plugin, and its body. */
RETRYD_EXPORT const struct retryd_plugin *retryd_plugin_v1(void);
#define RETRYD_PLUGIN(plugin) const struct retryd_plugin *retryd_plugin_v1(void) { return &(plugin); }

/* ---- what a plugin may call ---------------------------------------------------------------------------- */

/* Use the functions below instead. */
struct retryd_calls {
    uint32_t size;
    const char *(*setting)(const struct retryd_ctx *ctx, const char *key);
    bool (*cancelled)(const struct retryd_ctx *ctx);
    void (*log)(const struct retryd_ctx *ctx, const char *text);
    const char *(*text)(const struct retryd_ctx *ctx, const char *json, const char *name);
    bool (*integer)(const struct retryd_ctx *ctx, const char *json, const char *name, int64_t *out);
    bool (*done)(struct retryd_reply *reply);
    bool (*failed)(struct retryd_reply *reply, unsigned code, const char *reason);
    bool (*retry)(struct retryd_reply *reply, int64_t after_ms, const char *task, const char *args,
                  const char *kwargs);
    bool (*unavailable)(struct retryd_reply *reply, int64_t after_ms);
    bool (*state)(struct retryd_reply *reply, const char *state);
    bool (*progress)(struct retryd_reply *reply, const char *sub_status, const char *message);
    bool (*secret)(struct retryd_reply *reply, const struct retryd_secret *secret);
    bool (*container)(struct retryd_reply *reply, const char *name);
    bool (*member)(struct retryd_reply *reply, const char *role, const struct retryd_secret *secret);
    bool (*refs)(struct retryd_reply *reply, const char *secret_ref, const char *container_ref);
};

/* A setting of the section that is named after the plugin's file: [simple_certificate] for
 * simple_certificate.so; of plugins that retryd does not know, [plugin.NAME]. Lent for the life of the
 * process. NULL: not set. */
static inline const char *retryd_setting(const struct retryd_ctx *ctx, const char *key) {
    return ctx->calls->setting(ctx, key);
}

/* Is it time to give up? True past the deadline, and when the server is stopping. For loops and waits of a
 * plugin; return with or without a reply. */
static inline bool retryd_cancelled(const struct retryd_ctx *ctx) { return ctx->calls->cancelled(ctx); }

/* One line for the log of the server. No secrets. */
static inline void retryd_log(const struct retryd_ctx *ctx, const char *text) { ctx->calls->log(ctx, text); }

/* Members of a JSON object that the call was handed: order->meta or task->kwargs, for plugins that want no
 * library for that. Text is lent for the call; NULL, or false: there is no such member, or it is no string
 * (or one with a NUL in it), no integer. */
static inline const char *retryd_text(const struct retryd_ctx *ctx, const char *json, const char *name) {
    return ctx->calls->text(ctx, json, name);
}
static inline bool retryd_integer(const struct retryd_ctx *ctx, const char *json, const char *name,
                                  int64_t *out) {
    return ctx->calls->integer(ctx, json, name, out);
}

/* ---- replies --------------------------------------------------------------------------------------------- */

/* All return false when they were handed what breaks a rule: too long, not UTF-8, not JSON, out of memory. The
 * whole reply is then nonsense, and the attempt has failed; there is no need to look at the result. */

/* The order is ACTIVE. */
static inline bool retryd_reply_done(struct retryd_reply *reply) { return reply->calls->done(reply); }

/* The order is in ERROR, for good. `code` is like a status of HTTP: 400 for what the client should change.
 * The reason is shown to the client; at most 255 characters of it. */
static inline bool retryd_reply_failed(struct retryd_reply *reply, unsigned code, const char *reason) {
    return reply->calls->failed(reply, code, reason);
}

/* Again, not before `after_ms` >= 0 from now (0: at once): `task` with `args` (JSON array) and `kwargs` (JSON
 * object). NULL: as they are. The order stays PENDING. */
static inline bool retryd_reply_retry(struct retryd_reply *reply, int64_t after_ms, const char *task,
                                      const char *args, const char *kwargs) {
    return reply->calls->retry(reply, after_ms, task, args, kwargs);
}

/* It cannot be done now: the same again after `after_ms`, or, if that is below 0, after the backoff of the
 * order's type. */
static inline bool retryd_reply_unavailable(struct retryd_reply *reply, int64_t after_ms) {
    return reply->calls->unavailable(reply, after_ms);
}

/* Sets the order's state, in the same transaction as all else that the reply says. Opaque to retryd; ""
 * clears it. */
static inline bool retryd_reply_state(struct retryd_reply *reply, const char *state) {
    return reply->calls->state(reply, state);
}

/* What clients see of an order under way: a word (36 characters) and a sentence (255). Longer ones are cut. */
static inline bool retryd_reply_progress(struct retryd_reply *reply, const char *sub_status,
                                         const char *message) {
    return reply->calls->progress(reply, sub_status, message);
}

/* With "done": the order made one secret. */
static inline bool retryd_reply_secret(struct retryd_reply *reply, const struct retryd_secret *secret) {
    return reply->calls->secret(reply, secret);
}

/* With "done": it made a container (name NULL: none), and its members one by one: role "private_key",
 * "public_key", … */
static inline bool retryd_reply_container(struct retryd_reply *reply, const char *name) {
    return reply->calls->container(reply, name);
}
static inline bool retryd_reply_member(struct retryd_reply *reply, const char *role,
                                       const struct retryd_secret *secret) {
    return reply->calls->member(reply, role, secret);
}

/* With "done": what it made is kept by another service, under these references. NULL: none. */
static inline bool retryd_reply_refs(struct retryd_reply *reply, const char *secret_ref,
                                     const char *container_ref) {
    return reply->calls->refs(reply, secret_ref, container_ref);
}

#ifdef __cplusplus
}
#endif
#endif
