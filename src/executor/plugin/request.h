/* request.h: a run as the child reads it: the JSON that an HTTP worker would be sent, as structs of
 * retryd/plugin.h. */
#ifndef RT_EXECUTOR_PLUGIN_REQUEST_H
#define RT_EXECUTOR_PLUGIN_REQUEST_H
#include <jansson.h>

#include "base/str.h"
#include "retryd/plugin.h"

typedef enum rt_verb { RT_VERB_RUN, RT_VERB_CANCEL, RT_VERB_VALIDATE } rt_verb;

/* Strings of the three structs live as long as it. */
typedef struct rt_request {
    json_t *root;
    char *meta, *args, *kwargs; /* as text */
    rt_verb verb;
    struct retryd_order order;
    struct retryd_task task;
    uint32_t attempt;
    const char *token;
    int64_t deadline_ms;
} rt_request;

/* RT_E_INVALID: not a run, *err says why. deinit in any case. */
RT_MUST_USE rt_code rt_request_init(rt_request *q, rt_str text, rt_err *err);
void rt_request_deinit(rt_request *q);

/* The object behind order->meta or task->kwargs; NULL: `json` is neither. */
const json_t *rt_request_object(const rt_request *q, const char *json);

#endif
