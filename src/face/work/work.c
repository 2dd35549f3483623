#include "face/work/work.h"

#include "face/work/parts.h"

static const rt_route SESSIONS[] = {
    {"GET", "/v1/sessions", rt_page_session_list, RT_ON_READER},
    {"POST", "/v1/sessions", rt_page_session_post, 0},
    {"GET", "/v1/sessions/{session}", rt_page_session_get, RT_ON_READER},
    {"DELETE", "/v1/sessions/{session}", rt_page_session_delete, 0},
    {"POST", "/v1/sessions/{session}/heartbeat", rt_page_session_beat, 0},
};
static const rt_route PROCESSES[] = {
    {"GET", "/v1/processes", rt_page_process_list, RT_ON_READER},
    {"GET", "/v1/processes/{process}", rt_page_process_get, 0},
    {"PUT", "/v1/processes/{process}", rt_page_process_put, 0},
};
static const rt_route WORK[] = {
    {"GET", "/v1/work", rt_page_work_list, RT_ON_READER},
    {"POST", "/v1/work/claim", rt_page_work_claim, 0},
    {"POST", "/v1/work/{work}/finish", rt_page_work_finish, 0},
    {"POST", "/v1/work/{work}/fail", rt_page_work_fail, 0},
    {"POST", "/v1/work/{work}/cancel", rt_page_work_cancel, 0},
};
static const rt_route BACKOFFS[] = {
    {"GET", "/v1/backoffs", rt_page_backoff_list, RT_ON_READER},
    {"DELETE", "/v1/backoffs/{entity}/{process}", rt_page_backoff_delete, 0},
};
static const rt_route ENTITIES[] = {
    {"GET", "/v1/entities", rt_page_entity_list, RT_ON_READER},
    {"GET", "/v1/entities/{entity}", rt_page_entity_get, RT_ON_READER},
    {"PUT", "/v1/entities/{entity}", rt_page_entity_put, 0},
    {"DELETE", "/v1/entities/{entity}", rt_page_entity_delete, 0},
    {"GET", "/v1/entities/{entity}/history", rt_page_entity_history, RT_ON_READER},
};

static void want_tenant(rt_exchange *x) {
    const rt_str tenant = rt_tenant_of(x);
    if (tenant.len > RT_TENANT_MAX) {
        rt_problem(x, 400, "X-Project-ID has at most %d bytes.", RT_TENANT_MAX);
        return;
    }
    const unsigned refusal = rt_api_refusal(x, tenant);
    if (refusal != 0) rt_problem(x, refusal, "This wants a token for project \"%.*s\".", RT_STR_ARG(tenant));
}

static void not_found(rt_exchange *x) { rt_problem(x, 404, "There is no such path."); }

static void not_allowed(rt_exchange *x, rt_str allow) {
    rt_exchange_set_header(x, "Allow", allow);
    rt_problem(x, 405, "This path takes %.*s.", RT_STR_ARG(allow));
}

static void refuse(rt_exchange *x, unsigned status, rt_str why) {
    rt_problem(x, status, "%.*s", RT_STR_ARG(why));
}

#define FACE(at, table)                                                                                      \
    {                                                                                                        \
        .prefix = (at), .routes = (table), .routes_count = sizeof(table) / sizeof(table)[0],                 \
        .before = want_tenant, .not_found = not_found, .not_allowed = not_allowed, .refuse = refuse          \
    }

void rt_face_work(rt_api *api, const rt_face *out[RT_WORK_FACES]) {
    static rt_face faces[RT_WORK_FACES] = {
        FACE("/v1/sessions", SESSIONS), FACE("/v1/processes", PROCESSES), FACE("/v1/work", WORK),
        FACE("/v1/backoffs", BACKOFFS), FACE("/v1/entities", ENTITIES),
    };
    for (int i = 0; i < RT_WORK_FACES; i++) {
        faces[i].app = api;
        out[i] = &faces[i];
    }
}
