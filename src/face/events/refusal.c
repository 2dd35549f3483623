#include "face/events/parts.h"

bool rt_param_type(rt_exchange *x, size_t i, rt_str *out) {
    *out = rt_exchange_param(x, i);
    if (rt_call_type_name_is_valid(*out)) return true;
    rt_problem(x, 400, "An event type is 1 to %d letters, digits, '.', '_', '-' or ':'.",
               RT_CALL_TYPE_NAME_MAX);
    return false;
}

void rt_problem_event(rt_exchange *x, const rt_command *cmd, const char *what, const char *fenced) {
    if (cmd->code == RT_E_FENCED) rt_problem_coded(x, 409, fenced, cmd->err.msg);
    else if (cmd->code == RT_E_INVALID) rt_problem(x, 400, "%s", cmd->err.msg);
    else rt_problem_of(x, cmd->code, &cmd->err, what);
}
