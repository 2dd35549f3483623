#include "engine/common/answers.h"

static bool has_room(rt_answers *a, rt_command *cmd, size_t bytes) {
    const size_t before = atomic_fetch_add_explicit(&a->bytes, bytes, memory_order_relaxed);
    cmd->answer_bytes += bytes;
    const size_t others = before + bytes - cmd->answer_bytes;
    return a->bytes_max == 0 || others == 0 || before + bytes <= a->bytes_max;
}

rt_code rt_answers_copy(rt_tx *tx, rt_command *cmd, rt_arena *arena, rt_str *body) {
    if (tx->trial) return RT_OK;
    if (tx->answers != NULL && !has_room(tx->answers, cmd, body->len)) {
        return rt_fail(tx->err, RT_E_FULL, 0, "too many answers are in memory; try again in a moment");
    }
    *body = rt_arena_dup(arena, *body);
    return body->ptr == NULL ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an answer") : RT_OK;
}

void rt_answers_taken(rt_answers *a, rt_command *cmd) {
    if (cmd->answer_bytes > 0) atomic_fetch_sub_explicit(&a->bytes, cmd->answer_bytes, memory_order_relaxed);
    cmd->answer_bytes = 0;
}
