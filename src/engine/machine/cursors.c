#include <stdlib.h>

#include "base/pack.h"
#include "engine/machine/machine.h"

typedef struct cursor_task {
    rt_heap_node node; /* first member: sleeps until its next slice */
    rt_cursor_step step;
} cursor_task;

static cursor_task *task_of(rt_command *cmd) {
    return (cursor_task *)((char *)cmd - offsetof(cursor_task, step));
}

static void cursor_done(rt_command *cmd);

static void step_cursor(rt_engine *e, cursor_task *task) {
    const rt_id id = task->step.id;
    rt_cursor_step_init(&task->step);
    task->step.id = id;
    task->step.cmd.done = cursor_done;
    task->step.cmd.ctx = e;
    rt_own_submit(e, &task->step.cmd);
}

static void cursor_done(rt_command *cmd) {
    rt_engine *e = cmd->ctx;
    cursor_task *task = task_of(cmd);
    if (cmd->code == RT_OK && task->step.finished) {
        e->cursors_busy--;
        free(task);
        return;
    }
    int64_t at_ms = cmd->code == RT_OK ? task->step.next_ms : e->now_ms + RT_STORE_PAUSE_MS;
    if (cmd->code == RT_E_CORRUPT) at_ms = e->now_ms + RT_CORRUPT_PAUSE_MS;
    if (at_ms < e->now_ms) at_ms = e->now_ms;
    if (!rt_heap_set(&e->cursors, &task->node, at_ms)) step_cursor(e, task);
}

void rt_cursors_note(rt_engine *e, rt_id id) {
    cursor_task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        e->cursors_pending = true; // it is on disk: found by the next look at all of them
        return;
    }
    *task = (cursor_task){.node = {.tie = id}, .step = {.id = id}};
    e->cursors_busy++;
    if (!rt_heap_set(&e->cursors, &task->node, e->now_ms)) step_cursor(e, task);
}

static bool add_cursor(void *ctx, const rt_doc *doc) {
    if (doc->name.len == 8) rt_cursors_note(ctx, rt_get_be64((const unsigned char *)doc->name.ptr));
    return true;
}

/* At the start, and when one could not be noted: only while none is known, or one would be carried on twice. */
void rt_cursors_find(rt_engine *e) {
    if (!e->cursors_pending || e->cursors_busy > 0 || e->now_ms < e->store_pause_until_ms) return;
    rt_view *view = rt_own_view(e);
    if (view == NULL) return;
    e->cursors_pending =
        rt_view_docs(view, RT_DOC_CURSOR, RT_STR_EMPTY, RT_STR_EMPTY, add_cursor, e) != RT_OK;
    rt_view_close(view);
}

void rt_cursors_carry_on(rt_engine *e) {
    for (;;) {
        rt_heap_node *first = rt_heap_first(&e->cursors);
        if (first == NULL || first->at_ms > e->now_ms) return;
        rt_heap_remove(&e->cursors, first);
        step_cursor(e, (cursor_task *)first);
    }
}

bool rt_cursors_drop(rt_command *cmd) {
    if (cmd->done != cursor_done) return false;
    free(task_of(cmd));
    return true;
}

void rt_cursors_close(rt_engine *e) {
    rt_heap_node *node;
    while ((node = rt_heap_first(&e->cursors)) != NULL) {
        rt_heap_remove(&e->cursors, node);
        free((cursor_task *)node);
    }
    rt_heap_deinit(&e->cursors);
}
