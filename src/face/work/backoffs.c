#include "face/common/query.h"
#include "face/work/parts.h"

typedef struct listing {
    json_t *array;
    rt_str entity;
    rt_query wanted; /* FOUND: only those that are `active`, or are not */
    bool active;
    int64_t now_ms, left;
} listing;

static bool add_rest(void *ctx, rt_str entity, rt_str process, const rt_rest *r) {
    listing *l = ctx;
    if (l->wanted == RT_QUERY_FOUND && l->active != (r->until_ms > l->now_ms)) return true;
    return json_array_append_new(l->array, rt_json_rest(entity, process, r, l->now_ms)) == 0 && --l->left > 0;
}

/* Of one entity: by its slots, not by a walk over all backoffs. */
static rt_code list_of_entity(rt_exchange *x, rt_view *v, rt_str entity, rt_str process, listing *l) {
    rt_arena *arena = rt_exchange_arena(x);
    const rt_str tenant = rt_tenant_of(x);
    rt_entity *e = rt_arena_alloc(arena, sizeof *e);
    if (e == NULL) return RT_E_NOMEM;
    rt_code code = rt_read_entity(v, arena, tenant, entity, e);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    for (uint32_t i = 0; i < e->slots_count; i++) {
        const rt_slot *slot = &e->slots[i];
        rt_rest rest;
        if (slot->until_ms == 0 || (process.len > 0 && !rt_str_eq(process, slot->process))) continue;
        code = rt_read_rest(v, arena, tenant, entity, slot->process, &rest);
        if (code == RT_OK && !add_rest(l, entity, slot->process, &rest)) break;
        if (code != RT_OK && code != RT_E_ABSENT) return code;
    }
    return RT_OK;
}

/* "PROCESS/ENTITY" of the last line. False: replied. */
static bool read_marker(rt_exchange *x, rt_str *process, rt_str *entity) {
    rt_str text;
    *process = *entity = RT_STR_EMPTY;
    if (!rt_exchange_arg(x, "marker", &text) || text.len == 0) return true;
    if (rt_str_cut(text, '/', process, entity) && rt_name_is_word(*process) &&
        rt_name_is_entity(*entity)) {
        return true;
    }
    rt_problem(x, 400, "\"marker\" must be PROCESS/ENTITY of the last line that was read.");
    return false;
}

void rt_page_backoff_list(rt_exchange *x) {
    listing l = {.now_ms = rt_api_of(x)->now_ms()};
    rt_str process = RT_STR_EMPTY, entity = RT_STR_EMPTY, after_process, after_entity;
    if (!rt_arg_int(x, "limit", 1, RT_WORK_PAGE_MAX, RT_WORK_PAGE_DEFAULT, &l.left)) return;
    if (!read_marker(x, &after_process, &after_entity)) return;
    (void)rt_exchange_arg(x, "process", &process);
    (void)rt_exchange_arg(x, "entity", &entity);
    l.wanted = rt_query_bool(x, "active", &l.active);
    if (l.wanted == RT_QUERY_INVALID) {
        rt_problem(x, 400, "The query parameter \"active\" must be 1 or 0, or left out for both.");
        return;
    }
    const bool known = (process.len == 0 || rt_name_is_word(process)) &&
                       (entity.len == 0 || rt_name_is_entity(entity));
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    l.array = json_array();
    rt_code code = RT_OK;
    if (known && entity.len > 0) code = list_of_entity(x, v, entity, process, &l);
    else if (known)
        code = rt_read_rests(v, rt_exchange_arena(x), rt_tenant_of(x), process, after_process, after_entity,
                             add_rest, &l);
    rt_view_close(v);
    if (code == RT_OK) {
        rt_reply_json(x, 200, l.array);
        return;
    }
    json_decref(l.array);
    rt_problem_of(x, code, NULL, "backoff");
}

static void cleared(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
    else rt_problem_of(x, cmd->code, &cmd->err, "backoff");
}

void rt_page_backoff_delete(rt_exchange *x) {
    rt_backoff_clear *c = RT_NEW(x, rt_backoff_clear);
    if (c == NULL) return;
    rt_backoff_clear_init(c);
    c->tenant = rt_tenant_of(x);
    if (!rt_param_entity(x, 0, &c->entity) || !rt_param_word(x, 1, "process", &c->process)) return;
    rt_api_submit(x, &c->cmd, sizeof *c, cleared, rt_problem_busy);
}
