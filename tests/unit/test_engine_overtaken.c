/* test_engine_overtaken.c: a node whose batches meet those of faster ones. */
#include "call_rig.h"
#include "engine/calls/call.h"

/* Whatever this node commits together with the start of an attempt meets another's. */
static struct {
    const rt_store_ops *real;
    rt_store_ops ops;
    bool starts, ended;
    uint64_t batch_no;
} faster;

static rt_code note_start(rt_store *s, const rt_change *change, rt_err *err) {
    for (uint32_t i = 0; i < change->ops_count; i++) {
        const rt_op *op = &change->ops[i];
        if (op->kind == RT_OP_JOB && op->job.now != NULL && op->job.now->state == RT_JOB_LEASED) faster.starts = true;
    }
    return faster.real->apply(s, change, err);
}

static void commit_unless_it_starts(rt_store *s, uint64_t batch_no) {
    if (!faster.starts) {
        faster.real->commit(s, batch_no);
        return;
    }
    faster.real->abandon(s);
    faster.starts = false;
    faster.ended = true;
    faster.batch_no = batch_no;
}

static bool tell_conflict(rt_store *s, uint64_t *batch_no, rt_batch_end *end, rt_err *err) {
    if (!faster.ended) return faster.real->poll(s, batch_no, end, err);
    faster.ended = false;
    *batch_no = faster.batch_no;
    *end = RT_BATCH_CONFLICT;
    return true;
}

static void set_done(rt_command *cmd) { *(bool *)cmd->ctx = true; }

static void overtaken__callers_are_answered_though_every_start_meets_others(void **state) {
    rig *r = *state;
    rig_put(r, rig_type("http://t/"));
    faster.real = r->store->ops;
    faster.ops = *faster.real;
    faster.ops.apply = note_start;
    faster.ops.commit = commit_unless_it_starts;
    faster.ops.poll = tell_conflict;
    r->store->ops = &faster.ops;
    bool done = false;
    rt_call_item item;
    rt_calls_schedule c;
    rig_schedule_init(&c, &item);
    c.cmd.done = set_done;
    c.cmd.ctx = &done;
    rt_engine_submit(r->engine, &c.cmd);
    for (int i = 0; i < 10 && !done; i++) (void)rt_engine_step(r->engine, r->now_ms);
    assert_true(done);
    assert_int_equal(c.cmd.code, RT_OK);
    assert_int_equal(r->started, 0);
    r->store->ops = faster.real;
    rig_pass(r, 1000);
    assert_int_equal(r->started, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(overtaken__callers_are_answered_though_every_start_meets_others, rig_setup_both,
                                        rig_teardown_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
