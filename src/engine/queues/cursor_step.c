#include "engine/queues/cursor_step.h"

#include "engine/calls/call.h"
#include "engine/calls/circuit.h"
#include "engine/messages/fanout.h"
#include "engine/messages/subscription.h"
#include "engine/queues/dead.h"
#include "engine/queues/queue.h"

static rt_cursor_slice *const SLICES[RT_CURSOR_KIND_COUNT] = {
    [RT_CURSOR_FANOUT] = rt_fanout_slice,
    [RT_CURSOR_DRAIN] = rt_drain_slice,
    [RT_CURSOR_UNSUBSCRIBE] = rt_unsubscribe_slice,
    [RT_CURSOR_DEAD] = rt_dead_slice,
    [RT_CURSOR_CIRCUIT] = rt_circuit_slice,
    [RT_CURSOR_AGE] = rt_age_slice,
};

static rt_code decide_step(rt_tx *tx, rt_command *cmd) {
    rt_cursor_step *s = (rt_cursor_step *)cmd;
    s->finished = false;
    s->next_ms = tx->now_ms;
    char *name = rt_arena_alloc(tx->arena, RT_CURSOR_NAME_LEN);
    if (name == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a cursor");
    rt_put_be64((unsigned char *)name, s->id);
    rt_doc was;
    rt_code code = rt_view_doc(tx->view, RT_DOC_CURSOR, (rt_str){.ptr = name, .len = RT_CURSOR_NAME_LEN}, &was);
    s->finished = code == RT_E_ABSENT;
    if (code != RT_OK) return s->finished ? RT_OK : code;
    was.name.ptr = name;
    rt_cursor c;
    if (!rt_cursor_decode(was.value, &c)) return rt_fail(tx->err, RT_E_CORRUPT, 0, "a cursor cannot be read");
    if (c.next_ms > tx->now_ms) {
        s->next_ms = c.next_ms;
        return RT_OK;
    }
    bool finished = false;
    code = SLICES[c.kind](tx, &c, &finished);
    if (code != RT_OK) return code;
    // Either way its document is written, so that of two who carry on the same slice only one does.
    if (finished) rt_tx_put_doc(tx, &was, NULL);
    else code = rt_cursor_write(tx, &was, &c);
    s->finished = finished;
    if (c.next_ms > tx->now_ms) s->next_ms = c.next_ms;
    return code;
}

void rt_cursor_step_init(rt_cursor_step *c) { *c = (rt_cursor_step){.cmd = {.decide = decide_step}}; }
