#include "engine/machine/machine.h"

void rt_own_submit(rt_engine *e, rt_command *cmd) {
    cmd->tries = 0;
    rt_command_list_push(&e->own, cmd);
}

bool rt_own_repeat(rt_engine *e, rt_command *cmd) {
    const rt_code code = cmd->code;
    const bool again = code == RT_E_UNAVAILABLE || code == RT_E_FULL || code == RT_E_CONFLICT || code == RT_E_IO ||
                       code == RT_E_NOMEM || code == RT_E_AGAIN;
    if (again) rt_own_submit(e, cmd);
    return again;
}

rt_view *rt_own_view(rt_engine *e) {
    rt_view *view;
    const rt_code code = rt_store_view(e->store, &view, &e->err);
    if (code == RT_OK) return view;
    e->trouble = code;
    e->trouble_why = e->err;
    e->store_pause_until_ms = e->now_ms + RT_STORE_PAUSE_MS;
    return NULL;
}
