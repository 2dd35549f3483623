/* Whatever parses as the answer of a run keeps within all bounds that stores and faces rely on, and has no more than
 * belongs to its action. */
#include <stddef.h>
#include <stdint.h>

#include "base/utf8.h"
#include "json/run_json.h"
#include "json/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(rt_str text, rt_json_kind kind) {
    rt_json_scan scan = {.rows_max = 1};
    RT_ASSERT(rt_json_scan_text(&scan, text) == RT_JSON_FINE);
    RT_ASSERT(scan.top == kind);
    RT_ASSERT(text.len <= RT_RUN_ARGS_MAX);
}

static void check_secret(const rt_run_secret *s) {
    RT_ASSERT(s->role.len >= 1);
    RT_ASSERT(s->role.len <= RT_RUN_NAME_MAX);
    RT_ASSERT(s->name.len <= RT_RUN_NAME_MAX);
    RT_ASSERT(s->payload.ptr != NULL);
    RT_ASSERT(s->payload.len <= RT_RUN_SECRET_MAX);
    RT_ASSERT(s->content_type.len >= 1); // tells a secret from a container
    RT_ASSERT(s->content_type.len <= RT_RUN_NAME_MAX);
    for (size_t i = 0; i < s->content_type.len; i++) {
        RT_ASSERT(s->content_type.ptr[i] >= 0x20);
        RT_ASSERT(s->content_type.ptr[i] < 0x7F);
    }
}

static void check(const rt_run_answer *a) {
    RT_ASSERT(a->action <= RT_RUN_UNAVAILABLE);
    RT_ASSERT(a->after_ms >= -1);
    RT_ASSERT(!a->has_task || a->task.len >= 1);
    RT_ASSERT(a->task.len <= RT_RUN_TASK_MAX);
    RT_ASSERT(a->state.len <= RT_RUN_STATE_MAX);
    RT_ASSERT(a->secret_ref.len <= RT_RUN_REF_MAX);
    RT_ASSERT(a->container_ref.len <= RT_RUN_REF_MAX);
    if (a->has_args) check_json(a->args, RT_JSON_ARRAY);
    if (a->has_kwargs) check_json(a->kwargs, RT_JSON_OBJECT);
    if (a->action != RT_RUN_RETRY) RT_ASSERT(!a->has_task && !a->has_args && !a->has_kwargs);
    if (a->action != RT_RUN_DONE) RT_ASSERT(a->secrets_count == 0 && !a->container);
    RT_ASSERT(a->secrets_count <= RT_RUN_SECRETS_MAX);
    RT_ASSERT(a->container || a->secrets_count <= 1);
    for (uint32_t i = 0; i < a->secrets_count; i++) check_secret(&a->secrets[i]);
    const rt_str shown[] = {a->task, a->state, a->sub_status, a->message, a->code, a->reason, a->container_name};
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) RT_ASSERT(rt_utf8_is_valid(shown[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rt_arena arena = {0};
    rt_run_answer answer;
    rt_err err = {0};
    const rt_code code = rt_run_from_text((rt_str){.ptr = (const char *)data, .len = size}, &arena, &answer, &err);
    if (code == RT_OK) check(&answer);
    else RT_ASSERT(code == RT_E_INVALID && err.msg[0] != '\0');
    rt_arena_deinit(&arena);
    return 0;
}
