#include "face/admin/admin.h"

#include "face/admin/pages.h"
#include "face/common/problem_face.h"

/* Literal segments stand before placeholders that would match them. */
static const rt_route ROUTES_V1[] = {
    {"GET", "/v1/queues", rt_page_queue_list, RT_ON_READER},
    {"GET", "/v1/queues/{queue}", rt_page_queue_get, 0},
    {"POST", "/v1/queues/{queue}/pause", rt_page_queue_pause, 0},
    {"POST", "/v1/queues/{queue}/resume", rt_page_queue_resume, 0},
    {"POST", "/v1/queues/{queue}/circuit", rt_page_queue_circuit, 0},
    {"GET", "/v1/attempts", rt_page_attempts, RT_ON_READER},
    {"GET", "/v1/dead", rt_page_dead_list, RT_ON_READER},
    {"GET", "/v1/dead/count", rt_page_dead_count, RT_ON_READER},
    {"GET", "/v1/dead/sample", rt_page_dead_sample, RT_ON_READER},
    {"GET", "/v1/dead/export", rt_page_dead_export, RT_ON_READER},
    {"POST", "/v1/dead/redrive", rt_page_dead_redrive_many, RT_ON_READER},
    {"POST", "/v1/dead/delete", rt_page_dead_delete_many, RT_ON_READER},
    {"POST", "/v1/dead/{job}/redrive", rt_page_dead_redrive, 0},
    {"DELETE", "/v1/dead/{job}", rt_page_dead_delete, 0},
};
static const rt_route ROUTES_METRICS[] = {{"GET", "/metrics", rt_page_metrics, RT_IMPATIENT}};
// Probes of load balancers ask with HEAD.
static const rt_route ROUTES_HEALTH[] = {{"GET", "/healthz", rt_page_health, 0},
                                         {"HEAD", "/healthz", rt_page_health, 0}};
static const rt_route ROUTES_READY[] = {{"GET", "/readyz", rt_page_ready, 0}, {"HEAD", "/readyz", rt_page_ready, 0}};
static const rt_route ROUTES_OPENAPI[] = {{"GET", "/openapi.json", rt_page_openapi, 0}};

void rt_face_admin(rt_api *api, const rt_face *out[RT_ADMIN_FACES]) {
    static rt_face faces[RT_ADMIN_FACES] = {
        RT_PROBLEM_FACE("/v1", ROUTES_V1, rt_problem_want_operator),
        RT_PROBLEM_FACE("/metrics", ROUTES_METRICS, rt_problem_want_operator),
        RT_PROBLEM_FACE("/healthz", ROUTES_HEALTH, NULL),       RT_PROBLEM_FACE("/readyz", ROUTES_READY, NULL),
        RT_PROBLEM_FACE("/openapi.json", ROUTES_OPENAPI, NULL),
    };
    for (int i = 0; i < RT_ADMIN_FACES; i++) {
        faces[i].app = api;
        out[i] = &faces[i];
    }
}
