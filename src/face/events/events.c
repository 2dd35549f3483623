#include "face/events/events.h"

#include "face/common/problem_face.h"
#include "face/events/parts.h"

static const rt_route TYPES[] = {
    {"GET", "/v1/event-types", rt_page_type_list, RT_ON_READER},
    {"GET", "/v1/event-types/{type}", rt_page_type_get, 0},
    {"PUT", "/v1/event-types/{type}", rt_page_type_put, 0},
    {"DELETE", "/v1/event-types/{type}", rt_page_type_delete, 0},
    {"POST", "/v1/event-types/{type}/claim", rt_page_event_claim, 0},
};
static const rt_route EVENTS[] = {
    {"POST", "/v1/events", rt_page_event_mixed, 0},
    {"GET", "/v1/events/{type}", rt_page_event_list, RT_ON_READER},
    {"POST", "/v1/events/{type}", rt_page_event_post, 0},
    {"POST", "/v1/events/{type}/batch", rt_page_event_batch, 0},
};
static const rt_route JOBS[] = {
    {"POST", "/v1/jobs/finish", rt_page_events_finish, 0},
    {"POST", "/v1/jobs/fail", rt_page_events_fail, 0},
    {"POST", "/v1/jobs/release", rt_page_events_release, 0},
    {"POST", "/v1/jobs/extend", rt_page_events_extend, 0},
    {"GET", "/v1/jobs/{job}", rt_page_job_get, 0},
    {"DELETE", "/v1/jobs/{job}", rt_page_job_delete, 0},
    {"GET", "/v1/jobs/{job}/body", rt_page_job_body, 0},
    {"GET", "/v1/jobs/{job}/attempts", rt_page_job_attempts, RT_ON_READER},
    {"POST", "/v1/jobs/{job}/finish", rt_page_event_finish, 0},
    {"POST", "/v1/jobs/{job}/fail", rt_page_event_fail, 0},
    {"POST", "/v1/jobs/{job}/release", rt_page_event_release, 0},
    {"POST", "/v1/jobs/{job}/extend", rt_page_event_extend, 0},
};

void rt_face_events(rt_api *api, const rt_face *out[RT_EVENTS_FACES]) {
    static rt_face faces[RT_EVENTS_FACES] = {
        RT_PROBLEM_FACE("/v1/event-types", TYPES, rt_problem_want_tenant),
        RT_PROBLEM_FACE("/v1/events", EVENTS, rt_problem_want_tenant),
        RT_PROBLEM_FACE("/v1/jobs", JOBS, rt_problem_want_tenant),
    };
    for (int i = 0; i < RT_EVENTS_FACES; i++) {
        faces[i].app = api;
        out[i] = &faces[i];
    }
}
