/* reply.h: what a plugin says of a run, gathered by the setters of retryd/plugin.h, as the JSON that an HTTP
 * worker would have answered. One thread. */
#ifndef RT_EXECUTOR_PLUGIN_REPLY_H
#define RT_EXECUTOR_PLUGIN_REPLY_H
#include <jansson.h>

#include "base/str.h"
#include "retryd/plugin.h"

enum { RT_REPLY_WRONG_MAX = 160 };

typedef struct rt_reply {
    struct retryd_reply face; /* first: what the plugin has in its hands */
    json_t *json;
    bool decided;                   /* one of the four actions was named */
    char wrong[RT_REPLY_WRONG_MAX]; /* the first rule that was broken, in words; "": none */
} rt_reply;

/* False: out of memory. */
bool rt_reply_init(rt_reply *r, const struct retryd_calls *calls);
void rt_reply_deinit(rt_reply *r);

/* The setters; the others of the table are the host's. */
void rt_reply_fill(struct retryd_calls *calls);

/* Of a run: without a word from the plugin "unavailable". Returns owned text, for free(); NULL: out of
 * memory. */
char *rt_reply_answer(rt_reply *r);
/* Of a validation: {"error": null}, or with why not. */
char *rt_reply_verdict(const rt_reply *r);

#endif
