/* History keeps to its bound while work goes on and on, not only when there is time. */
#include "call_rig.h"

enum { AT_ONCE = 1000 }; /* of one batch */

static bool count_one(void *ctx, const rt_event *event) {
    (void)event;
    ++*(uint32_t *)ctx;
    return true;
}

static uint32_t lines_of(rig *r) {
    uint32_t count = 0;
    rt_view *v = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_view_events(v, 0, count_one, &count), RT_OK);
    rt_view_close(v);
    return count;
}

static void done(rt_command *cmd) {
    assert_int_equal(cmd->code, RT_OK);
    ++*(uint32_t *)cmd->ctx;
}

static void history__keeps_to_its_bound_under_lasting_load(void **state) {
    static rt_call_end ends[AT_ONCE];
    rig *r = *state;
    uint32_t ended = 0;
    rig_put(r, rig_type(""));
    rig_schedule(r, AT_ONCE, NULL);
    for (int i = 0; i < AT_ONCE; i++) {
        const rt_call_claim c = rig_claim(r, 1);
        rt_call_end_init(&ends[i]);
        ends[i].tenant = RT_STR("p");
        ends[i].id = c.calls[0].job.id;
        ends[i].token = c.calls[0].token;
        ends[i].verb = RT_CALL_FINISH;
        ends[i].cmd.done = done;
        ends[i].cmd.ctx = &ended;
    }
    for (int i = 0; i < AT_ONCE; i++) rt_engine_submit(r->engine, &ends[i].cmd);
    (void)rt_engine_step(r->engine, r->now_ms); // one, so that nothing is made up for later
    assert_int_equal(ended, AT_ONCE);
    assert_in_range(lines_of(r), 1, RIG_EVENTS_KEPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(history__keeps_to_its_bound_under_lasting_load, rig_setup_forgetful, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
