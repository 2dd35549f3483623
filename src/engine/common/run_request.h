/* run_request.h: what a plugin or worker is sent when it is to run a task of an order, or to make a call. Pure text.
 *
 *     {"order":"UUID","type":"key","task":"create_order","args":[],"kwargs":{},"meta":{},"state":null,
 *      "attempt":1,"token":"16 hex digits","deadline":UNIX_MS,"project":"p","verb":"run"}
 *
 * state: a string, or null before there is any. verb "cancel": the order, with the task that was its next,
 * was deleted. */
#ifndef RT_ENGINE_COMMON_RUN_REQUEST_H
#define RT_ENGINE_COMMON_RUN_REQUEST_H
#include "base/id.h"
#include "base/str.h"

typedef struct rt_run_request {
    rt_id id;     /* of the order or the call */
    uint32_t tag; /* of the store */
    rt_str project, type, task;
    rt_str args, kwargs, meta; /* JSON as text */
    rt_str state;              /* empty: there is none */
    uint32_t attempt;
    uint64_t token;
    int64_t deadline_ms;
    bool cancel;
} rt_run_request;

/* Out of memory: out->failed. */
void rt_run_request_write(rt_buf *out, const rt_run_request *run);

#endif
