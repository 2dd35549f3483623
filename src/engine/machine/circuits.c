#include <stdlib.h>

#include "engine/calls/circuit.h"
#include "engine/calls/starts.h"
#include "engine/machine/machine.h"

static void trip_done(rt_command *cmd) {
    rt_engine *e = cmd->ctx;
    if (rt_own_repeat(e, cmd)) return;
    rt_circuit_trip *c = (rt_circuit_trip *)cmd;
    rt_lane *lane = rt_map_get(&e->schedule.lanes, c->queue);
    if (lane != NULL) {
        rt_circuit_trip_end(c, lane, e->now_ms);
        rt_schedule_turn(&e->schedule, lane);
    }
    rt_waiting_wake_all(&e->waiting);
    free(c);
}

static void submit_trip(rt_engine *e, rt_lane *lane) {
    rt_circuit_trip *c = malloc(sizeof *c);
    if (c == NULL) return; // the next failure tries again
    rt_circuit_trip_begin(c, lane);
    c->cmd.done = trip_done;
    c->cmd.ctx = e;
    rt_own_submit(e, &c->cmd);
}

void rt_circuits_learn(rt_engine *e, const rt_lesson *lesson) {
    rt_lane *lane = rt_map_get(&e->schedule.lanes, lesson->queue);
    if (lane != NULL && rt_circuit_note(lane, lesson, e->now_ms)) submit_trip(e, lane);
}

void rt_circuits_tell(rt_engine *e, rt_lane *lane) {
    if (lane->brakes != NULL && rt_circuit_has_news(lane->brakes, e->now_ms)) submit_trip(e, lane);
}

static void ask_done(rt_command *cmd) {
    if (!rt_own_repeat(cmd->ctx, cmd)) free(cmd);
}

void rt_circuits_ask(rt_engine *e, rt_id queue) {
    rt_starts_ask *c = malloc(sizeof *c);
    if (c == NULL) return; // it asks again
    rt_starts_ask_init(c);
    c->queue = queue;
    c->cmd.done = ask_done;
    c->cmd.ctx = e;
    rt_own_submit(e, &c->cmd);
}

/* Others are told, and heard, also a while after the last lesson. */
void rt_circuits_look(rt_engine *e) {
    size_t at = 0;
    for (rt_lane *lane; (lane = rt_map_next(&e->schedule.lanes, &at)) != NULL;) {
        rt_circuits_tell(e, lane);
        if (lane->brakes != NULL && rt_circuit_listens(lane->brakes, e->now_ms))
            rt_schedule_turn(&e->schedule, lane); // its record is read again then
    }
}

bool rt_circuits_drop(rt_command *cmd) {
    if (cmd->done != trip_done && cmd->done != ask_done) return false;
    free(cmd);
    return true;
}
