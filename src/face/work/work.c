#include "face/work/work.h"

#include "face/common/problem_face.h"
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

void rt_face_work(rt_api *api, const rt_face *out[RT_WORK_FACES]) {
    static rt_face faces[RT_WORK_FACES] = {
        RT_PROBLEM_FACE("/v1/sessions", SESSIONS, rt_problem_want_tenant),
        RT_PROBLEM_FACE("/v1/processes", PROCESSES, rt_problem_want_tenant),
        RT_PROBLEM_FACE("/v1/work", WORK, rt_problem_want_tenant),
        RT_PROBLEM_FACE("/v1/backoffs", BACKOFFS, rt_problem_want_tenant),
        RT_PROBLEM_FACE("/v1/entities", ENTITIES, rt_problem_want_tenant),
    };
    for (int i = 0; i < RT_WORK_FACES; i++) {
        faces[i].app = api;
        out[i] = &faces[i];
    }
}
