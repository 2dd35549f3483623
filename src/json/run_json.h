/* run_json.h: what a run of an order's task answers, as HTTP workers and plugins write it:
 *
 *     {"action": "done" | "failed" | "retry" | "unavailable",
 *      "after_ms": 5000,                                          retry, unavailable
 *      "task": "check", "args": [], "kwargs": {},                 retry; left out: as they were
 *      "code": "400", "reason": "…",                              failed
 *      "state": "…", "sub_status": "…", "message": "…",           with any action
 *      "secret": {"payload" | "payload_base64": "…", "content_type": "…", "name": "…"},          done
 *      "container": {"name": "…", "secrets": {ROLE: {as above}}},                                done
 *      "secret_ref": "…", "container_ref": "…"}                                                  done
 *
 * A container may be empty, and has RT_RUN_SECRETS_MAX secrets at most. Without a content_type a payload is text/plain, a
 * payload_base64 application/octet-stream. null is as if it were not there; members that are not known, or
 * belong to another action, do not count. */
#ifndef RT_JSON_RUN_JSON_H
#define RT_JSON_RUN_JSON_H
#include "port/run.h"

/* An rt_run_read_fn. The message of RT_E_INVALID names the member and the rule. */
rt_code rt_run_from_text(rt_str text, rt_arena *arena, rt_run_answer *out, rt_err *err);

#endif
