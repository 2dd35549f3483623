#include "face/orders/parts.h"

static bool add_lock(void *ctx, rt_str name, const rt_lock *l) {
    json_t *json = json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", rt_json_str(name), "holder",
                             rt_json_str(l->holder), "token", rt_json_token(l->token), "taken",
                             rt_json_time(l->taken_ms), "renewed", rt_json_time(l->renewed_ms));
    return json_array_append_new(ctx, json) == 0;
}

void rt_page_lock_list(rt_exchange *x) {
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    json_t *array = json_array();
    const rt_code code = rt_read_locks(v, add_lock, array);
    rt_view_close(v);
    if (code == RT_OK) {
        rt_reply_json(x, 200, array);
        return;
    }
    json_decref(array);
    rt_problem_of(x, code, NULL, "lock");
}
